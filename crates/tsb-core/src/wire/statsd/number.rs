//! Parses numbers like JavaScript's `Number()`, as StatsD does.

use crate::wire::number::parse_f64;

/// The number in a text; `None` if it is not one, or empty.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let plain = text.trim();
    if plain.is_empty() {
        // Blanks are zero, but an empty text is not a number.
        return (!text.is_empty()).then_some(0.0);
    }
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = plain.strip_prefix(prefix) {
            let integer = u64::from_str_radix(digits, radix).ok();
            return integer
                .filter(|_| !digits.starts_with('+'))
                .map(|integer| integer as f64);
        }
    }
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let is_word = unsigned.starts_with(|c: char| c.is_ascii_alphabetic());
    (!is_word || unsigned == "Infinity").then(|| parse_f64(plain.as_bytes()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_javascript_takes_for_one() {
        let table: &[(&str, Option<f64>)] = &[
            ("1", Some(1.0)),
            (" -1.5 ", Some(-1.5)),
            ("+.5e1", Some(5.0)),
            ("5.", Some(5.0)),
            ("0x1F", Some(31.0)),
            ("0b11", Some(3.0)),
            ("0o17", Some(15.0)),
            (" ", Some(0.0)),
            ("Infinity", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("", None),
            ("inf", None),
            ("NaN", None),
            ("infinity", None),
            ("0x", None),
            ("0x+1", None),
            ("1x", None),
            ("1_0", None),
            ("one", None),
            ("\u{e9}", None),
        ];
        for (text, number) in table {
            assert_eq!(parse(text.as_bytes()), *number, "{text}");
        }
        assert_eq!(parse(b"\xff"), None);
    }
}
