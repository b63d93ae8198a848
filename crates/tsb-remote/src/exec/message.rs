//! The requests to a program and its answers, and the incremental reader of answers. Pure: bytes
//! in, messages out. `docs/formats/exec.md` has the bytes.

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::store::{Reason, TimeRange};

use super::{binary, text};
use crate::Chunk;

/// Maximum number of rows, refusals or timestamps in one answer.
pub(super) const ROWS_MAX: usize = 1_000_000;
/// Maximum number of samples or series in one request.
pub(super) const REQUEST_MAX: usize = 65_536;

/// The form of all messages after the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines of words.
    Text,
    /// Little-endian columns behind a header of 16 bytes.
    Binary,
}

impl Form {
    /// Appends a request to `out`.
    pub(super) fn put(self, number: u32, request: &Request<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Text => text::put(number, request, out),
            Self::Binary => binary::put(number, request, out),
        }
    }
}

/// A request to a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request<'a> {
    /// Binds ids to keys, for this conversation.
    Define(&'a [(SeriesId, SeriesKey)]),
    /// Stores samples.
    Write(Batch<'a>),
    /// Asks for the rows of some series, each named once.
    Query { series: &'a [SeriesId], range: TimeRange },
    /// Asks for the newest timestamp of some series.
    Newest(&'a [SeriesId]),
    /// Raises everything stored to a level.
    Flush(Durability),
    /// Asks for sizes.
    Stats,
    /// Ends the conversation.
    Close,
}

/// An answer of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    /// The number of the request.
    pub(super) number: u32,
    pub(super) body: Body,
}

/// The content of an answer. All but [`Body::Rows`] end their request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    /// Done.
    Ok,
    /// A write was done, except for these samples, by index.
    Refused(Vec<(u32, Reason)>),
    /// Some rows of one series; more answers follow.
    Rows(Chunk),
    /// One slot per series that was asked for.
    Newest(Vec<Option<Timestamp>>),
    /// Number of samples, and bytes that they occupy.
    Stats { samples: u64, bytes: u64 },
    /// The request failed; the program's words.
    Error(String),
}

impl Body {
    /// Its verb in the text form.
    pub(super) const fn verb(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused(_) => "refused",
            Self::Rows(_) => "rows",
            Self::Newest(_) => "newest",
            Self::Stats { .. } => "stats",
            Self::Error(_) => "error",
        }
    }
}

/// Bytes that are no answer; says what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) String);

/// The reasons that a program may give, by name and by code, from 1.
pub(super) const REASONS: [Reason; 7] = [
    Reason::Late,
    Reason::Duplicate,
    Reason::Expired,
    Reason::Full,
    Reason::Unrepresentable,
    Reason::Damaged,
    Reason::Refused,
];

/// The levels, by name and by code, from 0.
pub(super) const LEVELS: [Durability; 4] = [
    Durability::Unconfirmed,
    Durability::Volatile,
    Durability::Buffered,
    Durability::Synced,
];

/// Reads answers from bytes that arrive in pieces.
#[derive(Debug)]
pub(super) struct Decoder {
    form: Form,
    buffer: Vec<u8>,
    /// The first byte of `buffer` that has not been read.
    start: usize,
    /// The answer whose lines are still arriving.
    open: text::Open,
}

impl Decoder {
    pub(super) fn new(form: Form) -> Self {
        Self {
            form,
            buffer: Vec::new(),
            start: 0,
            open: text::Open::default(),
        }
    }

    /// Adds bytes that arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next answer; `None` if its bytes have not all arrived.
    ///
    /// # Errors
    /// If the bytes are no answer. What follows them cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Answer>, Malformed> {
        let mut rest = &self.buffer[self.start..];
        let before = rest.len();
        let answer = match self.form {
            Form::Text => self.open.take(&mut rest),
            Form::Binary => binary::take(&mut rest),
        };
        self.start += before - rest.len();
        answer
    }

    /// Whether bytes of an unfinished answer are left.
    pub(super) fn is_within_answer(&self) -> bool {
        self.start < self.buffer.len() || self.open.is_begun()
    }
}
