//! An answer, whole or chunk by chunk, and what of it is safe to print.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tsb_stores::error::{Error, Result};

/// Maximum length of the part of a body that an error quotes, in characters.
const QUOTED_MAX: usize = 300;

/// An answer of any status.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    pub(super) const fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self { status, headers, body }
    }

    /// A header; `None` if it is absent, or no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Its status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Status and the beginning of the body, on one line and without anything that a terminal
    /// would obey.
    pub fn described(&self) -> String {
        let body = printable(&self.body);
        let separator = if body.is_empty() { "" } else { ": " };
        let hint = match self.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "; give user and password as docs/formats/plan.md says under Credentials"
            }
            _ => "",
        };
        format!("it answers {}{separator}{body}{hint}", self.status)
    }
}

/// The beginning of a body: control characters and marks of direction become spaces.
fn printable(body: &[u8]) -> String {
    // A character has at most four bytes.
    let start = String::from_utf8_lossy(&body[..body.len().min(4 * QUOTED_MAX)]);
    let is_obeyed = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let safe = start.trim().chars().map(|c| if is_obeyed(c) { ' ' } else { c });
    let mut text: String = safe.take(QUOTED_MAX).collect();
    if start.trim().chars().count() > QUOTED_MAX || body.len() > 4 * QUOTED_MAX {
        text.push_str(" ...");
    }
    text
}

/// An answer whose body has not been read.
pub struct BodyChunks {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    /// Of each chunk.
    timeout: Duration,
    /// For errors.
    action: String,
}

impl BodyChunks {
    pub(super) fn new(reply: Response<Incoming>, timeout: Duration, action: String) -> Self {
        let (head, body) = reply.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
            timeout,
            action,
        }
    }

    pub(super) fn into_parts(self) -> (StatusCode, HeaderMap, Incoming) {
        (self.status, self.headers, self.body)
    }

    /// Its status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Unanswered`] if none come within the deadline, or the body ends half-way.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(self.timeout, self.body.frame()).await;
            match frame {
                Err(_) => return Err(self.unanswered(format!("no more of the answer within {:?}", self.timeout))),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.unanswered(tsb_stores::error::chain(&error))),
                // Trailers are skipped.
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    pub(super) fn unanswered(&self, why: String) -> Error {
        Error::Unanswered {
            action: self.action.clone(),
            source: why.into(),
        }
    }

    /// The rest of the body, at most `bytes_max` bytes of it, as a whole answer.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn collect(mut self, bytes_max: usize) -> Result<Answer> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next().await? {
            let room = bytes_max - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if body.len() == bytes_max {
                break;
            }
        }
        Ok(Answer::new(self.status, self.headers, body.into()))
    }
}

impl fmt::Debug for BodyChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyChunks")
            .field("status", &self.status)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_nothing_that_a_terminal_obeys() {
        let of = |status, body: &str| Answer::new(status, HeaderMap::new(), body.to_owned().into()).described();
        assert_eq!(
            of(StatusCode::BAD_REQUEST, "\u{1b}[2Jno\r\nsuch \u{202e}database\n"),
            "it answers 400 Bad Request:  [2Jno  such  database"
        );
        assert_eq!(of(StatusCode::NO_CONTENT, ""), "it answers 204 No Content");
        let denied = of(StatusCode::UNAUTHORIZED, "who?");
        assert!(
            denied.contains("401 Unauthorized: who?; give user and password"),
            "{denied}"
        );
        let long = of(StatusCode::OK, &"x".repeat(10_000));
        assert!(long.len() < 400 && long.ends_with(" ..."), "{long}");
    }
}
