//! What a report knows of the samples that its store does not have to have.

use std::ops::Range;

use tsb_core::emit::ExceptionKind;
use tsb_core::ledger::Counter;
use tsb_core::report::{Exceptions, LedgerReport, Run};
use tsb_core::{SeriesId, Timestamp};

use crate::audit::Audit;
use crate::run::Elsewhere;

/// What is found by reading back, and is found anew.
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

/// The report of a run, as far as it matters here.
#[derive(Debug)]
pub(super) struct Known<'a> {
    run: &'a Run,
    is_wire: bool,
    exceptions: Option<&'a Exceptions>,
}

impl<'a> Known<'a> {
    /// Of a run, over sockets of our own or without.
    pub(super) fn of(run: &'a Run, is_wire: bool) -> Self {
        Self {
            run,
            is_wire,
            exceptions: run.exceptions.as_ref(),
        }
    }

    /// Samples that were refused, as far as they have names.
    pub(super) fn rejected(&self) -> Vec<(SeriesId, Timestamp)> {
        self.exceptions.map(Exceptions::rejected_samples).unwrap_or_default()
    }

    /// Operations of a kind. Behind a listener of ours, what was not answered came or is
    /// counted as lost.
    pub(super) fn operations(&self, kind: ExceptionKind) -> Vec<(u32, Range<u64>)> {
        if self.is_wire && kind == ExceptionKind::Unknown {
            return Vec::new();
        }
        let operations = self.exceptions.map(|exceptions| exceptions.operations_of(kind));
        operations.unwrap_or_default()
    }

    /// Operations of which it is not known whether all their samples came.
    pub(super) fn in_doubt(&self) -> Vec<(u32, Range<u64>)> {
        let exceptions = self.exceptions.into_iter();
        let in_doubt = |exceptions: &Exceptions| {
            let [unknown, lost] =
                [ExceptionKind::Unknown, ExceptionKind::Lost].map(|kind| exceptions.operations_of(kind));
            [unknown, lost].concat()
        };
        exceptions.flat_map(in_doubt).collect()
    }

    /// Samples that may not have come, and that nobody can name.
    pub(super) fn unnamed_in_all(&self) -> u64 {
        let elsewhere = self.elsewhere();
        let without_lists = elsewhere.nameless + elsewhere.operations_unnamed;
        self.exceptions.map_or(without_lists, Exceptions::unnamed)
    }

    /// The ledger of the run without what reading back found.
    pub(super) fn before(&self) -> LedgerReport {
        let ledger = &self.run.ledger;
        let mut before = LedgerReport {
            rejected_by_reason: ledger.rejected_by_reason.clone(),
            ..LedgerReport::default()
        };
        let counts = ledger.counts.counts();
        for (counter, samples) in counts.filter(|(counter, _)| !READ_BACK.contains(counter)) {
            before.counts.set(counter, samples);
        }
        if before.counts.get(Counter::Accepted).is_none() {
            // The emitter alone does not know what a store took: what was confirmed, or all.
            let sent = before.counts.count(Counter::Sent);
            let taken = before.counts.get(Counter::Confirmed).unwrap_or(sent);
            before.counts.set(Counter::Accepted, taken);
        }
        before
    }

    /// What does not have to be there and has no name.
    pub(super) fn elsewhere(&self) -> Elsewhere {
        let count = |counter| self.run.ledger.counts.count(counter);
        let is_direct = !self.is_wire;
        let was_read = self.run.ledger.counts.get(Counter::Verified).is_some();
        let (nameless, operations_unnamed) = self.exceptions.map_or_else(
            || (self.unnamed(), count(Counter::Shed)),
            |exceptions| {
                let nameless = exceptions.never_arrived + exceptions.rejected_unnamed;
                (nameless, exceptions.operations_unnamed)
            },
        );
        Elsewhere {
            nameless,
            is_guess: self.exceptions.is_none(),
            operations_unnamed,
            unknown: if is_direct { count(Counter::Unknown) } else { 0 },
            absent_before: (is_direct && was_read).then(|| count(Counter::LostInTransport)),
        }
    }

    /// What an earlier program counted and did not name.
    fn unnamed(&self) -> u64 {
        let counts = &self.run.ledger.counts;
        let in_store = [Counter::Malformed, Counter::Rejected];
        let on_the_way = [Counter::KernelDropped, Counter::LostInTransport];
        // What a foreign server refused or left open, where only the emitter reports.
        let by_server = [Counter::Refused, Counter::Unknown];
        let sum = |counters: [Counter; 2]| counters.iter().map(|&counter| counts.count(counter)).sum::<u64>();
        let mut unnamed = sum(in_store);
        if self.is_wire {
            unnamed += sum(on_the_way);
        }
        if counts.get(Counter::Rejected).is_none() {
            unnamed += sum(by_server);
        }
        unnamed
    }

    /// What follows from it all: where the report names nothing of what was refused, lost or
    /// not sent, everything that is missing may be the store's loss, and no sum says more.
    pub(super) fn bound(&self, audit: &Audit, ledger: &mut LedgerReport) {
        let not_sent = audit.sent.saturating_sub(ledger.counts.count(Counter::Sent));
        if self.exceptions.is_none() && self.unnamed() + not_sent > 0 {
            let missing = audit.tally.missing;
            ledger.lost_at_most = (missing > ledger.counts.count(Counter::Lost)).then_some(missing);
            return;
        }
        let unbalanced = ledger.counts.violations();
        ledger.violated.extend(unbalanced.iter().map(ToString::to_string));
    }
}
