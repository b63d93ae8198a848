//! The leader of a run of many hosts: publishes the plan, divides the fleet, says when to start,
//! watches, and adds what the hosts measured.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tsb_core::report::{Run, VerifiedStore};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::workload::{BatchMode, FleetPart};
use tsb_stores::Stats;

use super::clock::ClockServer;
use super::coordination::Coordination;
use super::documents::{
    self, ALIVE, ALIVE_NS, ENDED, FAILED, HostProcess, HostProgress, JOINED, JOURNAL, Joined, LEADER, LeaderState,
    PART, PLAN, READY, SHARE, START, STOP, Share, SharedPlan, Start, VERSION,
};
use super::liveness::{RENEW_NS, ends_within, poll_ns};
use super::merge::{LostPart, MeasuredPart, Whole, merge};
use super::part::HostPart;
use crate::controls::Controls;
use crate::error::Error;
use crate::journal::{self, Contents};
use crate::observer::Phase;
use crate::plan::Plan;
use crate::run::{OpenStore, RunContext, earlier};
use crate::units;

/// How often the leader looks at the hosts, in nanoseconds.
const LOOK_NS: u64 = SECOND_NS / 10;
/// How often it says how far they are, in nanoseconds.
const SAY_NS: u64 = SECOND_NS;
/// How long hosts may prepare, from joining until all are ready, in nanoseconds.
const READY_NS: u64 = 300 * SECOND_NS;
/// How long hosts may flush, read back and report, in nanoseconds.
const REPORT_NS: u64 = 3_600 * SECOND_NS;
/// Most hosts of which each has a line.
const LINES_MAX: usize = 16;
/// Most hosts of a run.
const HOSTS_MAX: usize = 10_000;

/// How a run is led.
#[derive(Clone, Debug)]
pub struct LeadOptions {
    /// Number of hosts; the run begins when that number has joined.
    pub hosts: usize,
    /// Where the leader answers for its clocks; with port 0 any free port.
    pub clock_listen: SocketAddr,
    /// How long to wait until all hosts have joined.
    pub wait: Duration,
}

/// Checks the store of a run that left this journal; the error says why it cannot be read.
pub type VerifyLost<'a> = &'a dyn Fn(&Contents) -> Result<VerifiedStore, String>;

/// Leads the run of a plan, whose hosts join there, and returns the report of the whole.
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
) -> Result<Run, Error> {
    let plan = divisible(plan, options.hosts)?;
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let context = prepare(&plan, open)?;
    let ranges = context.workload.groups().len();
    if ranges < options.hosts {
        return Err(
            Error::plan(format!("cannot divide this fleet among {} hosts", options.hosts))
                .because_of(format!("it has {ranges} groups of series that report together"))
                .hint("give more --series or fewer --hosts"),
        );
    }
    if let Some(leader) = coordination.get::<LeaderState>(LEADER)? {
        return Err(Error::plan(format!("cannot lead a run at {coordination:?}"))
            .because_of(format!("another leader, process {}, leads one there", leader.pid))
            .hint("give another prefix, or wait until it has ended"));
    }
    coordination.clear()?;
    let leader = &Leader {
        coordination,
        clock: Arc::clone(&clock),
        options,
        context: &context,
        controls,
        state: Mutex::new(LeaderState {
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
    let run = match result {
        Ok(hosts) => leader.report(hosts, open, verify),
        Err(error) => {
            let _ = leader.stop("the leader");
            // The hosts hear of it before the documents go.
            leader.clock.wait_until(leader.clock.now() + 2 * SECOND_NS);
            Err(error)
        }
    };
    coordination.clear()?;
    run
}

/// A plan that can be divided, or why this one cannot.
fn divisible(plan: &Plan, hosts: usize) -> Result<Plan, Error> {
    let refuse = |why: &str| Err(Error::plan(format!("cannot share this run among {hosts} hosts")).because_of(why));
    if !(1..=HOSTS_MAX).contains(&hosts) {
        return refuse("--hosts is from 1 to 10000");
    }
    let [store] = &plan.stores[..] else {
        return refuse("such a run has one store");
    };
    let keeps_files = crate::place::Place::of(store)?.is_some() && !store.is_client();
    let obstacles = [
        (
            keeps_files,
            "several processes cannot have the files of one store open: give a server",
        ),
        (
            plan.append,
            "the place of such a run is empty before: leave --append out",
        ),
        (
            plan.schedule.is_some() || !plan.phases.is_empty(),
            "a schedule is not divided: give --rate",
        ),
        (plan.preload_ns.is_some(), "history is not divided: leave --preload out"),
        (!plan.queries.is_empty(), "queries are not divided: leave --queries out"),
        (
            !plan.watch_pids.is_empty(),
            "a process is on one host: leave --watch-pid out",
        ),
    ];
    if let Some((_, why)) = obstacles.iter().find(|(is_there, _)| *is_there) {
        return refuse(why);
    }
    let mut plan = plan.clone();
    if plan.workload.batch == BatchMode::Tick {
        // As one process with the workers of all hosts sends it.
        plan.workload.tick_parts = plan.workers * hosts;
    }
    Ok(plan)
}

/// Plans the whole, and defines all series in the store, which was empty: clients of several hosts
/// then find the numbers of their series there.
fn prepare(plan: &Plan, open: OpenStore<'_>) -> Result<RunContext, Error> {
    let opened = open(plan)?;
    let store = opened.store();
    let context = RunContext::new(plan, store.capabilities().resolution_ns)?;
    let place = earlier::place_of(&context)?;
    earlier::check(&context, &*store, place.as_ref())?;
    let failure = || Error::plan(format!("cannot define the series in {store}"));
    store
        .define(&context.workload.catalog().definitions())
        .map_err(|error| failure().because(&error))?;
    earlier::check_defined(&context, &*store, place.as_ref())?;
    store.close().map_err(|error| failure().because(&error))?;
    Ok(context)
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
            plan: plan.clone(),
            hosts: self.options.hosts,
            clock: server.address(),
        };
        self.coordination.put(PLAN, &shared)?;
        self.controls.enter(Phase::Preparing);
        let joined = self.all_joined()?;
        let mut hosts = self.share_out(joined)?;
        self.all_ready(&mut hosts)?;
        let base_ns = self.start()?;
        self.controls.enter(Phase::Running);
        self.watch(&mut hosts)?;
        self.controls.enter(Phase::Reporting);
        Ok(Ended { hosts, base_ns })
    }

    /// Says that the leader is there, and what all hosts hear of.
    fn say_state(&self) -> Result<(), Error> {
        // Locked until it is put, so that no earlier state replaces a later one.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lives_ns = ALIVE_NS.max(4 * poll_ns(self.options.hosts));
        self.coordination.put_expiring(LEADER, &*state, lives_ns)
    }

    fn change_state(&self, change: impl FnOnce(&mut LeaderState)) -> Result<(), Error> {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
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
        let mut said = usize::MAX;
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

    /// Divides the groups in proportion to what each host can generate.
    fn share_out(&self, joined: BTreeMap<String, Joined>) -> Result<BTreeMap<String, Host>, Error> {
        let ceilings: Option<Vec<f64>> = joined.values().map(|host| host.ceiling_per_second).collect();
        let weights = ceilings.unwrap_or_else(|| vec![1.0; joined.len()]);
        let ranges = self.context.workload.split_by(&weights);
        let speed = self.context.speed().map(tsb_core::schedule::Speed::fraction);
        let own = HostProcess::of_this();
        let processes: Vec<HostProcess> = joined.values().map(|host| host.process.clone()).chain([own]).collect();
        let mut hosts = BTreeMap::new();
        for ((name, joined), range) in joined.into_iter().zip(ranges) {
            let part = FleetPart {
                first_group: range.start as u32,
                groups: range.len() as u32,
            };
            let neighbours = processes.iter().filter(|other| other.is_beside(&joined.process));
            let share = Share {
                part,
                speed,
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
        let deadline_ns = self.clock.now() + READY_NS;
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

    /// Says when all begin: at a whole second that leaves every host the time to hear of it.
    fn start(&self) -> Result<i64, Error> {
        let lead_ns = SECOND_NS + 4 * poll_ns(self.options.hosts);
        let (now, wall) = (self.clock.now(), self.clock.wall().0);
        let earliest = wall.saturating_add(lead_ns as i64);
        let second = SECOND_NS as i64;
        let base_ns = earliest.div_euclid(second) * second + second;
        let at_ns = now + (base_ns - wall).unsigned_abs();
        self.coordination.put(START, &Start { at_ns, base_ns })?;
        Ok(base_ns)
    }

    /// Waits until every host has reported or is lost.
    fn watch(&self, hosts: &mut BTreeMap<String, Host>) -> Result<(), Error> {
        let planned_ns = self.context.timetable.planned_ns();
        let deadline_ns = planned_ns.map(|ns| self.clock.now().saturating_add(ns).saturating_add(REPORT_NS));
        let (mut say_at, mut is_stopped) = (0, false);
        loop {
            let ended: BTreeSet<String> = self
                .coordination
                .list::<bool>(ENDED)?
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            self.find_lost(hosts, &ended)?;
            if hosts
                .iter()
                .all(|(name, host)| host.lost.is_some() || ended.contains(name))
            {
                return Ok(());
            }
            let now = self.clock.now();
            if self.controls.stops.at_once.load(Ordering::SeqCst) {
                return Err(Error::interrupted("the run was given up before its hosts had reported"));
            }
            if !is_stopped {
                let by_host = self.coordination.get::<String>(STOP)?;
                let by_user = self.controls.stops.stop.load(Ordering::SeqCst);
                if let Some(by) = by_host.or_else(|| by_user.then(|| "the leader".to_owned())) {
                    is_stopped = true;
                    self.stop(&by)?;
                }
            }
            if now >= say_at {
                say_at = now + SAY_NS;
                self.say(hosts);
            }
            if deadline_ns.is_some_and(|deadline_ns| now >= deadline_ns) {
                let late = hosts.iter_mut().filter(|(name, _)| !ended.contains(*name));
                for (name, host) in late {
                    self.lose(name, host, "it did not report in time".to_owned())?;
                }
            }
            self.clock.wait_until(now + LOOK_NS);
        }
    }

    fn find_lost(&self, hosts: &mut BTreeMap<String, Host>, ended: &BTreeSet<String>) -> Result<(), Error> {
        let failed: BTreeMap<String, String> = self.coordination.list(FAILED)?.into_iter().collect();
        let alive = self.alive()?;
        for (name, host) in hosts.iter_mut() {
            if let Some(progress) = alive.get(name) {
                host.progress = progress.clone();
            }
            if host.lost.is_some() || ended.contains(name) {
                continue;
            }
            if let Some(why) = failed.get(name) {
                self.lose(name, host, why.clone())?;
            } else if !alive.contains_key(name) {
                let seconds = ALIVE_NS / SECOND_NS;
                self.lose(name, host, format!("it was not heard of for {seconds} s"))?;
            }
        }
        Ok(())
    }

    fn lose(&self, name: &str, host: &mut Host, why: String) -> Result<(), Error> {
        self.change_state(|state| {
            state.lost.insert(name.to_owned());
        })?;
        self.controls.warn(&format!("host {name} is lost: {why}"));
        host.lost = Some(why);
        Ok(())
    }

    /// A line for each host, and the sum.
    fn say(&self, hosts: &BTreeMap<String, Host>) {
        let line = |name: &str, of: &HostProgress| {
            let stale = of
                .staleness_ms
                .map_or(String::new(), |ms| format!(", stalest {ms:.0} ms"));
            let (sent, accepted) = (units::count(of.sent), units::count(of.accepted));
            format!("{name}: {}, {sent} sent, {accepted} accepted{stale}", of.phase)
        };
        let mut sum = HostProgress {
            phase: format!("{} hosts", hosts.len()),
            ..HostProgress::default()
        };
        for (name, Host { progress, .. }) in hosts {
            if hosts.len() <= LINES_MAX {
                self.controls.progress(&line(name, progress));
            }
            sum.sent += progress.sent;
            sum.accepted += progress.accepted;
            sum.staleness_ms = sum
                .staleness_ms
                .into_iter()
                .chain(progress.staleness_ms)
                .reduce(f64::max);
        }
        self.controls.progress(&line("all", &sum));
    }

    fn report(&self, ended: Ended, open: OpenStore<'_>, verify: VerifyLost<'_>) -> Result<Run, Error> {
        let mut parts = Vec::new();
        for (name, host) in ended.hosts {
            let result = match host.lost.clone() {
                None => self.part_of(&name).map(Box::new).map_err(|error| error.to_string()),
                Some(why) => Err(why),
            };
            let result = match result {
                Ok(part) => Ok(part),
                Err(why) => Err(self.lost_part(&name, &host, why, verify)?),
            };
            parts.push(MeasuredPart {
                name,
                part: host.part,
                result,
            });
        }
        parts.sort_by_key(|part| part.part.first_group);
        let whole = Whole {
            context: self.context,
            base_ns: ended.base_ns,
            stats: self.stats(open)?,
        };
        merge(&whole, &parts).ok_or_else(|| {
            let why = parts
                .iter()
                .filter_map(|part| Some((&part.name, part.result.as_ref().err()?)));
            let why: Vec<String> = why.map(|(name, lost)| format!("{name}: {}", lost.why)).collect();
            Error::unreachable("no host reported what it measured").because_of(why.join("; "))
        })
    }

    fn part_of(&self, name: &str) -> Result<HostPart, Error> {
        let text = self.coordination.get_long(&documents::of(PART, name))?;
        let text = text.ok_or_else(|| Error::internal(format!("what {name} measured is not whole")))?;
        HostPart::of_text(name, &text)
    }

    /// What is known of a lost host: its journal, and what reading back says of it.
    fn lost_part(&self, name: &str, host: &Host, why: String, verify: VerifyLost<'_>) -> Result<LostPart, Error> {
        let lines = self.coordination.get_long(&documents::of(JOURNAL, name))?;
        let contents = lines.map(|lines| journal::parse(lines.as_bytes()));
        let journaled = contents.as_ref().and_then(|contents| contents.sections.last());
        let sent = journaled.map_or(0, |section| section.reached.sent);
        let verified = match &contents {
            Some(contents) if !contents.sections.is_empty() => verify(contents).map(Box::new),
            _ => Err("it published no journal".to_owned()),
        };
        Ok(LostPart {
            why,
            sent: sent.max(host.progress.sent),
            verified,
            clock: (host.joined.clock.offset_ns, host.joined.clock.uncertainty_ns),
        })
    }

    /// What a store holds that all hosts share.
    fn stats(&self, open: OpenStore<'_>) -> Result<Option<Stats>, Error> {
        let plan = &self.context.plan;
        if plan.transport.is_wire() || !plan.stores.iter().any(crate::spec::Spec::is_client) {
            return Ok(None);
        }
        let store = open(plan)?.store();
        let stats = store.stats();
        // What it says of its end concerns no sample.
        let _ = store.close();
        Ok(Some(stats))
    }
}
