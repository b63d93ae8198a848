//! Finds the samples that a store need not hold, from the report of its run.

use std::ops::Range;

use tsb_core::emit::ExceptionKind;
use tsb_core::ledger::Counter;
use tsb_core::report::{Exceptions, LedgerReport, Run};
use tsb_core::{SeriesId, Timestamp};

use tsb_run::audit::Audit;
use tsb_run::run::ExpectedAbsent;

/// Counters that reading back produces, and that are counted anew.
const READ_BACK: [Counter; 9] = [
    Counter::Verified,
    Counter::Superseded,
    Counter::Expired,
    Counter::Lost,
    Counter::Altered,
    Counter::Duplicated,
    Counter::Unconsolidated,
    Counter::Unrepresented,
    Counter::Uncompared,
];

/// The source of the outcomes of the sent samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeSource {
    /// The store itself, or a server through its client.
    Store,
    /// Our listener, which counts arrivals.
    Listener,
    /// Answers of a server that `tsb emit` sent to.
    Answers,
    /// No source: `tsb emit` sent over a wire without answers.
    None,
}

/// The report of a run, as far as it is needed here.
#[derive(Debug)]
pub(super) struct RunFacts<'a> {
    run: &'a Run,
    source: OutcomeSource,
    exceptions: Option<&'a Exceptions>,
}

impl<'a> RunFacts<'a> {
    /// From the report of a run; `is_wire`: it used sockets.
    pub(super) fn of(run: &'a Run, is_wire: bool) -> Self {
        let is_counted = |counter| run.ledger.counts.get(counter).is_some();
        // The emitter alone does not know what a store took.
        let source = match (is_counted(Counter::Accepted), is_wire) {
            (true, true) => OutcomeSource::Listener,
            (true, false) => OutcomeSource::Store,
            (false, _) if is_counted(Counter::Confirmed) => OutcomeSource::Answers,
            (false, _) => OutcomeSource::None,
        };
        Self {
            run,
            source,
            exceptions: run.exceptions.as_ref(),
        }
    }

    /// Whether samples went directly to the store, so that it alone knows what arrived.
    pub(super) fn is_direct(&self) -> bool {
        self.source == OutcomeSource::Store
    }

    /// Refused samples, as far as they are named.
    pub(super) fn rejected(&self) -> Vec<(SeriesId, Timestamp)> {
        self.exceptions.map(Exceptions::rejected_samples).unwrap_or_default()
    }

    /// Operations of a kind. Behind a listener of ours, unanswered operations either arrived or
    /// are counted as lost.
    pub(super) fn operations(&self, kind: ExceptionKind) -> Vec<(u32, Range<u64>)> {
        if self.source == OutcomeSource::Listener && kind == ExceptionKind::Unknown {
            return Vec::new();
        }
        let operations = self.exceptions.map(|exceptions| exceptions.operations_of(kind));
        operations.unwrap_or_default()
    }

    /// Operations whose samples may not all have arrived.
    pub(super) fn in_doubt(&self) -> Vec<(u32, Range<u64>)> {
        let exceptions = self.exceptions.into_iter();
        let in_doubt = |exceptions: &Exceptions| {
            let [unknown, lost] =
                [ExceptionKind::Unknown, ExceptionKind::Lost].map(|kind| exceptions.operations_of(kind));
            [unknown, lost].concat()
        };
        exceptions.flat_map(in_doubt).collect()
    }

    /// Number of samples that may not have arrived and cannot be identified.
    pub(super) fn unnamed_in_all(&self) -> u64 {
        let expected_absent = self.expected_absent();
        let without_lists = expected_absent.nameless + expected_absent.operations_unnamed;
        self.exceptions.map_or(without_lists, Exceptions::unnamed)
    }

    /// Whether any sample may be one that did not arrive: over a wire without answers, if the
    /// audit found missing or altered samples.
    pub(super) fn is_open_to_doubt(&self, audit: &Audit) -> bool {
        self.source == OutcomeSource::None && audit.tally.missing + audit.tally.altered > 0
    }

    /// The ledger of the run without the read-back counters.
    pub(super) fn before(&self) -> LedgerReport {
        let ledger = &self.run.ledger;
        let mut before = LedgerReport::default();
        before.rejected_by_reason.clone_from(&ledger.rejected_by_reason);
        let counts = ledger.counts.counts();
        for (counter, samples) in counts.filter(|(counter, _)| !READ_BACK.contains(counter)) {
            before.counts.set(counter, samples);
        }
        let counts = &mut before.counts;
        match self.source {
            OutcomeSource::Store | OutcomeSource::Listener => {}
            OutcomeSource::Answers => {
                let [sent, confirmed, refused] =
                    [Counter::Sent, Counter::Confirmed, Counter::Refused].map(|counter| counts.count(counter));
                counts.set(Counter::Received, sent).set(Counter::Rejected, refused);
                counts.set(Counter::Accepted, confirmed);
            }
            OutcomeSource::None => {
                let (due, sent) = (counts.count(Counter::Due), self.handed_over());
                counts.set(Counter::Shed, due.saturating_sub(sent));
                counts.set(Counter::Sent, sent).set(Counter::Unknown, sent);
                counts.set(Counter::Received, sent).set(Counter::Accepted, 0);
            }
        }
        before
    }

    /// Samples encoded for a wire without answers. Some of those lost with their connection may
    /// have been sent.
    fn handed_over(&self) -> u64 {
        let lost = self.exceptions.map_or(0, |exceptions| exceptions.never_arrived);
        self.run.ledger.counts.count(Counter::Sent) + lost
    }

    /// The samples that need not be stored and are not named.
    pub(super) fn expected_absent(&self) -> ExpectedAbsent {
        let count = |counter| self.run.ledger.counts.count(counter);
        let was_read = self.run.ledger.counts.get(Counter::Verified).is_some();
        let (nameless, operations_unnamed) = self.exceptions.map_or_else(
            || (self.refused_unnamed(), count(Counter::Shed)),
            |exceptions| {
                let never_arrived = match self.source {
                    OutcomeSource::None => 0,
                    _ => exceptions.never_arrived,
                };
                let nameless = never_arrived + exceptions.rejected_unnamed;
                (nameless, exceptions.operations_unnamed)
            },
        );
        let unknown = match self.source {
            OutcomeSource::Listener => 0,
            OutcomeSource::Store | OutcomeSource::Answers => count(Counter::Unknown),
            OutcomeSource::None => self.handed_over(),
        };
        let is_read_before = self.source == OutcomeSource::Store && was_read;
        ExpectedAbsent {
            nameless,
            is_guess: self.exceptions.is_none(),
            operations_unnamed,
            unknown,
            absent_before: is_read_before.then(|| count(Counter::LostInTransport)),
        }
    }

    /// Samples that a report of an earlier version counts without naming them, except unanswered
    /// ones.
    fn refused_unnamed(&self) -> u64 {
        let count = |counter| self.run.ledger.counts.count(counter);
        match self.source {
            OutcomeSource::Store => count(Counter::Malformed) + count(Counter::Rejected),
            OutcomeSource::Listener => {
                let on_the_way = count(Counter::KernelDropped) + count(Counter::LostInTransport);
                count(Counter::Malformed) + count(Counter::Rejected) + on_the_way
            }
            OutcomeSource::Answers => count(Counter::Refused),
            OutcomeSource::None => 0,
        }
    }

    /// Sets the upper bound of the store's losses and adds violations. If the report names no
    /// refused, lost or unsent samples, everything missing may be the store's loss.
    pub(super) fn bound(&self, audit: &Audit, ledger: &mut LedgerReport) {
        let count = |counter| ledger.counts.count(counter);
        let (lost, on_the_way) = (count(Counter::Lost), count(Counter::LostInTransport));
        let not_sent = audit.sent.saturating_sub(count(Counter::Sent));
        let unanswered = match self.source {
            OutcomeSource::Answers => count(Counter::Unknown),
            _ => 0,
        };
        if self.exceptions.is_none() && self.refused_unnamed() + unanswered + not_sent > 0 {
            let missing = audit.tally.missing;
            ledger.lost_at_most = (missing > lost).then_some(missing);
            return;
        }
        if self.source == OutcomeSource::None && on_the_way > 0 {
            // The server may have taken them, and lost them then.
            ledger.lost_at_most = Some(lost + on_the_way);
        }
        let unbalanced = ledger.counts.violations();
        ledger.violated.extend(unbalanced.iter().map(ToString::to_string));
    }
}
