//! The body of KairosDB's `POST /api/v1/datapoints`: one object or an array of them.
//!
//! As KairosDB 0.9.3 parses it, specified in docs/formats/put.md. A series is a metric
//! with its tags, as on the telnet protocol ([`crate::wire::put`]). A series without labels is
//! sent with the tag `add=tag`, because this interface requires a tag.
//!
//! It is *not* HTTP: the input is a body, and what HTTP would report as a status is reported as a
//! malformed record.

mod decode;
mod encode;
mod fast_path;

pub use decode::KairosdbJsonDecoder;
pub use encode::KairosdbJsonEncoder;

#[cfg(test)]
mod tests;
