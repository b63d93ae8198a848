//! Collects the evidence of a verdict from what was counted and watched.

use tsb_core::ledger::{Counter, Ledger};
use tsb_core::report::{LedgerReport, PhaseReport, Rate};
use tsb_core::verdict::{Evidence, Uncompared, Undelivered, Verdict};

use super::assemble::Parts;
use super::phases;
use crate::units;

/// The verdict of a run. Where the plan has phases, each of them is judged in place of the interval
/// with the highest rate: a fault of the plan's own may be in that.
pub(super) fn verdict(parts: &Parts<'_>, ledger: &LedgerReport, rate: &Rate, of_phases: &[PhaseReport]) -> Verdict {
    let (context, performed) = (parts.context, parts.performed);
    let mut violations = ledger.violated.clone();
    violations.extend(parts.failure().cloned());
    violations.extend(performed.driven.failures.iter().cloned());
    let of_queries = performed.queries.iter().flat_map(|stream| &stream.violations);
    violations.extend(of_queries.cloned());
    let counts = &ledger.counts;
    let refused = performed.rejects.total();
    let interval_ns = context.workload.groups().iter().map(|group| group.interval_ns).min();
    Evidence {
        violations,
        unread: unread(parts),
        undelivered: undelivered(parts, counts, refused),
        received: counts.count(Counter::Accepted) + refused,
        refused,
        own_lag_p99_ns: performed.driven.own_lag.total.quantile(0.99),
        interval_ns: interval_ns.map(|interval| context.speed().map_or(interval, |speed| speed.wall_ns(interval))),
        noise: performed.observed.noise.clone(),
        queries: performed
            .queries
            .iter()
            .filter_map(|stream| stream.evidence.clone())
            .collect(),
        ..at_rate(ledger, rate, of_phases)
    }
    .verdict()
}

/// The part of the evidence that comes from reading back, and from the rates of a run and of its phases.
pub(crate) fn at_rate(ledger: &LedgerReport, rate: &Rate, of_phases: &[PhaseReport]) -> Evidence {
    let judged = phases::judged(of_phases);
    let kept = rate.peak.filter(|_| of_phases.is_empty() || judged.is_none());
    Evidence {
        asked_per_second: rate.asked_per_second,
        held_per_second: rate.held_per_second,
        ceiling_per_second: rate.ceiling_per_second,
        peak_asked_per_second: rate.peak.map(|peak| peak.asked_per_second),
        peak_kept_share: kept.map(|peak| peak.kept_share),
        phases: judged.unwrap_or_default(),
        ..read_back(ledger)
    }
}

/// The part of the evidence that comes from reading back, at the end of a run or later by `tsb
/// verify`.
pub fn read_back(ledger: &LedgerReport) -> Evidence {
    let count = |counter| ledger.counts.count(counter);
    Evidence {
        violations: ledger.violated.clone(),
        lost: count(Counter::Lost),
        lost_at_most: ledger.lost_at_most,
        altered: count(Counter::Altered),
        duplicated: count(Counter::Duplicated),
        due: count(Counter::Due),
        sent: count(Counter::Sent),
        accepted: count(Counter::Accepted),
        compared: COMPARED.into_iter().map(count).sum(),
        uncompared: uncompared(&ledger.counts),
        verified: count(Counter::Verified),
        ..Evidence::default()
    }
}

/// The outcomes that count as compared by the audit.
const COMPARED: [Counter; 4] = [Counter::Verified, Counter::Superseded, Counter::Lost, Counter::Altered];

/// Why nothing was read back; `None` if it was.
fn unread(parts: &Parts<'_>) -> Option<String> {
    let read = parts.read;
    if !parts.context.plan.verify {
        Some("nothing was read back: the plan says so (--no-verify)".to_owned())
    } else if !parts.store.capabilities().query {
        Some(format!("nothing was read back: {} cannot return samples", parts.store))
    } else if read.audit.is_none() && read.unread.is_none() {
        Some("nothing was read back: the run had failed".to_owned())
    } else {
        read.unread.clone()
    }
}

/// Accepted samples that could not be compared, by reason, each with advice.
fn uncompared(counts: &Ledger) -> Vec<Uncompared> {
    let kinds = [
        (
            Counter::Unconsolidated,
            "are in a step that had not ended; run for a hundred steps or more, so that they are few",
        ),
        (
            Counter::Unrepresented,
            "are in steps that the store leaves unknown by its own rules; make its heartbeat longer, or the interval shorter",
        ),
        (
            Counter::Uncompared,
            "are in rows that also depend on samples which may not have come, so that they cannot be computed: reduce the losses on the way to see more",
        ),
        (
            Counter::Expired,
            "had expired by the store's retention; give it a longer one, or run for less fleet time",
        ),
    ];
    let named = kinds.map(|(counter, why)| Uncompared {
        samples: counts.count(counter),
        why: why.to_owned(),
    });
    named.into_iter().filter(|uncompared| uncompared.samples > 0).collect()
}

/// Samples that did not reach the store, by the place where they were lost.
fn undelivered(parts: &Parts<'_>, counts: &Ledger, refused: u64) -> Vec<Undelivered> {
    let wire = parts.performed.driven.wire.as_ref();
    let granted = wire
        .and_then(|wire| wire.receive_buffer_bytes)
        .map_or(String::new(), |granted| format!(" of {}", units::bytes(granted as f64)));
    let on_the_way = if wire.is_some() {
        "between our two sockets, where no counter of a buffer says why".to_owned()
    } else {
        "at the server, or on the way to it: it never answered for them, and they are not there".to_owned()
    };
    // The listener itself refuses samples of series that it does not know.
    let turned_away = counts.count(Counter::Rejected).saturating_sub(refused);
    [
        (
            counts.count(Counter::KernelDropped),
            format!("in our listener's receive buffer{granted}, which was full: give it more with --receive-buffer"),
        ),
        (counts.count(Counter::LostInTransport), on_the_way),
        (
            counts.count(Counter::Malformed),
            "at our listener, as records that it could not read".to_owned(),
        ),
        (
            turned_away,
            "at our listener, which did not know their series".to_owned(),
        ),
    ]
    .into_iter()
    .filter(|(samples, _)| *samples > 0)
    .map(|(samples, place)| Undelivered { samples, place })
    .collect()
}
