//! Starts the workers, waits for them, and puts their parts together.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::report::{Counts, Ended, Latency, Report, WorkerReport};
use super::settings::{Run, Worker};
use super::state::WorkerState;
use super::unsent::settle;
use super::worker::{Parts, drive};
use super::{Source, Target};
use crate::time::{SECOND_NS, sharpen_timers};

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The operating system gave no thread.
    #[error("cannot start emitter thread {worker} of {workers}")]
    Thread {
        /// Which one.
        worker: usize,
        /// Of how many.
        workers: usize,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A run needs live counters for each worker.
    #[error("cannot run {workers} workers with live counters for {counters}")]
    Live {
        /// Workers given.
        workers: usize,
        /// Counters given.
        counters: usize,
    },
}

/// Runs the workers to the end of the timetable, and returns when all have ended. Threads
/// are named [`Settings::thread_name`](super::Settings::thread_name) and their number.
///
/// Whatever ends a run early (the stop flag, a fatal target, a panic in a source or a
/// target), what was measured until then is in the report.
///
/// # Errors
/// If `run.live` has fewer counters than there are workers, or a thread cannot be started: then only
/// the threads that had started may have sent something.
pub fn run<S, T>(run: &Run<'_>, workers: Vec<Worker<S, T>>) -> Result<Report<S, T>, EmitError>
where
    S: Source + Send,
    T: Target<S::Kind> + Send,
{
    let counters = run.live.workers().len();
    if counters < workers.len() {
        let workers = workers.len();
        return Err(EmitError::Live { workers, counters });
    }
    let lead = SECOND_NS / 200;
    let start_ns = run.settings.start_ns.unwrap_or_else(|| run.clock.now() + lead);
    let abort = AtomicBool::new(false);
    let count = workers.len();
    let ended = std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(count);
        for (index, worker) in workers.into_iter().enumerate() {
            let abort = &abort;
            let body = move || work(run, worker, index, start_ns, abort);
            let thread = std::thread::Builder::new().name(format!("{}-{index}", run.settings.thread_name));
            match thread.spawn_scoped(scope, body) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    abort.store(true, Ordering::Relaxed);
                    let (worker, workers) = (index, count);
                    return Err(EmitError::Thread {
                        worker,
                        workers,
                        source,
                    });
                }
            }
        }
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            let joined: std::thread::Result<Finished<S, T>> = handle.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok(handles.into_iter().map(join).collect::<Vec<_>>())
    })?;
    Ok(combine(ended, start_ns, run.timetable.planned_ns()))
}

/// A worker's report, its part of the latencies, and when it was done.
type Finished<S, T> = (WorkerReport<S, T>, Latency, EndTimes);

/// The last moments of a worker, on the run's clock.
struct EndTimes {
    end_ns: u64,
    last_due_ns: u64,
}

fn work<S: Source, T: Target<S::Kind>>(
    run: &Run<'_>,
    worker: Worker<S, T>,
    index: usize,
    start_ns: u64,
    abort: &AtomicBool,
) -> Finished<S, T> {
    sharpen_timers();
    let Worker {
        groups,
        mut source,
        mut target,
    } = worker;
    let mut state = WorkerState::new(run, start_ns, &groups);
    let mut agenda = run.timetable.agenda(groups.clone());
    let parts = Parts {
        run,
        start_ns,
        abort,
        live: &run.live.workers()[index],
        groups: groups.clone(),
    };
    // A panic leaves the source and the target as they were; they are only handed back.
    let driven = catch_unwind(AssertUnwindSafe(|| {
        drive(&parts, &mut agenda, &mut source, &mut target, &mut state)
    }));
    let ended = driven.unwrap_or_else(|panic| {
        state.lost_in_panic();
        Ended::Panicked(message(panic.as_ref()))
    });
    if matches!(ended, Ended::Fatal | Ended::Panicked(_)) {
        abort.store(true, Ordering::Relaxed);
    }
    let ended = settle(&parts, &mut agenda, ended, &mut state);
    let end_ns = state.end_ns;
    let last_due_ns = state.last_due_ns;
    let (report, latency) = state.finish(groups, ended, run.clock, source, target);
    (report, latency, EndTimes { end_ns, last_due_ns })
}

fn combine<S, T>(ended: Vec<Finished<S, T>>, start_ns: u64, planned_ns: Option<u64>) -> Report<S, T> {
    let mut report = Report {
        start_ns,
        end_ns: start_ns,
        last_due_ns: start_ns,
        planned_ns,
        counts: Counts::default(),
        latency: Latency::default(),
        workers: Vec::with_capacity(ended.len()),
    };
    for (worker, latency, ends) in ended {
        report.end_ns = report.end_ns.max(ends.end_ns);
        report.last_due_ns = report.last_due_ns.max(ends.last_due_ns);
        report.counts.merge(&worker.counts);
        report.latency.merge(latency);
        report.workers.push(worker);
    }
    report
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
