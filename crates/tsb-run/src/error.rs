//! The errors of this crate: one enum whose variants are named for what the caller decides.

use std::fmt;

use tsb_stores::Error as StoreError;

use crate::foreign;
use crate::spec::redact_text;

/// Why a call of this crate failed; of a run, why it produced no report. The variant says what to do
/// next, the explanation gives the reason. What fails in a run that has a report is in the report.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The plan, an option or an input file cannot be used: change it.
    Plan(Explanation),
    /// The files of the store are damaged: copy them before anything else.
    Damaged(Explanation),
    /// The store, the server or the socket cannot be reached: start the server, or check the
    /// address.
    Unreachable(Explanation),
    /// A file could not be written: free space, or choose another path.
    Unwritten(Explanation),
    /// The run was stopped before anything was measured.
    Interrupted(Explanation),
    /// A defect of tsb or of the store, or a system that cannot start threads: report it.
    Internal(Explanation),
}

/// An error as text: what failed, its causes, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    what: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Explanation {
    /// An explanation without causes. `what` is a fragment that names the object, such as
    /// `cannot open x`.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// What failed. May contain credentials; `Display` of [`Error`] redacts them.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The causes, from the nearest one to the root cause.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl Error {
    /// A plan or an option that cannot be used.
    pub fn plan(what: impl Into<String>) -> Self {
        Self::Plan(Explanation::new(what))
    }

    /// Something that cannot be reached.
    pub fn unreachable(what: impl Into<String>) -> Self {
        Self::Unreachable(Explanation::new(what))
    }

    /// A call into a store that failed before anything was measured: unreachable if its server was silent,
    /// else a plan that the store cannot take.
    pub fn calling(what: impl Into<String>, error: &StoreError) -> Self {
        let failed = if error.is_silence() {
            Self::unreachable(what)
        } else {
            Self::plan(what)
        };
        failed.because(error)
    }

    /// A run that was stopped before anything was measured.
    pub fn interrupted(what: impl Into<String>) -> Self {
        Self::Interrupted(Explanation::new(what))
    }

    /// A defect of tsb or of the store.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal(Explanation::new(what))
    }

    /// A file that could not be written.
    pub fn unwritten(place: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::Unwritten(Explanation::new(format!("cannot write {place}"))).because(error)
    }

    /// A store that could not be opened. The variant depends only on the kind of the error, not
    /// on the store.
    pub fn opening(spec: impl fmt::Display, error: &tsb_stores::Error) -> Self {
        let explanation = Explanation::new(format!("cannot open store {spec}"));
        match error {
            tsb_stores::Error::Spec { .. } => Self::Plan(explanation).because(error),
            tsb_stores::Error::LaterFormat { .. } => Self::Plan(explanation)
                .because(error)
                .hint("use the version of tsb that wrote it, or a later one; nothing was changed"),
            tsb_stores::Error::Corrupt { .. } => Self::Damaged(explanation).because(error).hint(
                "nothing was changed: copy the files before anything else; docs/formats says what damage a store can \
                 see and what it can go on without",
            ),
            _ => Self::Unreachable(explanation).because(error),
        }
    }

    /// The explanation inside the variant.
    pub const fn explanation(&self) -> &Explanation {
        match self {
            Self::Plan(explanation)
            | Self::Damaged(explanation)
            | Self::Unreachable(explanation)
            | Self::Unwritten(explanation)
            | Self::Interrupted(explanation)
            | Self::Internal(explanation) => explanation,
        }
    }

    /// The same variant with a changed explanation.
    fn explained(self, change: impl FnOnce(&mut Explanation)) -> Self {
        let mut changed = self.explanation().clone();
        change(&mut changed);
        match self {
            Self::Plan(_) => Self::Plan(changed),
            Self::Damaged(_) => Self::Damaged(changed),
            Self::Unreachable(_) => Self::Unreachable(changed),
            Self::Unwritten(_) => Self::Unwritten(changed),
            Self::Interrupted(_) => Self::Interrupted(changed),
            Self::Internal(_) => Self::Internal(changed),
        }
    }

    /// Adds an error and its chain of sources as causes.
    #[must_use]
    pub fn because(self, error: &(dyn std::error::Error + '_)) -> Self {
        self.explained(|explanation| {
            let chain = std::iter::successors(Some(error), |error| error.source());
            explanation.causes.extend(chain.map(ToString::to_string));
        })
    }

    /// Adds a cause as text.
    #[must_use]
    pub fn because_of(self, cause: impl Into<String>) -> Self {
        self.explained(|explanation| explanation.causes.push(cause.into()))
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.explained(|explanation| explanation.hint = Some(hint.into()))
    }
}

/// What failed and why, in one line with credentials redacted. The hint is left out.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let explanation = self.explanation();
        let parts = std::iter::once(&explanation.what).chain(&explanation.causes);
        let text = parts.map(String::as_str).collect::<Vec<_>>().join(": ");
        f.write_str(&foreign::line(&redact_text(&text)))
    }
}

impl std::error::Error for Error {}

/// The message of a panic payload.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// An error and its chain of sources, in one line.
pub fn chain(error: &(dyn std::error::Error + '_)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let text = chain.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    foreign::line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_keeps_its_hint_apart() {
        let error = std::io::Error::other("disk full");
        let error = Error::unwritten("/x/report.json", &error).hint("make room");
        assert_eq!(error.to_string(), "cannot write /x/report.json: disk full");
        assert_eq!(error.explanation().hint(), Some("make room"));
        assert!(matches!(error, Error::Unwritten(_)));
    }

    /// One kind of damage, one variant: the store does not matter.
    #[test]
    fn an_opening_that_fails_is_told_by_the_kind_of_its_error() {
        use tsb_stores::Error as StoreError;
        let path = std::path::PathBuf::from("/x/a");
        let what = "a checksum does not match".to_owned();
        let corrupt = StoreError::Corrupt {
            path: path.clone(),
            offset: 7,
            what,
        };
        let later = StoreError::LaterFormat {
            path,
            found: "9".to_owned(),
            reads: "2".to_owned(),
        };
        let spec = StoreError::Spec {
            spec: "x:".to_owned(),
            what: "no such scheme".to_owned(),
        };
        for store in ["sqlite:/x/a", "rrd:/x", "write-cache+rrd:/x"] {
            let error = Error::opening(store, &corrupt);
            assert!(error.to_string().contains("/x/a is corrupt at byte 7"), "{error}");
            assert!(error.explanation().hint().is_some() && matches!(error, Error::Damaged(_)));
            assert!(matches!(Error::opening(store, &later), Error::Plan(_)));
            assert!(matches!(Error::opening(store, &spec), Error::Plan(_)));
            assert!(matches!(
                Error::opening(store, &StoreError::Closed),
                Error::Unreachable(_)
            ));
        }
    }

    #[test]
    fn an_error_shows_no_credential() {
        let error = Error::plan("cannot use mongo://me:pw@h:1/db").because_of("bad token=pw in x");
        assert!(!error.to_string().contains("pw"), "{error}");
    }
}
