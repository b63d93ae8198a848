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
    let of_part = |part: &MeasuredPart| match &part.result {
        Ok(measured) => measured.run.ledger.clone(),
        Err(lost) => ledger_of_lost(lost),
    };
    let mut ledgers: Vec<LedgerReport> = parts.iter().map(of_part).collect();
    count_answers(&mut ledgers);
    for (part, ledger) in parts.iter().zip(ledgers) {
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

/// Counts what servers answered in all ledgers, if one does: a host whose writes were all answered has
/// only what was received.
fn count_answers(ledgers: &mut [LedgerReport]) {
    let has_answers = |ledger: &LedgerReport| ledger.counts.get(Counter::Confirmed).is_some();
    if !ledgers.iter().any(has_answers) {
        return;
    }
    for ledger in ledgers.iter_mut().filter(|ledger| !has_answers(ledger)) {
        let counts = &mut ledger.counts;
        let [sent, accepted, rejected] =
            [Counter::Sent, Counter::Accepted, Counter::Rejected].map(|counter| counts.count(counter));
        counts
            .set(Counter::Confirmed, accepted)
            .set(Counter::Refused, rejected)
            .set(Counter::Unknown, sent.saturating_sub(accepted + rejected));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(counts: &[(Counter, u64)]) -> LedgerReport {
        let mut ledger = LedgerReport::default();
        for &(counter, samples) in counts {
            ledger.counts.set(counter, samples);
        }
        assert_eq!(ledger.counts.violations(), []);
        ledger
    }

    /// As of a run into etcd whose leader was killed: one host had a write without an answer.
    #[test]
    fn hosts_with_and_without_unanswered_writes_add_up() {
        use Counter::{Accepted, Confirmed, Due, LostInTransport, Received, Rejected, Sent, Unknown, Verified};
        let answered = ledger(&[
            (Due, 100),
            (Sent, 100),
            (Received, 100),
            (Rejected, 10),
            (Accepted, 90),
            (Verified, 90),
        ]);
        let unanswered = ledger(&[
            (Due, 100),
            (Sent, 100),
            (Confirmed, 95),
            (Unknown, 5),
            (LostInTransport, 5),
            (Received, 95),
            (Accepted, 95),
            (Verified, 95),
        ]);
        let mut ledgers = [answered.clone(), unanswered, answered.clone()];
        count_answers(&mut ledgers);
        let mut sum = LedgerReport::default();
        for ledger in &ledgers {
            assert_eq!(ledger.counts.violations(), []);
            sum.counts.merge(&ledger.counts);
        }
        assert_eq!(sum.counts.violations(), []);
        assert_eq!([Confirmed, Unknown].map(|counter| sum.counts.count(counter)), [275, 5]);
        let mut all_answered = [answered.clone(), answered.clone()];
        count_answers(&mut all_answered);
        assert_eq!(
            all_answered[0].counts, answered.counts,
            "nothing is counted where nothing needs it"
        );
    }
}
