//! What a host measured, as a document: its report, and histograms in full.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tsb_core::latency::Histogram;
use tsb_core::report::Run;
use tsb_core::staleness::Staleness;

use super::clock::ClockReading;
use crate::error::Error;
use crate::run::{EmitterTimes, Finished, QueryTimes};

/// The part of a report that one host measured.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostPart {
    /// Its report; groups, series and ids count from 0 in it.
    pub run: Run,
    /// What it recorded while it sent.
    pub times: EmitterTimes,
    /// Whether its run was abandoned: its times are then cut off, and in coarse cells.
    pub is_partial: bool,
    /// The part of the lag that the generator caused itself.
    pub own_lag: Histogram,
    /// Times of each stream of queries, by its name.
    pub queries: BTreeMap<String, QueryTimes>,
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
            times: EmitterTimes::of(driven),
            is_partial: driven.is_partial,
            own_lag: driven.own_lag.total.clone(),
            queries: finished.queries,
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
