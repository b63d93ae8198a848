//! A failure in words for the user: the object, the cause, a hint, and an exit code.

use std::fmt;

use tsb_stores::spec::redact_text;

use crate::exit::Exit;
use crate::foreign;

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

    /// A store that did not open. The exit code depends on the kind of the error alone: what
    /// is wrong with the files of one store ends the program as it does with any other's.
    pub fn opening(spec: impl fmt::Display, error: &tsb_stores::Error) -> Self {
        let (exit, hint) = match error {
            tsb_stores::Error::Spec { .. } => (Exit::Usage, None),
            tsb_stores::Error::LaterFormat { .. } => {
                let hint = "use the version of tsb that wrote it, or a later one; nothing was changed";
                (Exit::Usage, Some(hint))
            }
            tsb_stores::Error::Corrupt { .. } => {
                let hint = "nothing was changed: copy the files before anything else; docs/formats says what damage \
                            a store can see and what it can go on without";
                (Exit::Invalid, Some(hint))
            }
            _ => (Exit::Unreachable, None),
        };
        let failure = Self::new(exit, format!("cannot open store {spec}")).because(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// A result that could not be written.
    pub fn unwritten(where_to: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Unwritten, format!("cannot write {where_to}")).because(error)
    }

    /// What failed and why, in one line: for a report.
    pub fn in_a_line(&self) -> String {
        let parts = std::iter::once(&self.what).chain(&self.causes);
        foreign::line(&redact_text(&parts.cloned().collect::<Vec<_>>().join(": "))).into_owned()
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
        write!(f, "tsb: {}", clean(&self.what))?;
        for cause in &self.causes {
            write!(f, "\n  because: {}", clean(cause))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", clean(hint))?;
        }
        Ok(())
    }
}

/// Without credentials, and so that no line of it looks like one of ours.
fn clean(text: &str) -> String {
    let text = redact_text(text);
    foreign::lines(text.trim_end()).replace('\n', "\n    ")
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
    foreign::line(&text).into_owned()
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

    /// One kind of damage, one exit code: the store does not matter.
    #[test]
    fn an_opening_that_fails_exits_by_the_kind_of_its_error() {
        use tsb_stores::Error;
        let path = std::path::PathBuf::from("/x/a");
        let what = "a checksum does not match".to_owned();
        let corrupt = Error::Corrupt {
            path: path.clone(),
            offset: 7,
            what,
        };
        let later = Error::LaterFormat {
            path,
            found: "9".to_owned(),
            reads: "2".to_owned(),
        };
        let spec = Error::Spec {
            spec: "x:".to_owned(),
            what: "no such scheme".to_owned(),
        };
        for store in ["sqlite:/x/a", "rrd:/x", "write-cache+rrd:/x"] {
            let failure = Failure::opening(store, &corrupt);
            assert_eq!(failure.exit, Exit::Invalid);
            let text = failure.to_string();
            assert!(
                text.contains("/x/a is corrupt at byte 7") && text.contains("hint:"),
                "{text}"
            );
            assert_eq!(Failure::opening(store, &later).exit, Exit::Usage);
            assert_eq!(Failure::opening(store, &spec).exit, Exit::Usage);
            assert_eq!(Failure::opening(store, &Error::Closed).exit, Exit::Unreachable);
        }
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
