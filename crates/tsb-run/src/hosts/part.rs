//! What a host measured, as a document: its report, and histograms in full.

use serde::{Deserialize, Serialize};
use tsb_core::latency::{Histogram, Recording};
use tsb_core::report::Run;
use tsb_core::staleness::Staleness;

use super::clock::ClockReading;
use crate::error::Error;
use crate::run::Finished;

/// The part of a report that one host measured.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostPart {
    /// Its report; groups, series and ids count from 0 in it.
    pub run: Run,
    /// When it began to send, on the clock of its recordings.
    pub start_ns: u64,
    /// Time from when an operation was due until it was done, by interval.
    pub response: Recording,
    /// Time from its start until our listener had read it; empty without a listener.
    pub delivery: Histogram,
    /// Time from its start, or from when the listener had read it, until it was done.
    pub service: Histogram,
    /// Time from when it was due until its start.
    pub lag: Histogram,
    /// The part of [`Self::lag`] that the generator caused itself.
    pub own_lag: Histogram,
    /// Ages of the newest visible samples.
    pub staleness: Staleness,
    /// Due until the store's highest level; absent if acknowledgements state that level.
    pub waits: Option<Histogram>,
    /// Its clock before, during and after the run.
    pub clock: Vec<ClockReading>,
}

impl HostPart {
    /// The part of a finished run.
    pub fn new(finished: Finished, clock: Vec<ClockReading>) -> Self {
        let driven = &finished.driven;
        Self {
            start_ns: driven.start_ns,
            response: driven.response.clone(),
            delivery: driven.delivery.total.clone(),
            service: driven.service.total.clone(),
            lag: driven.lag.total.clone(),
            own_lag: driven.own_lag.total.clone(),
            staleness: finished.staleness,
            waits: finished.waits,
            run: finished.run,
            clock,
        }
    }

    /// As a text for the coordination.
    pub(super) fn to_text(&self) -> Result<String, Error> {
        serde_json::to_string(self)
            .map_err(|error| Error::internal("cannot write a part of the report").because(&error))
    }

    /// From a text of the coordination.
    pub(super) fn of_text(host: &str, text: &str) -> Result<Self, Error> {
        serde_json::from_str(text)
            .map_err(|error| Error::internal(format!("cannot read what {host} measured")).because(&error))
    }
}
