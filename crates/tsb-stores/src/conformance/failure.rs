//! Failures of checks: a description, and functions that produce it.

use std::fmt;

use crate::error::Error;

/// Why a check failed.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut text = format!("unexpected error: {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self(text)
    }
}

/// Fails with `what` unless `holds`.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure(what())) }
}

/// Fails unless `got` is `expected`.
pub(crate) fn equal<T: PartialEq + fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), Failure> {
    ensure(got == expected, || {
        format!("{what}: got {got:?}, expected {expected:?}")
    })
}

/// Fails unless `result` is an error that `is_right`.
pub(crate) fn refused<T>(
    what: &str,
    result: Result<T, Error>,
    expected: &str,
    is_right: impl FnOnce(&Error) -> bool,
) -> Result<(), Failure> {
    match result {
        Err(error) if is_right(&error) => Ok(()),
        Err(error) => Err(Failure(format!(
            "{what}: got the error \"{error}\", expected {expected}"
        ))),
        Ok(_) => Err(Failure(format!("{what}: succeeded, expected {expected}"))),
    }
}

pub(crate) fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Unsupported { .. })
}

pub(crate) fn is_closed(error: &Error) -> bool {
    matches!(error, Error::Closed)
}
