//! The body of Prometheus remote write 1.0, before it is compressed: a `prometheus.WriteRequest`.
//!
//! As its specification and Prometheus 2.42 have it, described in docs/formats/remote-write.md. A
//! series is its labels, the name among them as `__name__`; a name outside of Prometheus'
//! set is written in its own escaped form ([`labels_of`]).
//!
//! It is *not* HTTP, and no compression: a body on the wire is a snappy block
//! ([`crate::wire::http`]).

mod decode;
mod encode;
mod labels;
mod name;

pub use decode::RemoteWriteDecoder;
pub use encode::RemoteWriteEncoder;
pub use labels::{labels_of, series_key};

/// The label that holds the name.
pub const NAME_LABEL: &str = "__name__";

/// The longest labels of a series on the wire, in bytes.
pub const MAX_NAME: usize = 32 << 10;

#[cfg(test)]
mod tests;
