//! The body of KairosDB's `POST /api/v1/datapoints`: one object or an array of them.
//!
//! As KairosDB 0.9.3 reads it; the document is docs/formats/kairosdb-json.md. A series is
//! a metric with its tags, as on the telnet protocol ([`crate::wire::put`]), and one
//! without labels goes by the tag `add=tag`: this interface takes none without a tag.
//!
//! It is *not* HTTP: what comes in here is a body, and what a status would say is said as a
//! malformed record.

mod decode;
mod encode;
mod usual;

pub use decode::KairosdbJsonDecoder;
pub use encode::KairosdbJsonEncoder;

#[cfg(test)]
mod tests;
