//! The plan of a run: complete, validated, serializable.
//!
//! A plan starts as [`Plan::default`], is changed field by field, and is finished by
//! [`Plan::complete`]. It is stored in the report, so that a run can be repeated from its
//! report, and its serialized form holds no credentials.

mod phases;
mod queries;
mod transport;

use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use tsb_core::schedule::Schedule;
use tsb_core::time::SECOND_NS;
use tsb_core::wire::Protocol;
use tsb_core::workload::{BatchMode, FleetSpec, WorkloadSpec};

pub use phases::{PHASES_MAX, PhaseFaults, RunPhase, spans};
pub use queries::{InvalidQueryStream, QueryKind, QueryRate, QueryShape, QueryStream, QueryTurn, TimedStream};
pub use transport::{Transport, WirePlan};

use crate::error::Error;

/// Version of the serialized form; other versions are converted or refused.
pub const PLAN_VERSION: u32 = 2;

/// Default of [`Plan::in_flight`]: at the usual 1,000 operations per second, answers may take 64 ms
/// before one waits; and a server that needs more is not made faster by a longer queue. It is the
/// default of `mongo:`'s connections, too.
pub const IN_FLIGHT: usize = 64;
/// Largest [`Plan::in_flight`].
const IN_FLIGHT_MAX: usize = 1 << 20;

/// Longest fleet time of a run, in nanoseconds: timestamps are nanoseconds and end in 2262.
const FLEET_SPAN_MAX_NS: u64 = 200 * 365 * 86_400 * SECOND_NS;

/// Everything about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// The stores, run one after the other with the same workload.
    pub stores: Vec<Spec>,
    /// How samples reach the store.
    pub transport: Transport,
    /// The wire protocol; unused by [`Transport::Inproc`].
    pub protocol: Protocol,
    /// Options of the wire; unused by [`Transport::Inproc`].
    #[serde(default, skip_serializing_if = "WirePlan::is_usual")]
    pub wire: WirePlan,
    /// Most writes of a client in flight at a time, divided among the workers; absent: 64, or one
    /// for each worker if those are more. From the number of workers to 1,048,576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// Upper bound of the series that a store or listener admits.
    pub max_series: u64,
    /// The workload.
    pub workload: WorkloadSpec,
    /// The rate.
    pub rate: AskedRate,
    /// A rate that varies over time, instead of the fleet's own times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Named pieces of the run; with them, `schedule` and `duration_ns` follow from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<RunPhase>,
    /// How long to send, in nanoseconds of real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// How much fleet time to send, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_time_ns: Option<u64>,
    /// How much fleet time is written before the clock starts, in nanoseconds; whole seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload_ns: Option<u64>,
    /// Emitting threads, from 1 to 1024.
    pub workers: usize,
    /// What is asked of the store while it is written, during the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<QueryStream>,
    /// Threads of each stream of queries, from 1 to 64.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub query_workers: usize,
    /// Which of several hosts this plan is for: they take turns to ask. Absent where one asks alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_turn: Option<QueryTurn>,
    /// Whether everything is read back and compared.
    pub verify: bool,
    /// Whether the generator's own ceiling is measured first.
    pub calibrate: bool,
    /// Whether the run may go on in a place that holds samples of earlier runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// Length of a reporting interval, in nanoseconds; at least 1 ms.
    pub report_interval_ns: u64,
    /// Other processes whose resources are measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch_pids: Vec<u32>,
}

/// The rate at which a fleet is asked to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedRate {
    /// Its own rate: fleet time is real time.
    Natural,
    /// This many samples per second; fleet time runs faster or slower than real time.
    PerSecond(u64),
    /// As fast as the store answers: a closed loop without a schedule.
    Max,
    /// Fleet time passes at the first number divided by the second times real time: what a part of
    /// a fleet is asked, so that all of it keeps the whole's times exactly. Neither is 0.
    Speed(u64, u64),
}

const fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_one(count: &usize) -> bool {
    *count == 1
}

impl Default for Plan {
    /// Ten seconds of 54,000 samples/s of the kstat fleet over loopback TCP into memory.
    fn default() -> Self {
        let mut workload = WorkloadSpec::new(FleetSpec::Kstat, 1);
        workload.series = Some(54_000);
        workload.batch = BatchMode::Message;
        Self {
            version: PLAN_VERSION,
            stores: Vec::new(),
            transport: Transport::Tcp,
            protocol: Protocol::Tsb,
            wire: WirePlan::default(),
            in_flight: None,
            max_series: 10_000_000,
            workload,
            rate: AskedRate::Natural,
            schedule: None,
            phases: Vec::new(),
            duration_ns: None,
            fleet_time_ns: None,
            preload_ns: None,
            workers: 1,
            queries: Vec::new(),
            query_workers: 1,
            query_turn: None,
            verify: true,
            calibrate: true,
            append: false,
            report_interval_ns: SECOND_NS,
            watch_pids: Vec::new(),
        }
    }
}

impl Plan {
    /// Fills in defaults and checks the whole plan.
    ///
    /// # Errors
    /// [`Error::Plan`] if a field is out of its range, or fields contradict each other.
    pub fn complete(mut self) -> Result<Self, Error> {
        self.update()?;
        self.follow_phases()?;
        if self.stores.is_empty() {
            let spec = "memory:"
                .parse()
                .map_err(|error| Error::plan("cannot use memory:").because(&error))?;
            self.stores = vec![spec];
        }
        if self.duration_ns.is_none() && self.fleet_time_ns.is_none() {
            self.duration_ns = Some(10 * SECOND_NS);
        }
        if self.transport.is_wire() {
            let resolution = self.protocol.capabilities().resolution_ns;
            self.workload.resolution_ns = self.workload.resolution_ns.max(resolution);
        }
        // The parts of a fleet were divided when the whole was.
        if self.workload.part.is_none() {
            self.workload.tick_parts = self.workers;
        }
        let horizon_ns = self.fleet_span_ns().max(self.preload_ns.unwrap_or(0));
        if let Some(churn) = &mut self.workload.churn {
            churn.horizon_ns = horizon_ns;
        }
        self.check()?;
        Ok(self)
    }

    /// Converts a plan of an earlier version.
    fn update(&mut self) -> Result<(), Error> {
        let failure = || Error::plan(format!("cannot run a plan of version {}", self.version));
        match (self.version, &self.schedule) {
            (1, Some(schedule)) if schedule.counts_samples() => Err(failure()
                .because_of(format!(
                    "its schedule {schedule} counts operations per second, and schedules have counted samples since version 2"
                ))
                .hint("give --schedule with its rates times the samples of an operation")),
            (1 | PLAN_VERSION, _) => {
                self.version = PLAN_VERSION;
                Ok(())
            }
            _ => Err(failure().hint(format!("this program reads versions 1 to {PLAN_VERSION}"))),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.workers == 0 || self.workers > 1024 {
            return Err(Error::plan("cannot run with this many workers").because_of("--workers is from 1 to 1024"));
        }
        self.wire.check()?;
        self.check_connections()?;
        queries::check(&self.timed_streams(), self.query_workers)?;
        self.check_in_flight()?;
        if self.report_interval_ns < 1_000_000 {
            return Err(Error::plan("cannot report that often").because_of("--report-interval is at least 1ms"));
        }
        if self.duration_ns == Some(0) || self.fleet_time_ns == Some(0) {
            return Err(Error::plan("cannot run for no time at all").hint("give --duration 10s"));
        }
        if self
            .preload_ns
            .is_some_and(|ns| ns == 0 || ns % SECOND_NS != 0 || ns > FLEET_SPAN_MAX_NS / 4)
        {
            return Err(Error::plan("cannot write this much history")
                .because_of("--preload is in whole seconds, from one second to 50 years"));
        }
        if self.schedule.is_some() && self.rate != AskedRate::Natural {
            return Err(Error::plan("cannot follow both --rate and --schedule")
                .hint("a schedule is a rate over time: leave --rate out"));
        }
        if self.fleet_span_ns() > FLEET_SPAN_MAX_NS {
            return Err(Error::plan("cannot run the fleet that far ahead")
                .because_of("at this rate its clock would pass 200 years, and timestamps end in 2262")
                .hint("ask a lower --rate or --duration; --rate max sends as fast as the store answers"));
        }
        self.workload
            .check()
            .map_err(|error| Error::plan("cannot run this workload").because(&error))
    }

    fn check_connections(&self) -> Result<(), Error> {
        if self.wire.connections.is_none() || self.transport.is_answered() {
            return Ok(());
        }
        Err(Error::plan("cannot use --connections here")
            .because_of("only requests over http share connections")
            .hint("give --transport http, or more --workers"))
    }

    fn check_in_flight(&self) -> Result<(), Error> {
        let Some(bound) = self.in_flight else { return Ok(()) };
        if self.transport.is_wire() && !self.transport.is_answered() {
            return Err(Error::plan("cannot use --in-flight here")
                .because_of(format!("over {} nothing is answered", self.transport.name()))
                .hint("give --transport http, or inproc with a client of a server, or leave it out"));
        }
        if bound < self.workers || bound > IN_FLIGHT_MAX {
            return Err(
                Error::plan(format!("cannot keep {bound} writes in flight")).because_of(format!(
                    "--in-flight is from the number of --workers, {}, to {IN_FLIGHT_MAX}",
                    self.workers
                )),
            );
        }
        Ok(())
    }

    /// Whether writes over HTTP are handed over, and not sent one after the other by each worker.
    pub fn has_requests_in_flight(&self) -> bool {
        self.transport.is_answered() && (self.in_flight.is_some() || self.wire.connections.is_some())
    }

    /// HTTP connections of writes in flight, over all workers; 0 where each worker has its own.
    pub fn http_connections(&self) -> usize {
        if !self.has_requests_in_flight() {
            return 0;
        }
        let bound = self.writes_in_flight();
        self.wire.connections.unwrap_or(IN_FLIGHT).min(bound)
    }

    /// Most writes of a client in flight at a time, over all workers.
    pub fn writes_in_flight(&self) -> usize {
        self.in_flight.unwrap_or(IN_FLIGHT).max(self.workers)
    }

    /// Approximate fleet time of the run, in nanoseconds: churn is planned up to it, and later
    /// series live on without churn.
    fn fleet_span_ns(&self) -> u64 {
        if let Some(span) = self.fleet_time_ns {
            return span;
        }
        let duration = self.duration_ns.unwrap_or(0);
        let interval = self.workload.interval_ns.unwrap_or(SECOND_NS).max(1);
        let natural = self.workload.series.unwrap_or(1) as f64 * SECOND_NS as f64 / interval as f64;
        let speed = match self.rate {
            AskedRate::PerSecond(rate) => (rate as f64 / natural).max(1.0),
            AskedRate::Natural => self.mean_of_phases().map_or(1.0, |mean| (mean / natural).max(1.0)),
            AskedRate::Max => 10.0,
            AskedRate::Speed(numerator, denominator) => numerator as f64 / denominator.max(1) as f64,
        };
        (duration as f64 * speed).min(u64::MAX as f64) as u64
    }

    /// Whether each operation waits for the previous one instead of having a due time.
    pub fn is_closed_loop(&self) -> bool {
        self.rate == AskedRate::Max || self.schedule.as_ref().is_some_and(|schedule| !schedule.is_open_loop())
    }
}
