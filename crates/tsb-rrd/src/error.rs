//! Errors of RRD files, divided by the decisions that callers make.

use std::path::PathBuf;

/// The result of every call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. `Display` is a fragment; [`Error::File`] names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error that concerns one file.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Box<Error>,
    },
    /// The bytes are not a valid RRD file.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Offset in the file.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A valid file or layout with features that this crate does not support.
    #[error("not handled: {0}")]
    Unsupported(String),
    /// A layout that no file can have.
    #[error("invalid layout: {0}")]
    Layout(String),
    /// Words that do not define a data source, an archive or a file.
    #[error("{0}")]
    Definition(String),
    /// The file was replaced or truncated since it was opened.
    #[error("replaced or cut short since it was opened")]
    Changed,
    /// A file of this name exists already.
    #[error("there is a file already")]
    Exists,
    /// Another process holds the lock.
    #[error("locked by another process")]
    Locked,
    /// The update is not later than the last one in the file.
    #[error("update at {at} is not later than the last one at {last}")]
    NotLater {
        /// Time of the update.
        at: String,
        /// Time of the last update.
        last: String,
    },
    /// An update that cannot be parsed.
    #[error("invalid update {text:?}: {what}")]
    InvalidUpdate {
        /// Its text.
        text: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The operating system returned an error.
    #[error("cannot {action}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// The underlying error, without the name of the file.
    pub fn cause(&self) -> &Self {
        match self {
            Self::File { source, .. } => source.cause(),
            other => other,
        }
    }

    /// The error with the name of the file.
    #[must_use]
    pub fn at(self, path: &std::path::Path) -> Self {
        Self::File {
            path: path.to_owned(),
            source: Box::new(self),
        }
    }

    pub(crate) fn damaged(offset: usize, what: impl Into<String>) -> Self {
        Self::Damaged {
            offset: offset as u64,
            what: what.into(),
        }
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}
