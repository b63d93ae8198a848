//! Graphite's pickle protocol: lists of `(name, (timestamp, value))` in frames.
//!
//! As carbon reads it (commit `aa7974e`, `MetricPickleReceiver`); the document is
//! docs/formats/pickle.md. Names are those of Graphite plaintext. The reader knows the
//! opcodes that lists, tuples, texts and numbers are made of, and no other: it cannot be
//! made to call anything. What CPython makes of a list of samples is read in place.
//!
//! It is *not* carbon's cache query, which speaks pickle as well.

mod decode;
mod encode;
mod reader;
mod usual;

pub use decode::PickleDecoder;
pub use encode::PickleEncoder;

/// The longest pickle that a receiver takes, in bytes. A longer one closes the connection.
pub const MAX_PICKLE: usize = 1 << 20;

/// How many samples are put into one pickle, as carbon's relay does.
pub const SAMPLES: usize = 500;

#[cfg(test)]
mod tests;
