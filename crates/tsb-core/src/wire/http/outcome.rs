//! The outcome of one request's samples, and the response that reports it.

use std::fmt::Write;

use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};
use crate::wire::{Malformed, NotAdmitted, Sink};

/// Maximum length of collected error messages, in bytes.
const MAX_REASONS: usize = 4 << 10;

/// Maximum number of bytes quoted from an invalid record.
const MAX_QUOTED: usize = 200;

/// The outcome of one request's samples.
#[derive(Debug, Default)]
pub(super) struct RequestOutcome {
    /// Bytes of content.
    pub(super) bytes: u64,
    /// Samples passed to the sink.
    pub(super) samples: u64,
    /// Samples of names that were refused.
    pub(super) refused: u64,
    /// The reason for the last refused name.
    pub(super) not_admitted: Option<NotAdmitted>,
    /// Samples that the store rejected.
    pub(super) rejected: u64,
    /// Invalid records.
    pub(super) malformed: u64,
    /// Values that are valid in the protocol but not supported here.
    pub(super) uncarried: u64,
    /// What is wrong with the first invalid record.
    pub(super) what: Option<&'static str>,
    /// The error messages, in InfluxDB's wording, one per line.
    pub(super) reasons: String,
}

impl RequestOutcome {
    /// Samples that were parsed but not stored.
    pub(super) fn dropped(&self) -> u64 {
        self.refused + self.rejected + self.uncarried
    }

    fn complain(&mut self, reason: std::fmt::Arguments<'_>) {
        if self.reasons.len() < MAX_REASONS {
            let separator = if self.reasons.is_empty() { "" } else { "\n" };
            // Writing to a string cannot fail.
            let _ = write!(self.reasons, "{separator}{reason}");
        }
    }
}

/// Forwards to a sink, and counts.
pub(super) struct CountingSink<'a> {
    pub(super) inner: &'a mut dyn Sink,
    pub(super) outcome: &'a mut RequestOutcome,
}

impl Sink for CountingSink<'_> {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.inner.series(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.outcome.samples += batch.len() as u64;
        self.inner.batch(batch);
    }

    fn refused(&mut self, why: NotAdmitted, samples: usize) {
        self.outcome.refused += samples as u64;
        self.outcome.not_admitted = Some(why);
        self.inner.refused(why, samples);
    }

    fn unannounced(&mut self, samples: usize) {
        self.outcome.refused += samples as u64;
        self.inner.unannounced(samples);
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        let what = problem.what;
        let outcome = &mut *self.outcome;
        outcome.what.get_or_insert(what);
        if what.ends_with("is not supported here") {
            outcome.uncarried += 1;
            if !outcome.reasons.contains(what) {
                outcome.complain(format_args!("{what}"));
            }
        } else {
            outcome.malformed += 1;
            let quoted = &problem.bytes[..problem.bytes.len().min(MAX_QUOTED)];
            let quoted = String::from_utf8_lossy(quoted);
            outcome.complain(format_args!("unable to parse '{quoted}': {what}"));
        }
        self.inner.malformed(problem);
    }
}

/// A response to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Additional header lines, each with its line end.
    pub(super) fields: String,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
    /// What is wrong with a request that carries no samples, to be counted; a fixed sentence.
    pub(super) problem: Option<&'static str>,
}

impl Response {
    /// A response with a body of JSON, or none.
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            fields: String::new(),
            content_type: "application/json",
            body: body.into(),
            problem: None,
        }
    }

    /// A response with a body of text.
    pub(super) fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            content_type: "text/plain; charset=utf-8",
            ..Self::new(status, body)
        }
    }

    /// Appends it to `out`.
    pub(super) fn write(&self, keeps_alive: bool, out: &mut Vec<u8>) {
        let mut head = format!("HTTP/1.1 {} {}\r\n{}", self.status, phrase(self.status), self.fields);
        if self.status != 204 {
            if !self.body.is_empty() {
                let _ = write!(head, "Content-Type: {}\r\n", self.content_type);
            }
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        head.push_str(if keeps_alive {
            "\r\n"
        } else {
            "Connection: close\r\n\r\n"
        });
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&self.body);
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}
