//! Codecs: bytes in, samples out, and back. No sockets, no clock.
//!
//! A codec is a pair: an [`Encoder`] that is made from a catalog and turns batches into
//! payload, and a [`Decoder`] that turns the bytes of one connection into batches and
//! hands them to a [`Sink`]. What a protocol cannot carry is refused when the encoder is
//! made, never while it runs.

pub mod dalmatiner;
pub mod datagram;
pub mod graphite;
pub mod http;
pub mod influx;
pub mod kairosdb;
pub mod number;
pub mod pickle;
pub mod put;
pub mod rrdcached;
pub mod statsd;
pub mod tsb;

mod admission;
mod codecs;
mod columns;
mod known;
mod lanes;
mod names;
mod order;
mod page;
mod protocol;
mod stamp;
#[cfg(test)]
mod testing;

pub use admission::NotAdmitted;
pub use datagram::{Budget, Packer, Packets, Room};
pub use protocol::{Facts, Protocol, Uncarried, UnknownProtocol};

use std::fmt;
use std::task::Waker;

use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};

/// The longest record of any protocol, in bytes.
pub const MAX_RECORD: usize = 64 << 10;

/// Ends a call of [`Decoder::decode`] whose last line, from `at` on, has no end yet: a line
/// that is longer than any may be ends the connection.
pub(crate) fn unended(bytes: &[u8], at: usize, sink: &mut dyn Sink) -> Result<usize, Fatal> {
    let bytes = &bytes[at..];
    if bytes.len() < MAX_RECORD {
        return Ok(at);
    }
    let what = "a line is longer than 65535 bytes";
    sink.malformed(&Malformed { what, bytes });
    Err(Fatal { what })
}

/// Turns batches into payload bytes. One encoder serves one connection.
pub trait Encoder: fmt::Debug + Send {
    /// Appends the payload of `batch` to `out`. Allocates nothing once `out` has room.
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>);

    /// Samples that the wire cannot carry and that were left out, since the beginning:
    /// 0 wherever values and timestamps of every kind survive.
    fn skipped(&self) -> u64;
}

/// Turns the bytes of one connection into batches.
///
/// It owns no buffer of bytes: the caller keeps what was not consumed and presents it again with
/// more bytes behind it. Any bytes at all may arrive: never a panic, never unbounded
/// memory, never a silent drop. Given [`MAX_RECORD`] bytes it consumes some or fails, so
/// that a buffer of that size is always enough.
pub trait Decoder: fmt::Debug + Send {
    /// Decodes every complete record of `bytes` and returns how many bytes that took.
    ///
    /// # Errors
    /// [`Fatal`] when the connection cannot go on; everything before the offending record
    /// has been handed to the sink, and the offence itself reported to it.
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal>;

    /// What is to be written back, appended to `out`: called when everything that was
    /// decoded is applied. Protocols that never answer need not have it; one that confirms
    /// stops decoding behind each request, so that its samples are applied before.
    fn answer(&mut self, _peer: Peer, _out: &mut Vec<u8>) -> Next {
        Next::More
    }

    /// What to call when work that goes on elsewhere is done: only for a decoder that answers
    /// [`Next::Later`].
    fn wake_with(&mut self, _waker: &Waker) {}

    /// What the sequence numbers of the stream say; `None` where the protocol has none.
    fn sequence(&self) -> Option<Sequence>;

    /// The stream has ended with `rest` left over.
    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink);
}

/// What a decoder should know of its peer when it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Samples since the last answer that were handed over and not taken by the store.
    pub rejected: u64,
    /// It has taken every answer so far; one that does not read must not be told more.
    pub is_listening: bool,
}

/// How a connection goes on behind an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Everything is decoded that can be.
    More,
    /// The decoder stopped to answer, and is to be called again.
    Again,
    /// Work that was begun goes on elsewhere; the decoder is to be called again, with the bytes
    /// that it did not take, when the waker of [`Decoder::wake_with`] is called.
    Later,
    /// It is over, as both sides agreed.
    Over,
}

/// The account of a sender's sequence numbers: of frames over a stream, of samples over
/// datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// The number that the next one should bear.
    pub next: u64,
    /// How often numbers were missing.
    pub gaps: u64,
    /// How many numbers are missing, all gaps together.
    pub missing: u64,
    /// How many had been seen before; they were not applied.
    pub repeated: u64,
    /// The sender said that nothing follows. Never over a stream, which ends by itself.
    pub has_ended: bool,
}

/// Where a decoder puts what it finds.
pub trait Sink {
    /// The id of a key, below 2^32 - 16. A decoder asks once for each new name of its
    /// connection and remembers the answer, as long as it has room for that.
    ///
    /// # Errors
    /// Why the name is not admitted; the decoder then reports each sample of that name with
    /// [`Sink::refused`].
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted>;

    /// Decoded samples, in the order of the wire.
    fn batch(&mut self, batch: &Batch<'_>);

    /// `samples` well-formed samples of a name that the sink did not admit, and why.
    fn refused(&mut self, why: NotAdmitted, samples: usize);

    /// `samples` well-formed samples whose series the sender names apart from them and never
    /// named.
    fn unannounced(&mut self, samples: usize);

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
