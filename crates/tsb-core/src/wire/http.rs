//! HTTP/1.1 for the protocols that are request bodies: decodes requests to samples, and writes
//! answers.
//!
//! It answers like InfluxDB 1.8, KairosDB 0.9.3 and receivers of remote write and OTLP, as
//! specified in docs/formats/http.md. An [`HttpDecoder`] takes the bytes of a connection, request
//! by request, and its [`crate::wire::Decoder::answer`] writes the responses. A [`Client`] makes
//! requests and parses responses. Only framing is done here: heads are parsed by httparse, gzip by
//! flate2, snappy by snap.
//!
//! It listens on no socket, and supports neither TLS nor authentication.

pub mod hawkular;

mod body;
mod chunks;
mod client;
mod decode;
mod gzip;
mod head;
mod influx;
mod kairosdb;
mod otlp;
mod outcome;
mod packing;
mod query;
mod remote_write;

pub use client::{Answer, BadAnswer, Client, WriteOutcome};
pub use decode::HttpDecoder;
pub use gzip::Gzip;
pub use influx::Databases;
pub use packing::{BodyPacker, Packing, Snappy};

use std::sync::Arc;

use crate::time::Clock;
use crate::wire::{Decoder, Protocol, Room};

/// Maximum length of the head of a request or a response, in bytes.
pub const MAX_HEAD: usize = 16 << 10;

/// Maximum length of a request body, in bytes: InfluxDB's default.
pub const MAX_BODY: u64 = 25_000_000;

/// Maximum number of headers of a request or a response.
const MAX_HEADERS: usize = 64;

/// A decoder for one connection; `None` if the protocol is not a request body.
pub(crate) fn decoder(
    protocol: Protocol,
    clock: Arc<dyn Clock>,
    room: &Room,
    databases: &Databases,
) -> Option<Box<dyn Decoder>> {
    let service: Box<dyn decode::Service> = match protocol {
        Protocol::Influx => Box::new(influx::InfluxService::new(clock, room, databases)),
        Protocol::Otlp => Box::new(otlp::OtlpService::new(&clock, room)),
        Protocol::RemoteWrite => Box::new(remote_write::RemoteWriteService::new(&clock, room)),
        Protocol::KairosdbJson => Box::new(kairosdb::KairosdbService::new(&clock, room)),
        _ => return None,
    };
    Some(Box::new(HttpDecoder::new(service, &room.held)))
}

#[cfg(test)]
mod tests;
