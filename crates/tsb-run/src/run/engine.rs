//! Executes one run from plan to report: calibrate, drive, flush, read back, judge.
//!
//! A thread of its own executes the run, and the caller's thread waits for its result. If the
//! store does not return from a call, that thread is abandoned, and [`RunState`] provides what is
//! known without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use tsb_core::Timestamp;
use tsb_core::report::Run;
use tsb_stores::{AsyncStore, Scope as FlushScope, Stats, Store};

use super::assemble::{Parts, assemble, ledger_inputs};
use super::cost::{ReportedCpu, Span};
use super::guarded_store::{GuardedStore, caught};
use super::loss_window::LossWindow;
use super::monitor::{Monitor, MonitorInputs, Observed};
use super::path::{Pass, PassResult, accepted};
use super::preload::{self, Preloaded};
use super::queries::{self, AskedStream, JudgedStream, QueryStreams};
use super::read_back::{cannot, note, read_back};
use super::results::{Finished, Performed, ReadBack};
use super::run_context::RunContext;
use super::run_state::{RunState, StartedRun};
use super::store_timeouts::{WaitOutcome, Waiting};
use super::{aftermath, asked, ceiling, earlier, fit, in_flight, journaled, phase_faults, projection};
use crate::controls::{Controls, StopFlags};
use crate::damage::ReportedDamage;
use crate::error::Error;
use crate::journal::{Followed, Follower};
use crate::observer::{Phase, RunInfo};
use crate::place::{Place, RunMark};
use crate::plan::Plan;
use crate::spec::OpenedStore;

/// Stack size of the run's thread, in bytes: the size that the first thread of a process usually
/// has.
const STACK_BYTES: usize = 8 << 20;

/// Opens the only store of a plan.
pub type OpenStore<'a> = &'a dyn Fn(&Plan) -> Result<OpenedStore, Error>;

/// Runs a plan of one store, which it opens with `open` and closes.
///
/// # Errors
/// If nothing could be measured. Later failures are in the verdict of the report.
pub fn run_plan(plan: &Plan, controls: &Controls, open: OpenStore<'_>) -> Result<Finished, Error> {
    let opened = caught("a run", || open(plan)).unwrap_or_else(|said| Err(unusable(&said)));
    let opened = opened?;
    supervised(plan, controls, move |plan, controls, state| {
        let made = run_and_close(plan, opened, controls, state);
        let unmarked = state.unmark();
        let mut finished = made?;
        finished.run.notes.extend(
            unmarked
                .err()
                .map(|error| format!("{error}: the next run there will take this one for one that was killed")),
        );
        Ok(finished)
    })
}

fn run_and_close(plan: &Plan, opened: OpenedStore, controls: &Controls, state: &RunState) -> Result<Finished, Error> {
    let finished = run_opened(plan, &opened, controls, state)?;
    state.keep(finished);
    let closed = close(opened, state);
    let mut finished = state.kept()?;
    note_close(closed, &mut finished.run);
    if let Some(report) = &mut finished.run.place {
        let place = plan.stores.first().map_or(Ok(None), Place::of)?;
        let bytes = place.and_then(|place| place.disk_bytes());
        report.bytes = bytes.or(report.bytes);
    }
    Ok(finished)
}

/// Runs a plan against a store that is open, and empty unless the plan appends. The stores that the plan names are
/// ignored, so the plan in the report names none; `target.store` names this one. The store is
/// not closed.
///
/// # Errors
/// If nothing could be measured. Later failures are in the verdict of the report.
pub fn run_store(plan: &Plan, store: &Arc<dyn Store>, controls: &Controls) -> Result<Finished, Error> {
    run_open(plan, Arc::clone(store).into(), controls)
}

/// [`run_store`] with a store that takes many writes at a time: in process, writes are handed over
/// without waiting for their answers, up to [`Plan::in_flight`].
///
/// # Errors
/// As for [`run_store`].
pub fn run_client(plan: &Plan, client: &Arc<dyn AsyncStore>, controls: &Controls) -> Result<Finished, Error> {
    run_open(plan, Arc::clone(client).into(), controls)
}

fn run_open(plan: &Plan, opened: OpenedStore, controls: &Controls) -> Result<Finished, Error> {
    let plan = Plan {
        stores: Vec::new(),
        ..plan.clone()
    };
    supervised(&plan, controls, move |plan, controls, state| {
        run_opened(plan, &opened, controls, state)
    })
}

fn unusable(said: &str) -> Error {
    Error::internal("cannot run this plan").because_of(format!("it {said}"))
}

/// Executes a run in a thread and waits for it, within the time limits of `controls.store_timeouts`.
fn supervised(
    plan: &Plan,
    controls: &Controls,
    make: impl FnOnce(&Plan, &Controls, &RunState) -> Result<Finished, Error> + Send + 'static,
) -> Result<Finished, Error> {
    let state = Arc::new(RunState::default());
    let (tell, told) = sync_channel(1);
    let thread = std::thread::Builder::new().name("tsb-run".to_owned());
    let started = {
        let (plan, controls, state) = (plan.clone(), controls.clone(), Arc::clone(&state));
        let stops = StopFlags {
            stop: Arc::clone(&state.stop),
            ..controls.stops.clone()
        };
        let controls = Controls { stops, ..controls };
        thread.stack_size(STACK_BYTES).spawn(move || {
            let made = caught("a run", || make(&plan, &controls, &state));
            // The receiver is gone if the run was abandoned.
            let _ = tell.send(made.unwrap_or_else(|said| Err(unusable(&said))));
        })
    };
    started.map_err(|error| Error::internal("cannot start a thread for the run").because(&error))?;
    let waiting = Waiting {
        stops: &controls.stops,
        store_timeouts: controls.store_timeouts,
        calls: &state.totals.calls,
        over: &state.over,
        stop: &state.stop,
        thread: None,
    };
    match waiting.wait(&told) {
        WaitOutcome::Returned(made) => made,
        WaitOutcome::Abandoned(why) => {
            let left = state.give_up(&why, controls);
            // IMPORTANT: the abandoned thread still uses it, and dropping it could wait for the
            // store.
            std::mem::forget(state);
            left
        }
    }
}

/// What went wrong when the store was closed and dropped.
struct Closed {
    silence: Option<String>,
    failures: Vec<String>,
}

/// Closes and drops the store; the report is complete by now.
fn close(opened: OpenedStore, state: &RunState) -> Closed {
    let calls = &state.totals.calls;
    let name = state.store_name();
    let store = opened.store();
    drop(opened);
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
    state.forget_store();
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

/// Runs a plan against an open store, with the faults of its phases in front of it.
fn run_opened(plan: &Plan, opened: &OpenedStore, controls: &Controls, state: &RunState) -> Result<Finished, Error> {
    match phase_faults::before(&opened.store(), plan)? {
        None => run_behind(plan, opened, controls, state, &|_| ()),
        Some(faults) => {
            // The faults are those of a store that answers in its call, so a client waits behind them.
            let behind = OpenedStore::from(Arc::clone(&faults) as Arc<dyn Store>);
            run_behind(plan, &behind, controls, state, &|delay_ns| faults.begin_in(delay_ns))
        }
    }
}

/// Runs a plan against a store. `starts_in` is called with the time until the start of sending, in
/// nanoseconds.
fn run_behind(
    plan: &Plan,
    opened: &OpenedStore,
    controls: &Controls,
    state: &RunState,
    starts_in: &dyn Fn(u64),
) -> Result<Finished, Error> {
    let raw = &opened.store();
    let broken = |said| Error::internal("cannot use the store").because_of(format!("it {said}"));
    let guarded = Arc::new(GuardedStore::new(raw, &state.totals.calls).map_err(broken)?);
    let store: &Arc<dyn Store> = &(Arc::clone(&guarded) as Arc<dyn Store>);
    let mut told = ReportedDamage::default();
    told.tell(&**store, |said| controls.warn(said));
    let is_direct = opened.client().is_some() && !plan.transport.is_wire();
    let is_handed_over = is_direct || plan.has_requests_in_flight();
    in_flight::check(plan.in_flight, is_handed_over, &store.to_string())?;
    let started = prepare(plan, (&guarded, is_handed_over), controls, state)?;
    let context = &started.context;
    controls.observer.begin(&run_info(context, store));
    let ceiling = calibrate(context, controls, state)?;
    asked::check(context, ceiling)?;
    let preloaded = preload::fill(context, raw, &**store, controls, (&state.totals.calls, &state.rejects))?;
    if let Some(preloaded) = preloaded {
        let _ = state.preloaded.set(preloaded);
    }
    // Some servers count all their samples for it, which takes long. So it is asked before the start is
    // set: samples would be sent later than their timestamps say.
    let before = store.stats();
    let (start_ns, base) = start(context, controls, preloaded)?;
    let _ = state.start.set((start_ns, base));
    controls.enter(Phase::Running);
    starts_in(start_ns.saturating_sub(context.clock.now()));
    let performed = perform(started, opened, controls, state, (start_ns, base), &before)?;
    let performed = Arc::new(performed);
    let _ = state.performed.set(Arc::clone(&performed));
    let held = performed.held_per_second();
    let stats = performed.stats.clone().unwrap_or_default();
    let projection = projection::measure(context, &stats, held, &controls.stops.stop);
    let _ = state.projection.set(projection.clone());
    let report = |read: &ReadBack| {
        assemble(&Parts {
            context,
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
        state.unless_left(|| keep(&run))?;
    }
    let read = if is_read {
        read_back(context, store, base, &performed, controls)
    } else {
        ReadBack::default()
    };
    state.unless_left(|| {})?;
    told.tell(&**store, |said| controls.warn(said));
    controls.enter(Phase::Reporting);
    let mut run = report(&read);
    run.notes
        .extend(controls.journal.as_ref().and_then(|journal| journal.failure()));
    for said in guarded.failures().into_iter().chain(performed.observed.broken.clone()) {
        aftermath::condemn(&mut run, said);
    }
    Ok(Finished::new(run, &performed))
}

/// Measures the generator's ceiling, if the plan asks for it.
fn calibrate(context: &RunContext, controls: &Controls, state: &RunState) -> Result<Option<f64>, Error> {
    if !context.plan.calibrate {
        return Ok(None);
    }
    controls.enter(Phase::Calibrating);
    controls.note("calibrating against a store that forgets");
    let ceiling = ceiling::measure(context, controls)?;
    if let Some(ceiling) = ceiling {
        let _ = state.ceiling.set(ceiling);
    }
    Ok(ceiling)
}

/// Prepares the workload, marks the place, and defines the series in the store.
fn prepare<'a>(
    plan: &Plan,
    (store, is_handed_over): (&Arc<GuardedStore>, bool),
    controls: &Controls,
    state: &'a RunState,
) -> Result<&'a StartedRun, Error> {
    let capabilities = store.capabilities();
    let context = Arc::new(RunContext::new(plan, capabilities.resolution_ns)?);
    fit::check(&context, &capabilities, &store.to_string())?;
    fit::check_history(plan.preload_ns, &capabilities, &store.to_string())?;
    queries::check_fit(
        plan,
        &context.workload,
        &capabilities,
        (&store.to_string(), is_handed_over),
    )?;
    let place = earlier::place_of(&context)?;
    let is_part = plan.workload.part.is_some();
    // The place of a part was checked before all parts, and holds what they write.
    if !is_part {
        earlier::check(&context, &**store, place.as_ref())?;
    }
    if let Some(place) = place.as_ref().filter(|_| !is_part) {
        let journal = controls.journal.as_ref().map(|journal| journal.path());
        state.mark(RunMark::make(place, context.clock.wall(), journal)?);
    }
    let started = state.begin(context, Arc::clone(store));
    let defined = store.define(&started.context.workload.catalog().definitions());
    defined.map_err(|error| Error::calling(format!("cannot define the series in {store}"), &error))?;
    earlier::check_defined(&started.context, &**store, place.as_ref())?;
    Ok(started)
}

/// The facts that observers are given before the run starts.
pub(crate) fn run_info(context: &RunContext, store: &Arc<dyn Store>) -> RunInfo {
    let plan = &context.plan;
    let wire = if plan.transport.is_wire() {
        format!(" ({})", plan.protocol)
    } else {
        String::new()
    };
    let natural = context.workload.samples_per_second();
    RunInfo {
        store: store.to_string(),
        path: format!("{}{wire}", plan.transport.name()),
        series: context.workload.catalog().len() as u64,
        durability: store.capabilities().acknowledges.to_string(),
        // With churn the rate changes, and the intervals show it instead.
        asked_per_second: context
            .speed()
            .filter(|_| plan.workload.churn.is_none())
            .map(|speed| natural * context.workload.sent_share() * speed.as_f64()),
        planned_ns: plan.duration_ns,
        interval_ns: plan.report_interval_ns,
    }
}

/// When to begin, on the clock, and the timestamp of that moment.
fn start(context: &RunContext, controls: &Controls, preloaded: Option<Preloaded>) -> Result<(u64, Timestamp), Error> {
    match (&controls.start, preloaded) {
        (Some(barrier), _) => barrier.wait(&*context.clock),
        (None, Some(preloaded)) => Ok((context.soon(), preloaded.base)),
        (None, None) => Ok(context.beginning()),
    }
}

fn perform(
    started: &StartedRun,
    opened: &OpenedStore,
    controls: &Controls,
    state: &RunState,
    (start_ns, base): (u64, Timestamp),
    before: &Stats,
) -> Result<Performed, Error> {
    let StartedRun { context, live, .. } = started;
    let store: &Arc<dyn Store> = &(Arc::clone(&started.store) as Arc<dyn Store>);
    let (totals, rejects, watch) = (&state.totals, &state.rejects, &state.watch);
    let window = LossWindow::of(&**store, &context.clock, (start_ns, base), &context.timetable);
    let queries = QueryStreams::new(
        context,
        (&opened.store(), store.capabilities()),
        totals,
        (start_ns, base),
        live,
    );
    let pass = Pass {
        window: window.as_ref(),
        written: queries.as_ref().and_then(QueryStreams::written),
        ..pass(started, opened, controls, state, (start_ns, base))
    };
    let monitor = state.monitor.get_or_init(|| {
        let inputs = inputs(started, state, (start_ns, base), before, controls);
        Arc::new(Monitor::new(inputs))
    });
    let followed = Followed {
        acceptance: journaled::acceptance(&context.plan, opened.client().is_some()),
        clock: &*context.clock,
        start_ns,
        live,
        totals,
        watch,
        rejects,
        store: Some(&**store),
    };
    let mut follower = journaled::follower(controls, context, base, followed);
    let mut span = Span::begin(before.own_cpu_ns);
    if let Some(planned_ns) = context.timetable.planned_ns() {
        state
            .over
            .within(start_ns.saturating_sub(context.clock.now()).saturating_add(planned_ns));
    }
    let (driven, mut observed, asked) = drive(&pass, queries.as_ref(), monitor, follower.as_mut(), &state.is_over)?;
    state.over.within(0);
    observed.cpu_ns += follower.as_ref().map_or(0, |follower| follower.cpu_ns);
    let (driven, observed) = (Arc::new(driven), Arc::new(observed));
    let _ = state.driven.set((Arc::clone(&driven), Arc::clone(&observed)));
    let mut failure = totals.failure().map(|error| crate::error::chain(&*error));
    controls.enter(Phase::Flushing);
    let unflushed = flush(store, &mut span, &mut failure);
    let flushed = window.as_ref().filter(|_| unflushed.is_none());
    let flushed_ns = flushed.map(|window| window.flushed(&**store));
    if let Some(follower) = &mut follower {
        follower.end();
    }
    let reported = ReportedCpu::of(&driven, &observed, window.as_deref(), asked_cpu_ns(&asked));
    let (spent, stats) = span.end(&**store, reported);
    let mut performed = Performed {
        preloaded: state.preloaded.get().copied(),
        queries: Vec::new(),
        spent: Some(spent),
        stats: Some(stats),
        window,
        flushed_ns,
        accepted: accepted(live, totals, context.plan.transport),
        driven,
        observed,
        rejects: Arc::clone(rejects),
        totals: Arc::clone(totals),
        failure,
        unflushed,
    };
    performed.queries = judged(context, base, &**store, &performed, asked);
    state.unless_left(|| performed)
}

/// CPU time of the threads that asked; absent if none did.
fn asked_cpu_ns(asked: &[AskedStream]) -> Option<u64> {
    (!asked.is_empty()).then(|| asked.iter().map(AskedStream::cpu_ns).sum())
}

/// The pass of the run, without a window and without queries.
fn pass<'a>(
    started: &'a StartedRun,
    opened: &'a OpenedStore,
    controls: &'a Controls,
    state: &'a RunState,
    (start_ns, base): (u64, Timestamp),
) -> Pass<'a> {
    Pass {
        context: &started.context,
        timetable: &started.context.timetable,
        store: opened.store(),
        client: opened.client(),
        start_ns,
        base,
        stop: &controls.stops.stop,
        live: &started.live,
        totals: Arc::clone(&state.totals),
        rejects: Arc::clone(&state.rejects),
        window: None,
        written: None,
        listening: &state.watch,
        start_relay: controls.start_relay.as_ref(),
        sockets: &controls.sockets,
    }
}

/// Judges the answers of all streams of queries.
fn judged(
    context: &RunContext,
    base: Timestamp,
    store: &dyn Store,
    performed: &Performed,
    asked: Vec<AskedStream>,
) -> Vec<JudgedStream> {
    let unnamed = ledger_inputs(context, performed, store, None).unnamed();
    let facts = (&*performed.driven, &*performed.rejects, unnamed);
    queries::judge(context, base, &store.capabilities(), facts, asked)
}

/// The inputs of the monitor.
fn inputs(
    started: &StartedRun,
    state: &RunState,
    (start_ns, base): (u64, Timestamp),
    before: &Stats,
    controls: &Controls,
) -> MonitorInputs {
    MonitorInputs {
        context: Arc::clone(&started.context),
        store: Arc::clone(&started.store) as Arc<dyn Store>,
        activities: before.activity.clone(),
        processes: before.processes.clone(),
        start_ns,
        base,
        live: Arc::clone(&started.live),
        totals: Arc::clone(&state.totals),
        watch: Arc::clone(&state.watch),
        controls: controls.clone(),
    }
}

/// Flushes everything to the store's highest level. Returns why a server that did not answer was
/// not flushed.
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

/// Drives the load while other threads query the store, watch, and write the journal.
fn drive(
    pass: &Pass<'_>,
    queries: Option<&QueryStreams<'_>>,
    monitor: &Monitor,
    follower: Option<&mut Follower<'_>>,
    is_over: &AtomicBool,
) -> Result<(PassResult, Observed, Vec<AskedStream>), Error> {
    std::thread::scope(|threads| {
        let watching = threads.spawn(|| monitor.watch());
        let following = follower.map(|follower| threads.spawn(move || follower.follow(is_over)));
        let asking = queries.map(|queries| threads.spawn(|| queries.ask()));
        let driven = caught("the emitter", || pass.drive());
        if let Some(queries) = queries {
            let has_ended = matches!(&driven, Ok(Ok(driven)) if !driven.interrupted);
            queries.end(!has_ended || pass.totals.failure().is_some());
        }
        let asked = asking.map(std::thread::ScopedJoinHandle::join);
        monitor.finish();
        is_over.store(true, Ordering::Release);
        let observed = watching.join().unwrap_or_else(|panic| Some(Observed::broken(&*panic)));
        // A panic of the journal's thread is ignored: what it wrote is valid, and nothing else
        // depends on it.
        let _ = following.map(std::thread::ScopedJoinHandle::join);
        let driven = driven.unwrap_or_else(|said| Err(Error::internal("cannot send").because_of(said)));
        // There are no observations if the run was abandoned: the report took them.
        let asked = asked
            .transpose()
            .map_err(|panic| Error::internal("cannot ask").because_of(crate::error::panic_message(&*panic)));
        Ok((driven?, observed.unwrap_or_default(), asked?.unwrap_or_default()))
    })
}
