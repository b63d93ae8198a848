//! What is searched for, and the plan of a probe at one load.

use tsb_core::time::SECOND_NS;

use crate::error::Error;
use crate::plan::{AskedRate, Plan};
use crate::run::RunContext;

/// Fewest reporting intervals of a probe, so that the growth of the backlog can be fitted.
const INTERVALS_MIN: u64 = 20;
/// Shortest probe.
const DURATION_MIN_NS: u64 = 2 * SECOND_NS;

/// What a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// The rate of a fixed fleet.
    Rate,
    /// The number of series, with one sample per second each.
    Series,
}

impl Find {
    /// The word in reports and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Series => "series",
        }
    }

    /// Checks that a plan can be probed, and adapts it: one store, an open loop at one rate for a
    /// stated time, short reporting intervals.
    ///
    /// # Errors
    /// [`Error::Plan`] if it cannot.
    pub fn prepare(self, plan: &Plan) -> Result<Plan, Error> {
        let failure = || Error::plan("cannot search for the capacity with this plan");
        if plan.stores.len() != 1 {
            return Err(failure()
                .because_of(format!("it names {} stores, and a search has one", plan.stores.len()))
                .hint("give one --store, and search once for each"));
        }
        if plan.schedule.is_some() || !plan.phases.is_empty() || plan.rate == AskedRate::Max {
            return Err(failure()
                .because_of(
                    "its rate is not one number of samples per second, and the search sets the rate of each probe",
                )
                .hint("leave out --schedule, the phases and --rate max"));
        }
        if plan.append {
            return Err(failure()
                .because_of("each probe has a fresh place, and --append goes on in one that is filled")
                .hint("leave out --append"));
        }
        let Some(duration_ns) = plan.duration_ns.filter(|_| plan.fleet_time_ns.is_none()) else {
            return Err(failure()
                .because_of("it says how much fleet time to send, and every probe takes the same real time")
                .hint("give --duration 10s in place of --fleet-time"));
        };
        if duration_ns < DURATION_MIN_NS {
            return Err(failure()
                .because_of("a probe of less than 2 s does not show whether its state is steady")
                .hint("give --duration 10s"));
        }
        if self == Self::Series && plan.rate != AskedRate::Natural {
            return Err(failure()
                .because_of("--find series sends one sample per second of each series")
                .hint("leave out --rate, or give --find rate"));
        }
        let report_interval_ns = plan.report_interval_ns.min(duration_ns / INTERVALS_MIN);
        Ok(Plan {
            report_interval_ns,
            ..plan.clone()
        })
    }

    /// The first load of a search: that of the plan.
    ///
    /// # Errors
    /// If the workload cannot be built.
    pub fn first(self, plan: &Plan) -> Result<u64, Error> {
        if let AskedRate::PerSecond(rate) = plan.rate {
            return Ok(rate.max(1));
        }
        let workload = RunContext::new(plan, 1)?.workload;
        if self == Self::Series {
            return Ok(workload.catalog().len().max(1) as u64);
        }
        let groups = workload.groups().iter().enumerate();
        let natural: f64 = groups
            .map(|(index, group)| workload.usual_samples(index) * SECOND_NS as f64 / group.interval_ns.max(1) as f64)
            .sum();
        Ok(natural.round().max(1.0) as u64)
    }

    /// The plan of a probe at a load. Its store is that of `plan`; the caller gives it a place of its own.
    ///
    /// # Errors
    /// [`Error::Plan`] if the load cannot be planned, such as too many series.
    pub fn at(self, plan: &Plan, load: u64) -> Result<Plan, Error> {
        let mut plan = plan.clone();
        match self {
            Self::Rate => plan.rate = AskedRate::PerSecond(load),
            Self::Series => {
                let series = load.try_into();
                plan.workload.series = Some(series.map_err(|_| Error::plan(format!("cannot run {load} series")))?);
                plan.workload.interval_ns = Some(SECOND_NS);
            }
        }
        plan.complete()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let mut plan = Plan::default();
        plan.workload.series = Some(5_400);
        plan.complete().unwrap()
    }

    #[test]
    fn a_probe_differs_from_the_plan_in_its_load_only() {
        let plan = Find::Rate.prepare(&plan()).unwrap();
        assert_eq!(plan.report_interval_ns, SECOND_NS / 2);
        assert_eq!(Find::Rate.first(&plan).unwrap(), 5_400);
        let at = Find::Rate.at(&plan, 70_000).unwrap();
        assert_eq!(
            (at.rate, at.workload.series),
            (AskedRate::PerSecond(70_000), Some(5_400))
        );
        assert_eq!(Find::Series.first(&plan).unwrap(), 5_400);
        let at = Find::Series.at(&plan, 70_000).unwrap();
        assert_eq!((at.rate, at.workload.series), (AskedRate::Natural, Some(70_000)));
        assert_eq!(Find::Series.first(&at).unwrap(), 70_000);
    }

    #[test]
    fn a_plan_that_cannot_be_probed_is_refused_with_a_hint() {
        type Change = fn(&mut Plan);
        let plans: [(&str, Change); 5] = [
            ("--rate max", |plan| plan.rate = AskedRate::Max),
            ("--append", |plan| plan.append = true),
            ("--duration 10s", |plan| plan.duration_ns = Some(SECOND_NS)),
            ("--duration 10s", |plan| plan.fleet_time_ns = Some(SECOND_NS)),
            ("one --store", |plan| plan.stores.extend(plan.stores.clone())),
        ];
        for (hint, change) in plans {
            let mut plan = plan();
            change(&mut plan);
            let refused = format!("{:?}", Find::Rate.prepare(&plan).unwrap_err());
            assert!(refused.contains(hint), "{refused}");
        }
        let mut rated = plan();
        rated.rate = AskedRate::PerSecond(7);
        assert!(Find::Rate.prepare(&rated).is_ok());
        assert!(Find::Series.prepare(&rated).is_err());
    }
}
