//! Why an HTTP request has no answer, and the error by which a caller decides what to do.

use std::time::Duration;

use tsb_stores::error::{Error, chain};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// No connection: nothing was sent.
    Unsent(String),
    /// It may have been sent.
    Lost(String),
}

impl NoAnswer {
    /// From the failure of a request.
    pub(crate) fn of(error: &hyper_util::client::legacy::Error) -> Self {
        let why = chain(error);
        if error.is_connect() {
            Self::Unsent(why)
        } else {
            Self::Lost(why)
        }
    }

    /// The deadline has passed.
    pub(crate) fn late(timeout: Duration) -> Self {
        Self::Lost(format!("no answer within {timeout:?}"))
    }

    /// As an error; `changes` says whether the request may have changed something.
    pub(crate) fn error(self, action: String, changes: bool) -> Error {
        match self {
            Self::Unsent(why) => Error::Unreachable {
                action,
                source: why.into(),
            },
            Self::Lost(why) if changes => Error::Unknown {
                action,
                source: why.into(),
            },
            Self::Lost(why) => Error::Unanswered {
                action,
                source: why.into(),
            },
        }
    }
}
