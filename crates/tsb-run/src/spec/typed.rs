//! Text typed by a user that may contain credentials.

use std::fmt;
use std::str::FromStr;

use super::Spec;
use super::redact::redact;
use tsb_stores::error::Result;

/// The text of a store or an address, as typed. It is printed without what may be a credential,
/// even if it is not valid; [`Self::expose`] is for code that parses it.
#[derive(Clone, PartialEq, Eq)]
pub struct Typed(String);

impl Typed {
    /// The text itself. Do not print it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Parses it as a spec.
    ///
    /// # Errors
    /// As the parser of [`Spec`].
    pub fn spec(&self) -> Result<Spec> {
        Spec::from_str(&self.0)
    }
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.0))
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", redact(&self.0))
    }
}

impl From<String> for Typed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Typed {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl PartialEq<&str> for Typed {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}
