//! Codecs: bytes to samples, and samples to bytes. No sockets, and no clock but the
//! one that a decoder is given.
//!
//! A codec is a pair: an [`Encoder`], made from a catalog, which turns batches into payload; and a
//! [`Decoder`], which turns the bytes of one connection into batches and passes them to a
//! [`Sink`]. Series that a protocol cannot carry are refused when the encoder is made, never
//! later.

pub mod dalmatiner;
pub mod datagram;
pub mod graphite;
pub mod http;
pub mod influx;
pub mod kairosdb;
pub mod number;
pub mod otlp;
pub mod pickle;
pub mod put;
pub mod remote_write;
pub mod rrdcached;
pub mod statsd;
pub mod tsb;

mod admission;
mod cached_timestamp;
mod codecs;
mod columns;
mod name_lookup;
mod name_order;
mod names;
mod output_buffer;
mod protobuf;
mod protocol;
mod sample_reader;
mod simd;
#[cfg(test)]
mod testing;

pub use admission::NotAdmitted;
pub use datagram::{Budget, Packer, Packets, Room};
pub use protocol::{Protocol, ProtocolCapabilities, UnknownProtocol, UnsupportedSeries};
pub use sample_reader::{SampleReader, Take};

use std::fmt;
use std::task::Waker;

use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};

/// Maximum length of a record of any protocol, in bytes.
pub const MAX_RECORD: usize = 64 << 10;

/// The result of a [`Decoder::decode`] call whose last line, from `at` on, is incomplete: a line
/// above the maximum length ends the connection.
pub(crate) fn unended(bytes: &[u8], at: usize, sink: &mut dyn Sink) -> Result<usize, Fatal> {
    let bytes = &bytes[at..];
    if bytes.len() < MAX_RECORD {
        return Ok(at);
    }
    let what = "a line is longer than 65535 bytes";
    sink.malformed(&Malformed { what, bytes });
    Err(Fatal { what })
}

/// Reports what stands behind the last line end when a stream ends: it may be the beginning of a line,
/// of a sender that was killed.
pub(crate) fn without_end(rest: &[u8], sink: &mut dyn Sink) {
    if !rest.is_empty() {
        let what = "the last line has no end";
        sink.malformed(&Malformed { what, bytes: rest });
    }
}

/// Turns batches into payload bytes. One encoder serves one connection.
pub trait Encoder: fmt::Debug + Send {
    /// Appends the payload of `batch` to `out`. Once `out` has room, some codecs still allocate a few bytes
    /// per new timestamp.
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>);

    /// Number of samples left out so far because the wire cannot carry them: 0 if the wire carries
    /// values and timestamps of every kind.
    fn skipped(&self) -> u64;
}

/// Turns the bytes of one connection into batches.
///
/// It owns no byte buffer: the caller keeps what was not consumed, and passes it again with more
/// bytes appended. For any input, there must be no panic, no unbounded memory and no silent drop.
/// Given [`MAX_RECORD`] bytes it consumes some or fails, so a buffer of that size is always
/// enough.
pub trait Decoder: fmt::Debug + Send {
    /// Decodes every complete record of `bytes` and returns the number of bytes consumed.
    ///
    /// # Errors
    /// [`Fatal`] if the connection must end. Everything before the invalid record has then been
    /// passed to the sink, and the error was reported to it.
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal>;

    /// Appends the bytes to write back to `out`; called when everything decoded so far is applied.
    /// Protocols without answers need not implement it; one that confirms stops decoding after
    /// each request, so that its samples are applied before.
    fn answer(&mut self, _peer: Peer, _out: &mut Vec<u8>) -> Next {
        Next::More
    }

    /// Called when the socket has accepted every answer, so that a decoder can give back memory that
    /// its answers held.
    fn answers_taken(&mut self) {}

    /// Sets the waker to call when background work is done: only for a decoder that returns
    /// [`Next::Later`].
    fn wake_with(&mut self, _waker: &Waker) {}

    /// The account of the stream's sequence numbers; `None` if the protocol has none.
    fn sequence(&self) -> Option<Sequence>;

    /// Ends the stream, with the unconsumed bytes `rest`. They may be only the beginning of a record: a
    /// sender that is killed ends its stream anywhere.
    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink);
}

/// What a decoder needs to know of its peer to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Samples since the last answer that were passed on and rejected by the store.
    pub rejected: u64,
    /// Whether the socket has accepted every answer so far; if not, no more must be written to it.
    pub is_listening: bool,
}

/// How a connection continues after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// All complete records are decoded.
    More,
    /// The decoder stopped to answer, and must be called again.
    Again,
    /// Background work is under way. Call the decoder again, with the bytes that it did not
    /// consume, when the waker of [`Decoder::wake_with`] is called.
    Later,
    /// The connection ends, as agreed by both sides.
    Over,
}

/// The account of a sender's sequence numbers: of frames in a stream, of samples in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// The next expected number.
    pub next: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Total of missing numbers over all gaps.
    pub missing: u64,
    /// Number of repeated ones, which were not applied.
    pub repeated: u64,
    /// Whether the sender announced the end of its data. Never true in a stream, which ends by
    /// closing.
    pub has_ended: bool,
}

/// Receives what a decoder finds.
pub trait Sink {
    /// The id of a key, below 2^32 - 16. A decoder asks once per new name of its connection, and
    /// remembers the answer as long as it has room.
    ///
    /// # Errors
    /// The reason for which the name is refused; the decoder then reports each sample of that name
    /// with [`Sink::refused`].
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted>;

    /// Decoded samples, in the order of the wire.
    fn batch(&mut self, batch: &Batch<'_>);

    /// Reports `samples` well-formed samples of a name that the sink refused, and the reason.
    fn refused(&mut self, why: NotAdmitted, samples: usize);

    /// Reports `samples` well-formed samples of a series that the sender must announce separately,
    /// and did not.
    fn unannounced(&mut self, samples: usize);

    /// Reports bytes that are not a valid record.
    fn malformed(&mut self, problem: &Malformed<'_>);
}

/// One malformed record, which counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed<'a> {
    /// What is wrong: a fixed sentence, so that counts can be kept by kind. If the record is valid in the
    /// protocol and cannot be carried here, the sentence ends in "is not supported here": answers over HTTP
    /// count such records apart.
    pub what: &'static str,
    /// The invalid bytes, as far as known; may be long, truncate before display.
    pub bytes: &'a [u8],
}

/// Why a connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Fatal {
    /// What is wrong; a fixed sentence.
    pub what: &'static str,
}
