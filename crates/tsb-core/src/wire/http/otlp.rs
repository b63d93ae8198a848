//! OTLP over HTTP: the export of metrics, in protobuf.

use std::sync::Arc;

use super::decode::{Service, Task};
use super::head::Head;
use super::outcome::{RequestOutcome, Response};
use super::query::Parameters;
use crate::time::Clock;
use crate::wire::otlp::{OtlpDecoder, Partial};
use crate::wire::protobuf::push_bytes;
use crate::wire::{Decoder, NotAdmitted, Room};

/// The type of bodies and answers.
const PROTOBUF: &str = "application/x-protobuf";

/// The interface of one connection.
#[derive(Debug)]
pub(super) struct OtlpService {
    bodies: OtlpDecoder,
}

impl OtlpService {
    pub(super) fn new(clock: &Arc<dyn Clock>, room: &Room) -> Self {
        Self {
            bodies: OtlpDecoder::new(clock).within(room),
        }
    }
}

fn protobuf(status: u16, body: Vec<u8>) -> Response {
    Response {
        content_type: PROTOBUF,
        ..Response::new(status, body)
    }
}

/// An error as a `google.rpc.Status` with a message.
fn error(status: u16, what: &str) -> Response {
    let mut body = Vec::new();
    push_bytes(2, what.as_bytes(), &mut body);
    protobuf(status, body)
}

/// The part of a request that was not accepted.
fn partial(outcome: &RequestOutcome) -> Partial {
    let counts = [
        (outcome.malformed + outcome.uncarried, outcome.what.unwrap_or_default()),
        (
            outcome.refused,
            outcome.not_admitted.map_or("not_defined", NotAdmitted::reason),
        ),
        (outcome.rejected, "rejected by the store"),
    ];
    let found = counts.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = found.clone().map(|(count, why)| format!("{count}: {why}")).collect();
    Partial {
        rejected: found.map(|(count, _)| count).sum(),
        message: reasons.join("; "),
    }
}

impl Service for OtlpService {
    fn begin(&mut self, head: &Head) -> Result<Task, Response> {
        if head.path != "/v1/metrics" {
            return Err(error(404, "metrics are exported to /v1/metrics; nothing else is taken"));
        }
        if head.method != "POST" {
            return Err(error(405, "Method Not Allowed"));
        }
        if !head.content_type.starts_with(PROTOBUF) {
            return Err(error(415, "the type of a body is not application/x-protobuf"));
        }
        Ok(Task::Whole)
    }

    fn decoder(&mut self) -> &mut dyn Decoder {
        &mut self.bodies
    }

    fn asked(&mut self, _parameters: &Parameters) -> Response {
        error(404, "nothing is answered here")
    }

    fn end(&mut self, outcome: &RequestOutcome) -> Response {
        if self.bodies.is_broken() {
            return error(400, &outcome.reasons);
        }
        protobuf(200, partial(outcome).response())
    }

    fn bad(&self, status: u16, what: &str) -> Response {
        error(status, what)
    }
}
