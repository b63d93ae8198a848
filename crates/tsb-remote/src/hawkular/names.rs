//! The id of the gauge of a series: `tsb:NAME,LABEL:VALUE,...`, and back.
//!
//! Small letters, digits, `_`, `.` and `-` stand for themselves, and every other byte is `*` and two
//! hexadecimal digits: Mohawk takes few characters in an id, and its SQLite tells no capital letters from
//! small ones.

use std::fmt::Write as _;

use tsb_core::SeriesKey;

/// How the id of every gauge of ours begins.
const MARK: &str = "tsb:";
/// Maximum length of an id in bytes: percent-encoded in a path, it takes three times as many.
const ID_BYTES_MAX: usize = 4_096;

/// The id of a series.
///
/// # Errors
/// Why it cannot have one.
pub(super) fn id_of(key: &SeriesKey) -> Result<String, &'static str> {
    let id = written(key);
    if id.len() > ID_BYTES_MAX {
        return Err("its name and labels take more than 4,096 bytes in an id");
    }
    Ok(id)
}

/// The series of an id; `None` if it is not one of ours.
pub(super) fn key_of(id: &str) -> Option<SeriesKey> {
    let mut parts = id.strip_prefix(MARK)?.split(',');
    let name = decoded(parts.next()?)?;
    let label = |part: &str| {
        let (label, value) = part.split_once(':')?;
        Some((decoded(label)?, decoded(value)?))
    };
    let labels: Option<Vec<_>> = parts.map(label).collect();
    let key = SeriesKey::with_labels(name, labels?);
    // Each series has one id.
    (written(&key) == id).then_some(key)
}

fn written(key: &SeriesKey) -> String {
    let mut id = MARK.to_owned();
    encode(key.name(), &mut id);
    for (label, value) in key.labels() {
        id.push(',');
        encode(label, &mut id);
        id.push(':');
        encode(value, &mut id);
    }
    id
}

fn encode(text: &str, id: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte) {
            id.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(id, "*{byte:02x}");
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('*');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_series_has_a_readable_id() {
        let key = SeriesKey::with_labels("cpu.User", [("host", "web-1"), ("path", "/a:b,c*")]);
        let id = id_of(&key).unwrap();
        assert_eq!(id, "tsb:cpu.*55ser,host:web-1,path:*2fa*3ab*2cc*2a");
        assert_eq!(key_of(&id), Some(key));
        assert!(id_of(&SeriesKey::new("x".repeat(5_000))).is_err());
    }

    #[test]
    fn ids_of_others_are_no_series() {
        for id in [
            "",
            "cpu",
            "tsb",
            "tsb:A",
            "tsb:*4",
            "tsb:*zz",
            "tsb:*+1",
            "tsb:*61",
            "tsb:*6\u{e9}",
            "tsb:a,b",
            "tsb:a,b:c:d",
            "tsb:a,c:1,b:2",
            "tsb:*ff",
            "tsb:a b",
        ] {
            assert_eq!(key_of(id), None, "{id}");
        }
    }

    proptest! {
        #[test]
        fn every_key_comes_back(name in "\\PC{0,12}", labels in prop::collection::btree_map("\\PC{0,6}", "\\PC{0,6}", 0..4)) {
            let key = SeriesKey::with_labels(name, labels);
            let id = id_of(&key).unwrap();
            let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-:,*".contains(&byte);
            prop_assert!(id.bytes().all(is_allowed), "{}", id);
            prop_assert_eq!(key_of(&id), Some(key));
        }

        #[test]
        fn an_id_is_of_one_series(id in "tsb:[a-c*0-9,:]{0,16}") {
            if let Some(key) = key_of(&id) {
                prop_assert_eq!(id_of(&key), Ok(id));
            }
        }
    }
}
