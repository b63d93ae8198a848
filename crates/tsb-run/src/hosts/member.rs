//! A host of a run: joins, gets a part of the fleet, sends when all send, and publishes what it
//! measured.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tsb_core::Timestamp;
use tsb_core::report::{Interval, Run};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::workload::{FleetPart, Workload};
use tsb_stores::parts::lock;

use super::clock::{ClockReading, measure_offset};
use super::coordination::Coordination;
use super::documents::{
    self, ALIVE, ENDED, FAILED, HostProcess, HostProgress, JOINED, Joined, LEADER, LeaderState, PART, PLAN, READY,
    SHARE, START, Share, SharedPlan, Start, VERSION,
};
use super::liveness::{Exchange, poll_ns};
use super::part::HostPart;
use crate::controls::{Controls, StartBarrier, StopFlags};
use crate::error::Error;
use crate::journal::{self, Journal};
use crate::observer::{IntervalLatencies, Message, Observer, Phase, Progress, RoundInfo, RunInfo};
use crate::plan::{AskedRate, Plan, QueryTurn};
use crate::run::{OpenStore, RunContext, ceiling, run_plan};

/// The uncertainty of a clock is at most this share of the shortest interval.
const UNCERTAINTY_SHARE: u64 = 100;
/// How often a host that waits for a leader looks for the plan, in nanoseconds.
const LEADER_POLL_NS: u64 = SECOND_NS / 5;
/// How often the clock is compared while samples are sent, in nanoseconds.
const COMPARE_NS: u64 = 10 * SECOND_NS;

/// How a host takes part.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Its name, which no other host of the run has: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where its journal is written: what is known of it, should it die.
    pub journal: PathBuf,
    /// How long to wait for a leader.
    pub wait: Duration,
}

/// Takes part in the run of a coordination, and returns the report of this host's part. `open` opens the
/// store of a plan.
///
/// # Errors
/// If there is no leader, this host cannot take part, or nothing could be measured.
pub fn join(
    coordination: &Coordination,
    options: &JoinOptions,
    controls: &Controls,
    open: OpenStore<'_>,
) -> Result<Run, Error> {
    let shared = shared_plan(coordination, options, controls, None)?;
    let shared = shared.ok_or_else(|| no_leader(coordination, options))?;
    take_part_in(&shared, coordination, options, controls, open)
}

/// Takes part in one run after the other, such as those of a comparison or a search, until none begins within
/// [`JoinOptions::wait`]. `each` receives the report of this host's part of each, or why there is none.
///
/// # Errors
/// If there is no first run, or the host was stopped.
pub fn join_each(
    coordination: &Coordination,
    options: &JoinOptions,
    controls: &Controls,
    open: OpenStore<'_>,
    each: &mut dyn FnMut(Result<Run, Error>),
) -> Result<(), Error> {
    let mut last = None;
    while let Some(shared) = shared_plan(coordination, options, controls, last)? {
        each(take_part_in(&shared, coordination, options, controls, open));
        last = Some(shared.run);
    }
    match last {
        Some(_) => Ok(()),
        None => Err(no_leader(coordination, options)),
    }
}

fn no_leader(coordination: &Coordination, options: &JoinOptions) -> Error {
    Error::unreachable(format!("cannot join a run at {coordination}"))
        .because_of(format!("no leader published a plan within {:?}", options.wait))
        .hint("start tsb run, compare or capacity with the same --coordinator first")
}

/// Takes part in a run from its plan to its end.
fn take_part_in(
    shared: &SharedPlan,
    coordination: &Coordination,
    options: &JoinOptions,
    controls: &Controls,
    open: OpenStore<'_>,
) -> Result<Run, Error> {
    let coordination = &coordination.of_run(shared.run);
    let (user, controls) = (&controls.stops, &with_own_stop(controls));
    let member = &Member {
        coordination,
        clock: Arc::new(MonotonicClock::new()),
        options,
        hosts: shared.hosts,
        leader: shared.clock,
        exchange: Arc::default(),
        during: Mutex::default(),
        earlier: journal_lines(&options.journal),
    };
    let result = std::thread::scope(|threads| {
        let stop = &*controls.stops.stop;
        let (running, over) = sync_channel(0);
        let keeper = threads.spawn(move || member.keep_up((stop, &user.stop), &over));
        let result = member.take_part(shared, controls, open);
        if let Err(error) = &result
            && !member.exchange.is_lost.load(Ordering::Acquire)
        {
            let _ = coordination.put(&member.key(FAILED), &error.to_string());
        }
        drop(running);
        let _ = keeper.join();
        result
    });
    if member.exchange.is_surplus.load(Ordering::Acquire) {
        return Err(Error::plan(format!("cannot take part as {}", options.name))
            .because_of(format!("the run has begun with {} other hosts", shared.hosts))
            .hint("give the leader a higher --hosts, or join the next run"));
    }
    if member.exchange.is_lost.load(Ordering::Acquire) {
        return Err(
            Error::unreachable("the run went on without this host, or its leader is gone")
                .because_of("its leader has ended the run, has gone, or counts this host as lost"),
        );
    }
    if result.is_ok() {
        // Last: the leader removes all documents when every host has said so.
        coordination.put(&member.key(ENDED), &true)?;
    }
    result
}

/// The controls of one run: what stops it here or elsewhere does not stop the next one, unless it was the user.
fn with_own_stop(controls: &Controls) -> Controls {
    let stops = &controls.stops;
    Controls {
        stops: StopFlags {
            stop: Arc::new(AtomicBool::new(stops.stop.load(Ordering::SeqCst))),
            at_once: Arc::clone(&stops.at_once),
        },
        ..controls.clone()
    }
}

/// Waits for the plan of another run than `last`, and checks that this host may take part. `None` if none came
/// in time.
fn shared_plan(
    coordination: &Coordination,
    options: &JoinOptions,
    controls: &Controls,
    last: Option<i64>,
) -> Result<Option<SharedPlan>, Error> {
    let clock = MonotonicClock::new();
    let wait_ns = options.wait.as_nanos() as u64;
    let mut until_ns = clock.now().saturating_add(wait_ns);
    let shared = loop {
        let found = coordination.get::<SharedPlan>(PLAN)?;
        if let Some(shared) = found.filter(|shared| last != Some(shared.run)) {
            break shared;
        }
        // The leader of the last run may wait for other hosts, or read what the store holds.
        if last.is_some() && coordination.get::<LeaderState>(LEADER)?.is_some() {
            until_ns = clock.now().saturating_add(wait_ns);
        }
        if clock.now() >= until_ns {
            return Ok(None);
        }
        controls.stops.check()?;
        clock.wait_until(clock.now() + LEADER_POLL_NS);
    };
    if shared.version != VERSION {
        return Err(Error::plan("cannot join this run")
            .because_of(format!("its leader is of tsb {}", shared.tsb_version))
            .hint("all hosts of a run need the same version"));
    }
    let coordination = coordination.of_run(shared.run);
    let taken = coordination.get::<HostProgress>(&documents::of(ALIVE, &options.name))?;
    if taken.is_some() {
        return Err(Error::plan(format!("cannot join as {}", options.name))
            .because_of("a host of that name takes part already")
            .hint("give another --name"));
    }
    Ok(Some(shared))
}

struct Member<'a> {
    coordination: &'a Coordination,
    clock: Arc<dyn Clock>,
    options: &'a JoinOptions,
    hosts: usize,
    leader: SocketAddr,
    exchange: Arc<Exchange>,
    /// The last comparison of clocks while samples were sent.
    during: Mutex<Option<ClockReading>>,
    /// What the file of the journal says of an earlier run, before this one begins in it.
    earlier: Option<String>,
}

impl Member<'_> {
    fn key(&self, kind: &str) -> String {
        documents::of(kind, &self.options.name)
    }

    /// The body of the thread that keeps up with the others.
    fn keep_up(&self, (stop, of_user): (&AtomicBool, &AtomicBool), over: &Receiver<()>) {
        let (mut compare_at, mut published) = (0, String::new());
        let side_work = || {
            if of_user.load(Ordering::SeqCst) {
                stop.store(true, Ordering::SeqCst);
            }
            self.publish_journal(&mut published);
            let is_running = lock(&self.exchange.progress).phase == Phase::Running.name();
            if is_running && self.clock.now() >= compare_at {
                compare_at = self.clock.now() + COMPARE_NS;
                *lock(&self.during) = measure_offset(self.leader, &*self.clock).ok();
            }
        };
        let own = (self.coordination, self.options.name.as_str());
        self.exchange.keep_up(own, self.hosts, side_work, (stop, over));
    }

    /// Publishes what the journal says, if that is new.
    fn publish_journal(&self, published: &mut String) {
        let Some(lines) = journal_lines(&self.options.journal).filter(|lines| self.earlier.as_ref() != Some(lines))
        else {
            return;
        };
        if lines != *published
            && self
                .coordination
                .put_long(&self.key(documents::JOURNAL), &lines)
                .is_ok()
        {
            *published = lines;
        }
    }

    fn take_part(&self, shared: &SharedPlan, controls: &Controls, open: OpenStore<'_>) -> Result<Run, Error> {
        let before = measure_offset(self.leader, &*self.clock)?;
        check_uncertainty(&shared.plan, before)?;
        let joined = Joined {
            ceiling_per_second: ceiling_of(&shared.plan, shared.hosts, controls)?,
            clock: before,
            process: HostProcess::of_this(),
        };
        self.coordination.put(&self.key(JOINED), &joined)?;
        controls.note(&format!(
            "joined as {}; the run begins with {} hosts",
            self.options.name, shared.hosts
        ));
        let share: Share = wait_for(
            self.coordination,
            &self.key(SHARE),
            self.hosts,
            &*self.clock,
            &controls.stops,
        )?;
        let plan = share.plan_of(&shared.plan);
        let journal = Arc::new(Journal::named(&self.options.journal));
        let barrier = Barrier {
            coordination: self.coordination.clone(),
            host: self.options.name.clone(),
            clock: Arc::clone(&self.clock),
            reading: before,
            hosts: self.hosts,
            history_end: share.history_end_ns.map(Timestamp),
            stops: controls.stops.clone(),
        };
        let observer = Reporting {
            observer: Arc::clone(&controls.observer),
            exchange: Arc::clone(&self.exchange),
            watched_ns: shared.is_watched.then_some(shared.plan.report_interval_ns),
        };
        let controls = Controls {
            journal: Some(journal),
            start: Some(Arc::new(barrier)),
            observer: Arc::new(observer),
            ..controls.clone()
        };
        let finished = run_plan(&plan, &controls, open);
        if controls.stops.stop.load(Ordering::SeqCst) {
            self.exchange.pass_on_stop(self.coordination, &self.options.name);
        }
        let finished = finished?;
        self.exchange
            .hear(self.coordination, &self.options.name, &controls.stops.stop);
        if self.exchange.is_lost.load(Ordering::Acquire) {
            // Nobody reads it, and it would be in the way of the next run.
            return Ok(finished.run);
        }
        let run = finished.run.clone();
        let after = measure_offset(self.leader, &*self.clock).ok();
        let during = *lock(&self.during);
        let clock = std::iter::once(before).chain(during).chain(after).collect();
        let part = HostPart::new(finished, clock);
        self.coordination.put_long(&self.key(PART), &part.to_text()?)?;
        Ok(run)
    }
}

/// Waits for a document of the leader, one of `hosts` that do, until it is there or the run ends.
fn wait_for<T: DeserializeOwned>(
    coordination: &Coordination,
    key: &str,
    hosts: usize,
    clock: &dyn Clock,
    stops: &StopFlags,
) -> Result<T, Error> {
    let found = coordination.wait_for(key, poll_ns(hosts), (clock, u64::MAX), stops)?;
    found.ok_or_else(|| Error::internal(format!("the wait for {key} ended without it")))
}

/// The shortest journal that says what the file says of its last run; `None` before it has one.
fn journal_lines(path: &Path) -> Option<String> {
    let contents = journal::read(path).ok()?;
    contents.sections.last()?.lines().ok()
}

/// Refuses a clock that says too little about when a sample of another host was due.
fn check_uncertainty(plan: &Plan, reading: ClockReading) -> Result<(), Error> {
    let interval_ns = shortest_interval_ns(plan);
    let most_ns = interval_ns / UNCERTAINTY_SHARE;
    if reading.uncertainty_ns <= most_ns {
        return Ok(());
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    Err(Error::plan("cannot take part in this run")
        .because_of(format!(
            "the leader's clock is known to {:.3} ms only, and at most {:.3} ms, a hundredth of the interval, are \
             allowed",
            ms(reading.uncertainty_ns),
            ms(most_ns)
        ))
        .hint("use hosts that are closer together, or a longer --interval"))
}

fn shortest_interval_ns(plan: &Plan) -> u64 {
    let several = plan.workload.intervals.iter().map(|share| share.interval_ns).min();
    several.or(plan.workload.interval_ns).unwrap_or(SECOND_NS)
}

/// Samples per second that this host can generate, over an equal part of the fleet.
fn ceiling_of(plan: &Plan, hosts: usize, controls: &Controls) -> Result<Option<f64>, Error> {
    if !plan.calibrate {
        return Ok(None);
    }
    let whole =
        Workload::new(&plan.workload).map_err(|error| Error::plan("cannot divide this workload").because(&error))?;
    let groups = whole.split(hosts).into_iter().next().unwrap_or_default();
    let share = Share {
        part: FleetPart {
            first_group: groups.start as u32,
            groups: groups.len() as u32,
        },
        speed: None,
        query_turn: QueryTurn { host: 0, hosts },
        history_end_ns: None,
        neighbours: Vec::new(),
    };
    let context = RunContext::new(&share.plan_of(plan), 1)?;
    ceiling::measure(&context, controls)
}

impl Share {
    /// The plan of a part, from that of the whole.
    pub(super) fn plan_of(&self, whole: &Plan) -> Plan {
        let mut plan = whole.clone();
        plan.workload.part = Some(self.part);
        plan.watch_pids.clone_from(&self.neighbours);
        plan.query_turn = (!plan.timed_streams().is_empty()).then_some(self.query_turn);
        plan.rate = self.speed.map_or(whole.rate, |(numerator, denominator)| {
            AskedRate::Speed(numerator, denominator)
        });
        plan
    }
}

/// Waits until the leader has said when all begin.
struct Barrier {
    coordination: Coordination,
    host: String,
    /// The clock of `reading`.
    clock: Arc<dyn Clock>,
    reading: ClockReading,
    hosts: usize,
    history_end: Option<Timestamp>,
    stops: StopFlags,
}

impl StartBarrier for Barrier {
    fn wait(&self, clock: &dyn Clock) -> Result<(u64, Timestamp), Error> {
        self.coordination.put(&documents::of(READY, &self.host), &true)?;
        let start: Start = wait_for(&self.coordination, START, self.hosts, &*self.clock, &self.stops)?;
        let at_ns = (start.at_ns as i64).wrapping_sub(self.reading.steady_offset_ns);
        let left_ns = at_ns.saturating_sub(self.clock.now() as i64);
        let left_ns = u64::try_from(left_ns).map_err(|_| {
            Error::unreachable("cannot begin with the other hosts").because_of(format!(
                "the start was {:.3} s ago when it was heard of",
                left_ns.unsigned_abs() as f64 / 1e9
            ))
        })?;
        Ok((clock.now() + left_ns, Timestamp(start.base_ns)))
    }

    fn history_end(&self) -> Option<Timestamp> {
        self.history_end
    }
}

/// Notes how far the run is, and passes everything on.
struct Reporting {
    observer: Arc<dyn Observer>,
    exchange: Arc<Exchange>,
    /// Length of the intervals that the leader wants to know.
    watched_ns: Option<u64>,
}

impl Observer for Reporting {
    fn begin(&self, subject: &RunInfo) {
        self.observer.begin(subject);
    }

    fn round(&self, round: &RoundInfo<'_>) {
        self.observer.round(round);
    }

    fn phase(&self, phase: Phase) {
        phase.name().clone_into(&mut lock(&self.exchange.progress).phase);
        self.observer.phase(phase);
    }

    fn progress(&self, progress: &Progress) {
        let mut said = lock(&self.exchange.progress);
        said.elapsed_ns = progress.elapsed_ns;
        said.operations = progress.totals.operations;
        said.sent = progress.totals.samples;
        said.accepted = progress.accepted.unwrap_or(0);
        said.rejected = progress.rejected.unwrap_or(0);
        (said.unknown, said.shed) = (progress.totals.unknown, progress.totals.shed);
        said.staleness_ms = progress.staleness_ms;
        drop(said);
        self.observer.progress(progress);
    }

    fn interval(&self, interval: &Interval, timed: &IntervalLatencies) {
        if let Some(length_ns) = self.watched_ns {
            lock(&self.exchange.intervals).add(interval, timed, length_ns);
        }
        self.observer.interval(interval, timed);
    }

    fn message(&self, message: Message<'_>) {
        self.observer.message(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_refused_beyond_a_hundredth_of_the_shortest_interval() {
        let mut plan = Plan::default();
        for (interval_ns, most_ns) in [(None, 10_000_000), (Some(200_000_000), 2_000_000)] {
            plan.workload.interval_ns = interval_ns;
            let reading = |uncertainty_ns| ClockReading {
                offset_ns: -7,
                steady_offset_ns: 7,
                uncertainty_ns,
            };
            check_uncertainty(&plan, reading(most_ns)).expect("a hundredth is allowed");
            let error = check_uncertainty(&plan, reading(most_ns + 1)).unwrap_err();
            let why = error.explanation().causes().join(" ");
            let most = format!("at most {:.3} ms", most_ns as f64 / 1e6);
            assert!(why.contains(&most), "{why}");
        }
    }
}
