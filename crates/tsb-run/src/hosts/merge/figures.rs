//! Rates, times and disturbances of the whole. Histograms add; durations and disturbances take the worst.

use tsb_core::latency::{Curve, Histogram, Summary};
use tsb_core::ledger::Counter;
use tsb_core::report::{Curves, DurabilityReport, Latency, Rate, Run};
use tsb_core::resource::Noise;
use tsb_core::staleness::{Staleness, StalenessSummary};

use super::{MeasuredPart, Whole};
use crate::hosts::part::HostPart;

pub(super) fn rate(runs: &[&Run]) -> Rate {
    let seconds = |ns: u64| ns.max(1) as f64 / 1e9;
    let accepted = |run: &Run| run.rate.held_per_second * seconds(run.duration_ns);
    let longest = runs.iter().map(|run| run.duration_ns).max().unwrap_or(0);
    let all: f64 = runs.iter().map(|run| accepted(run)).sum();
    let mut rate = Rate::held(all / seconds(longest));
    rate.asked_per_second = asked_per_second(runs);
    let durable_s = runs
        .iter()
        .map(|run| Some(accepted(run) / run.rate.durable_per_second?));
    let durable_s: Option<Vec<f64>> = durable_s.collect();
    let slowest = durable_s.and_then(|all| all.into_iter().filter(|s| s.is_finite()).reduce(f64::max));
    rate.durable_per_second = slowest.filter(|s| *s > 0.0).map(|slowest| all / slowest);
    // Hosts that share a machine share its cores, and do not reach the sum of their ceilings.
    let share_machines = runs.iter().any(|run| has_neighbours(run));
    rate.ceiling_per_second = runs
        .iter()
        .map(|run| run.rate.ceiling_per_second.filter(|_| !share_machines))
        .sum();
    rate.closed_loop = runs.iter().any(|run| run.rate.closed_loop);
    rate.speed = runs.iter().map(|run| run.rate.speed).fold(f64::INFINITY, f64::min);
    rate
}

/// All samples that fell due, over the longest time in which those of a host did: with a schedule, the last
/// operation of one host may be due earlier than that of another.
fn asked_per_second(runs: &[&Run]) -> Option<f64> {
    let due = |run: &Run| {
        let history = run.preload.map_or(0, |preload| preload.accepted + preload.rejected);
        run.ledger.counts.count(Counter::Due).saturating_sub(history) as f64
    };
    let spans_s: Option<Vec<f64>> = runs
        .iter()
        .map(|run| Some(due(run) / run.rate.asked_per_second?))
        .collect();
    let longest_s = spans_s?
        .into_iter()
        .filter(|span_s| span_s.is_finite())
        .reduce(f64::max);
    let all: f64 = runs.iter().map(|run| due(run)).sum();
    longest_s
        .filter(|longest_s| *longest_s > 0.0)
        .map(|longest_s| all / longest_s)
}

/// Whether other hosts of the run were on the machine of this one, whose processes it watched.
fn has_neighbours(run: &Run) -> bool {
    run.plan["watch_pids"].as_array().is_some_and(|pids| !pids.is_empty())
}

pub(super) fn added<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::new();
    histograms.for_each(|histogram| sum.merge(histogram));
    sum
}

pub(super) fn latency(measured: &[(&MeasuredPart, &HostPart)]) -> Latency {
    let parts = || measured.iter().map(|(_, part)| *part);
    let done = parts()
        .next()
        .map_or(String::new(), |part| part.run.latency.done.clone());
    let samples = |of: &dyn Fn(&Latency) -> u64| parts().map(|part| of(&part.run.latency)).sum();
    let is_delivered = parts().any(|part| part.run.latency.delivery.is_some());
    let response = added(parts().map(|part| &part.times.response.total));
    let delivery = added(parts().map(|part| &part.times.delivery.total));
    let service = added(parts().map(|part| &part.times.service.total));
    let lag = added(parts().map(|part| &part.times.lag.total));
    let timed = samples(&|latency| latency.response.samples);
    let mut curves = Curves::default();
    curves.response = Curve::new(&response);
    curves.delivery = is_delivered.then(|| Curve::new(&delivery));
    curves.service = Curve::new(&service);
    curves.lag = Curve::new(&lag);
    let mut latency = Latency::new(done);
    latency.response = Summary::new(&response, timed);
    latency.delivery = is_delivered.then(|| Summary::new(&delivery, timed));
    latency.service = Summary::new(&service, samples(&|latency| latency.service.samples));
    latency.lag = Summary::new(&lag, samples(&|latency| latency.lag.samples));
    latency.untimed = samples(&|latency| latency.untimed);
    latency.missing = samples(&|latency| latency.missing);
    latency.curves = Some(curves);
    latency
}

/// The lowest level of any host: that is what all samples have.
pub(super) fn durability(measured: &[(&MeasuredPart, &HostPart)], response: Summary) -> DurabilityReport {
    let reports = measured.iter().map(|(_, part)| &part.run.durability);
    let mut sum = DurabilityReport::new(
        reports.clone().map(|one| one.level).min().unwrap_or_default(),
        reports.clone().map(|one| one.copies).min().unwrap_or(1),
    );
    sum.acknowledged = reports.clone().map(|one| one.acknowledged).min().unwrap_or_default();
    sum.untimed = reports.clone().map(|one| one.untimed).sum();
    let waits: Vec<&Histogram> = measured.iter().filter_map(|(_, part)| part.waits.as_ref()).collect();
    let samples = reports.filter_map(|one| Some(one.wait?.samples)).sum();
    sum.wait = Some(if waits.is_empty() {
        response
    } else {
        Summary::new(&added(waits.into_iter()), samples)
    });
    sum
}

/// The worst disturbance of any host.
pub(super) fn noise(runs: &[&Run]) -> Option<Noise> {
    let most = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    let all = runs.iter().filter_map(|run| run.noise.clone());
    all.reduce(|mut worst, other| {
        worst.stolen_share = most(worst.stolen_share, other.stolen_share);
        worst.foreign_share = most(worst.foreign_share, other.foreign_share);
        worst.own_wait_share = most(worst.own_wait_share, other.own_wait_share);
        worst.late_share = worst.late_share.max(other.late_share);
        worst.late_max_ms = worst.late_max_ms.max(other.late_max_ms);
        worst
    })
}

pub(super) fn staleness(whole: &Whole<'_>, measured: &[(&MeasuredPart, &HostPart)]) -> Option<StalenessSummary> {
    let mut all = Staleness::new();
    for (part, of_host) in measured {
        all.merge(&of_host.staleness.clone().from_series(whole.first_series(part.part)));
    }
    let mut summary = all.summary()?;
    let stated = measured.iter().filter_map(|(_, part)| part.run.staleness.as_ref());
    summary.visibility_delay_ms = stated.filter_map(|one| one.visibility_delay_ms).max();
    Some(summary)
}
