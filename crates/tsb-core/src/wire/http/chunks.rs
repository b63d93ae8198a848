//! Finds the end of a body, by its length or by its chunks.

use super::head::Framing;
use super::{MAX_BODY, MAX_HEAD};

/// Maximum length of a line with a chunk size.
const MAX_SIZE_LINE: usize = 1024;

/// The position of a connection within a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks {
    state: State,
    /// Bytes of the body so far.
    passed: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// This number of body bytes follows; `is_last` if the body ends after them.
    Data {
        left: u64,
        is_last: bool,
    },
    /// The line with the size of the next chunk.
    Size,
    /// The line end after a chunk.
    DataEnd,
    /// The lines after the last chunk, of which this number of bytes was read.
    Trailer(usize),
    Over,
}

/// The kind of the next bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    /// This number of body bytes, from the beginning of the input.
    Data {
        length: usize,
        /// Whether they reach the end of the chunk, or of a body without chunks.
        is_whole: bool,
    },
    /// This number of framing bytes.
    Frame(usize),
    /// More input is needed.
    Wait,
    /// The body has ended.
    Over,
}

/// Why the framing of a body is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadBody {
    /// The body is too long.
    TooLong,
    /// The chunks are malformed.
    Malformed,
}

impl Chunks {
    pub(super) fn new(framing: Framing) -> Result<Self, BadBody> {
        let state = match framing {
            Framing::Length(length) if length > MAX_BODY => return Err(BadBody::TooLong),
            Framing::Length(left) => State::Data { left, is_last: true },
            Framing::Chunked => State::Size,
        };
        Ok(Self { state, passed: 0 })
    }

    /// A body that has ended.
    pub(super) fn none() -> Self {
        let state = State::Over;
        Self { state, passed: 0 }
    }

    /// The kind of the bytes at the beginning of `bytes`.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<BodyPart, BadBody> {
        match self.state {
            State::Over | State::Data { left: 0, is_last: true } => Ok(BodyPart::Over),
            State::Data { .. } | State::Size | State::DataEnd | State::Trailer(_) if bytes.is_empty() => {
                Ok(BodyPart::Wait)
            }
            State::Data { left, .. } => {
                let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                Ok(BodyPart::Data {
                    length,
                    is_whole: length as u64 == left,
                })
            }
            State::Size => self.size(bytes),
            State::DataEnd => {
                let end = line_end(bytes, 2)?;
                Ok(end.map_or(BodyPart::Wait, |length| {
                    self.state = State::Size;
                    BodyPart::Frame(length)
                }))
            }
            State::Trailer(read) => self.trailer(bytes, read),
        }
    }

    /// Records that `count` bytes of the last data piece were taken.
    pub(super) fn take(&mut self, count: usize) {
        self.passed += count as u64;
        if let State::Data { left, is_last } = &mut self.state {
            *left -= (count as u64).min(*left);
            if *left == 0 {
                self.state = if *is_last { State::Over } else { State::DataEnd };
            }
        }
    }

    fn size(&mut self, bytes: &[u8]) -> Result<BodyPart, BadBody> {
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((length, size))) => {
                if size > MAX_BODY - self.passed.min(MAX_BODY) {
                    return Err(BadBody::TooLong);
                }
                let is_last = false;
                self.state = match size {
                    0 => State::Trailer(0),
                    left => State::Data { left, is_last },
                };
                Ok(BodyPart::Frame(length))
            }
            Ok(httparse::Status::Partial) if bytes.len() < MAX_SIZE_LINE => Ok(BodyPart::Wait),
            _ => Err(BadBody::Malformed),
        }
    }

    fn trailer(&mut self, bytes: &[u8], read: usize) -> Result<BodyPart, BadBody> {
        let room = MAX_HEAD.saturating_sub(read);
        let Some(feed) = memchr::memchr(b'\n', bytes) else {
            return if bytes.len() < room {
                Ok(BodyPart::Wait)
            } else {
                Err(BadBody::Malformed)
            };
        };
        let is_empty = bytes[..feed].strip_suffix(b"\r").unwrap_or(&bytes[..feed]).is_empty();
        self.state = if is_empty {
            State::Over
        } else {
            State::Trailer(read + feed + 1)
        };
        if feed >= room {
            Err(BadBody::Malformed)
        } else {
            Ok(BodyPart::Frame(feed + 1))
        }
    }
}

/// Length of the line end that `bytes` must begin with; `None` if it is incomplete.
fn line_end(bytes: &[u8], most: usize) -> Result<Option<usize>, BadBody> {
    match bytes {
        [b'\n', ..] => Ok(Some(1)),
        [b'\r', b'\n', ..] => Ok(Some(2)),
        [b'\r'] if most == 2 => Ok(None),
        _ => Err(BadBody::Malformed),
    }
}
