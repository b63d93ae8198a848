//! What one probe says: that the objective held, that the store broke it, or nothing.

use tsb_core::ledger::Counter;
use tsb_core::report::capacity::BrokenCondition;
use tsb_core::report::{HostEnd, Run};
use tsb_core::verdict::Status;

use super::search::{Limit, ProbeResult};
use super::steady::{Backlog, GROWTH_MAX};

/// The objective: a function that returns the conditions that do not hold in a run.
pub type Objective<'a> = &'a dyn Fn(&Run) -> Vec<BrokenCondition>;

/// The judgement of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What it says of the store.
    pub result: ProbeResult,
    /// The conditions that did not hold, those that every probe has to meet included.
    pub broke: Vec<BrokenCondition>,
    /// Growth of what was due and not accepted.
    pub backlog: Option<Backlog>,
}

/// Judges a run against the objective and the conditions that every probe has to meet: the verdict is
/// not INVALID, no measurement makes it STORE-LIMITED, the backlog does not grow, and something was
/// accepted.
///
/// A probe that meets all of them held, whatever disturbed it: a disturbance makes figures worse.
/// One that does not, and was limited by the generator, the wire or the machine, says nothing about
/// the store. Nor does one that lost a host.
pub fn judge(run: &Run, objective: Objective<'_>) -> Judgement {
    let mut broke = objective(run);
    let backlog = Backlog::of(&run.intervals);
    broke.extend(always(run, backlog));
    let is_whole = run.hosts.iter().all(|host| host.ended == HostEnd::Reported);
    let result = if !is_whole {
        // The others sent their parts only.
        ProbeResult::Void(Limit::Generator)
    } else if broke.is_empty() {
        ProbeResult::Held
    } else {
        match limit(run) {
            Some(limit) => ProbeResult::Void(limit),
            None if broke.iter().all(|condition| condition.absent) => ProbeResult::Void(Limit::Objective),
            None => ProbeResult::Broke,
        }
    };
    Judgement { result, broke, backlog }
}

/// The conditions of every probe that do not hold.
fn always(run: &Run, backlog: Option<Backlog>) -> Vec<BrokenCondition> {
    let mut broke = Vec::new();
    if run.verdict.status == Status::Invalid {
        let why = run.verdict.reasons.first().map_or("", String::as_str);
        broke.push(BrokenCondition::new("not INVALID", why));
    }
    let crossed = run.verdict.measured.iter().filter(|measured| measured.is_crossed());
    let of_store = crossed.filter(|measured| measured.status == Status::StoreLimited);
    broke.extend(of_store.map(|measured| BrokenCondition::new("not STORE-LIMITED", measured.to_string())));
    if let Some(backlog) = backlog.filter(Backlog::grows) {
        let measured = format!(
            "what is due and not accepted grows by {:.4} of the asked rate (at most {GROWTH_MAX})",
            backlog.growth
        );
        broke.push(BrokenCondition::new("steady state", measured));
    }
    if run.ledger.counts.get(Counter::Accepted) == Some(0) {
        broke.push(BrokenCondition::new(
            "something accepted",
            "the store accepted no sample",
        ));
    }
    broke
}

/// What limited a run besides the store.
fn limit(run: &Run) -> Option<Limit> {
    let limits = [
        (Status::TransportLimited, Limit::Wire),
        (Status::GeneratorLimited, Limit::Generator),
        (Status::Noisy, Limit::Machine),
    ];
    let is_crossed = |status| {
        let measured = &run.verdict.measured;
        measured
            .iter()
            .any(|measured| measured.status == status && measured.is_crossed())
    };
    limits
        .into_iter()
        .find(|(status, _)| is_crossed(*status))
        .map(|(_, limit)| limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::Durability;
    use tsb_core::report::{DurabilityReport, HostReport, Latency, LedgerReport, Rate, Target};
    use tsb_core::verdict::{Bound, Measured, Verdict};

    /// A run whose verdict has one figure, 0.5, that must be at least `limit`.
    fn run(status: Status, limit: f64) -> Run {
        let mut verdict = Verdict::new(status, vec!["a reason".to_owned()]);
        verdict.measured.push(Measured {
            status,
            what: "a share".to_owned(),
            unit: String::new(),
            value: 0.5,
            bound: Bound::AtLeast,
            limit,
        });
        Run::new(
            Target::new("null:", "inproc", "exact"),
            verdict,
            DurabilityReport::new(Durability::Volatile, 1),
            Rate::held(100.0),
            LedgerReport::default(),
            Latency::new("virtual"),
        )
    }

    fn slow(_: &Run) -> Vec<BrokenCondition> {
        vec![BrokenCondition::new("response.p99<50ms", "80 ms")]
    }

    fn met(_: &Run) -> Vec<BrokenCondition> {
        Vec::new()
    }

    #[test]
    fn a_probe_that_something_else_than_the_store_limited_says_nothing_of_the_store() {
        for (status, limit) in [
            (Status::TransportLimited, Limit::Wire),
            (Status::GeneratorLimited, Limit::Generator),
            (Status::Noisy, Limit::Machine),
        ] {
            let judged = judge(&run(status, 0.9), &slow);
            assert_eq!(judged.result, ProbeResult::Void(limit), "{status:?}");
            // A disturbance makes figures worse, so what holds in spite of it holds.
            assert_eq!(judge(&run(status, 0.9), &met).result, ProbeResult::Held, "{status:?}");
            // The figure is on the right side of its limit.
            assert_eq!(judge(&run(status, 0.4), &slow).result, ProbeResult::Broke, "{status:?}");
        }
    }

    #[test]
    fn the_store_breaks_what_every_probe_has_to_meet() {
        for (status, condition) in [
            (Status::StoreLimited, "not STORE-LIMITED"),
            (Status::Invalid, "not INVALID"),
        ] {
            let judged = judge(&run(status, 0.9), &met);
            assert_eq!(judged.result, ProbeResult::Broke);
            assert_eq!(judged.broke[0].condition, condition);
        }
        assert_eq!(judge(&run(Status::StoreLimited, 0.4), &met).result, ProbeResult::Held);
    }

    #[test]
    fn a_figure_that_a_run_does_not_have_and_a_lost_host_say_nothing() {
        let absent = |_: &Run| {
            let mut broken = BrokenCondition::new("response.p99<50ms", "-");
            broken.absent = true;
            vec![broken]
        };
        let judged = judge(&run(Status::Valid, 0.4), &absent);
        assert_eq!(judged.result, ProbeResult::Void(Limit::Objective));
        let mut with_hosts = run(Status::Valid, 0.4);
        for (ended, expected) in [
            (HostEnd::Reported, ProbeResult::Held),
            (HostEnd::Lost, ProbeResult::Void(Limit::Generator)),
        ] {
            let verdict = Verdict::new(Status::Valid, Vec::new());
            with_hosts.hosts.push(HostReport::new("a", ended, verdict));
            assert_eq!(judge(&with_hosts, &met).result, expected);
        }
    }
}
