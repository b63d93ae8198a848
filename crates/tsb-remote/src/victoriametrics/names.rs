//! A series in the text format, in a selector, and in an answer.

use std::collections::BTreeMap;

use tsb_core::SeriesKey;

/// The label that holds the place.
pub(super) const PLACE_LABEL: &str = "tsb";
/// The label that holds the name of a series.
const NAME_LABEL: &str = "__name__";

/// The start of a line: name and labels, with the place.
///
/// # Errors
/// What in the key cannot be carried.
pub(super) fn line_start(key: &SeriesKey, place: &str) -> Result<String, &'static str> {
    let name = key.name();
    if name.is_empty() || name.starts_with('#') || name != name.trim() {
        return Err("its name is empty, begins with '#', or has spaces around it");
    }
    if name.contains(|c: char| c.is_control() || "{}\"\\".contains(c)) {
        return Err("its name has a brace, a quote, a backslash or a control character");
    }
    let mut out = format!("{name}{{");
    for (label, value) in key.labels() {
        if label == PLACE_LABEL || label == NAME_LABEL {
            return Err("the labels 'tsb' and '__name__' hold the place and the name");
        }
        if label.is_empty() || value.is_empty() {
            return Err("a label or its value is empty");
        }
        if label.contains(|c: char| c.is_control() || c.is_whitespace() || "{}=,\"\\".contains(c)) {
            return Err("a label has a character that ends it on this wire");
        }
        if value.contains(|c: char| c.is_control() && c != '\n') {
            return Err("the value of a label has a control character");
        }
        out.push_str(label);
        out.push('=');
        quote(value, &mut out);
        out.push(',');
    }
    out.push_str(PLACE_LABEL);
    out.push('=');
    quote(place, &mut out);
    out.push_str("} ");
    Ok(out)
}

/// A selector of one series, and of those with more labels.
pub(super) fn selector(key: &SeriesKey, place: &str) -> String {
    let mut out = format!("{{{NAME_LABEL}=");
    quote(key.name(), &mut out);
    for (label, value) in key.labels() {
        out.push(',');
        out.push_str(&escaped_label(label));
        out.push('=');
        quote(value, &mut out);
    }
    out.push(',');
    out.push_str(&place_selector(place)[1..]);
    out
}

/// A selector of all series of a place.
pub(super) fn place_selector(place: &str) -> String {
    let mut out = format!("{{{PLACE_LABEL}=");
    quote(place, &mut out);
    out.push('}');
    out
}

/// A label in a selector: other characters than letters, digits and `_` behind a backslash.
fn escaped_label(label: &str) -> String {
    let mut out = String::new();
    for (place, c) in label.chars().enumerate() {
        let is_plain = c.is_ascii_alphabetic() || c == '_' || (place > 0 && c.is_ascii_digit());
        if !is_plain && c.is_ascii() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '"' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// The series of labels in an answer, without the place.
pub(super) fn key_of(mut labels: BTreeMap<String, String>) -> SeriesKey {
    let name = labels.remove(NAME_LABEL).unwrap_or_default();
    labels.remove(PLACE_LABEL);
    SeriesKey::with_labels(name, labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(labels: &[(&str, &str)]) -> SeriesKey {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        SeriesKey::with_labels("cpu.user", labels)
    }

    #[test]
    fn a_series_is_a_line_and_a_selector() {
        let key = key(&[("a-b", "x\"y\\z\n"), ("host", "h 1")]);
        let line = line_start(&key, "p").unwrap();
        assert_eq!(line, "cpu.user{a-b=\"x\\\"y\\\\z\\n\",host=\"h 1\",tsb=\"p\"} ");
        assert_eq!(
            selector(&key, "p"),
            "{__name__=\"cpu.user\",a\\-b=\"x\\\"y\\\\z\\n\",host=\"h 1\",tsb=\"p\"}"
        );
        assert_eq!(place_selector("p"), "{tsb=\"p\"}");
    }

    #[test]
    fn what_the_wire_cannot_carry_is_refused() {
        for labels in [&[("tsb", "x")][..], &[("a", "")], &[("a=b", "x")], &[("a", "\u{1b}")]] {
            assert!(line_start(&key(labels), "p").is_err(), "{labels:?}");
        }
        for name in ["", "#a", " a", "a{b"] {
            assert!(line_start(&SeriesKey::new(name), "p").is_err(), "{name}");
        }
    }
}
