//! Parses the head of a request: target, headers, and the length of the body.

use httparse::{Header, Status};

use super::packing::Packing;
use super::query::Parameters;
use super::{MAX_HEAD, MAX_HEADERS};

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length in bytes, which may be 0.
    Length(u64),
    /// By chunks, the last of which is empty.
    Chunked,
}

/// The parts of a request's head that the decoder uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) parameters: Parameters,
    pub(super) framing: Framing,
    /// How the body is compressed.
    pub(super) packing: Packing,
    /// The type of the body, in small letters; empty if it is not given.
    pub(super) content_type: String,
    /// The value of `Hawkular-Tenant`; empty if it is not given.
    pub(super) tenant: String,
    /// Whether the connection may be used for another request.
    pub(super) keeps_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(super) awaits_consent: bool,
}

/// Why a head is invalid: a status and a fixed sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadHead {
    pub(super) status: u16,
    pub(super) what: &'static str,
}

const fn bad(what: &'static str) -> BadHead {
    BadHead { status: 400, what }
}

impl Head {
    /// Parses a head, and returns its length too; `None` if it is incomplete.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadHead> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(Status::Complete(length)) if length <= MAX_HEAD => Ok(Some((Self::of(&request)?, length))),
            Ok(Status::Partial) if bytes.len() < MAX_HEAD => Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => Err(BadHead {
                status: 431,
                what: "the head of a request is longer than 16 KiB or has more than 64 fields",
            }),
            Err(_) => Err(bad("the head of a request is not HTTP/1")),
        }
    }

    fn of(request: &httparse::Request<'_, '_>) -> Result<Self, BadHead> {
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            parameters: Parameters::read(query),
            framing: framing(request.headers)?,
            packing: Packing::None,
            content_type: String::new(),
            tenant: String::new(),
            keeps_alive: request.version == Some(1),
            awaits_consent: false,
        };
        for header in request.headers.iter() {
            head.field(header)?;
        }
        Ok(head)
    }

    /// Whether the body is a form.
    pub(super) fn is_form(&self) -> bool {
        self.content_type.starts_with("application/x-www-form-urlencoded")
    }

    fn field(&mut self, header: &Header<'_>) -> Result<(), BadHead> {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-encoding") {
            self.packing = match value.to_ascii_lowercase().as_slice() {
                b"gzip" => Packing::Gzip,
                b"snappy" => Packing::Snappy,
                b"" | b"identity" => Packing::None,
                _ => {
                    return Err(BadHead {
                        status: 415,
                        what: "the encoding of a body is neither gzip nor snappy",
                    });
                }
            };
        } else if header.name.eq_ignore_ascii_case("content-type") {
            self.content_type = String::from_utf8_lossy(value).to_ascii_lowercase();
            if self.content_type == "application/gzip" {
                // KairosDB's sign of a compressed body.
                self.packing = Packing::Gzip;
            }
        } else if header.name.eq_ignore_ascii_case("connection") {
            let mut words = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            if words.clone().any(|word| word.eq_ignore_ascii_case(b"close")) {
                self.keeps_alive = false;
            } else if words.any(|word| word.eq_ignore_ascii_case(b"keep-alive")) {
                self.keeps_alive = true;
            }
        } else if header.name.eq_ignore_ascii_case("expect") {
            self.awaits_consent = value.eq_ignore_ascii_case(b"100-continue");
        } else if header.name.eq_ignore_ascii_case("hawkular-tenant") && self.tenant.is_empty() {
            self.tenant = String::from_utf8_lossy(value).into_owned();
        }
        Ok(())
    }
}

/// Accepts one length or chunks, never both: a proxy could determine another end (request
/// smuggling).
fn framing(headers: &[Header<'_>]) -> Result<Framing, BadHead> {
    const LENGTH: BadHead = bad("the length of a body is not one number");
    let mut length = None;
    let mut is_chunked = false;
    for header in headers {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(value).map_err(|_| LENGTH)?;
            let number: u64 = text.parse().map_err(|_| LENGTH)?;
            if !is_number || length.is_some_and(|length| length != number) {
                return Err(LENGTH);
            }
            length = Some(number);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(bad("the transfer of a body is not chunked"));
            }
            is_chunked = true;
        }
    }
    match (is_chunked, length) {
        (true, Some(_)) => Err(bad("a body has both a length and chunks")),
        (true, None) => Ok(Framing::Chunked),
        (false, length) => Ok(Framing::Length(length.unwrap_or(0))),
    }
}
