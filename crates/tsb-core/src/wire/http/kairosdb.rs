//! KairosDB 0.9.3's interface, limited to writing samples.

use std::sync::Arc;

use serde_json::json;

use super::decode::{Service, Task};
use super::head::Head;
use super::outcome::{RequestOutcome, Response};
use super::query::Parameters;
use crate::time::Clock;
use crate::wire::kairosdb::KairosdbJsonDecoder;
use crate::wire::{Decoder, Room};

/// The interface of one connection.
#[derive(Debug)]
pub(super) struct KairosdbService {
    bodies: KairosdbJsonDecoder,
}

impl KairosdbService {
    pub(super) fn new(clock: &Arc<dyn Clock>, room: &Room) -> Self {
        Self {
            bodies: KairosdbJsonDecoder::new(clock).within(room),
        }
    }
}

fn errors(status: u16, why: &str) -> Response {
    Response::new(status, json!({ "errors": [why] }).to_string())
}

impl Service for KairosdbService {
    fn begin(&mut self, head: &Head) -> Result<Task, Response> {
        match (head.path.as_str(), head.method.as_str()) {
            ("/api/v1/datapoints", "POST") => Ok(Task::Whole),
            ("/api/v1/version", "GET") => Err(Response::new(200, r#"{"version": "KairosDB 0.9.3"}"#)),
            ("/api/v1/datapoints" | "/api/v1/version", _) => Err(errors(405, "Method Not Allowed")),
            _ => Err(errors(404, "Not Found")),
        }
    }

    fn decoder(&mut self) -> &mut dyn Decoder {
        &mut self.bodies
    }

    fn asked(&mut self, _parameters: &Parameters) -> Response {
        errors(404, "Not Found")
    }

    fn end(&mut self, outcome: &RequestOutcome) -> Response {
        if let Some(what) = outcome.what {
            // Metrics before the invalid one are stored nevertheless.
            return errors(400, what);
        }
        if outcome.dropped() > 0 {
            return errors(500, "not all samples were taken");
        }
        Response::new(204, "")
    }

    fn bad(&self, status: u16, what: &str) -> Response {
        errors(status, what)
    }
}
