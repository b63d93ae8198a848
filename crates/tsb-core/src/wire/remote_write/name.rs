//! Names of any characters in those that Prometheus accepts, and back.
//!
//! Prometheus' own scheme (`model.EscapeName` with `ValueEncodingEscaping`): `U__`, then each
//! underscore doubled and each character outside of the set as `_HEX_`. Names that begin with
//! `U__` are escaped, too, so that no two names become one.

use std::borrow::Cow;
use std::fmt::Write;

/// The beginning of an escaped name.
const MARK: &str = "U__";

/// Which characters may stand in a name unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOf {
    /// Of a metric: letters, digits, `_` and `:`.
    Metric,
    /// Of a label: letters, digits and `_`.
    Label,
}

impl NameOf {
    fn allows(self, c: char, is_first: bool) -> bool {
        match c {
            ':' => self == Self::Metric,
            '0'..='9' => !is_first,
            _ => c.is_ascii_alphabetic() || c == '_',
        }
    }
}

/// The name as Prometheus accepts it.
pub(crate) fn escape(text: &str, of: NameOf) -> Cow<'_, str> {
    let mut letters = text.chars().enumerate();
    if letters.all(|(index, c)| of.allows(c, index == 0)) && !text.starts_with(MARK) {
        return Cow::Borrowed(text);
    }
    let mut escaped = MARK.to_owned();
    for (index, c) in text.chars().enumerate() {
        match c {
            '_' => escaped.push_str("__"),
            _ if of.allows(c, index == 0) => escaped.push(c),
            // Writing to a string cannot fail.
            _ => drop(write!(escaped, "_{:x}_", u32::from(c))),
        }
    }
    Cow::Owned(escaped)
}

/// The name that [`escape`] made this of; any other is kept.
pub(crate) fn unescape(text: &str, of: NameOf) -> Cow<'_, str> {
    let plain = text.strip_prefix(MARK).and_then(plain);
    match plain {
        Some(plain) if escape(&plain, of) == text => Cow::Owned(plain),
        _ => Cow::Borrowed(text),
    }
}

fn plain(mut escaped: &str) -> Option<String> {
    let mut plain = String::new();
    while let Some((before, behind)) = escaped.split_once('_') {
        let (code, rest) = behind.split_once('_')?;
        plain.push_str(before);
        plain.push(match code {
            "" => '_',
            _ => char::from_u32(u32::from_str_radix(code, 16).ok()?)?,
        });
        escaped = rest;
    }
    plain.push_str(escaped);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_escaped_as_prometheus_does() {
        for (text, of, escaped) in [
            ("up", NameOf::Metric, "up"),
            ("job:up:rate", NameOf::Metric, "job:up:rate"),
            ("job:up", NameOf::Label, "U__job_3a_up"),
            ("no:allowed", NameOf::Metric, "no:allowed"),
            ("my.name_x", NameOf::Metric, "U__my_2e_name__x"),
            ("0day", NameOf::Metric, "U___30_day"),
            ("U__up", NameOf::Metric, "U__U____up"),
            ("h\u{e4}", NameOf::Metric, "U__h_e4_"),
        ] {
            assert_eq!(escape(text, of), escaped);
            assert_eq!(unescape(escaped, of), text);
        }
        for other in ["U__", "U__a_", "U__a_2e", "U___zz_", "U__a_2E_b", "U__a_61_", "U__up"] {
            assert_eq!(unescape(other, NameOf::Metric), other);
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(text in "(U__)?([a-c_:.0-9]{0,6}|\\PC{0,6})") {
            for of in [NameOf::Metric, NameOf::Label] {
                let escaped = escape(&text, of).into_owned();
                let is_valid = escaped.chars().enumerate().all(|(index, c)| of.allows(c, index == 0));
                prop_assert!(is_valid, "{}", escaped);
                prop_assert_eq!(unescape(&escaped, of), text.as_str());
            }
        }
    }
}
