//! The parameters of a request, from its target or from a form.

/// Names and values, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses `name=value&name=value`; invalid UTF-8 is replaced.
    pub(super) fn read(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(pairs.map(|(name, value)| (decoded(name), decoded(value))).collect())
    }

    /// These parameters, followed by others.
    pub(super) fn and(mut self, others: &Self) -> Self {
        self.0.extend_from_slice(&others.0);
        self
    }

    /// The first value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Decodes `+` to a blank and `%41` to a byte; any other percent sign is kept.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let code = behind.get(..2).and_then(|code| std::str::from_utf8(code).ok());
                let code = code.filter(|code| !code.starts_with('+'));
                if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                    bytes.push(byte);
                    rest = &behind[2..];
                } else {
                    bytes.push(b'%');
                }
            }
            _ => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes all bytes except letters and digits.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let parameters = Parameters::read("q=CREATE+DATABASE+%22a%20b%22&db=x&flag&bad=100%&odd=%+1%zz");
        assert_eq!(parameters.get("q"), Some("CREATE DATABASE \"a b\""));
        assert_eq!((parameters.get("db"), parameters.get("flag")), (Some("x"), Some("")));
        assert_eq!(
            (parameters.get("bad"), parameters.get("odd")),
            (Some("100%"), Some("% 1%zz"))
        );
        assert_eq!(parameters.get("none"), None);
    }

    #[test]
    fn encoded_batches_decode_to_the_same_samples() {
        let text = "a b\"&=+%\u{e9}/~";
        assert_eq!(encoded("a b"), "a%20b");
        assert_eq!(decoded(&encoded(text)), text);
    }
}
