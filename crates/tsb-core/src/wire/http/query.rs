//! The parameters of a request, from its target or from a form.

use crate::bytes::percent;

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
    String::from_utf8_lossy(&percent::decoded(&text.replace('+', " "))).into_owned()
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
    fn an_encoded_value_is_decoded_to_itself() {
        let text = "a b\"&=+%\u{e9}/~";
        assert_eq!(decoded(&percent::encoded(text)), text);
    }
}
