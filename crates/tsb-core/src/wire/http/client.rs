//! The client side: requests that carry samples, and the meaning of their answers.

use std::fmt::Write;

use httparse::Status;

use super::chunks::{BodyPart, Chunks};
use super::head::Framing;
use super::packing::Packing;
use super::{MAX_HEAD, MAX_HEADERS};
use crate::bytes::percent::encoded;
use crate::wire::Protocol;
use crate::wire::otlp::Partial;

/// Maximum length of an answer's body, in bytes; a longer one is an error.
const MAX_ANSWER: usize = 1 << 20;

/// Width of a length in a head, padded with blanks.
const LENGTH_WIDTH: usize = 10;

/// Makes the requests of one protocol for one server.
#[derive(Clone, Debug)]
pub struct Client {
    protocol: Protocol,
    host: String,
    database: String,
    /// The bytes before the length of the body.
    head: Vec<u8>,
    packing: Packing,
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// Whether the connection may be used for another request.
    pub keeps_alive: bool,
}

/// The outcome of a request's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The server accepted all but `refused` of them.
    Taken {
        /// Number of samples that it refused.
        refused: u64,
    },
    /// The server refused all.
    Refused,
    /// The answer does not say which samples were accepted.
    Unknown,
}

/// Why bytes are not a valid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAnswer(pub &'static str);

/// The fields that remote write asks for.
const REMOTE_WRITE: &str =
    "Content-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\nUser-Agent: tsb\r\n";

impl Client {
    /// A client of `host`, which is sent as the Host header. InfluxDB's requests write into
    /// `database`. `None` if the protocol is not a request body.
    pub fn new(protocol: Protocol, host: &str, database: &str) -> Option<Self> {
        let (target, kind) = match protocol {
            Protocol::Influx => (format!("/write?db={}", encoded(database)), "text/plain; charset=utf-8"),
            Protocol::KairosdbJson => ("/api/v1/datapoints".to_owned(), "application/json"),
            Protocol::Otlp => ("/v1/metrics".to_owned(), "application/x-protobuf"),
            Protocol::RemoteWrite => ("/api/v1/write".to_owned(), "application/x-protobuf"),
            _ => return None,
        };
        let (more, packing) = match protocol {
            Protocol::RemoteWrite => (REMOTE_WRITE, Packing::Snappy),
            _ => ("", Packing::None),
        };
        let head = format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n{more}Content-Length: ");
        Some(Self {
            protocol,
            host: host.to_owned(),
            database: database.to_owned(),
            head: head.into_bytes(),
            packing,
        })
    }

    /// Declares in each request that its body is compressed with gzip, unless its protocol asks
    /// for another form. The caller must compress it with [`super::BodyPacker`], from
    /// [`Self::body`] on.
    #[must_use]
    pub fn with_gzip(mut self) -> Self {
        const NAME: &str = "Content-Length: ";
        if self.packing != Packing::None {
            return self;
        }
        self.head.truncate(self.head.len() - NAME.len());
        self.head.extend_from_slice(b"Content-Encoding: gzip\r\n");
        self.head.extend_from_slice(NAME.as_bytes());
        self.packing = Packing::Gzip;
        self
    }

    /// How the caller must compress bodies.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Offset of the body in a request.
    pub fn body(&self) -> usize {
        self.head.len() + LENGTH_WIDTH + 4
    }

    /// The request before the first write, which creates the database, if the protocol needs it.
    pub fn prelude(&self) -> Option<String> {
        let query = format!("CREATE DATABASE \"{}\"", self.database);
        let query = format!("q={}", encoded(&query));
        let is_asked = self.protocol == Protocol::Influx;
        is_asked.then(|| {
            format!(
                "POST /query HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {}\r\n\r\n{query}",
                self.host,
                query.len()
            )
        })
    }

    /// Begins a request in the empty buffer `out`; append the body to it.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(&[b' '; LENGTH_WIDTH]);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Completes the request in `out` after its body. Returns the length of the body.
    pub fn end(&self, out: &mut [u8]) -> usize {
        let start = self.head.len();
        let body = out.len().saturating_sub(self.body());
        let mut rest = body;
        for slot in out[start..start + LENGTH_WIDTH].iter_mut().rev() {
            *slot = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        body
    }

    /// The outcome of the request's samples, by its answer.
    pub fn outcome(&self, answer: &Answer) -> WriteOutcome {
        match answer.status {
            200..=299 if self.protocol == Protocol::Otlp => match Partial::read(&answer.body) {
                Some(partial) => WriteOutcome::Taken {
                    refused: partial.rejected,
                },
                None => WriteOutcome::Unknown,
            },
            200..=299 => WriteOutcome::Taken { refused: 0 },
            400 if self.protocol == Protocol::Influx => partial(&answer.body),
            // What was valid is stored, or none of it, as the server likes.
            400 => WriteOutcome::Unknown,
            300..=499 => WriteOutcome::Refused,
            _ => WriteOutcome::Unknown,
        }
    }
}

/// Parses InfluxDB's error texts. A partial write reports only the number of dropped points, which
/// is of no use if lines could not be parsed.
fn partial(body: &[u8]) -> WriteOutcome {
    let text = String::from_utf8_lossy(body);
    if !text.contains("partial write:") {
        return WriteOutcome::Refused;
    }
    let dropped = text.rsplit_once("dropped=").map(|(_, behind)| behind);
    let digits = dropped.map(|text| text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(refused) if !text.contains("unable to parse") && refused > 0 => WriteOutcome::Taken { refused },
        _ => WriteOutcome::Unknown,
    }
}

impl Answer {
    /// Parses an answer, and returns its length too; `None` if it is incomplete.
    ///
    /// # Errors
    /// If it is not a valid answer, or longer than a megabyte.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadAnswer> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let mut at = match response.parse(bytes) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
            _ => return Err(BadAnswer("the head of the answer is not HTTP/1")),
        };
        let status = response.code.unwrap_or_default();
        let has_field = |name: &str, wanted: &[u8]| {
            let mut found = response
                .headers
                .iter()
                .filter(|header| header.name.eq_ignore_ascii_case(name));
            found.any(|header| header.value.trim_ascii().eq_ignore_ascii_case(wanted))
        };
        let is_kept = response.version == Some(1) && !has_field("connection", b"close");
        let is_empty = matches!(status, 100..=199 | 204 | 304);
        let framing = if is_empty {
            Framing::Length(0)
        } else if has_field("transfer-encoding", b"chunked") {
            Framing::Chunked
        } else {
            let length = response
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let length = length.and_then(|header| std::str::from_utf8(header.value.trim_ascii()).ok()?.parse().ok());
            Framing::Length(length.ok_or(BadAnswer("the answer does not say how long it is"))?)
        };
        let mut chunks = Chunks::new(framing).map_err(|_| TOO_LONG)?;
        let mut body = Vec::new();
        loop {
            match chunks
                .next(&bytes[at..])
                .map_err(|_| BadAnswer("the chunks of the answer are malformed"))?
            {
                BodyPart::Wait if bytes.len() > MAX_ANSWER => return Err(TOO_LONG),
                BodyPart::Wait => return Ok(None),
                BodyPart::Frame(length) => at += length,
                BodyPart::Data { length, .. } => {
                    body.extend_from_slice(&bytes[at..at + length]);
                    chunks.take(length);
                    at += length;
                }
                BodyPart::Over => break,
            }
        }
        let answer = Self {
            status,
            body,
            keeps_alive: is_kept,
        };
        Ok(Some((answer, at)))
    }

    /// The status, and the beginning of the body, for messages.
    pub fn summary(&self) -> String {
        let mut text = self.status.to_string();
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.trim().chars().take(200).collect();
        if !shown.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, " {shown}");
        }
        text
    }
}

const TOO_LONG: BadAnswer = BadAnswer("the answer is longer than a megabyte");
