//! Percent-encoding: every byte that may have a meaning where a text goes becomes `%` and two
//! digits.

use std::fmt::Write as _;

/// The bytes beside letters and digits that have no meaning in any part of an address.
pub const UNRESERVED: &[u8] = b"-._~";

/// Encodes a text for any part of an address, a query or a form: all bytes but letters, digits and
/// [`UNRESERVED`].
///
/// ```
/// assert_eq!(tsb_core::bytes::percent::encoded("a b/~\u{e9}"), "a%20b%2F~%C3%A9");
/// ```
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    encode(text, UNRESERVED, &mut out);
    out
}

/// Appends a text of which all bytes but letters, digits and those of `kept`, which are ASCII, are
/// encoded.
pub fn encode(text: &str, kept: &[u8], out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Decodes each `%40` and the like; a `%` without two digits is kept.
pub fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, others @ ..] = rest {
        let digits = others.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (b'%', Some(byte)) = (first, byte) {
            bytes.push(byte);
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let text = encoded(&all);
        assert!(
            text.bytes()
                .all(|byte| byte == b'%' || byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte))
        );
        assert_eq!(decoded(&text), all.as_bytes());
    }

    #[test]
    fn only_what_is_kept_stays() {
        let mut out = "p.".to_owned();
        encode("a.b-c", b"-", &mut out);
        assert_eq!(out, "p.a%2Eb-c");
    }

    #[test]
    fn a_percent_sign_without_two_digits_is_kept() {
        for text in ["%", "%4", "%+1", "%zz", "50%&more", "%\u{e4}"] {
            assert_eq!(decoded(text), text.as_bytes(), "{text}");
        }
        assert_eq!(decoded("%41%4a%4A"), b"AJJ");
    }
}
