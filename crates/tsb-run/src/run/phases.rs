//! What was asked, held and timed in each phase of a run. Pure: no I/O, no clock.
//!
//! Figures are sums of whole reporting intervals. An interval that ends within a quarter of
//! its length of a phase's end counts as ending with it, and rates are over the times at which it did
//! end. Where no interval does, because the report interval does not divide the phases or because
//! old intervals were merged, the phases on both sides have no figures.

use tsb_core::latency::{Histogram, Recording};
use tsb_core::report::{Interval, ON_TIME_NS, PhaseLatency, PhaseReport};
use tsb_core::verdict::PhaseKept;

use super::emitter_times::{EmitterTimes, of_all};
use super::path::PassResult;
use crate::plan::{Plan, spans};

/// An interval ends with a phase if the two are no further apart than this share of the report
/// interval.
const NEAR_SHARE: u64 = 4;

/// The phases of a run by this process. `intervals` have their latencies already.
pub(super) fn of(plan: &Plan, intervals: &[Interval], driven: &PassResult) -> Vec<PhaseReport> {
    if plan.phases.is_empty() {
        return Vec::new();
    }
    let times = (!driven.is_partial).then(|| EmitterTimes::of(driven));
    let stopped_ns = driven.interrupted.then_some(driven.elapsed_ns);
    of_emitters(plan, intervals, stopped_ns, times.as_slice())
}

/// The phases that had begun by the end of the run, which is before that of its plan if it was stopped.
/// `intervals` are those of all emitters, with their latencies. Without `times`, phases have none.
pub(crate) fn of_emitters(
    plan: &Plan,
    intervals: &[Interval],
    stopped_ns: Option<u64>,
    times: &[EmitterTimes],
) -> Vec<PhaseReport> {
    let cuts = Cuts::new(plan, intervals);
    let end_of_run_ns = stopped_ns.unwrap_or(u64::MAX);
    let begun = spans(&plan.phases)
        .enumerate()
        .filter(|(_, (_, from_ns, _))| *from_ns < end_of_run_ns);
    let mut phases: Vec<PhaseReport> = begun
        .map(|(index, (phase, from_ns, end_ns))| {
            let mut report = PhaseReport::new(&phase.name, from_ns, end_ns.min(end_of_run_ns));
            report.faults = (!phase.faults.is_none()).then(|| phase.faults.to_string());
            if let Some(stretch) = cuts.stretch(index) {
                stretch.fill(&mut report, intervals);
            }
            report
        })
        .collect();
    if !times.is_empty() {
        latencies(&mut phases, &cuts, times);
    }
    phases
}

/// The phases that the verdict judges: those in which the plan does nothing to the store. `None`
/// where one of them has no figures.
pub(super) fn judged(phases: &[PhaseReport]) -> Option<Vec<PhaseKept>> {
    let whole = phases.iter().filter(|phase| phase.faults.is_none());
    let judged = whole.map(|phase| {
        Some(PhaseKept {
            name: phase.name.clone(),
            kept_share: phase.kept_share?,
        })
    });
    judged.collect()
}

/// Says which phases have no figures, and what to do about it.
pub(super) fn note(phases: &[PhaseReport]) -> Option<String> {
    let unmeasured = phases.iter().filter(|phase| !phase.is_measured());
    let names: Vec<&str> = unmeasured.map(|phase| phase.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "no figures of {}: no reporting interval ended where they begin and end; give a --report-interval that \
             divides every phase, and no more than 1,024 intervals in all",
            names.join(", ")
        )
    })
}

/// The index after the last interval of each phase, where an interval ends with the phase.
struct Cuts<'a> {
    intervals: &'a [Interval],
    // Of each phase: (planned end, index after its last interval).
    ends: Vec<(u64, Option<usize>)>,
}

/// The intervals of one phase.
struct Stretch {
    first: usize,
    // After the last.
    end: usize,
    from_ns: u64,
    end_ns: u64,
    planned_end_ns: u64,
}

impl<'a> Cuts<'a> {
    fn new(plan: &Plan, intervals: &'a [Interval]) -> Self {
        let near_ns = plan.report_interval_ns / NEAR_SHARE;
        let is_near = |interval: &Interval, end_ns: u64| interval.end_ns.abs_diff(end_ns) <= near_ns;
        let last = plan.phases.len().saturating_sub(1);
        let ends = spans(&plan.phases).enumerate().map(|(index, (_, _, end_ns))| {
            let found = intervals.iter().position(|interval| is_near(interval, end_ns));
            // The rest behind the last whole interval may be part of it.
            let rest = intervals
                .last()
                .filter(|interval| index == last && interval.end_ns.abs_diff(end_ns) < plan.report_interval_ns);
            let cut = found.map(|at| at + 1).or(rest.map(|_| intervals.len()));
            (end_ns, cut)
        });
        Self {
            intervals,
            ends: ends.collect(),
        }
    }

    fn stretch(&self, phase: usize) -> Option<Stretch> {
        let first = match phase.checked_sub(1) {
            None => 0,
            Some(before) => self.ends.get(before)?.1?,
        };
        let &(planned_end_ns, end) = self.ends.get(phase)?;
        let end = end.filter(|end| *end > first)?;
        let end_of = |count: usize| count.checked_sub(1).map_or(0, |index| self.intervals[index].end_ns);
        Some(Stretch {
            first,
            end,
            from_ns: end_of(first),
            end_ns: end_of(end),
            planned_end_ns,
        })
    }
}

impl Stretch {
    fn fill(&self, report: &mut PhaseReport, intervals: &[Interval]) {
        let own = &intervals[self.first..self.end];
        let per_second =
            |samples: u64, end_ns: u64| samples as f64 * 1e9 / end_ns.saturating_sub(self.from_ns).max(1) as f64;
        let asked: Option<u64> = own.iter().map(|interval| interval.asked).sum();
        // Nothing is due after the plan has ended.
        let asked_until_ns = self.end_ns.min(self.planned_end_ns.max(self.from_ns + 1));
        report.asked_per_second = asked.map(|asked| per_second(asked, asked_until_ns));
        let accepted = own.iter().map(|interval| interval.accepted).sum();
        report.held_per_second = Some(per_second(accepted, self.end_ns));
        report.kept_share = asked.and_then(|asked| self.kept_share(asked, intervals));
        let stalest = own.iter().filter_map(|interval| interval.staleness_max_ms);
        report.staleness_max_ms = stalest.reduce(f64::max);
        let on_time = own
            .iter()
            .position(|interval| interval.response_max_ns.is_some_and(|max| max <= ON_TIME_NS));
        report.on_time_after_ns = on_time.map(|at| match at.checked_sub(1) {
            None => 0,
            Some(before) => own[before].end_ns - self.from_ns,
        });
    }

    /// Of the `asked` samples due in the phase, the share that was not behind at its end.
    fn kept_share(&self, asked: u64, intervals: &[Interval]) -> Option<f64> {
        let due: Option<u64> = intervals.iter().take(self.end).map(|interval| interval.asked).sum();
        // Samples due at the very end may be accepted in the next interval.
        let accepted: u64 = intervals
            .iter()
            .take(self.end + 1)
            .map(|interval| interval.accepted)
            .sum();
        let behind = due?.saturating_sub(accepted);
        (asked > 0).then(|| 1.0 - (behind as f64 / asked as f64).min(1.0))
    }
}

/// Adds the latencies of the phases whose intervals are known. Every operation is in one of them.
fn latencies(phases: &mut [PhaseReport], cuts: &Cuts<'_>, times: &[EmitterTimes]) {
    let ends = phases
        .iter()
        .enumerate()
        .map(|(index, _)| Some(cuts.stretch(index)?.end_ns));
    let Some(ends) = ends.collect::<Option<Vec<u64>>>() else {
        return;
    };
    let by_phase = |of: fn(&EmitterTimes) -> &Recording| {
        let mut histograms = vec![Histogram::new(); ends.len()];
        of_all(times, of, &ends, |index, histogram| histograms[index].merge(histogram));
        histograms
    };
    let (response, lag) = (by_phase(|times| &times.response), by_phase(|times| &times.lag));
    for ((phase, response), lag) in phases.iter_mut().zip(response).zip(lag) {
        phase.latency = Some(PhaseLatency::new(&response, &lag));
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::Interval as Recorded;

    use super::*;
    use crate::plan::{PhaseFaults, RunPhase};

    const SECOND_NS: u64 = 1_000_000_000;

    fn plan(phases: &[(&str, u64, Option<u64>)]) -> Plan {
        let phases = phases.iter().map(|&(name, seconds, stall_ns)| RunPhase {
            name: name.to_owned(),
            duration_ns: seconds * SECOND_NS,
            rate_per_second: 100,
            to_per_second: None,
            faults: PhaseFaults {
                stall_ns,
                ..PhaseFaults::default()
            },
            queries: Vec::new(),
        });
        Plan {
            phases: phases.collect(),
            ..Plan::default()
        }
    }

    /// Seconds of (asked, accepted, slowest response in milliseconds), each cut a little late.
    fn intervals(seconds: &[(u64, u64, u64)]) -> Vec<Interval> {
        let ends = (1..).map(|second| second * SECOND_NS + 50_000);
        let made = ends.zip(seconds).map(|(end_ns, &(asked, accepted, slowest_ms))| {
            let mut interval = Interval::default();
            interval.end_ns = end_ns;
            (interval.asked, interval.accepted) = (Some(asked), accepted);
            interval.response_max_ns = (slowest_ms > 0).then_some(slowest_ms * 1_000_000);
            interval
        });
        made.collect()
    }

    const STORY: [(u64, u64, u64); 7] = [
        (100, 100, 1),
        (100, 100, 1),
        // The stall, and what it leaves behind.
        (300, 0, 0),
        (300, 350, 1_000),
        (100, 250, 900),
        (100, 180, 400),
        (100, 120, 2),
    ];

    #[test]
    fn each_phase_has_the_figures_of_its_intervals() {
        let plan = plan(&[("load", 2, None), ("spike", 2, Some(SECOND_NS)), ("recovery", 3, None)]);
        let phases = of(&plan, &intervals(&STORY), &PassResult::default());
        let near = |phase: &PhaseReport, asked: f64, held: f64| {
            let close = |one: Option<f64>, other: f64| (one.unwrap() / other - 1.0).abs() < 0.001;
            assert!(close(phase.asked_per_second, asked), "{phase:?}");
            assert!(close(phase.held_per_second, held), "{phase:?}");
        };
        near(&phases[0], 100.0, 100.0);
        near(&phases[1], 300.0, 175.0);
        near(&phases[2], 100.0, 550.0 / 3.0);
        assert_eq!((phases[1].from_ns, phases[1].end_ns), (2 * SECOND_NS, 4 * SECOND_NS));
        assert_eq!(phases[1].faults.as_deref(), Some("stalls for 1.00 s"));
        // The interval behind the spike is late as well, and takes 250 of its 250.
        assert_eq!(phases[1].kept_share, Some(1.0));
        assert_eq!(phases[0].on_time_after_ns, Some(0));
        assert_eq!(phases[1].on_time_after_ns, None);
        assert_eq!(phases[2].on_time_after_ns, Some(2 * SECOND_NS));
        assert_eq!(note(&phases), None);
        let judged = judged(&phases).unwrap();
        assert_eq!(
            judged.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(),
            ["load", "recovery"]
        );
        assert!(judged.iter().all(|phase| phase.kept_share == 1.0), "{judged:?}");
    }

    #[test]
    fn a_store_that_is_behind_at_the_end_of_a_phase_has_not_kept_it() {
        let plan = plan(&[("load", 2, None), ("after", 2, None)]);
        let behind = [(100, 100, 1), (100, 40, 1), (100, 40, 900), (100, 40, 900)];
        let phases = of(&plan, &intervals(&behind), &PassResult::default());
        assert_eq!(phases[0].kept_share, Some(0.9));
        assert_eq!(phases[1].kept_share, Some(1.0 - 180.0 / 200.0));
        assert_eq!(phases[1].on_time_after_ns, None);
    }

    #[test]
    fn a_phase_that_ends_inside_an_interval_has_no_figures() {
        let mut plan = plan(&[("load", 2, None), ("spike", 2, None), ("recovery", 3, None)]);
        plan.phases[0].duration_ns += SECOND_NS / 2;
        plan.phases[1].duration_ns -= SECOND_NS / 2;
        let phases = of(&plan, &intervals(&STORY), &PassResult::default());
        let measured: Vec<bool> = phases.iter().map(PhaseReport::is_measured).collect();
        assert_eq!(measured, [false, false, true]);
        assert!(judged(&phases).is_none());
        assert!(note(&phases).unwrap().starts_with("no figures of load, spike:"));
        assert!(phases.iter().all(|phase| phase.latency.is_none()));
    }

    #[test]
    fn every_operation_is_in_one_phase() {
        let plan = plan(&[("load", 2, None), ("spike", 2, None), ("recovery", 3, None)]);
        let mut driven = PassResult::default();
        let mut all = Histogram::new();
        // One operation in each second, and one after the end.
        for second in 0..8 {
            let mut histogram = Histogram::new();
            histogram.record(second + 1);
            all.record(second + 1);
            let (from_ns, end_ns) = (second * SECOND_NS, (second + 1) * SECOND_NS);
            driven
                .response
                .intervals
                .push(Recorded::new(from_ns, end_ns, &histogram));
        }
        let phases = of(&plan, &intervals(&STORY), &driven);
        let counts: Vec<u64> = phases
            .iter()
            .map(|phase| phase.latency.unwrap().response.count)
            .collect();
        assert_eq!(counts, [2, 2, 4]);
        assert_eq!(phases[2].latency.unwrap().response.max_ns, all.max());
        assert_eq!(phases[0].latency.unwrap().lag.count, 0);
        // Its latencies are known in coarse cells only.
        driven.is_partial = true;
        assert!(of(&plan, &intervals(&STORY), &driven)[0].latency.is_none());
    }

    #[test]
    fn a_run_that_was_stopped_has_the_phases_that_had_begun() {
        let plan = plan(&[("load", 2, None), ("spike", 2, None), ("recovery", 3, None)]);
        let driven = PassResult {
            interrupted: true,
            elapsed_ns: 3 * SECOND_NS,
            ..PassResult::default()
        };
        let phases = of(&plan, &intervals(&STORY[..3]), &driven);
        let ends: Vec<(&str, u64, bool)> = phases
            .iter()
            .map(|phase| (phase.name.as_str(), phase.end_ns / SECOND_NS, phase.is_measured()))
            .collect();
        assert_eq!(ends, [("load", 2, true), ("spike", 3, false)]);
    }
}
