//! The path of a series below a prefix, and back. Pure.
//!
//! `cpu.user{host=h1}` below `runs` is `runs.cpu.user.host=h1`: the parts of the name, then a part
//! for each label. Every byte but letters, digits, `_` and `-` is written as `%` and two hexadecimal
//! digits, except dots between the parts of a name.

use tsb_core::SeriesKey;
use tsb_core::bytes::percent;

/// Longest part of a path: Whisper makes a file name of it, followed by `.wsp`.
const PART_MAX: usize = 250;

/// The path of a series.
///
/// # Errors
/// What in the key cannot be a path.
pub(super) fn path_of(prefix: &str, key: &SeriesKey) -> Result<String, String> {
    let mut path = prefix.to_owned();
    let name = key.name();
    let is_plain = !name.is_empty() && name.split('.').all(|part| !part.is_empty());
    if is_plain {
        for part in name.split('.') {
            path.push('.');
            escape(part, &mut path);
        }
    } else {
        // A dot at the end of a name would end a part that is empty.
        path.push('.');
        escape(name, &mut path);
    }
    for (label, value) in key.labels() {
        path.push('.');
        escape(label, &mut path);
        path.push('=');
        escape(value, &mut path);
    }
    match path.split('.').find(|part| part.is_empty() || part.len() > PART_MAX) {
        None => Ok(path),
        Some(part) => Err(format!(
            "the part {part:?} of the path of {key} has {} bytes; it must have 1 to {PART_MAX}",
            part.len()
        )),
    }
}

/// The series of a path below a prefix; `None` if no series has it.
pub(super) fn key_of(prefix: &str, path: &str) -> Option<SeriesKey> {
    let rest = path.strip_prefix(prefix)?.strip_prefix('.')?;
    let (mut name, mut labels) = (Vec::new(), Vec::new());
    for part in rest.split('.') {
        match part.split_once('=') {
            Some((label, value)) => labels.push((unescape(label)?, unescape(value)?)),
            None if labels.is_empty() => name.push(unescape(part)?),
            None => return None,
        }
    }
    let key = SeriesKey::with_labels(name.join("."), labels);
    (path_of(prefix, &key).as_deref() == Ok(path)).then_some(key)
}

fn escape(text: &str, out: &mut String) {
    percent::encode(text, b"_-", out);
}

fn unescape(text: &str) -> Option<String> {
    String::from_utf8(percent::decoded(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_back_to_its_series() {
        let labelled = |name: &str, labels: &[(&str, &str)]| SeriesKey::with_labels(name, labels.iter().copied());
        for (key, path) in [
            (SeriesKey::new("load"), "p.load"),
            (SeriesKey::new("cpu.user"), "p.cpu.user"),
            (SeriesKey::new(".a..b"), "p.%2Ea%2E%2Eb"),
            (
                labelled("cpu", &[("dc", "x.y"), ("host", "h 1")]),
                "p.cpu.dc=x%2Ey.host=h%201",
            ),
            (labelled("a=b%", &[("l", "")]), "p.a%3Db%25.l="),
            (labelled("\u{e4}", &[("q", "*{")]), "p.%C3%A4.q=%2A%7B"),
        ] {
            assert_eq!(path_of("p", &key).as_deref(), Ok(path));
            assert_eq!(key_of("p", path), Some(key), "{path}");
        }
    }

    #[test]
    fn other_paths_are_of_no_series() {
        for path in [
            "p",
            "q.load",
            "p.h=1.cpu",
            "p.%2",
            "p.%zz",
            "p.a b",
            "p.%41",
            "p..a",
            "p.b.b=2.a=1",
        ] {
            assert_eq!(key_of("p", path), None, "{path}");
        }
        let long = SeriesKey::new("x".repeat(251));
        let error = path_of("p", &long).unwrap_err();
        assert!(error.contains("has 251 bytes"), "{error}");
        assert!(path_of("p", &SeriesKey::new("")).is_err());
    }
}
