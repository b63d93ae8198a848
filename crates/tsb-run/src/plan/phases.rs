//! The phases of a run: a rate over time in named pieces, and what is done to the store in each.
//!
//! Phases are a way to write a schedule: [`Plan::complete`] derives `schedule` and `duration_ns`
//! from them, so due times stay a pure function of the number of the operation. Times of the
//! emitter and of the faults count from the same moment, the start of the run.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use tsb_core::schedule::{Curve, Rate, Schedule, Segment};
use tsb_stores::throttle::{ThrottleOptions, ThrottleWindow};

use super::{AskedRate, Plan, QueryStream};
use crate::error::Error;
use crate::units;

/// Most phases in a plan.
pub const PHASES_MAX: usize = 64;

/// A phase of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPhase {
    /// Its name: 1 to 24 letters, digits, `-` and `_`, unique in the plan.
    pub name: String,
    /// Length in nanoseconds; at least 1.
    pub duration_ns: u64,
    /// Samples per second, at its beginning where the rate changes.
    pub rate_per_second: u64,
    /// Samples per second at its end, if the rate changes linearly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_per_second: Option<u64>,
    /// What is done to the store while it lasts.
    #[serde(default, skip_serializing_if = "PhaseFaults::is_none")]
    pub faults: PhaseFaults,
    /// What is asked of the store while it lasts, beside what is asked during the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<QueryStream>,
}

/// Faults of a [`Throttle`](tsb_stores::throttle::Throttle) in front of the store, from the beginning of a
/// phase to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseFaults {
    /// Samples per second that the store takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_second: Option<u64>,
    /// The store takes nothing for this long, from the beginning of the phase; in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
    /// Nanoseconds from the start of one stall to the next; absent: one stall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_every_ns: Option<u64>,
    /// The store refuses one in this many samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_one_in: Option<u64>,
}

impl PhaseFaults {
    /// Whether nothing is done.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn options(&self, seed: u64) -> ThrottleOptions {
        ThrottleOptions {
            rate_per_second: self.rate_per_second,
            stall_first_ns: self.stall_ns.map(|_| 0),
            stall_for_ns: self.stall_ns,
            stall_every_ns: self.stall_every_ns,
            error_one_in: self.error_one_in,
            seed,
            ..ThrottleOptions::default()
        }
    }

    fn check(&self, duration_ns: u64) -> Result<(), &'static str> {
        let Self {
            rate_per_second,
            stall_ns,
            stall_every_ns,
            error_one_in,
        } = *self;
        if rate_per_second == Some(0) || error_one_in == Some(0) || stall_ns == Some(0) || stall_every_ns == Some(0) {
            return Err("a fault of 0 does nothing: leave it out");
        }
        match (stall_ns, stall_every_ns) {
            (None, Some(_)) => Err("stall-every says when the next stall begins, and stall how long one is"),
            (Some(stall), Some(every)) if stall >= every => Err("a stall has to end before the next one begins"),
            (Some(stall), _) if stall > duration_ns => Err("a stall has to end with the phase"),
            _ => Ok(()),
        }
    }
}

/// What is done to the store, in words, after "the store".
impl fmt::Display for PhaseFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stall = self.stall_ns.map(|ns| match self.stall_every_ns {
            None => format!("stalls for {}", units::nanos(ns)),
            Some(every) => format!("stalls for {} every {}", units::nanos(ns), units::nanos(every)),
        });
        let rate = self
            .rate_per_second
            .map(|rate| format!("takes {}/s at most", units::scaled(rate as f64)));
        let errors = self
            .error_one_in
            .map(|one_in| format!("refuses one sample in {}", units::count(one_in)));
        let all: Vec<String> = [stall, rate, errors].into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}

impl RunPhase {
    fn segment(&self) -> Result<Segment, Error> {
        let rate = |rate| Rate::per_second(rate).map_err(|error| self.wrong("rate").because(&error));
        let to = self.to_per_second.unwrap_or(self.rate_per_second);
        Ok(Segment {
            from: rate(self.rate_per_second)?,
            to: rate(to)?,
            length_ns: self.duration_ns,
        })
    }

    fn wrong(&self, what: &str) -> Error {
        Error::plan(format!("cannot use the {what} of phase {}", self.name))
    }

    fn check(&self) -> Result<(), Error> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 24 || !self.name.chars().all(is_part) {
            return Err(Error::plan(format!("cannot call a phase {:?}", self.name))
                .because_of("a name has 1 to 24 letters, digits, - and _"));
        }
        if self.duration_ns == 0 {
            return Err(self.wrong("duration").because_of("a phase lasts at least 1ns"));
        }
        self.faults
            .check(self.duration_ns)
            .map_err(|why| self.wrong("faults").because_of(why))
    }
}

/// Where each phase begins and ends, in nanoseconds since the start of the run.
pub fn spans(phases: &[RunPhase]) -> impl Iterator<Item = (&RunPhase, u64, u64)> {
    phases.iter().scan(0_u64, |end_ns, phase| {
        let from_ns = *end_ns;
        *end_ns = from_ns.saturating_add(phase.duration_ns);
        Some((phase, from_ns, *end_ns))
    })
}

impl Plan {
    /// The faults of the phases, each with the time in which it has effect.
    pub fn fault_windows(&self) -> Vec<ThrottleWindow> {
        let faulty = spans(&self.phases).filter(|(phase, ..)| !phase.faults.is_none());
        let windows = faulty.map(|(phase, from_ns, end_ns)| ThrottleWindow {
            from_ns,
            end_ns,
            options: phase.faults.options(self.workload.seed),
        });
        windows.collect()
    }

    /// Derives the schedule and the duration from the phases, if there are any.
    pub(super) fn follow_phases(&mut self) -> Result<(), Error> {
        if self.phases.is_empty() {
            return Ok(());
        }
        self.check_phases()?;
        let segments = self
            .phases
            .iter()
            .map(RunPhase::segment)
            .collect::<Result<Vec<_>, _>>()?;
        let curve =
            Curve::pieces(segments).map_err(|error| Error::plan("cannot follow these phases").because(&error))?;
        let schedule = Schedule::Curve(curve);
        let duration_ns = self.phases.iter().map(|phase| phase.duration_ns).sum();
        let differs = self.schedule.as_ref().is_some_and(|own| *own != schedule)
            || self.duration_ns.is_some_and(|own| own != duration_ns);
        if differs || self.rate != AskedRate::Natural || self.fleet_time_ns.is_some() {
            return Err(
                Error::plan("cannot follow phases and another rate or duration at the same time")
                    .because_of("the phases say how long the run is, and which rate it has when")
                    .hint("change the phases, as with --set load.rate=10k, or leave them out"),
            );
        }
        self.schedule = Some(schedule);
        self.duration_ns = Some(duration_ns);
        Ok(())
    }

    fn check_phases(&self) -> Result<(), Error> {
        if self.phases.len() > PHASES_MAX {
            return Err(Error::plan(format!("cannot run {} phases", self.phases.len()))
                .because_of(format!("a plan has at most {PHASES_MAX}")));
        }
        let mut names = BTreeSet::new();
        let mut whole_ns = 0_u64;
        for phase in &self.phases {
            phase.check()?;
            whole_ns = whole_ns.checked_add(phase.duration_ns).ok_or_else(|| {
                phase
                    .wrong("duration")
                    .because_of("the run would last longer than 584 years")
            })?;
            if !names.insert(&phase.name) {
                return Err(Error::plan(format!("cannot call two phases {}", phase.name))
                    .hint("give each a name of its own, such as spike-1 and spike-2"));
            }
        }
        Ok(())
    }

    /// Mean samples per second over all phases; `None` without phases.
    pub(super) fn mean_of_phases(&self) -> Option<f64> {
        let (mut samples, mut length_ns) = (0.0, 0.0);
        for phase in &self.phases {
            let to = phase.to_per_second.unwrap_or(phase.rate_per_second);
            let mean = f64::midpoint(phase.rate_per_second as f64, to as f64);
            samples += mean * phase.duration_ns as f64;
            length_ns += phase.duration_ns as f64;
        }
        (length_ns > 0.0).then(|| samples / length_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn phase(name: &str, seconds: u64, rate: u64) -> RunPhase {
        RunPhase {
            name: name.to_owned(),
            duration_ns: seconds * SECOND_NS,
            rate_per_second: rate,
            to_per_second: None,
            faults: PhaseFaults::default(),
            queries: Vec::new(),
        }
    }

    fn plan(phases: Vec<RunPhase>) -> Plan {
        Plan {
            phases,
            ..Plan::default()
        }
    }

    fn spike() -> Vec<RunPhase> {
        let mut spike = phase("spike", 2, 3_000);
        spike.faults.stall_ns = Some(SECOND_NS);
        spike.faults.error_one_in = Some(1_000);
        let mut rise = phase("rise", 4, 1_000);
        rise.to_per_second = Some(3_000);
        vec![phase("load", 10, 1_000), rise, spike]
    }

    #[test]
    fn phases_become_the_schedule_and_stay_what_they_were() {
        let completed = plan(spike()).complete().unwrap();
        let schedule = completed.schedule.clone().unwrap();
        assert_eq!(schedule.to_string(), "steps:1000*10s,1000..3000*4s,3000*2s");
        assert_eq!(schedule.due(10_000 + 8_000), Some(14 * SECOND_NS));
        assert_eq!(completed.duration_ns, Some(16 * SECOND_NS));
        // A plan from a report is complete already.
        let json = serde_json::to_string(&completed).unwrap();
        let again: Plan = serde_json::from_str(&json).unwrap();
        assert_eq!(again.complete().unwrap(), completed);
    }

    #[test]
    fn faults_begin_and_end_with_their_phase() {
        let windows = plan(spike()).fault_windows();
        assert_eq!(windows.len(), 1);
        assert_eq!(
            (windows[0].from_ns, windows[0].end_ns),
            (14 * SECOND_NS, 16 * SECOND_NS)
        );
        assert_eq!(windows[0].options.stall_first_ns, Some(0));
        assert_eq!(windows[0].options.stall_for_ns, Some(SECOND_NS));
        let words = spike()[2].faults.to_string();
        assert_eq!(words, "stalls for 1.00 s, refuses one sample in 1,000");
    }

    type Change = fn(&mut Plan);

    #[test]
    fn phases_that_cannot_be_are_refused_by_name() {
        let refused = |change: Change| {
            let mut plan = plan(spike());
            change(&mut plan);
            plan.complete().unwrap_err().to_string()
        };
        let cases: [(Change, &str); 11] = [
            (|plan| plan.phases[1].name = "load".to_owned(), "two phases load"),
            (|plan| plan.phases[1].name = "a.b".to_owned(), "\"a.b\""),
            (|plan| plan.phases[1].duration_ns = 0, "duration of phase rise"),
            (
                |plan| plan.phases[2].faults.stall_ns = Some(3 * SECOND_NS),
                "end with the phase",
            ),
            (|plan| plan.phases[2].faults.stall_every_ns = Some(1), "before the next"),
            (
                |plan| plan.phases[0].faults.stall_every_ns = Some(1),
                "faults of phase load",
            ),
            (|plan| plan.phases[0].faults.error_one_in = Some(0), "leave it out"),
            (|plan| plan.rate = AskedRate::Max, "another rate or duration"),
            (|plan| plan.duration_ns = Some(1), "another rate or duration"),
            (|plan| plan.fleet_time_ns = Some(1), "another rate or duration"),
            (
                |plan| {
                    for phase in &mut plan.phases {
                        (phase.rate_per_second, phase.to_per_second) = (0, None);
                    }
                },
                "rate of 0",
            ),
        ];
        for (change, words) in cases {
            let said = refused(change);
            assert!(said.contains(words), "{words}: {said}");
        }
        let mut many = plan(Vec::new());
        many.phases = (0..=PHASES_MAX as u64)
            .map(|index| phase(&format!("p{index}"), 1, 1))
            .collect();
        assert!(many.complete().unwrap_err().to_string().contains("at most 64"));
    }
}
