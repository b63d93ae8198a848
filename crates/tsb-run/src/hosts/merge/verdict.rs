//! The verdict on the whole.

use tsb_core::ledger::{Counter, Ledger};
use tsb_core::report::{LedgerReport, PhaseReport, Rate, Run};
use tsb_core::verdict::{Evidence, Status, Undelivered, Verdict};

use super::figures::{added, noise};
use super::{LostPart, MeasuredPart, Whole};
use crate::run::at_rate;

/// The verdict on the figures of the whole, or the worst on a part if that is worse.
pub(super) fn verdict(
    whole: &Whole<'_>,
    parts: &[MeasuredPart],
    (ledger, rate, of_phases): (&LedgerReport, &Rate, &[PhaseReport]),
) -> Verdict {
    let measured = || parts.iter().filter_map(|part| part.result.as_deref().ok());
    let counts = &ledger.counts;
    let own_lag = added(measured().map(|part| &part.own_lag));
    let interval_ns = whole
        .context
        .workload
        .groups()
        .iter()
        .map(|group| group.interval_ns)
        .min();
    let runs: Vec<&Run> = measured().map(|part| &part.run).collect();
    let evidence = Evidence {
        received: counts.count(Counter::Accepted) + counts.count(Counter::Rejected),
        refused: counts.count(Counter::Rejected),
        undelivered: undelivered(counts),
        own_lag_p99_ns: own_lag.quantile(0.99),
        interval_ns: interval_ns.map(|interval| {
            let speed = whole.context.speed();
            speed.map_or(interval, |speed| speed.wall_ns(interval))
        }),
        noise: noise(&runs),
        ..at_rate(ledger, rate, of_phases)
    };
    let mut verdict = evidence.verdict();
    let mut reasons = if verdict.status == Status::Valid {
        Vec::new()
    } else {
        std::mem::take(&mut verdict.reasons)
    };
    for part in parts {
        let (status, why) = match &part.result {
            Ok(measured) if measured.run.verdict.status == Status::Valid => continue,
            Ok(measured) => (measured.run.verdict.status, measured.run.verdict.reasons.clone()),
            Err(lost) => (lost.status(), lost.reasons()),
        };
        verdict.status = verdict.status.min(status);
        if let Ok(measured) = &part.result {
            let crossed = measured
                .run
                .verdict
                .measured
                .iter()
                .filter(|measured| measured.is_crossed());
            verdict.measured.extend(crossed.cloned().map(|mut measured| {
                measured.what = format!("{}: {}", part.name, measured.what);
                measured
            }));
        }
        reasons.extend(why.into_iter().map(|why| format!("{}: {why}", part.name)));
    }
    if !reasons.is_empty() {
        verdict.reasons = reasons;
    }
    verdict
}

/// What did not reach the store, by where it was lost.
fn undelivered(counts: &Ledger) -> Vec<Undelivered> {
    let places = [
        (
            Counter::KernelDropped,
            "in the receive buffers of listeners: give them more with --receive-buffer",
        ),
        (
            Counter::LostInTransport,
            "on the way to the store, or with a host that was lost",
        ),
        (Counter::Malformed, "at listeners, as records that they could not read"),
    ];
    let lost = places.into_iter().filter(|(counter, _)| counts.count(*counter) > 0);
    lost.map(|(counter, place)| Undelivered {
        samples: counts.count(counter),
        place: place.to_owned(),
    })
    .collect()
}

impl LostPart {
    /// A lost host limits what the generator sent, unless what it had sent is worse off.
    pub(super) fn status(&self) -> Status {
        match &self.verified {
            Ok(verified) => verified.verdict.status.min(Status::GeneratorLimited),
            Err(_) => Status::Unverified,
        }
    }

    pub(super) fn reasons(&self) -> Vec<String> {
        let lost = format!("the generator lost this host: {}", self.why);
        let found = match &self.verified {
            Ok(verified) => verified.verdict.reasons.clone(),
            Err(why) => vec![format!("what it had sent was not read back: {why}")],
        };
        std::iter::once(lost).chain(found).collect()
    }
}
