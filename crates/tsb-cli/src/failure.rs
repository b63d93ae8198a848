//! A failure as shown to the user: the object, its causes, a hint, and an exit code.

use std::fmt;

use tsb_run::foreign;
use tsb_run::spec::redact_text;

use crate::exit::Exit;

/// A failed command. Displayed as
///
/// ```text
/// tsb: cannot open store sqlite:/data/m.db
///   because: database is locked
///   hint: another process holds it
/// ```
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    what: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl From<tsb_run::Error> for Failure {
    fn from(error: tsb_run::Error) -> Self {
        use tsb_run::Error;
        let exit = match &error {
            Error::Plan(_) => Exit::Usage,
            Error::Damaged(_) => Exit::Invalid,
            Error::Unreachable(_) => Exit::Unreachable,
            Error::Unwritten(_) => Exit::Unwritten,
            Error::Interrupted(_) => Exit::Interrupted,
            _ => Exit::Bug,
        };
        let explanation = error.explanation();
        Self {
            exit,
            what: explanation.what().to_owned(),
            causes: explanation.causes().to_vec(),
            hint: explanation.hint().map(str::to_owned),
        }
    }
}

impl Failure {
    /// Bad usage: `what` is a fragment that names the object.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A store that could not be opened. The exit code depends only on the kind of the error,
    /// not on the store.
    pub fn opening(spec: impl fmt::Display, error: &tsb_stores::Error) -> Self {
        tsb_run::Error::opening(spec, error).into()
    }

    /// A result that could not be written.
    pub fn unwritten(where_to: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Unwritten, format!("cannot write {where_to}")).because(error)
    }

    /// What failed and why, in one line, for a report.
    pub fn one_line(&self) -> String {
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

    /// Adds an error and its chain of sources as causes.
    #[must_use]
    pub fn because(mut self, error: &(dyn std::error::Error + '_)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            self.causes.push(error.to_string());
            next = error.source();
        }
        self
    }

    /// Adds a cause as text.
    #[must_use]
    pub fn because_of(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Sets the hint.
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

/// Redacts credentials, escapes control characters and indents continuation lines, so that no
/// line can pass for one of ours.
fn clean(text: &str) -> String {
    let text = redact_text(text);
    foreign::lines(text.trim_end()).replace('\n', "\n    ")
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
        assert_eq!(failure.one_line(), "cannot write /x/report.json: disk full");
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
        let text = format!("{failure} {}", failure.one_line());
        assert!(!text.contains("pw"), "{text}");
    }
}
