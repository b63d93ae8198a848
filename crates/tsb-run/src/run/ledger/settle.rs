//! Adds the audit's result to a ledger, at the end of a run and later in `tsb verify`.

use tsb_core::ledger::{Counter, FindingKind, Ledger, LedgerFinding};
use tsb_core::report::LedgerReport;

use crate::audit::Audit;

/// The samples that a store need not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedAbsent {
    /// Samples that never reached the store and cannot be identified: lost in transport,
    /// malformed, or rejected beyond the names that are kept.
    pub nameless: u64,
    /// Whether `nameless` is a guess: reports of earlier versions do not say which rejected
    /// samples are named.
    pub is_guess: bool,
    /// Operations that were not sent or not answered, and cannot be identified.
    pub operations_unnamed: u64,
    /// Samples handed to the store directly and never answered for; 0 behind a listener of ours,
    /// which counts arrivals.
    pub unknown: u64,
    /// Of these, samples found absent when the run was read back; absent if it was not read
    /// back.
    pub absent_before: Option<u64>,
}

/// Adds the audit's counts to `ledger`, which must hold the counts up to `accepted`.
pub fn settle(expected_absent: &ExpectedAbsent, audit: &Audit, ledger: &mut LedgerReport) {
    ledger.violated.extend(audit.newest_wrong.iter().cloned());
    let mut missing = audit.tally.missing;
    let mut nameless = expected_absent.nameless;
    let sent = ledger.counts.count(Counter::Sent);
    match audit.sent.checked_sub(sent) {
        // The audit generates the samples of an unsent operation too, if it is not named.
        Some(unsent) if expected_absent.operations_unnamed > 0 => nameless += unsent,
        Some(0) => {}
        _ => ledger.violated.push(format!(
            "the emitter sent {sent} samples, and the audit knows of {}",
            audit.sent
        )),
    }
    let lost_since = unknown(expected_absent, audit, nameless, &mut missing, &mut ledger.counts);
    if expected_absent.is_guess {
        nameless = nameless.min(missing);
    }
    // No compared row depends on unidentified samples, so these are among the uncompared ones
    // first.
    let of_uncompared = nameless.min(audit.tally.uncompared);
    nameless -= of_uncompared;
    let Some(split) = Split::new(nameless, missing, audit) else {
        ledger.violated.push(format!(
            "{nameless} samples never reached the store, but only {missing} are missing in it"
        ));
        return;
    };
    let tally = &audit.tally;
    let lost = split.lost + lost_since;
    ledger
        .counts
        .set(Counter::Verified, tally.verified)
        .set(Counter::Superseded, split.superseded)
        .set(Counter::Expired, split.expired)
        .set(Counter::Lost, lost)
        .set(Counter::Altered, tally.altered)
        .set(Counter::Duplicated, tally.duplicated);
    for (counter, samples) in [
        (Counter::Unconsolidated, tally.unconsolidated),
        (Counter::Unrepresented, tally.unrepresented),
        (Counter::Uncompared, tally.uncompared - of_uncompared),
    ] {
        if samples > 0 {
            ledger.counts.set(counter, samples);
        }
    }
    ledger.lost_at_most = (split.lost_at_most > split.lost).then_some(split.lost_at_most + lost_since);
    ledger.losses = named(audit.findings.as_slice(), lost, nameless);
}

/// Settles unanswered samples that only reading back can settle: those that are absent were lost
/// in transport, the others were accepted. Returns how many were stored at the end of the run
/// and are absent now.
fn unknown(
    expected_absent: &ExpectedAbsent,
    audit: &Audit,
    nameless: u64,
    missing: &mut u64,
    counts: &mut Ledger,
) -> u64 {
    let unknown = expected_absent.unknown;
    if unknown == 0 {
        return 0;
    }
    // Of unnamed operations, at most as many can be absent as when the run was read back.
    let most = expected_absent
        .absent_before
        .unwrap_or(unknown)
        .saturating_sub(audit.absent);
    // Unidentified samples that never arrived are missing too, and are accounted for first.
    let left = missing.saturating_sub(nameless);
    let unnamed = unknown.saturating_sub(audit.unanswered).min(left).min(most);
    *missing -= unnamed;
    let absent = (audit.absent + unnamed).min(unknown);
    let on_the_way = expected_absent.absent_before.unwrap_or(absent).min(absent);
    let received = counts.count(Counter::Sent).saturating_sub(on_the_way);
    let accepted = counts.count(Counter::Confirmed) + unknown - on_the_way;
    counts
        .set(Counter::LostInTransport, on_the_way)
        .set(Counter::Received, received)
        .set(Counter::Accepted, accepted);
    absent - on_the_way
}

/// The missing samples, divided between transport and store.
struct Split {
    superseded: u64,
    expired: u64,
    lost: u64,
    lost_at_most: u64,
}

impl Split {
    /// Assigns as many of the unidentified samples as possible to the missing ones; the others
    /// had a timestamp that was sent again, or have expired. Which is unknown, so `lost_at_most`
    /// says how many the store may have lost. `None` if there are too few samples of all three
    /// kinds.
    fn new(nameless: u64, missing: u64, audit: &Audit) -> Option<Self> {
        let tally = &audit.tally;
        let not_missing = nameless.saturating_sub(missing);
        let of_superseded = not_missing.min(tally.superseded);
        let expired = tally.expired.checked_sub(not_missing - of_superseded)?;
        let surely_missing = nameless.saturating_sub(tally.superseded + tally.expired);
        Some(Self {
            superseded: tally.superseded - of_superseded,
            expired,
            lost: missing.saturating_sub(nameless),
            lost_at_most: missing.saturating_sub(surely_missing),
        })
    }
}

/// If the store lost nothing, all missing samples were lost in transport. If both lost some, it
/// is unknown which sample was lost where.
fn named(findings: &[LedgerFinding], lost: u64, nameless: u64) -> Vec<LedgerFinding> {
    let mut findings = findings.to_vec();
    let kind = match (lost, nameless) {
        (0, _) => FindingKind::LostInTransport,
        (_, 0) => FindingKind::Lost,
        _ => FindingKind::Missing,
    };
    let missing = findings.iter_mut().filter(|finding| finding.kind == FindingKind::Lost);
    missing.for_each(|finding| finding.kind = kind);
    findings
}

#[cfg(test)]
mod tests {
    use tsb_core::ledger::Findings;
    use tsb_core::{SeriesId, Timestamp};

    use super::*;
    use crate::audit::Tally;

    fn audit(sent: u64, tally: Tally) -> Audit {
        let mut findings = Findings::new(10);
        if tally.missing > 0 {
            findings.push(LedgerFinding {
                series: SeriesId(0),
                key: None,
                at: Timestamp(0),
                kind: FindingKind::Lost,
                expected: Some(1.0),
                found: None,
            });
        }
        Audit {
            sent,
            tally,
            findings,
            ..Audit::default()
        }
    }

    fn ledger(counts: &[(Counter, u64)]) -> LedgerReport {
        let mut ledger = LedgerReport::default();
        for &(counter, samples) in counts {
            ledger.counts.set(counter, samples);
        }
        ledger
    }

    fn settled(expected_absent: &ExpectedAbsent, sent: u64, accepted: u64, tally: Tally) -> LedgerReport {
        let mut ledger = ledger(&[(Counter::Sent, sent), (Counter::Accepted, accepted)]);
        settle(expected_absent, &audit(sent, tally), &mut ledger);
        ledger
    }

    fn nameless(nameless: u64) -> ExpectedAbsent {
        ExpectedAbsent {
            nameless,
            ..ExpectedAbsent::default()
        }
    }

    #[test]
    fn unnamed_losses_are_subtracted_from_missing_samples_first() {
        let tally = Tally {
            verified: 90,
            missing: 10,
            ..Tally::default()
        };
        for (expected_absent, lost, kind) in [
            (0, 10, FindingKind::Lost),
            (4, 6, FindingKind::Missing),
            (10, 0, FindingKind::LostInTransport),
        ] {
            let ledger = settled(&nameless(expected_absent), 100, 100 - expected_absent, tally);
            assert!(ledger.counts.is_balanced() && ledger.violated.is_empty(), "{ledger:?}");
            assert_eq!(ledger.counts.get(Counter::Lost), Some(lost));
            assert_eq!(ledger.losses[0].kind, kind);
            assert_eq!(ledger.lost_at_most, None);
        }
        let ledger = settled(&nameless(11), 100, 89, tally);
        assert!(
            ledger.violated[0].contains("only 10 are missing"),
            "{:?}",
            ledger.violated
        );
        assert_eq!(ledger.counts.get(Counter::Verified), None);
    }

    #[test]
    fn a_loss_that_superseded_and_expired_samples_may_hide_is_bounded() {
        // Seven never came; five are missing, so that two of them are superseded or expired.
        let tally = Tally {
            verified: 80,
            superseded: 1,
            expired: 14,
            missing: 5,
            ..Tally::default()
        };
        let ledger = settled(&nameless(7), 100, 93, tally);
        assert!(ledger.counts.is_balanced(), "{ledger:?}");
        let count = |counter| ledger.counts.count(counter);
        assert_eq!(
            (
                count(Counter::Superseded),
                count(Counter::Expired),
                count(Counter::Lost)
            ),
            (0, 13, 0)
        );
        // All seven may be among the fifteen, and the store may have lost the five.
        assert_eq!(ledger.lost_at_most, Some(5));
        // Of twenty, at least five are among the missing: the store lost nothing.
        assert_eq!(settled(&nameless(20), 100, 80, tally).lost_at_most, None);
    }

    #[test]
    fn unanswered_samples_are_settled_by_reading_back() {
        let counts = [
            (Counter::Sent, 100),
            (Counter::Confirmed, 90),
            (Counter::Refused, 0),
            (Counter::Unknown, 10),
            (Counter::Rejected, 0),
            (Counter::Accepted, 90),
        ];
        let read = |absent, absent_before| {
            let tally = Tally {
                verified: 100 - absent,
                ..Tally::default()
            };
            let mut ledger = ledger(&counts);
            let expected_absent = ExpectedAbsent {
                unknown: 10,
                absent_before,
                ..ExpectedAbsent::default()
            };
            let audit = Audit {
                unanswered: 10,
                absent,
                ..audit(100, tally)
            };
            settle(&expected_absent, &audit, &mut ledger);
            assert!(ledger.counts.is_balanced() && ledger.violated.is_empty(), "{ledger:?}");
            let count = |counter| ledger.counts.count(counter);
            (
                count(Counter::Accepted),
                count(Counter::LostInTransport),
                count(Counter::Lost),
            )
        };
        assert_eq!(read(4, None), (96, 4, 0));
        assert_eq!(read(4, Some(4)), (96, 4, 0));
        // There when the run was read back, and gone since.
        assert_eq!(read(6, Some(4)), (96, 4, 2));
        // A server that applied two of them late.
        assert_eq!(read(2, Some(4)), (98, 2, 0));
    }

    #[test]
    fn refused_samples_do_not_count_as_unanswered() {
        // Fifty operations of one sample were never answered, have no name, and all came.
        let mut ledger = ledger(&[
            (Counter::Sent, 1_000),
            (Counter::Confirmed, 850),
            (Counter::Refused, 100),
            (Counter::Unknown, 50),
            (Counter::Rejected, 100),
            (Counter::Accepted, 850),
        ]);
        let expected_absent = ExpectedAbsent {
            unknown: 50,
            operations_unnamed: 50,
            ..nameless(100)
        };
        let tally = Tally {
            verified: 900,
            missing: 100,
            ..Tally::default()
        };
        settle(&expected_absent, &audit(1_000, tally), &mut ledger);
        assert!(ledger.counts.is_balanced() && ledger.violated.is_empty(), "{ledger:?}");
        let count = |counter| ledger.counts.count(counter);
        assert_eq!((count(Counter::Accepted), count(Counter::Lost)), (900, 0));
        assert_eq!(count(Counter::LostInTransport), 0);
    }

    #[test]
    fn a_guess_is_no_more_than_what_is_missing() {
        let tally = Tally {
            verified: 98,
            missing: 2,
            ..Tally::default()
        };
        let expected_absent = ExpectedAbsent {
            is_guess: true,
            ..nameless(50)
        };
        let ledger = settled(&expected_absent, 100, 50, tally);
        assert!(ledger.violated.is_empty(), "{ledger:?}");
        assert_eq!(ledger.counts.get(Counter::Lost), Some(0));
        assert!(!settled(&nameless(50), 100, 50, tally).violated.is_empty());
    }

    #[test]
    fn operations_that_nobody_can_name_are_no_loss_and_others_must_agree() {
        let tally = Tally {
            verified: 90,
            missing: 10,
            ..Tally::default()
        };
        let read = |operations_unnamed| {
            let mut ledger = ledger(&[(Counter::Sent, 90), (Counter::Accepted, 90)]);
            let expected_absent = ExpectedAbsent {
                operations_unnamed,
                ..ExpectedAbsent::default()
            };
            settle(&expected_absent, &audit(100, tally), &mut ledger);
            ledger
        };
        assert_eq!(read(1).counts.get(Counter::Lost), Some(0));
        assert!(read(1).violated.is_empty());
        assert!(
            read(0).violated[0].contains("the audit knows of 100"),
            "{:?}",
            read(0).violated
        );
    }
}
