//! What a run needs before it starts: the workload, the timetable, the clock. Building it checks
//! that the plan can be carried out.

use std::sync::{Arc, OnceLock};

use tsb_core::Timestamp;
use tsb_core::net::Carrier;
use tsb_core::schedule::{Group, Pace, Rate, Roster, Schedule, Speed, Timetable};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::wire::{Protocol, UnsupportedSeries};
use tsb_core::workload::{FleetSpec, Workload, WorkloadSpec};

use super::earlier::Held;
use crate::error::Error;
use crate::plan::{AskedRate, IN_FLIGHT, Plan};
use crate::spec::OpenedStore;

/// What does not change while a run goes on.
#[derive(Debug)]
pub struct RunContext {
    /// What was asked.
    pub plan: Plan,
    /// What is sent.
    pub workload: Arc<Workload>,
    /// When.
    pub timetable: Timetable,
    /// The clock of all times of the run; time limits and faults of phases have clocks of their own.
    pub clock: Arc<dyn Clock>,
    /// What the place held before; set before anything is written, and only if it held something.
    pub(super) held: OnceLock<Held>,
}

impl RunContext {
    /// Plans the workload and its times.
    ///
    /// `resolution_ns` is what the store can tell apart.
    pub fn new(plan: &Plan, resolution_ns: i64) -> Result<Self, Error> {
        let mut plan = plan.clone();
        let resolution = resolution_ns.max(1) as u64;
        plan.workload.resolution_ns = plan.workload.resolution_ns.max(resolution);
        let workload = Workload::new(&plan.workload)
            .map_err(|error| Error::plan(format!("cannot run workload {}", plan.workload.fleet)).because(&error))?;
        if workload.catalog().len() as u64 > plan.max_series {
            return Err(Error::plan(format!("cannot run {} series", workload.catalog().len()))
                .because_of(format!("--max-series is {}", plan.max_series)));
        }
        can_carry(&plan, &workload)?;
        if let FleetSpec::Trace(source) = &mut plan.workload.fleet {
            source.checksum = workload.trace_checksum();
        }
        let timetable = timetable(&plan, &workload)?;
        Ok(Self {
            plan,
            workload: Arc::new(workload),
            timetable,
            clock: Arc::new(MonotonicClock::new()),
            held: OnceLock::new(),
        })
    }

    /// The first timestamp that is of this run and not of an earlier one; `None` if the place was
    /// empty. `base` is the timestamp of the start.
    pub(super) fn since(&self, base: Timestamp) -> Option<Timestamp> {
        self.held.get().map(|held| held.since(base))
    }

    /// The same work for `length_ns`, as fast as it can be taken: for measuring a ceiling.
    pub fn flat_out(&self, length_ns: u64) -> Timetable {
        Timetable {
            roster: self.timetable.roster.clone(),
            pace: Pace::Shape(Schedule::Unpaced),
            end_ns: Some(length_ns),
            fleet_end_ns: None,
        }
    }

    /// Seconds of fleet time in one second, where the pace says so.
    pub fn speed(&self) -> Option<Speed> {
        match &self.timetable.pace {
            Pace::Fleet(speed) => Some(*speed),
            Pace::Shape(_) => None,
        }
    }

    /// A moment on the clock at which every thread of the run will be there.
    pub(super) fn soon(&self) -> u64 {
        self.clock.now() + LEAD_NS
    }

    /// When to begin, on the clock, and the timestamp of that moment: the next whole
    /// second, so that timestamps are due times on every wire.
    pub fn beginning(&self) -> (u64, Timestamp) {
        let (now, wall) = (self.clock.now(), self.clock.wall().0);
        let base = (wall + LEAD_NS as i64).div_euclid(SECOND_NS as i64) * SECOND_NS as i64 + SECOND_NS as i64;
        (now + (base - wall) as u64, Timestamp(base))
    }
}

/// Time from the decision to begin until the beginning.
const LEAD_NS: u64 = SECOND_NS / 100;

/// How many samples are tried before a run.
const TRIED: u64 = 100_000;

/// Refuses a workload whose series or values the wire cannot carry, before anything is sent.
fn can_carry(plan: &Plan, workload: &Workload) -> Result<(), Error> {
    let (protocol, catalog) = (plan.protocol, workload.catalog());
    if !plan.transport.is_wire() {
        return Ok(());
    }
    let failure = || Error::plan(format!("cannot send this workload over {protocol}"));
    plan.transport
        .carries(protocol)
        .map_err(|why| failure().because_of(why))?;
    if plan.transport.carrier() == Carrier::Datagrams {
        let packer = protocol.packer(catalog, plan.wire.datagram_bytes, 0);
        packer.map_err(|error| failure().because(&error))?;
    }
    let skipped = tried(protocol, workload).map_err(|error| failure().because(&error))?;
    match skipped {
        (0, _) => Ok(()),
        (skipped, tried) => {
            let whole = if protocol.capabilities().integers_only {
                ": it carries whole numbers only"
            } else {
                ""
            };
            let why = format!("{skipped} of the first {tried} samples would be left out{whole}");
            Err(failure().because_of(why))
        }
    }
}

/// How many of the first samples a protocol would leave out, and how many were tried.
fn tried(protocol: Protocol, workload: &Workload) -> Result<(u64, usize), UnsupportedSeries> {
    let mut encoder = protocol.encoder(workload.catalog())?;
    let groups = workload.groups();
    let mut generator = workload.generator(0..groups.len(), Timestamp::from_secs(1_700_000_000));
    let ticks = (TRIED / workload.catalog().len().max(1) as u64).clamp(1, 100);
    let (mut tried, mut payload) = (0, Vec::new());
    for tick in 0..ticks {
        let alive = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.ticks.contains(&tick));
        for (index, _) in alive {
            let batch = generator.operation(index, tick);
            tried += batch.len();
            payload.clear();
            encoder.encode(&batch, &mut payload);
        }
    }
    Ok((encoder.skipped(), tried))
}

/// A timetable from what the plan says of rates and shapes.
pub fn timetable(plan: &Plan, workload: &Workload) -> Result<Timetable, Error> {
    let bad = |error: &dyn std::error::Error| cannot_follow().because(error);
    let roster = roster(plan, workload)?;
    let pace = match (&plan.schedule, plan.rate) {
        (Some(schedule), _) => Pace::Shape(schedule.of_operations(&roster).map_err(|error| bad(&error))?),
        (None, AskedRate::Natural) => Pace::Fleet(Speed::NATURAL),
        (None, AskedRate::Max) => Pace::Shape(Schedule::Unpaced),
        (None, AskedRate::PerSecond(rate)) => {
            let asked = Rate::per_second(rate).map_err(|error| bad(&error))?;
            let natural = roster.rate_at(0).map_err(|error| bad(&error))?;
            Pace::Fleet(Speed::from_rates(asked, natural).map_err(|error| bad(&error))?)
        }
        (None, AskedRate::Speed(numerator, denominator)) => Pace::Fleet(
            Speed::new(numerator, denominator)
                .ok_or_else(|| Error::plan("cannot follow this rate").because_of("a speed is not 0"))?,
        ),
    };
    Ok(Timetable {
        roster,
        pace,
        end_ns: plan.duration_ns,
        fleet_end_ns: plan.fleet_time_ns,
    })
}

fn cannot_follow() -> Error {
    Error::plan("cannot follow this schedule")
}

/// The operations of a workload. Those of a part of a fleet know the whole if the plan has a schedule, which
/// counts the samples of the whole.
fn roster(plan: &Plan, workload: &Workload) -> Result<Roster, Error> {
    let own = roster_of(workload)?;
    let Some(part) = plan.workload.part.filter(|_| plan.schedule.is_some()) else {
        return Ok(own);
    };
    let whole = WorkloadSpec {
        part: None,
        ..plan.workload.clone()
    };
    let whole = Workload::new(&whole).map_err(|error| cannot_follow().because(&error))?;
    Ok(own.part_of(roster_of(&whole)?, part.first_group))
}

fn roster_of(workload: &Workload) -> Result<Roster, Error> {
    let groups = workload.groups().iter().enumerate().map(|(index, group)| Group {
        interval_ns: group.interval_ns,
        phase_ns: group.phase_ns,
        first_tick: group.ticks.start,
        end_tick: group.ticks.end,
        samples: workload.usual_samples(index).round() as u32,
    });
    let roster = match workload.tick_times() {
        Some(tick_times) => Roster::of_tick_times(groups.collect(), tick_times.to_vec()),
        None => Roster::new(groups.collect()),
    };
    roster.map_err(|error| cannot_follow().because(&error))
}

/// Opens the first store of a plan, with the credentials that its spec holds. Others open the
/// stores of [`run_each`](crate::run_each) if a closure of theirs does.
///
/// # Errors
/// When the plan names none, or it does not open.
pub fn open(plan: &Plan) -> Result<OpenedStore, Error> {
    let spec = plan.stores.first();
    let spec = spec.ok_or_else(|| Error::plan("cannot run without a store").hint("give --store memory:"))?;
    // A driver with fewer connections would be a second queue, whose wait counts as the server's.
    let is_driven = !plan.transport.is_wire() && spec.option("pool").is_none();
    let pooled = plan.in_flight.filter(|_| is_driven);
    let pooled = pooled
        .filter(|bound| *bound > IN_FLIGHT)
        .map(|bound| spec.with("pool", &bound.to_string()));
    let spec = pooled.as_ref().unwrap_or(spec);
    spec.open_for_run().map_err(|error| Error::opening(spec, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(fleet: &str, protocol: Protocol) -> Result<RunContext, Error> {
        let mut plan = Plan {
            protocol,
            ..Plan::default()
        };
        plan.workload.fleet = fleet.parse().unwrap();
        plan.workload.series = Some(2_160);
        RunContext::new(&plan.complete()?, 1)
    }

    #[test]
    fn samples_that_a_protocol_would_skip_are_refused_before_sending() {
        for protocol in [Protocol::Influx, Protocol::Opentsdb, Protocol::DalmatinerStream] {
            assert!(context("mix", protocol).is_ok(), "{protocol}");
        }
        assert!(context("kstat", Protocol::DalmatinerAugust).is_ok());
        for protocol in [
            Protocol::DalmatinerAugust,
            Protocol::DalmatinerJuly,
            Protocol::KairosdbJson,
        ] {
            let refused = context("mix", protocol).unwrap_err();
            let start = format!("cannot send this workload over {protocol}");
            assert!(format!("{refused:?}").contains(&start), "{refused:?}");
        }
    }
}
