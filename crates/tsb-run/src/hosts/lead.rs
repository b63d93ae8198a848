//! The leader of a run of many hosts: publishes the plan, divides the fleet, says when to start,
//! watches, and adds what the hosts measured.

mod plan;
mod report;
mod shown;
mod watch;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsb_core::Timestamp;
use tsb_core::report::VerifiedStore;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::workload::FleetPart;
use tsb_stores::parts::lock;

use super::clock::ClockServer;
use super::coordination::Coordination;
use super::documents::{
    self, ALIVE, FAILED, HostProcess, HostProgress, JOINED, Joined, LEADER, LeaderState, PLAN, READY, SHARE, START,
    Share, SharedPlan, Start, VERSION,
};
use super::liveness::{RENEW_NS, ends_within, lives_ns, poll_ns};
use crate::controls::Controls;
use crate::error::Error;
use crate::journal::Contents;
use crate::observer::Phase;
use crate::plan::{Plan, QueryTurn};
use crate::run::{MadeRun, OpenStore, RunContext};
use crate::units;

/// How often the leader looks at the hosts, in nanoseconds.
const LOOK_NS: u64 = SECOND_NS / 10;
/// How long hosts may prepare, from joining until all are ready, in nanoseconds.
const READY_NS: u64 = 300 * SECOND_NS;
/// How long hosts may take to join before it is said that some are missing, in nanoseconds.
const MISSING_NS: u64 = 10 * SECOND_NS;
/// Most hosts that publish their intervals: each is a few kilobytes.
pub const WATCHED_MAX: usize = 64;

/// How a run is led.
#[derive(Clone, Debug)]
pub struct LeadOptions {
    /// Number of hosts; the run begins when that number has joined.
    pub hosts: usize,
    /// Where the leader answers for its clocks; with port 0 any free port.
    pub clock_listen: SocketAddr,
    /// How long to wait until all hosts have joined.
    pub wait: Duration,
    /// Whether the observer wants the intervals of the whole, as a view or metrics do. There are none with more
    /// than [`WATCHED_MAX`] hosts, or with intervals of less than a second.
    pub is_watched: bool,
}

/// Checks the store of a run that left this journal; the error says why it cannot be read.
pub type VerifyLost<'a> = &'a dyn Fn(&Contents) -> Result<VerifiedStore, String>;

/// Leads the run of a plan, whose hosts join there, and returns the report and the times of the whole.
/// `open` opens the store of a plan, and `verify` reads back what a lost host had sent.
///
/// # Errors
/// If the plan cannot be divided, not all hosts join, or no host reported.
pub fn lead(
    coordination: &Coordination,
    plan: &Plan,
    options: &LeadOptions,
    controls: &Controls,
    open: OpenStore<'_>,
    verify: VerifyLost<'_>,
) -> Result<MadeRun, Error> {
    let plan = plan::divisible(plan, options.hosts)?;
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let (context, subject) = plan::prepare(&plan, options.hosts, open)?;
    controls.observer.begin(&subject);
    if let Some(leader) = coordination.get::<LeaderState>(LEADER)? {
        return Err(Error::plan(format!("cannot lead a run at {coordination}"))
            .because_of(format!("another leader, process {}, leads one there", leader.pid))
            .hint("give another prefix, or wait until it has ended"));
    }
    coordination.clear()?;
    let (all, run) = (coordination, clock.wall().0);
    let coordination = &all.of_run(run);
    let leader = &Leader {
        coordination,
        clock: Arc::clone(&clock),
        options,
        context: &context,
        controls,
        state: Mutex::new(LeaderState {
            run,
            pid: std::process::id(),
            ..LeaderState::default()
        }),
    };
    let server = ClockServer::start(options.clock_listen, clock)?;
    // A host that finds a plan finds its leader.
    leader.say_state()?;
    let result = std::thread::scope(|threads| {
        let (running, over) = sync_channel(0);
        let keeper = threads.spawn(move || leader.stay(&over));
        let result = leader.lead(&plan, &server);
        drop(running);
        let _ = keeper.join();
        result
    });
    drop(server);
    let report = match result {
        Ok(hosts) => leader.report(hosts, open, verify),
        Err(error) => {
            let _ = leader.stop("the leader");
            // The hosts hear of it before the documents go.
            leader.clock.wait_until(leader.clock.now() + 2 * SECOND_NS);
            Err(error)
        }
    };
    all.clear()?;
    report
}

/// A host that takes part.
#[derive(Clone, Debug)]
struct Host {
    joined: Joined,
    part: FleetPart,
    /// How far it was when it was last heard of.
    progress: HostProgress,
    /// Why it counts as lost.
    lost: Option<String>,
}

struct Leader<'a> {
    coordination: &'a Coordination,
    clock: Arc<dyn Clock>,
    options: &'a LeadOptions,
    context: &'a RunContext,
    controls: &'a Controls,
    state: Mutex<LeaderState>,
}

/// The hosts of a run that has ended, and its start.
struct Ended {
    hosts: BTreeMap<String, Host>,
    base_ns: i64,
}

impl Leader<'_> {
    /// The body of the thread that says that the leader is there.
    fn stay(&self, over: &Receiver<()>) {
        loop {
            let _ = self.say_state();
            if ends_within(over, RENEW_NS) {
                return;
            }
        }
    }

    fn lead(&self, plan: &Plan, server: &ClockServer) -> Result<Ended, Error> {
        let shared = SharedPlan {
            version: VERSION,
            tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.coordination.run(),
            plan: plan.clone(),
            hosts: self.options.hosts,
            is_watched: self.is_watched(plan),
            clock: server.address(),
        };
        self.coordination.put(PLAN, &shared)?;
        self.controls.enter(Phase::Preparing);
        let joined = self.all_joined()?;
        self.change_state(|state| state.chosen = joined.keys().cloned().collect())?;
        let history_end_ns = self.history_end_ns();
        let mut hosts = self.share_out(joined, history_end_ns)?;
        self.all_ready(&mut hosts)?;
        let base_ns = self.start(history_end_ns)?;
        self.controls.enter(Phase::Running);
        self.watch(&mut hosts)?;
        self.controls.enter(Phase::Reporting);
        Ok(Ended { hosts, base_ns })
    }

    /// Whether hosts publish their intervals: they are a few kilobytes each, and etcd keeps all of them.
    fn is_watched(&self, plan: &Plan) -> bool {
        let is_wanted = self.options.is_watched;
        let fits = self.options.hosts <= WATCHED_MAX && plan.report_interval_ns >= SECOND_NS;
        if is_wanted && !fits {
            self.controls.note(&format!(
                "no intervals are shown: that takes at most {WATCHED_MAX} hosts and a --report-interval of at least 1s"
            ));
        }
        is_wanted && fits
    }

    /// Says that the leader is there, and what all hosts hear of.
    fn say_state(&self) -> Result<(), Error> {
        // Locked until it is put, so that no earlier state replaces a later one.
        let state = lock(&self.state);
        self.coordination
            .put_expiring(LEADER, &*state, lives_ns(self.options.hosts))
    }

    fn change_state(&self, change: impl FnOnce(&mut LeaderState)) -> Result<(), Error> {
        change(&mut lock(&self.state));
        self.say_state()
    }

    /// Ends the run everywhere.
    fn stop(&self, by: &str) -> Result<(), Error> {
        self.change_state(|state| {
            state.stopped_by.get_or_insert_with(|| by.to_owned());
        })
    }

    /// Waits for a moment, and ends the run if the user wants it.
    fn pause(&self, deadline_ns: u64, what: impl FnOnce() -> String) -> Result<(), Error> {
        let stops = &self.controls.stops;
        if stops.stop.load(Ordering::SeqCst) || stops.at_once.load(Ordering::SeqCst) {
            return Err(Error::interrupted("the run was stopped before all hosts had begun"));
        }
        let now = self.clock.now();
        if now >= deadline_ns {
            return Err(Error::unreachable(what()));
        }
        self.clock.wait_until(now + LOOK_NS);
        Ok(())
    }

    /// Waits until enough hosts have joined and are alive.
    fn all_joined(&self) -> Result<BTreeMap<String, Joined>, Error> {
        let wanted = self.options.hosts;
        let deadline_ns = self.clock.now() + self.options.wait.as_nanos() as u64;
        let (mut said, mut warn_at_ns) = (usize::MAX, self.clock.now() + MISSING_NS);
        loop {
            let alive = self.alive()?;
            let joined: Vec<(String, Joined)> = self.coordination.list(JOINED)?;
            let mut joined: BTreeMap<String, Joined> = joined
                .into_iter()
                .filter(|(name, _)| alive.contains_key(name))
                .collect();
            if joined.len() != said {
                said = joined.len();
                self.controls.note(&format!("{said} of {wanted} hosts have joined"));
            }
            if self.clock.now() >= warn_at_ns {
                warn_at_ns = u64::MAX;
                self.controls.warn(&format!(
                    "waiting for hosts at {}: {said} of {wanted} have joined",
                    self.coordination
                ));
            }
            if joined.len() >= wanted {
                while joined.len() > wanted {
                    joined.pop_last();
                }
                return Ok(joined);
            }
            self.refuse_failed()?;
            self.pause(deadline_ns, || {
                format!(
                    "only {} of {wanted} hosts have joined within {:?}",
                    joined.len(),
                    self.options.wait
                )
            })?;
        }
    }

    fn alive(&self) -> Result<BTreeMap<String, HostProgress>, Error> {
        let alive = self.coordination.list::<HostProgress>(ALIVE)?;
        Ok(alive.into_iter().collect())
    }

    /// A host that fails before the start ends the run: the others have nothing to do without it.
    fn refuse_failed(&self) -> Result<(), Error> {
        let failed = self.coordination.list::<String>(FAILED)?;
        failed.into_iter().next().map_or(Ok(()), |(name, why)| {
            Err(Error::unreachable(format!("host {name} cannot take part")).because_of(why))
        })
    }

    /// The timestamp at which the history of all hosts ends, if they write one: this second.
    fn history_end_ns(&self) -> Option<i64> {
        let length_ns = self.context.plan.preload_ns?;
        let length = units::exact_duration(length_ns);
        self.controls.note(&format!("all hosts write {length} of history"));
        Some(Timestamp::from_secs(self.clock.wall().as_secs()).0)
    }

    /// Divides the groups in proportion to what each host can generate.
    fn share_out(
        &self,
        joined: BTreeMap<String, Joined>,
        history_end_ns: Option<i64>,
    ) -> Result<BTreeMap<String, Host>, Error> {
        let ceilings: Option<Vec<f64>> = joined.values().map(|host| host.ceiling_per_second).collect();
        let weights = ceilings.unwrap_or_else(|| vec![1.0; joined.len()]);
        let ranges = self.context.workload.split_by(&weights);
        let speed = self.context.speed().map(tsb_core::schedule::Speed::fraction);
        let own = HostProcess::of_this();
        let processes: Vec<HostProcess> = joined.values().map(|host| host.process.clone()).chain([own]).collect();
        let mut hosts = BTreeMap::new();
        let count = joined.len();
        for (number, ((name, joined), range)) in joined.into_iter().zip(ranges).enumerate() {
            let part = FleetPart {
                first_group: range.start as u32,
                groups: range.len() as u32,
            };
            let neighbours = processes.iter().filter(|other| other.is_beside(&joined.process));
            let share = Share {
                part,
                speed,
                query_turn: QueryTurn {
                    host: number,
                    hosts: count,
                },
                history_end_ns,
                neighbours: neighbours.map(|other| other.pid).collect(),
            };
            self.coordination.put(&documents::of(SHARE, &name), &share)?;
            hosts.insert(
                name,
                Host {
                    joined,
                    part,
                    progress: HostProgress::default(),
                    lost: None,
                },
            );
        }
        Ok(hosts)
    }

    fn all_ready(&self, hosts: &mut BTreeMap<String, Host>) -> Result<(), Error> {
        // A history takes as long as the store does, and a host that dies meanwhile is seen.
        let is_writing = self.context.plan.preload_ns.is_some();
        let deadline_ns = if is_writing {
            u64::MAX
        } else {
            self.clock.now() + READY_NS
        };
        loop {
            let ready = self.coordination.list::<bool>(READY)?;
            let alive = self.alive()?;
            if let Some(name) = hosts.keys().find(|name| !alive.contains_key(*name)) {
                self.refuse_failed()?;
                return Err(Error::unreachable(format!("host {name} was lost before the start")));
            }
            if ready.len() >= hosts.len() {
                return Ok(());
            }
            self.refuse_failed()?;
            self.pause(deadline_ns, || {
                format!("only {} of {} hosts are ready", ready.len(), hosts.len())
            })?;
        }
    }

    /// Says when all begin: at a whole second that leaves every host the time to hear of it. The timestamps go
    /// on where the history ends, if there is one.
    fn start(&self, history_end_ns: Option<i64>) -> Result<i64, Error> {
        let lead_ns = SECOND_NS + 4 * poll_ns(self.options.hosts);
        let (now, wall) = (self.clock.now(), self.clock.wall().0);
        let earliest = wall.saturating_add(lead_ns as i64);
        let second = SECOND_NS as i64;
        let begin_ns = earliest.div_euclid(second) * second + second;
        let at_ns = now + (begin_ns - wall).unsigned_abs();
        let base_ns = history_end_ns.unwrap_or(begin_ns);
        self.coordination.put(START, &Start { at_ns, base_ns })?;
        Ok(base_ns)
    }
}
