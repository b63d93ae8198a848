//! From the key of a series to the name of its file, and only one key to each name.

use std::fmt::Write as _;
use std::path::PathBuf;

use tsb_core::SeriesKey;

/// The longest part between slashes; file systems allow 255 bytes, `.rrd.new` included.
const PART_MAX: usize = 240;
/// At the end of a part that goes on in the next; never stands for itself.
const CONTINUED: char = '+';

/// The path of a series below the folder of the store: `cpu{host=a}.rrd`.
///
/// Letters, digits and `_ - . = , { }` stand for themselves, other bytes as `%` and two
/// digits; within a name or value of a label the signs that divide them are escaped too.
pub(crate) fn path_of(key: &SeriesKey) -> PathBuf {
    let mut text = String::with_capacity(64);
    escape(key.name(), &mut text);
    for (index, (label, value)) in key.labels().iter().enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        escape(label, &mut text);
        text.push('=');
        escape(value, &mut text);
    }
    if !key.labels().is_empty() {
        text.push('}');
    }
    let mut path = PathBuf::new();
    let mut rest = text.as_str();
    while rest.len() > PART_MAX {
        // All ASCII, so any place is between two characters.
        let (part, after) = rest.split_at(PART_MAX);
        path.push(format!("{part}{CONTINUED}"));
        rest = after;
    }
    path.push(format!("{rest}.rrd"));
    path
}

fn escape(text: &str, into: &mut String) {
    for (index, byte) in text.bytes().enumerate() {
        // A point at the start would hide the file.
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && index > 0);
        if is_plain {
            into.push(char::from(byte));
        } else {
            let _ = write!(into, "%{byte:02x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_can_be_read_and_none_leaves_the_folder() {
        let check = |key: SeriesKey, expected: &str| assert_eq!(path_of(&key).to_str(), Some(expected));
        check(SeriesKey::new("load.1m"), "load.1m.rrd");
        check(
            SeriesKey::with_labels("cpu", [("host", "a/b"), ("id", "7")]),
            "cpu{host=a%2fb,id=7}.rrd",
        );
        check(SeriesKey::new(".."), "%2e..rrd");
        check(SeriesKey::new("/etc/passwd"), "%2fetc%2fpasswd.rrd");
        check(SeriesKey::new(""), ".rrd");
        check(SeriesKey::new("\u{fc}+"), "%c3%bc%2b.rrd");
    }

    #[test]
    fn two_keys_never_share_a_name() {
        let long = "x".repeat(700);
        let keys = [
            SeriesKey::new("a"),
            SeriesKey::new("a{b=c}"),
            SeriesKey::with_labels("a", [("b", "c")]),
            SeriesKey::with_labels("a", [("b", "c,d=e")]),
            SeriesKey::with_labels("a", [("b", "c"), ("d", "e")]),
            SeriesKey::new(long.clone()),
            SeriesKey::new(format!("{long}y")),
            SeriesKey::new("x".repeat(PART_MAX)),
            SeriesKey::new("x".repeat(PART_MAX + 1)),
        ];
        let paths: HashSet<PathBuf> = keys.iter().map(path_of).collect();
        assert_eq!(paths.len(), keys.len());
        let parts = paths.iter().flat_map(|path| path.iter());
        assert!(parts.into_iter().all(|part| part.len() <= 255 - 4));
    }
}
