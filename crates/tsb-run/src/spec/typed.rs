//! What a user typed where credentials may stand.

use std::fmt;
use std::str::FromStr;

use super::Spec;
use super::redact::redact;
use tsb_stores::error::Result;

/// The text of a store or of an address as it was typed. It is printed without what may be a
/// credential, also where it means nothing; [`Self::expose`] is for those that read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Typed(String);

impl Typed {
    /// The text itself. Not to be printed.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The store that it describes.
    ///
    /// # Errors
    /// As the parser of [`Spec`] has it.
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
