//! The ledger of the whole: counts add, also those of a host that was lost.

use tsb_core::SeriesId;
use tsb_core::ledger::Counter;
use tsb_core::report::LedgerReport;

use super::{LostPart, MeasuredPart, Whole};

/// Named losses that a report keeps.
const LOSSES_MAX: usize = 1_000;

/// Adds the ledgers of all parts.
pub(super) fn ledger(whole: &Whole<'_>, parts: &[MeasuredPart]) -> LedgerReport {
    let mut sum = LedgerReport::default();
    let (mut is_bounded, mut at_most) = (false, 0);
    for part in parts {
        let ledger = match &part.result {
            Ok(measured) => measured.run.ledger.clone(),
            Err(lost) => ledger_of_lost(lost),
        };
        sum.counts.merge(&ledger.counts);
        for (reason, samples) in &ledger.rejected_by_reason {
            *sum.rejected_by_reason.entry(reason.clone()).or_default() += samples;
        }
        at_most += ledger
            .lost_at_most
            .unwrap_or_else(|| ledger.counts.count(Counter::Lost));
        is_bounded |= ledger.lost_at_most.is_some();
        let first = whole.first_series(part.part);
        let left = LOSSES_MAX.saturating_sub(sum.losses.len());
        sum.losses.extend(ledger.losses.into_iter().take(left).map(|mut loss| {
            loss.series = SeriesId(loss.series.0 + first);
            loss
        }));
    }
    sum.lost_at_most = is_bounded.then_some(at_most);
    let violations = sum.counts.violations();
    sum.violated = violations.iter().map(ToString::to_string).collect();
    sum
}

/// The counts of a host that was lost. What was acknowledged was looked for; of what it had sent
/// besides, some was found, and the rest was lost on the way, since nobody acknowledged it. Of a host
/// whose part could not be read back, all that it sent counts as lost on the way, though it may be in the
/// store.
pub(super) fn ledger_of_lost(lost: &LostPart) -> LedgerReport {
    let (mut ledger, found) = match &lost.verified {
        Ok(verified) => (
            verified.ledger.clone().unwrap_or_default(),
            verified.journal.as_ref().map_or(0, |journal| journal.undecided_found),
        ),
        Err(_) => (LedgerReport::default(), 0),
    };
    let counts = &mut ledger.counts;
    counts.add(Counter::Accepted, found).add(Counter::Verified, found);
    let received = counts.count(Counter::Accepted) + counts.count(Counter::Rejected);
    let sent = lost.sent.max(received);
    counts.set(Counter::Due, sent).set(Counter::Sent, sent);
    counts
        .set(Counter::Received, received)
        .set(Counter::LostInTransport, sent - received);
    ledger
}
