//! HTTP/1.1 around the protocols that are bodies: requests in, samples and answers out.
//!
//! As InfluxDB 1.8 and KairosDB 0.9.3 answer; the document is docs/formats/http.md. A
//! [`HttpDecoder`] takes the bytes of a connection, request after request, and says with
//! [`crate::wire::Decoder::answer`] what is to be written back. A [`Client`] makes requests
//! and reads what is answered. Framing only: heads are read by httparse, gzip by flate2.
//!
//! It listens on no socket, knows no TLS and no authentication.

mod body;
mod chunks;
mod client;
mod decode;
mod gzip;
mod head;
mod influx;
mod kairosdb;
mod outcome;
mod query;

pub use client::{Answer, BadAnswer, Client, Verdict};
pub use decode::HttpDecoder;
pub use gzip::Gzip;
pub use influx::Databases;

use std::sync::Arc;

use crate::time::Clock;
use crate::wire::{Decoder, Protocol, Room};

/// The longest head of a request or an answer, in bytes.
pub const MAX_HEAD: usize = 16 << 10;

/// The longest body of a request, in bytes: InfluxDB's default.
pub const MAX_BODY: u64 = 25_000_000;

/// The most headers of a request or an answer.
const MAX_HEADERS: usize = 64;

/// A decoder for one connection; `None` where the protocol is no body of requests.
pub(crate) fn decoder(
    protocol: Protocol,
    clock: Arc<dyn Clock>,
    room: &Room,
    databases: &Databases,
) -> Option<Box<dyn Decoder>> {
    let service: Box<dyn decode::Service> = match protocol {
        Protocol::Influx => Box::new(influx::InfluxService::new(clock, room, databases)),
        Protocol::KairosdbJson => Box::new(kairosdb::KairosdbService::new(&clock, room)),
        _ => return None,
    };
    Some(Box::new(HttpDecoder::new(service, &room.held)))
}

#[cfg(test)]
mod tests;
