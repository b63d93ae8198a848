//! One run from plan to report: calibrate, drive, flush, read back, judge.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tsb_core::Timestamp;
use tsb_core::emit::{ExceptionKind, Live};
use tsb_core::report::Run;
use tsb_stores::{Scope as FlushScope, Stats, Store};

use super::assemble::{Parts, assemble, sides};
use super::cost::{Known, Span, Spent};
use super::guarded::{Guarded, caught, poisoned};
use super::monitor::{Monitor, Observed, Subject};
use super::path::{Driven, Pass, Watch, accepted};
use super::rejects::Rejects;
use super::sink::SinkTotals;
use super::stage::Stage;
use super::window::Window;
use super::{aftermath, asked, ceiling, fit, journaled, projection};
use crate::audit::{Audit, Scope};
use crate::damage::Told;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::{Followed, Follower, Journal};
use crate::live::{Board, Phase, Subject as Shown};
use crate::plan::{Plan, Transport};
use crate::units;

/// Starts something that stands between emitter and listener: gets the listener's address,
/// returns the one to connect to.
pub(super) type Between = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// Keeps a run that is not read back yet.
pub(super) type Provisional = Arc<dyn Fn(&Run) + Send + Sync>;

/// What a run takes from its surroundings.
#[derive(Clone)]
pub struct Hooks {
    /// Ends the run early, with its report.
    pub stop: Arc<AtomicBool>,
    /// No progress lines.
    pub quiet: bool,
    /// Where the run shows what it does, for those who watch it.
    pub board: Option<Arc<Board>>,
    /// The board has a view of its own: nothing is said on stderr.
    pub has_view: bool,
    /// A relay on the wire: an emulator of bad networks, or a receiver under test.
    pub between: Option<Between>,
    /// What each run is called, in the order of the plan's stores.
    pub labels: Vec<String>,
    /// Gets the run as it stands before it is read back: whatever ends the process then
    /// leaves what was measured.
    pub provisional: Option<Provisional>,
    /// What is left of a run that is killed.
    pub journal: Option<Arc<Journal>>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("stop", &self.stop)
            .field("quiet", &self.quiet)
            .finish_non_exhaustive()
    }
}

impl Hooks {
    /// Stops when `stop` is set.
    pub const fn new(stop: Arc<AtomicBool>, quiet: bool) -> Self {
        Self {
            stop,
            quiet,
            board: None,
            has_view: false,
            between: None,
            labels: Vec::new(),
            provisional: None,
            journal: None,
        }
    }

    /// Says something: on the view where there is one, else on stderr; unless told to be
    /// quiet.
    pub fn say(&self, text: impl FnOnce() -> String) {
        match &self.board {
            Some(board) if self.has_view => board.say(&text()),
            _ => self.say_line(text),
        }
    }

    /// Says what a view shows better: only where there is none.
    pub fn say_line(&self, text: impl FnOnce() -> String) {
        if !self.quiet && !self.has_view {
            crate::say::line(text());
        }
    }

    /// Prints a warning, also under `--quiet`.
    pub fn warn(&self, text: &str) {
        match &self.board {
            Some(board) if self.has_view => board.say(text),
            _ => crate::say::line(format_args!("tsb: {text}")),
        }
    }

    /// The run does something else now.
    pub fn enter(&self, phase: Phase) {
        if let Some(board) = &self.board {
            board.enter(phase);
        }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    /// Its report.
    pub run: Run,
    /// Its histograms.
    pub driven: Driven,
}

/// Opens the store of a plan with one store.
pub type Open<'a> = &'a dyn Fn(&Plan) -> Result<Arc<dyn Store>, Failure>;

/// Runs a plan of one store, which it opens and closes.
///
/// # Errors
/// When nothing could be measured. What fails later is in the verdict of the report.
pub fn run_plan(plan: &Plan, hooks: &Hooks, open: Open<'_>) -> Result<Finished, Failure> {
    let ended = caught("a run", || {
        let store = open(plan)?;
        let mut finished = run_opened(plan, &store, hooks)?;
        close(store, &mut finished.run);
        Ok(finished)
    });
    ended.unwrap_or_else(|said| Err(Failure::new(Exit::Bug, "cannot run this plan").because_of(format!("it {said}"))))
}

/// Closes the store of a run that is over: its report is complete by now.
fn close(store: Arc<dyn Store>, run: &mut Run) {
    let name = &run.target.store;
    let said = match caught("close", || store.close()) {
        Ok(Ok(())) => None,
        Ok(Err(error)) if error.is_silence() => {
            run.notes
                .push(format!("cannot close {name}: {}", crate::failure::chain(&error)));
            None
        }
        Ok(Err(error)) => Some(format!("cannot close {name}: {}", crate::failure::chain(&error))),
        Err(said) => Some(format!("{name} {said}")),
    };
    let dropped = caught("drop", || drop(store))
        .err()
        .map(|said| format!("{name} {said}"));
    for said in said.into_iter().chain(dropped) {
        aftermath::condemn(run, said);
    }
}

/// Runs a plan against a store that is open and empty, whatever stores the plan names: none
/// of them is opened, so the plan in the report names none. `target.store` names this one.
///
/// # Errors
/// When nothing could be measured. What fails later is in the verdict of the report.
pub fn run_store(plan: &Plan, store: &Arc<dyn Store>, hooks: &Hooks) -> Result<Finished, Failure> {
    let plan = Plan {
        stores: Vec::new(),
        ..plan.clone()
    };
    run_opened(&plan, store, hooks)
}

/// Runs a plan against its own store, or against one that no spec names.
fn run_opened(plan: &Plan, store: &Arc<dyn Store>, hooks: &Hooks) -> Result<Finished, Failure> {
    let broken = |said| Failure::new(Exit::Bug, "cannot use the store").because_of(format!("it {said}"));
    let guarded = Arc::new(Guarded::new(store).map_err(broken)?);
    let raw = store;
    let store: &Arc<dyn Store> = &(Arc::clone(&guarded) as Arc<dyn Store>);
    let capabilities = store.capabilities();
    let mut told = Told::default();
    told.tell(&**store, |said| hooks.warn(said));
    let stage = prepare(plan, store)?;
    if let Some(board) = &hooks.board {
        board.begin(shown(&stage, store));
    }
    let ceiling = if plan.calibrate {
        hooks.enter(Phase::Calibrating);
        hooks.say(|| "calibrating against a store that forgets".to_owned());
        ceiling::measure(&stage, &hooks.stop)?
    } else {
        None
    };
    asked::check(&stage, ceiling)?;
    hooks.enter(Phase::Running);
    let (start_ns, base) = stage.beginning();
    let mut performed = perform(&stage, (raw, store), start_ns, base, hooks)?;
    let held = performed.held_per_second();
    let projection = projection::measure(&stage, &performed.stats, held, &hooks.stop);
    let report = |performed: &Performed, audit: Option<&Audit>| {
        assemble(&Parts {
            stage: &stage,
            store,
            base,
            performed,
            audit,
            ceiling,
            projection: projection.clone(),
        })
    };
    let is_read = plan.verify && capabilities.query && performed.failure.is_none();
    if let Some(keep) = hooks.provisional.as_ref().filter(|_| is_read) {
        performed.unread = Some("the process ended before anything was read back".to_owned());
        keep(&report(&performed, None));
        performed.unread = None;
    }
    let audit = is_read.then(|| read_back(&stage, store, base, &mut performed, hooks));
    told.tell(&**store, |said| hooks.warn(said));
    hooks.enter(Phase::Reporting);
    let mut run = report(&performed, audit.flatten().as_ref());
    run.notes
        .extend(hooks.journal.as_ref().and_then(|journal| journal.failure()));
    for said in guarded.panics().into_iter().chain(performed.observed.broken.take()) {
        aftermath::condemn(&mut run, said);
    }
    Ok(Finished {
        run,
        driven: performed.driven,
    })
}

/// Plans the work and tells the store its series.
fn prepare(plan: &Plan, store: &Arc<dyn Store>) -> Result<Stage, Failure> {
    let capabilities = store.capabilities();
    let stage = Stage::new(plan, capabilities.resolution_ns)?;
    fit::check(&stage.workload, &capabilities, &store.to_string())?;
    if store.stats().samples > 0 {
        return Err(Failure::usage(format!("cannot run into {store}"))
            .because_of(format!("it already holds {} samples", store.stats().samples))
            .hint("a run fills an empty store; give another one"));
    }
    let defined = store.define(&stage.workload.catalog().definitions());
    defined.map_err(|error| Failure::usage(format!("cannot define the series in {store}")).because(&error))?;
    Ok(stage)
}

/// What a run tells those who watch it before it starts.
fn shown(stage: &Stage, store: &Arc<dyn Store>) -> Shown {
    let plan = &stage.plan;
    let wire = if plan.transport == Transport::Tcp {
        format!(" ({})", plan.protocol)
    } else {
        String::new()
    };
    let natural = stage.workload.samples_per_second();
    Shown {
        store: store.to_string(),
        path: format!("{}{wire}", plan.transport.name()),
        series: stage.workload.catalog().len() as u64,
        durability: store.capabilities().acknowledges.to_string(),
        // Where churn changes the rate, it is shown for each interval instead.
        asked_per_second: stage
            .speed()
            .filter(|_| plan.workload.churn.is_none())
            .map(|speed| natural * stage.workload.sent_share() * speed.as_f64()),
        planned_ns: plan.duration_ns,
        slice_ns: plan.report_interval_ns,
    }
}

/// What was done, before anything is read back.
#[derive(Debug)]
pub(super) struct Performed {
    /// What the emitter and the listener know.
    pub driven: Driven,
    /// What was watched meanwhile.
    pub observed: Observed,
    /// Waits for the level that the store reaches, where its acks say less.
    pub window: Option<Arc<Window>>,
    /// When everything had that level, on the clock, where its acks say less.
    pub flushed_ns: Option<u64>,
    /// What the store took.
    pub accepted: u64,
    /// What it refused.
    pub rejects: Arc<Rejects>,
    /// CPU time by part.
    pub spent: Spent,
    /// What the store held when all was flushed.
    pub stats: Stats,
    /// What sinks and in-process targets counted.
    pub totals: Arc<SinkTotals>,
    /// The store's first failure, in words.
    pub failure: Option<String>,
    /// Why a server that was silent at the end was not flushed.
    pub unflushed: Option<String>,
    /// Why a server that was silent at the end was not read back.
    pub unread: Option<String>,
}

impl Performed {
    /// Accepted samples per second.
    pub(super) fn held_per_second(&self) -> f64 {
        self.accepted as f64 * 1e9 / self.driven.elapsed_ns.max(1) as f64
    }

    /// The same until all of them had the level that the store reaches.
    pub(super) fn durable_per_second(&self) -> Option<f64> {
        let flushed_ns = self.flushed_ns.filter(|_| self.failure.is_none())?;
        let taken_ns = flushed_ns
            .saturating_sub(self.driven.start_ns)
            .max(self.driven.elapsed_ns);
        Some(self.accepted as f64 * 1e9 / taken_ns.max(1) as f64)
    }
}

fn perform(
    stage: &Stage,
    (raw, store): (&Arc<dyn Store>, &Arc<dyn Store>),
    start_ns: u64,
    base: Timestamp,
    hooks: &Hooks,
) -> Result<Performed, Failure> {
    let live = Live::new(stage.plan.workers);
    let (totals, rejects, watch) = (
        Arc::new(SinkTotals::default()),
        Arc::new(Rejects::new()),
        Watch::default(),
    );
    let window = Window::of(&**store, &stage.clock, (start_ns, base), &stage.timetable);
    let pass = Pass {
        stage,
        timetable: &stage.timetable,
        store: Arc::clone(raw),
        start_ns,
        base,
        stop: &hooks.stop,
        live: &live,
        totals: Arc::clone(&totals),
        rejects: Arc::clone(&rejects),
        window: window.as_ref(),
        listening: &watch,
        between: hooks.between.as_ref(),
    };
    let monitor = Monitor::new(Subject {
        stage,
        store: &**store,
        start_ns,
        base,
        live: &live,
        totals: &totals,
        watch: &watch,
        hooks,
    });
    let followed = Followed {
        way: journaled::way(stage.plan.transport),
        clock: &*stage.clock,
        start_ns,
        live: &live,
        totals: &totals,
        watch: &watch,
        rejects: &rejects,
        store: Some(&**store),
    };
    let mut follower = journaled::follower(hooks, stage, base, followed);
    let mut span = Span::begin(&**store);
    let (driven, mut observed) = drive(&pass, &monitor, follower.as_mut())?;
    let mut failure = totals.failure().map(|error| crate::failure::chain(&*error));
    hooks.enter(Phase::Flushing);
    let unflushed = flush(store, &mut span, &mut failure);
    let flushed = window.as_ref().filter(|_| unflushed.is_none());
    let flushed_ns = flushed.map(|window| window.flushed(&**store));
    if let Some(follower) = &mut follower {
        follower.end();
        observed.cpu_ns += follower.cpu_ns;
    }
    let (spent, stats) = span.end(&**store, Known::of(&driven, &observed, window.as_deref()));
    Ok(Performed {
        spent,
        stats,
        window,
        flushed_ns,
        accepted: accepted(&live, &totals, stage.plan.transport),
        driven,
        observed,
        rejects,
        totals,
        failure,
        unflushed,
        unread: None,
    })
}

/// Brings everything to the level that the store reaches. Returns why a silent server was not
/// asked to.
fn flush(store: &Arc<dyn Store>, span: &mut Span, failure: &mut Option<String>) -> Option<String> {
    let level = store.capabilities().reaches;
    let mut unflushed = None;
    if failure.is_none()
        && let Err(error) = span.flushing(|| store.flush(FlushScope::All, level))
    {
        note(&error, cannot("flush", store, &error), &mut unflushed, failure);
    }
    unflushed
}

/// Drives the pass, while others watch it and keep its journal.
fn drive(
    pass: &Pass<'_>,
    monitor: &Monitor<'_>,
    follower: Option<&mut Follower<'_>>,
) -> Result<(Driven, Observed), Failure> {
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|threads| {
        let watching = threads.spawn(|| monitor.watch());
        let following = follower.map(|follower| threads.spawn(move || follower.follow(is_over)));
        let driven = caught("the emitter", || pass.drive());
        monitor.finish();
        is_over.store(true, Ordering::Release);
        let observed = watching.join().unwrap_or_else(|panic| Observed::broken(&*panic));
        // What it wrote by then is sound, and nothing else needs it.
        let _ = following.map(std::thread::ScopedJoinHandle::join);
        let driven = driven.unwrap_or_else(|said| Err(Failure::new(Exit::Bug, "cannot send").because_of(said)));
        driven.map(|driven| (driven, observed))
    })
}

fn cannot(verb: &str, store: &Arc<dyn Store>, error: &tsb_stores::Error) -> String {
    format!("cannot {verb} {store}: {}", crate::failure::chain(error))
}

/// Why something could not be done: a silent server says nothing of what it has, so that is
/// no failure of the store.
fn note(error: &tsb_stores::Error, words: String, undone: &mut Option<String>, failure: &mut Option<String>) {
    let place = if error.is_silence() { undone } else { failure };
    *place = Some(words);
}

/// The audit, where the store can be read: why not is part of the report.
fn read_back(
    stage: &Stage,
    store: &Arc<dyn Store>,
    base: Timestamp,
    performed: &mut Performed,
    hooks: &Hooks,
) -> Option<Audit> {
    let cpu_ns = AtomicU64::new(0);
    let audited = audit(stage, store, base, performed, &cpu_ns, hooks);
    performed.spent.audit_ns = Some(cpu_ns.load(Ordering::Relaxed));
    match audited {
        Ok(audit) => Some(audit),
        Err(error) => {
            let Performed { unread, failure, .. } = performed;
            note(&error, cannot("read back", store, &error), unread, failure);
            None
        }
    }
}

fn audit(
    stage: &Stage,
    store: &Arc<dyn Store>,
    base: Timestamp,
    performed: &Performed,
    cpu_ns: &AtomicU64,
    hooks: &Hooks,
) -> tsb_stores::Result<Audit> {
    let series = stage.workload.catalog().len() as u64;
    hooks.say(|| format!("reading back {} series", units::count(series)));
    let (rejected, _) = performed.rejects.named();
    let of_kinds = |wanted: &[ExceptionKind]| -> Vec<(u32, Range<u64>)> {
        let exceptions = performed.driven.exceptions.iter();
        let chosen = exceptions.filter(|(_, _, kind)| wanted.contains(kind));
        chosen.map(|(group, ticks, _)| (*group, ticks.clone())).collect()
    };
    let (unsent, unanswered) = (of_kinds(&[ExceptionKind::Shed]), of_kinds(&[ExceptionKind::Unknown]));
    let in_doubt = of_kinds(&[ExceptionKind::Unknown, ExceptionKind::Lost]);
    let scope = Scope {
        cpu_ns,
        store: &**store,
        workload: &stage.workload,
        base,
        ticks: &performed.driven.issued,
        rejected: &rejected,
        unsent: &unsent,
        unanswered: if stage.plan.transport.is_wire() {
            &[]
        } else {
            &unanswered
        },
        is_cut_off: false,
        in_doubt: &in_doubt,
        unnamed: sides(stage, performed, None).unnamed(),
        heard: &performed.observed.heard,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let clock = &stage.clock;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut shown = clock.now();
            while !is_over.load(Ordering::Acquire) {
                clock.wait_until(clock.now() + 20_000_000);
                hooks.enter(Phase::ReadingBack(done.load(Ordering::Relaxed), series));
                if clock.now() - shown >= 1_000_000_000 {
                    shown = clock.now();
                    hooks.say_line(|| {
                        format!(
                            "  {} of {} series read back",
                            units::count(done.load(Ordering::Relaxed)),
                            units::count(series)
                        )
                    });
                }
            }
        });
        // The thread beside waits for the end, however it comes.
        let audited = caught("the audit", || scope.run(&done));
        is_over.store(true, Ordering::Release);
        audited.unwrap_or_else(|said| Err(poisoned(&said)))
    })
}
