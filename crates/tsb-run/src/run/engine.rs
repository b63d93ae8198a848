//! One run from plan to report: calibrate, drive, flush, read back, judge.
//!
//! It is made by a thread of its own, and another waits for its result: a store that does not
//! return is left behind with the first, and [`Course`] says what there is without it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use tsb_core::Timestamp;
use tsb_core::emit::ExceptionKind;
use tsb_core::report::Run;
use tsb_stores::{Scope as FlushScope, Stats, Store};

use super::assemble::{Parts, assemble, sides};
use super::cost::{Known, Span, Spent};
use super::course::{Begun, Course};
use super::guarded::{Guarded, caught, poisoned};
use super::monitor::{Monitor, Observed, Subject};
use super::path::{Driven, Pass, accepted};
use super::patience::{Came, Waiting};
use super::rejects::Rejects;
use super::sink::SinkTotals;
use super::stage::Stage;
use super::window::Window;
use super::{aftermath, asked, ceiling, fit, journaled, projection};
use crate::audit::{Audit, Scope};
use crate::controls::{Controls, Stops};
use crate::damage::Told;
use crate::error::Error;
use crate::journal::{Followed, Follower};
use crate::observer::{Phase, Subject as Shown};
use crate::plan::{Plan, Transport};
use crate::units;

/// Bytes of the stack of a run's thread: as many as the first thread of a process has.
const STACK_BYTES: usize = 8 << 20;

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    /// Its report.
    pub run: Run,
    /// Its histograms.
    pub driven: Arc<Driven>,
}

/// Opens the store of a plan with one store.
pub type Open<'a> = &'a dyn Fn(&Plan) -> Result<Arc<dyn Store>, Error>;

/// Runs a plan of one store, which it opens and closes.
///
/// # Errors
/// When nothing could be measured. What fails later is in the verdict of the report.
pub fn run_plan(plan: &Plan, controls: &Controls, open: Open<'_>) -> Result<Finished, Error> {
    let opened = caught("a run", || open(plan)).unwrap_or_else(|said| Err(unusable(&said)));
    let store = opened?;
    supervised(plan, controls, move |plan, controls, course| {
        let finished = run_opened(plan, &store, controls, course)?;
        course.keep(finished);
        let closed = close(store, course);
        let mut finished = course.kept()?;
        note_close(closed, &mut finished.run);
        Ok(finished)
    })
}

/// Runs a plan against a store that is open and empty, whatever stores the plan names: none
/// of them is opened, so the plan in the report names none. `target.store` names this one.
///
/// # Errors
/// When nothing could be measured. What fails later is in the verdict of the report.
pub fn run_store(plan: &Plan, store: &Arc<dyn Store>, controls: &Controls) -> Result<Finished, Error> {
    let plan = Plan {
        stores: Vec::new(),
        ..plan.clone()
    };
    let store = Arc::clone(store);
    supervised(&plan, controls, move |plan, controls, course| {
        run_opened(plan, &store, controls, course)
    })
}

fn unusable(said: &str) -> Error {
    Error::internal("cannot run this plan").because_of(format!("it {said}"))
}

/// Has a thread make a run, and waits for it as long as there is patience.
fn supervised(
    plan: &Plan,
    controls: &Controls,
    make: impl FnOnce(&Plan, &Controls, &Course) -> Result<Finished, Error> + Send + 'static,
) -> Result<Finished, Error> {
    let course = Arc::new(Course::default());
    let (tell, told) = sync_channel(1);
    let thread = std::thread::Builder::new().name("tsb-run".to_owned());
    let started = {
        let (plan, controls, course) = (plan.clone(), controls.clone(), Arc::clone(&course));
        let stops = Stops {
            stop: Arc::clone(&course.stop),
            ..controls.stops.clone()
        };
        let controls = Controls { stops, ..controls };
        thread.stack_size(STACK_BYTES).spawn(move || {
            let made = caught("a run", || make(&plan, &controls, &course));
            // Nobody listens any more if the run was given up.
            let _ = tell.send(made.unwrap_or_else(|said| Err(unusable(&said))));
        })
    };
    started.map_err(|error| Error::internal("cannot start a thread for the run").because(&error))?;
    let waiting = Waiting {
        stops: &controls.stops,
        patience: controls.patience,
        calls: &course.totals.calls,
        over: &course.over,
        stop: &course.stop,
        thread: None,
    };
    match waiting.wait(&told) {
        Came::Back(made) => made,
        Came::Never(why) => {
            let left = course.give_up(&why, controls);
            // What the store's thread still uses, and whose end may wait for the store.
            std::mem::forget(course);
            left
        }
    }
}

/// How closing and dropping a store went wrong.
struct Closed {
    silence: Option<String>,
    failures: Vec<String>,
}

/// Closes the store of a run that is over: its report is complete by now.
fn close(store: Arc<dyn Store>, course: &Course) -> Closed {
    let calls = &course.totals.calls;
    let name = course.store_name();
    let closed = {
        let _call = calls.begin("close");
        caught("close", || store.close())
    };
    let (silence, said) = match closed {
        Ok(Ok(())) => (None, None),
        Ok(Err(error)) => {
            let said = format!("cannot close {name}: {}", crate::error::chain(&error));
            if error.is_silence() {
                (Some(said), None)
            } else {
                (None, Some(said))
            }
        }
        Err(said) => (None, Some(format!("{name} {said}"))),
    };
    let _call = calls.begin("drop");
    course.forget_store();
    let dropped = caught("drop", || drop(store)).err();
    let dropped = dropped.map(|said| format!("{name} {said}"));
    Closed {
        silence,
        failures: said.into_iter().chain(dropped).collect(),
    }
}

fn note_close(closed: Closed, run: &mut Run) {
    run.notes.extend(closed.silence);
    for said in closed.failures {
        aftermath::condemn(run, said);
    }
}

/// Runs a plan against its own store, or against one that no spec names.
fn run_opened(plan: &Plan, raw: &Arc<dyn Store>, controls: &Controls, course: &Course) -> Result<Finished, Error> {
    let broken = |said| Error::internal("cannot use the store").because_of(format!("it {said}"));
    let guarded = Arc::new(Guarded::new(raw, &course.totals.calls).map_err(broken)?);
    let store: &Arc<dyn Store> = &(Arc::clone(&guarded) as Arc<dyn Store>);
    let mut told = Told::default();
    told.tell(&**store, |said| controls.warn(said));
    let begun = prepare(plan, &guarded, course)?;
    let stage = &begun.stage;
    controls.observer.begin(&shown(stage, store));
    let ceiling = if plan.calibrate {
        controls.enter(Phase::Calibrating);
        controls.note("calibrating against a store that forgets");
        ceiling::measure(stage, controls)?
    } else {
        None
    };
    if let Some(ceiling) = ceiling {
        let _ = course.ceiling.set(ceiling);
    }
    asked::check(stage, ceiling)?;
    controls.enter(Phase::Running);
    let (_, base) = *course.start.get_or_init(|| stage.beginning());
    let performed = Arc::new(perform(begun, raw, controls, course)?);
    let _ = course.performed.set(Arc::clone(&performed));
    let held = performed.held_per_second();
    let stats = performed.stats.clone().unwrap_or_default();
    let projection = projection::measure(stage, &stats, held, &controls.stops.stop);
    let _ = course.projection.set(projection.clone());
    let report = |read: &ReadBack| {
        assemble(&Parts {
            stage,
            store,
            base,
            performed: &performed,
            read,
            ceiling,
            projection: projection.clone(),
        })
    };
    let is_read = plan.verify && store.capabilities().query && performed.failure.is_none();
    if let Some(keep) = controls.provisional.as_ref().filter(|_| is_read) {
        let run = report(&ReadBack {
            unread: Some("the process ended before anything was read back".to_owned()),
            ..ReadBack::default()
        });
        course.unless_left(|| keep(&run))?;
    }
    let read = if is_read {
        read_back(stage, store, base, &performed, controls)
    } else {
        ReadBack::default()
    };
    course.unless_left(|| {})?;
    told.tell(&**store, |said| controls.warn(said));
    controls.enter(Phase::Reporting);
    let mut run = report(&read);
    run.notes
        .extend(controls.journal.as_ref().and_then(|journal| journal.failure()));
    for said in guarded.panics().into_iter().chain(performed.observed.broken.clone()) {
        aftermath::condemn(&mut run, said);
    }
    Ok(Finished {
        run,
        driven: Arc::clone(&performed.driven),
    })
}

/// Plans the work and tells the store its series.
fn prepare<'a>(plan: &Plan, store: &Arc<Guarded>, course: &'a Course) -> Result<&'a Begun, Error> {
    let capabilities = store.capabilities();
    let stage = Arc::new(Stage::new(plan, capabilities.resolution_ns)?);
    fit::check(&stage.workload, &capabilities, &store.to_string())?;
    if store.stats().samples > 0 {
        return Err(Error::plan(format!("cannot run into {store}"))
            .because_of(format!("it already holds {} samples", store.stats().samples))
            .hint("a run fills an empty store; give another one"));
    }
    let begun = course.begin(stage, Arc::clone(store));
    let defined = store.define(&begun.stage.workload.catalog().definitions());
    defined.map_err(|error| Error::plan(format!("cannot define the series in {store}")).because(&error))?;
    Ok(begun)
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
    pub driven: Arc<Driven>,
    /// What was watched meanwhile.
    pub observed: Arc<Observed>,
    /// Waits for the level that the store reaches, where its acks say less.
    pub window: Option<Arc<Window>>,
    /// When everything had that level, on the clock, where its acks say less.
    pub flushed_ns: Option<u64>,
    /// What the store took.
    pub accepted: u64,
    /// What it refused.
    pub rejects: Arc<Rejects>,
    /// CPU time by part; unknown of a run that was given up.
    pub spent: Option<Spent>,
    /// What the store held when all was flushed; unknown likewise.
    pub stats: Option<Stats>,
    /// What sinks and in-process targets counted.
    pub totals: Arc<SinkTotals>,
    /// The store's first failure, in words.
    pub failure: Option<String>,
    /// Why a server that was silent at the end was not flushed.
    pub unflushed: Option<String>,
}

/// What came of reading back.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    /// What was found.
    pub audit: Option<Audit>,
    /// CPU time that it took, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Why nothing was read back from a server that was silent, or that was given up.
    pub unread: Option<String>,
    /// Why it cannot be read, in words: the store's failure.
    pub failure: Option<String>,
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

fn perform(begun: &Begun, raw: &Arc<dyn Store>, controls: &Controls, course: &Course) -> Result<Performed, Error> {
    let Begun { stage, live, .. } = begun;
    let store: &Arc<dyn Store> = &(Arc::clone(&begun.store) as Arc<dyn Store>);
    let (start_ns, base) = *course.start.get_or_init(|| stage.beginning());
    let (totals, rejects, watch) = (&course.totals, &course.rejects, &course.watch);
    let window = Window::of(&**store, &stage.clock, (start_ns, base), &stage.timetable);
    let pass = Pass {
        stage,
        timetable: &stage.timetable,
        store: Arc::clone(raw),
        start_ns,
        base,
        stop: &controls.stops.stop,
        live,
        totals: Arc::clone(totals),
        rejects: Arc::clone(rejects),
        window: window.as_ref(),
        listening: watch,
        between: controls.between.as_ref(),
        sockets: &controls.sockets,
    };
    let monitor = course.monitor.get_or_init(|| {
        let subject = subject(begun, course, (start_ns, base), controls);
        Arc::new(Monitor::new(subject))
    });
    let followed = Followed {
        way: journaled::way(stage.plan.transport),
        clock: &*stage.clock,
        start_ns,
        live,
        totals,
        watch,
        rejects,
        store: Some(&**store),
    };
    let mut follower = journaled::follower(controls, stage, base, followed);
    let mut span = Span::begin(&**store);
    if let Some(planned_ns) = stage.timetable.planned_ns() {
        course
            .over
            .within(start_ns.saturating_sub(stage.clock.now()).saturating_add(planned_ns));
    }
    let (driven, mut observed) = drive(&pass, monitor, follower.as_mut(), &course.is_over)?;
    course.over.within(0);
    observed.cpu_ns += follower.as_ref().map_or(0, |follower| follower.cpu_ns);
    let (driven, observed) = (Arc::new(driven), Arc::new(observed));
    let _ = course.driven.set((Arc::clone(&driven), Arc::clone(&observed)));
    let mut failure = totals.failure().map(|error| crate::error::chain(&*error));
    controls.enter(Phase::Flushing);
    let unflushed = flush(store, &mut span, &mut failure);
    let flushed = window.as_ref().filter(|_| unflushed.is_none());
    let flushed_ns = flushed.map(|window| window.flushed(&**store));
    if let Some(follower) = &mut follower {
        follower.end();
    }
    let (spent, stats) = span.end(&**store, Known::of(&driven, &observed, window.as_deref()));
    course.unless_left(|| Performed {
        spent: Some(spent),
        stats: Some(stats),
        window,
        flushed_ns,
        accepted: accepted(live, totals, stage.plan.transport),
        driven,
        observed,
        rejects: Arc::clone(rejects),
        totals: Arc::clone(totals),
        failure,
        unflushed,
    })
}

/// What the watching thread looks at.
fn subject(begun: &Begun, course: &Course, (start_ns, base): (u64, Timestamp), controls: &Controls) -> Subject {
    Subject {
        stage: Arc::clone(&begun.stage),
        store: Arc::clone(&begun.store) as Arc<dyn Store>,
        start_ns,
        base,
        live: Arc::clone(&begun.live),
        totals: Arc::clone(&course.totals),
        watch: Arc::clone(&course.watch),
        controls: controls.clone(),
    }
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
    monitor: &Monitor,
    follower: Option<&mut Follower<'_>>,
    is_over: &AtomicBool,
) -> Result<(Driven, Observed), Error> {
    std::thread::scope(|threads| {
        let watching = threads.spawn(|| monitor.watch());
        let following = follower.map(|follower| threads.spawn(move || follower.follow(is_over)));
        let driven = caught("the emitter", || pass.drive());
        monitor.finish();
        is_over.store(true, Ordering::Release);
        let observed = watching.join().unwrap_or_else(|panic| Some(Observed::broken(&*panic)));
        // What it wrote by then is sound, and nothing else needs it.
        let _ = following.map(std::thread::ScopedJoinHandle::join);
        let driven = driven.unwrap_or_else(|said| Err(Error::internal("cannot send").because_of(said)));
        // What was seen is with the report already if the run was given up.
        Ok((driven?, observed.unwrap_or_default()))
    })
}

fn cannot(verb: &str, store: &Arc<dyn Store>, error: &tsb_stores::Error) -> String {
    format!("cannot {verb} {store}: {}", crate::error::chain(error))
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
    performed: &Performed,
    controls: &Controls,
) -> ReadBack {
    let cpu_ns = AtomicU64::new(0);
    let audited = audit(stage, store, base, performed, &cpu_ns, controls);
    let mut read = ReadBack {
        cpu_ns: Some(cpu_ns.load(Ordering::Relaxed)),
        ..ReadBack::default()
    };
    match audited {
        Ok(audit) => read.audit = Some(audit),
        Err(error) => {
            let words = cannot("read back", store, &error);
            note(&error, words, &mut read.unread, &mut read.failure);
        }
    }
    read
}

fn audit(
    stage: &Stage,
    store: &Arc<dyn Store>,
    base: Timestamp,
    performed: &Performed,
    cpu_ns: &AtomicU64,
    controls: &Controls,
) -> tsb_stores::Result<Audit> {
    let series = stage.workload.catalog().len() as u64;
    controls.note(&format!("reading back {} series", units::count(series)));
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
                controls.enter(Phase::ReadingBack(done.load(Ordering::Relaxed), series));
                if clock.now() - shown >= 1_000_000_000 {
                    shown = clock.now();
                    controls.progress(&format!(
                        "  {} of {} series read back",
                        units::count(done.load(Ordering::Relaxed)),
                        units::count(series)
                    ));
                }
            }
        });
        // The thread beside waits for the end, however it comes.
        let audited = caught("the audit", || scope.run(&done));
        is_over.store(true, Ordering::Release);
        audited.unwrap_or_else(|said| Err(poisoned(&said)))
    })
}
