//! What can go wrong with an RRD file, by the decision that the caller makes.

use std::path::PathBuf;

/// The result of every call.
pub type Result<T> = std::result::Result<T, Error>;

/// What could not be done. `Display` is a fragment; the file is named by [`Error::File`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something about one file.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What.
        source: Box<Error>,
    },
    /// The bytes are not those of a sound RRD file.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A sound file or a layout of a kind that this engine does not handle.
    #[error("not handled: {0}")]
    Unsupported(String),
    /// A layout that no file can have.
    #[error("invalid layout: {0}")]
    Layout(String),
    /// Words that define no data source, no archive or no file.
    #[error("{0}")]
    Definition(String),
    /// Another file has taken its place, or it was cut short, since it was opened.
    #[error("replaced or cut short since it was opened")]
    Changed,
    /// There is a file already where one was to be created.
    #[error("there is a file already")]
    Exists,
    /// Somebody else holds the lock.
    #[error("locked by another process")]
    Locked,
    /// Not later than what the file has.
    #[error("update at {at} is not later than the last one at {last}")]
    NotLater {
        /// The moment of the update.
        at: String,
        /// The moment of the last one.
        last: String,
    },
    /// A reading that cannot be understood.
    #[error("invalid reading {text:?}: {what}")]
    Reading {
        /// As it was given.
        text: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The operating system said no.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Its words.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// What is wrong, without the name of the file.
    pub fn cause(&self) -> &Self {
        match self {
            Self::File { source, .. } => source.cause(),
            other => other,
        }
    }

    /// The same, with the name of the file.
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
