//! The body of OTLP's export of metrics: an `ExportMetricsServiceRequest` in protobuf.
//!
//! As version 1 of its specification has it, described in docs/formats/otlp.md. A series is a
//! metric's name with the attributes of a data point, of its resource and the name of its scope.
//! Gauges and sums are read; histograms and summaries, which are no single number, are refused.
//!
//! It is *not* HTTP and not gRPC; the answer ([`Partial`]) is the same on both.

mod decode;
mod encode;
mod partial;

pub use decode::OtlpDecoder;
pub use encode::OtlpEncoder;
pub use partial::Partial;

/// The label that holds the name of a point's scope, if it has one.
pub const SCOPE_LABEL: &str = "otel.scope.name";

/// The value stored for a data point that is flagged as having none: Prometheus' staleness marker.
pub const NO_VALUE: u64 = 0x7ff0_0000_0000_0002;

/// The longest name of a series on the wire with its attributes, in bytes.
pub const MAX_NAME: usize = 32 << 10;

#[cfg(test)]
mod tests;
