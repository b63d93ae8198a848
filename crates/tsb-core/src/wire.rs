//! Codecs: bytes in, samples out, and back. No sockets, no clock.
//!
//! A codec is a pair: an [`Encoder`] that is made from a catalog and turns batches into
//! payload, and a [`Decoder`] that turns the bytes of one connection into batches and
//! hands them to a [`Sink`]. What a protocol cannot carry is refused when the encoder is
//! made, never while it runs.

use std::fmt;

use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};

/// Turns batches into payload bytes. One encoder serves one connection.
pub trait Encoder: fmt::Debug + Send {
    /// Appends the payload of `batch` to `out`. Allocates nothing once `out` has room.
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>);
}

/// Turns the bytes of one connection into batches.
///
/// It owns no buffer: the caller keeps what was not consumed and presents it again with
/// more bytes behind it. Any bytes at all may arrive: never a panic, never unbounded
/// memory, never a silent drop.
pub trait Decoder: fmt::Debug + Send {
    /// Decodes every complete record of `bytes` and returns how many bytes that took.
    ///
    /// # Errors
    /// [`Fatal`] when the connection cannot go on; everything before the offending record
    /// has been handed to the sink, and the offence itself reported to it.
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal>;

    /// The stream has ended with `rest` left over.
    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink);
}

/// Where a decoder puts what it finds.
pub trait Sink {
    /// The id of a key. A decoder asks once for each new name of its connection and
    /// remembers the answer. `None`: the limit of series is reached; the decoder then
    /// reports each sample of that name with [`Sink::refused`].
    fn series(&mut self, key: &SeriesKey) -> Option<SeriesId>;

    /// Decoded samples, in the order of the wire.
    fn batch(&mut self, batch: &Batch<'_>);

    /// `samples` well-formed samples of a name that the sink did not admit.
    fn refused(&mut self, samples: usize);

    /// Bytes that are no record.
    fn malformed(&mut self, problem: &Malformed<'_>);
}

/// One malformed record: counted as one, and named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed<'a> {
    /// What is wrong with it; a fixed sentence, so that counts can be kept by kind.
    pub what: &'static str,
    /// The offending bytes, as far as they are known; may be long, cut before showing.
    pub bytes: &'a [u8],
}

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Fatal {
    /// What is wrong; a fixed sentence.
    pub what: &'static str,
}
