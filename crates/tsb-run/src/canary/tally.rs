//! What a canary has counted, and the faults by name. Everything here is bounded, however long it
//! runs and whatever a store answers.

use std::collections::{BTreeMap, BTreeSet};

use tsb_core::report::canary::{CanaryFault, CanarySamples, FaultAge, FaultKind, NAMED_FAULTS_MAX, NamedFault};
use tsb_core::{Durability, Timestamp};

use super::stream::Stream;

/// Number of rows at times that the stream does not have that are counted; beyond it, they only make
/// their answers wrong.
const STRAYS_MAX: usize = 1_000;

/// A fault of one sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) series: u32,
    pub(super) at: Timestamp,
    pub(super) durability: Durability,
    pub(super) expected: Option<f64>,
    pub(super) found: Option<f64>,
    pub(super) noticed: Timestamp,
    pub(super) question: &'static str,
    /// From this sample to the next of its series.
    pub(super) interval_ns: i64,
}

/// What was counted.
#[derive(Debug)]
pub(super) struct CanaryTally {
    name: String,
    pub(super) samples: CanarySamples,
    faults: BTreeMap<(FaultKind, Durability, FaultAge), u64>,
    /// The first ones, for the report.
    named: Vec<NamedFault>,
    /// Those of the last answer, which nobody has been told yet.
    fresh: Vec<NamedFault>,
    /// The last fault and its series, which the next sample may continue.
    last: Option<(u32, NamedFault)>,
    strays: BTreeSet<(u32, Timestamp)>,
}

impl CanaryTally {
    /// Nothing, of the canary of this name.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            samples: CanarySamples::default(),
            faults: BTreeMap::new(),
            named: Vec::new(),
            fresh: Vec::new(),
            last: None,
            strays: BTreeSet::new(),
        }
    }

    /// Whether a row at a time that the stream does not have is seen for the first time.
    pub(super) fn is_new_stray(&mut self, series: u32, at: Timestamp) -> bool {
        self.strays.len() < STRAYS_MAX && self.strays.insert((series, at))
    }

    /// Counts a fault, and names it together with those before it in the same answer that it continues.
    pub(super) fn count(&mut self, fault: &Fault) {
        let age = FaultAge::of(fault.noticed - fault.at);
        *self.faults.entry((fault.kind, fault.durability, age)).or_default() += 1;
        if let Some((series, last)) = &mut self.last {
            let is_next = last.last + fault.interval_ns == fault.at;
            let is_alike = (*series, last.kind, last.durability) == (fault.series, fault.kind, fault.durability);
            if is_next && is_alike {
                (last.last, last.samples) = (fault.at, last.samples + 1);
                return;
            }
        }
        self.end_answer();
        self.last = Some((fault.series, self.named(fault)));
    }

    fn named(&self, fault: &Fault) -> NamedFault {
        let mut named = NamedFault::new(
            fault.kind,
            Stream::key(&self.name, fault.series).to_string(),
            fault.at,
            fault.durability,
        );
        (named.expected, named.found) = (fault.expected, fault.found);
        named.noticed = fault.noticed;
        fault.question.clone_into(&mut named.question);
        named
    }

    /// Ends the faults of an answer: none of the next one continues them.
    pub(super) fn end_answer(&mut self) {
        let Some((_, last)) = self.last.take() else { return };
        if self.named.len() < NAMED_FAULTS_MAX {
            self.named.push(last.clone());
        }
        if self.fresh.len() < NAMED_FAULTS_MAX {
            self.fresh.push(last);
        }
    }

    /// The faults that nobody has been told, at most [`NAMED_FAULTS_MAX`] at a time.
    pub(super) fn take_fresh(&mut self) -> Vec<NamedFault> {
        std::mem::take(&mut self.fresh)
    }

    /// The first faults by name.
    pub(super) fn first_named(&self) -> Vec<NamedFault> {
        self.named.clone()
    }

    /// All faults, by kind, level and age.
    pub(super) fn faults(&self) -> Vec<CanaryFault> {
        let faults = self.faults.iter();
        faults
            .map(|(&(kind, durability, age), &samples)| CanaryFault::new(kind, durability, age, samples))
            .collect()
    }
}
