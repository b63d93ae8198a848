//! Maps keys of series to file names, injectively.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tsb_core::SeriesKey;

/// Maximum length of a path component; file systems allow 255 bytes, `.rrd.new` included.
const PART_MAX: usize = 240;
/// Marks a component that is continued in the next one; in names this character is escaped.
const CONTINUED: char = '+';

/// The path of a series below the folder of the store: `cpu{host=a}.rrd`.
///
/// Letters, digits and `_ - . = , { }` are used unchanged, other bytes as `%` and two digits.
/// Inside of names and label values, the separators are escaped too.
pub fn path_of(key: &SeriesKey) -> PathBuf {
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
        // The text is ASCII, so it can be split anywhere.
        let (part, after) = rest.split_at(PART_MAX);
        path.push(format!("{part}{CONTINUED}"));
        rest = after;
    }
    path.push(format!("{rest}.rrd"));
    path
}

/// The series of a file, from its path below the folder of the store. If another program named
/// the file, the path itself is the name. `None` if it is not an RRD file.
pub fn key_of(path: &Path) -> Option<SeriesKey> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    let own = parts.and_then(|parts| own_key(&parts));
    own.filter(|key| path_of(key) == path)
        .or_else(|| path.to_str()?.strip_suffix(".rrd").map(SeriesKey::new))
}

/// The inverse of [`path_of`], for its results.
fn own_key(parts: &[&str]) -> Option<SeriesKey> {
    let (last, before) = parts.split_last()?;
    let mut text = String::new();
    for part in before {
        text.push_str(part.strip_suffix(CONTINUED)?);
    }
    text.push_str(last.strip_suffix(".rrd")?);
    let Some((name, labels)) = text.strip_suffix('}').and_then(|text| text.split_once('{')) else {
        return unescaped(&text).map(SeriesKey::new);
    };
    let pairs = labels.split(',').map(|pair| {
        let (label, value) = pair.split_once('=')?;
        Some((unescaped(label)?, unescaped(value)?))
    });
    let pairs: Option<Vec<(String, String)>> = pairs.collect();
    Some(SeriesKey::with_labels(unescaped(name)?, pairs?))
}

/// The inverse of [`escape`].
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn escape(text: &str, into: &mut String) {
    for (index, byte) in text.bytes().enumerate() {
        // A leading dot would hide the file.
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
