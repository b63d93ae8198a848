//! A failure in words for the user: the object, the cause, a hint, and an exit code.

use std::fmt;

use tsb_stores::spec::{Spec, redact_text};

use crate::exit::Exit;

/// What could not be done. Rendered as
///
/// ```text
/// tsb: cannot open store sqlite:/data/m.db
///   because: database is locked
///   hint: another process holds it
/// ```
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    what: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// Bad usage: `what` is a fragment that names the object.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A store that did not open: bad usage where that is told by its spec alone.
    pub fn opening(spec: &Spec, error: &tsb_stores::Error) -> Self {
        let exit = match error {
            tsb_stores::Error::Spec { .. } => Exit::Usage,
            _ => Exit::Unreachable,
        };
        Self::new(exit, format!("cannot open store {spec}")).because(error)
    }

    /// A result that could not be written.
    pub fn unwritten(where_to: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Unwritten, format!("cannot write {where_to}")).because(error)
    }

    /// What failed and why, in one line: for a report.
    pub fn in_a_line(&self) -> String {
        let parts = std::iter::once(&self.what).chain(&self.causes);
        redact_text(&parts.cloned().collect::<Vec<_>>().join(": "))
    }

    /// A failure with any exit code.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Adds an error and all that caused it.
    #[must_use]
    pub fn because(mut self, error: &(dyn std::error::Error + '_)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            self.causes.push(error.to_string());
            next = error.source();
        }
        self
    }

    /// Adds a cause in words.
    #[must_use]
    pub fn because_of(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

// Arguments and addresses are quoted as they were given: credentials go here, in one place.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tsb: {}", redact_text(&self.what))?;
        for cause in &self.causes {
            write!(f, "\n  because: {}", redact_text(cause))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", redact_text(hint))?;
        }
        Ok(())
    }
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// An error and all that caused it, in one line.
pub fn chain(error: &(dyn std::error::Error + '_)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_object_cause_and_hint() {
        let error = std::io::Error::other("disk full");
        let failure = Failure::usage("cannot write /x/report.json")
            .because(&error)
            .hint("free some room");
        assert_eq!(
            failure.to_string(),
            "tsb: cannot write /x/report.json\n  because: disk full\n  hint: free some room"
        );
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.in_a_line(), "cannot write /x/report.json: disk full");
    }

    #[test]
    fn a_failure_holds_no_credential() {
        let failure = Failure::usage("cannot use mongo://me:pw@h:1/db")
            .because_of("bad token=pw in x")
            .hint("try //me:pw@h");
        let text = format!("{failure} {}", failure.in_a_line());
        assert!(!text.contains("pw"), "{text}");
    }
}
