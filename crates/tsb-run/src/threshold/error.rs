//! Why a text is no condition.

use std::fmt;

use crate::spec::distance;

/// How many near names an error suggests.
const NEAR: usize = 3;

/// Why a text is no condition, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    cause: String,
    hint: Option<String>,
}

impl ConditionError {
    pub(super) fn new(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            hint: None,
        }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// No figure is called `wrong`: suggests the nearest of `names`.
    pub(super) fn unknown<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Self {
        let mut near: Vec<(usize, &str)> = names.map(|name| (distance(wrong, name), name)).collect();
        near.sort();
        let near: Vec<&str> = near.into_iter().take(NEAR).map(|(_, name)| name).collect();
        Self::new(format!("no figure and no verdict is called {wrong:?}"))
            .with_hint(format!("the nearest names are {}", near.join(", ")))
    }

    /// What to do about it, if anything can be said.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for ConditionError {}
