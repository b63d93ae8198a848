//! Prometheus' remote write 1.0, as a receiver that its specification calls compliant.

use std::sync::Arc;

use super::decode::{Service, Task};
use super::head::Head;
use super::outcome::{RequestOutcome, Response};
use super::query::Parameters;
use crate::time::Clock;
use crate::wire::remote_write::RemoteWriteDecoder;
use crate::wire::{Decoder, NotAdmitted, Room};

/// Where Prometheus listens, and where Cortex and its likes do.
const PATHS: [&str; 2] = ["/api/v1/write", "/api/v1/push"];

/// The interface of one connection.
#[derive(Debug)]
pub(super) struct RemoteWriteService {
    bodies: RemoteWriteDecoder,
}

impl RemoteWriteService {
    pub(super) fn new(clock: &Arc<dyn Clock>, room: &Room) -> Self {
        Self {
            bodies: RemoteWriteDecoder::new(clock).within(room),
        }
    }
}

fn text(status: u16, what: &str) -> Response {
    Response::text(status, format!("{what}\n"))
}

impl Service for RemoteWriteService {
    fn begin(&mut self, head: &Head) -> Result<Task, Response> {
        if !PATHS.contains(&head.path.as_str()) {
            return Err(text(404, "samples are written to /api/v1/write"));
        }
        if head.method != "POST" {
            return Err(text(405, "Method Not Allowed"));
        }
        let kind = head.content_type.as_str();
        if kind.starts_with("application/x-protobuf") && kind.contains("io.prometheus.write.v2") {
            // The sender then falls back to 1.0.
            return Err(text(415, "remote write 2.0 is not supported here; send 1.0"));
        }
        Ok(Task::Whole)
    }

    fn decoder(&mut self) -> &mut dyn Decoder {
        &mut self.bodies
    }

    fn asked(&mut self, _parameters: &Parameters) -> Response {
        text(404, "nothing is answered here")
    }

    /// Senders repeat what was answered with 5xx: where that would change nothing, it is 400.
    fn end(&mut self, outcome: &RequestOutcome) -> Response {
        let mut reasons = Vec::new();
        if outcome.malformed + outcome.uncarried > 0 {
            let what = outcome.what.unwrap_or_default();
            reasons.push(format!("{} invalid: {what}", outcome.malformed + outcome.uncarried));
        }
        if outcome.refused > 0 {
            let why = outcome.not_admitted.map_or("not_defined", NotAdmitted::reason);
            reasons.push(format!("{} samples refused: {why}", outcome.refused));
        }
        if outcome.rejected > 0 {
            reasons.push(format!("{} samples rejected by the store", outcome.rejected));
        }
        if reasons.is_empty() {
            return Response::new(204, "");
        }
        text(400, &format!("{}; all others are stored", reasons.join("; ")))
    }

    fn bad(&self, status: u16, what: &str) -> Response {
        text(status, what)
    }
}
