//! One run from plan to report: calibrate, drive, flush, read back, judge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tsb_core::Timestamp;
use tsb_core::emit::{ExceptionKind, Live};
use tsb_core::report::Run;
use tsb_stores::{Scope as FlushScope, Store};

use super::assemble::{Parts, assemble};
use super::ceiling;
use super::monitor::{Monitor, Observed, Subject};
use super::path::{Driven, Pass, Watch, accepted};
use super::projection;
use super::rejects::Rejects;
use super::sink::SinkTotals;
use super::stage::{Stage, open_store};
use crate::audit::{Audit, Scope};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::units;

/// Starts something that stands between emitter and listener: gets the listener's address,
/// returns the one to connect to.
pub(super) type Between = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// What a run takes from its surroundings.
#[derive(Clone)]
pub struct Hooks {
    /// Ends the run early, with its report.
    pub stop: Arc<AtomicBool>,
    /// No progress lines.
    pub quiet: bool,
    /// A relay on the wire: an emulator of bad networks, or a receiver under test.
    pub between: Option<Between>,
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
            between: None,
        }
    }

    /// Says something on stderr, unless told to be quiet.
    pub fn say(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            eprintln!("{}", text());
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

/// Runs a plan of one store, which it opens and closes.
pub fn run_plan(plan: &Plan, hooks: &Hooks) -> Result<Finished, Failure> {
    let store = open_store(plan)?;
    let finished = run_store(plan, &store, hooks)?;
    store
        .close()
        .map_err(|error| Failure::new(Exit::Invalid, format!("cannot close {store}")).because(&error))?;
    Ok(finished)
}

/// Runs a plan against a store that is open and empty.
pub fn run_store(plan: &Plan, store: &Arc<dyn Store>, hooks: &Hooks) -> Result<Finished, Failure> {
    let capabilities = store.capabilities();
    let stage = Stage::new(plan, capabilities.resolution_ns)?;
    if store.stats().samples > 0 {
        return Err(Failure::usage(format!("cannot run into {store}"))
            .because_of(format!("it already holds {} samples", store.stats().samples))
            .hint("a run fills an empty store; give another one"));
    }
    let defined = store.define(&stage.workload.catalog().definitions());
    defined.map_err(|error| Failure::usage(format!("cannot define the series in {store}")).because(&error))?;
    let ceiling = if plan.calibrate && !plan.is_closed_loop() {
        hooks.say(|| "calibrating against a store that forgets".to_owned());
        ceiling::measure(&stage, &hooks.stop)?
    } else {
        None
    };
    let (start_ns, base) = stage.beginning();
    let performed = perform(&stage, store, start_ns, base, hooks)?;
    let audit = if plan.verify && capabilities.query && performed.failure.is_none() {
        Some(audit(&stage, store, base, &performed, hooks)?)
    } else {
        None
    };
    let projection = projection::measure(&stage, store, performed.held_per_second());
    let run = assemble(&Parts {
        stage: &stage,
        store,
        base,
        performed: &performed,
        audit: audit.as_ref(),
        ceiling,
        projection,
    });
    Ok(Finished {
        run,
        driven: performed.driven,
    })
}

/// What was done, before anything is read back.
#[derive(Debug)]
pub(super) struct Performed {
    /// What the emitter and the listener know.
    pub driven: Driven,
    /// What was watched meanwhile.
    pub observed: Observed,
    /// What the store took.
    pub accepted: u64,
    /// What it refused.
    pub rejects: Arc<Rejects>,
    /// Sampled CPU of the store.
    pub totals: Arc<SinkTotals>,
    /// The store's first failure, in words.
    pub failure: Option<String>,
}

impl Performed {
    /// Accepted samples per second.
    pub(super) fn held_per_second(&self) -> f64 {
        self.accepted as f64 * 1e9 / self.driven.elapsed_ns.max(1) as f64
    }
}

fn perform(
    stage: &Stage,
    store: &Arc<dyn Store>,
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
    let pass = Pass {
        stage,
        timetable: &stage.timetable,
        store: Arc::clone(store),
        start_ns,
        base,
        stop: &hooks.stop,
        live: &live,
        totals: Arc::clone(&totals),
        rejects: Arc::clone(&rejects),
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
    let (driven, observed) = std::thread::scope(|threads| {
        let watching = threads.spawn(|| monitor.watch());
        let driven = pass.drive();
        monitor.finish();
        let observed = watching.join().unwrap_or_default();
        driven.map(|driven| (driven, observed))
    })?;
    let mut failure = totals.failure().map(|error| crate::failure::chain(&*error));
    let level = store.capabilities().reaches;
    if failure.is_none()
        && let Err(error) = store.flush(FlushScope::All, level)
    {
        failure = Some(format!("cannot flush {store}: {}", crate::failure::chain(&error)));
    }
    Ok(Performed {
        accepted: accepted(&live, &totals, stage.plan.transport),
        driven,
        observed,
        rejects,
        totals,
        failure,
    })
}

fn audit(
    stage: &Stage,
    store: &Arc<dyn Store>,
    base: Timestamp,
    performed: &Performed,
    hooks: &Hooks,
) -> Result<Audit, Failure> {
    let series = stage.workload.catalog().len() as u64;
    hooks.say(|| format!("reading back {} series", units::count(series)));
    let (rejected, _) = performed.rejects.named();
    let mut ticks = performed.driven.issued.clone();
    let shed = performed
        .driven
        .exceptions
        .iter()
        .filter(|(_, _, kind)| *kind == ExceptionKind::Shed);
    // A connection that was lost sheds everything behind it: the tail of what was issued.
    for (group, gone, _) in shed {
        let issued = &mut ticks[*group as usize];
        if gone.end >= issued.end {
            issued.end = issued.end.min(gone.start);
        }
    }
    let scope = Scope {
        store: &**store,
        workload: &stage.workload,
        base,
        ticks: &ticks,
        rejected: &rejected,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let clock = &stage.clock;
    let audited = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut shown = clock.now();
            while !is_over.load(Ordering::Acquire) {
                clock.wait_until(clock.now() + 20_000_000);
                if clock.now() - shown >= 1_000_000_000 {
                    shown = clock.now();
                    hooks.say(|| {
                        format!(
                            "  {} of {} series read back",
                            units::count(done.load(Ordering::Relaxed)),
                            units::count(series)
                        )
                    });
                }
            }
        });
        let audited = scope.run(&done);
        is_over.store(true, Ordering::Release);
        audited
    });
    audited.map_err(|error| Failure::new(Exit::Invalid, format!("cannot read {store} back")).because(&error))
}
