//! Graphite's pickle protocol: lists of `(name, (timestamp, value))` in frames.
//!
//! As carbon parses it (commit `aa7974e`, `MetricPickleReceiver`), specified in
//! docs/formats/graphite.md. Names are those of Graphite plaintext. The reader supports only the
//! opcodes of lists, tuples, texts and numbers, so it cannot be made to call anything. A list of
//! samples in CPython's format is parsed in place.
//!
//! It is *not* carbon's cache query protocol, which uses pickles as well.

mod decode;
mod encode;
mod fast_path;
mod reader;

pub use decode::PickleDecoder;
pub use encode::PickleEncoder;

/// Maximum length of a pickle, in bytes. A longer one closes the connection.
pub const MAX_PICKLE: usize = 1 << 20;

/// Number of samples per pickle, as in carbon's relay.
pub const SAMPLES: usize = 500;

#[cfg(test)]
mod tests;
