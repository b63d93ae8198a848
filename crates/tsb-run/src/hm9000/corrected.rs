//! The corrected experiment: heartbeats due at absolute times, a fixed number of apps, and a
//! complete scan that is held against the simulator.
//!
//! Every heartbeat of a DEA puts its presence and each of its instances, with the second of the
//! heartbeat in the value and a time to live of 30 s. So an instance that is there says how old
//! its news is, and one whose news stays away is gone.

mod outages;
mod overdue;
mod scan;
mod schedule;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tsb_core::latency::{Histogram, Quantiles};
use tsb_core::report::experiment::hm9000::{CorrectedRun, Scan};
use tsb_core::resource::{Process, Usage};
use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::keyed::KeyedStore;

use super::simulator::{HEARTBEAT_INTERVAL_S, Simulator, SimulatorOptions};
use crate::error::{Error, panic_message};
pub use outages::{OutageOptions, with_outages};
use scan::Beats;
use schedule::Schedule;
use worker::Written;

/// Time to live of presence and instances, in nanoseconds.
const TTL_NS: u64 = 30 * SECOND_NS;
/// Between two scans at least, in nanoseconds.
const SCAN_EVERY_NS: u64 = 5 * SECOND_NS;
/// If the median put of the last interval takes longer than this, the store is behind: the next
/// second's puts are due.
const BEHIND_S: f64 = 1.0;

/// A run of the corrected experiment.
#[derive(Clone, Debug)]
pub struct CorrectedOptions {
    /// The cluster; its number of apps has to be fixed.
    pub simulator: SimulatorOptions,
    /// Length of the schedule, in seconds; from a heartbeat interval (10) on, every instance is
    /// written.
    pub seconds: u64,
    /// Puts in flight at a time.
    pub workers: usize,
    /// The processes of the server.
    pub servers: Vec<u32>,
    /// Ends the run early.
    pub stop: Arc<AtomicBool>,
}

/// What is shared by the workers and the thread that scans.
struct Context<'a> {
    store: &'a Arc<dyn KeyedStore>,
    clock: &'a dyn Clock,
    beats: &'a Beats,
    stop: &'a AtomicBool,
    start: u64,
    /// The end of the schedule, in nanoseconds from the start. It can be brought forward.
    end: AtomicU64,
}

impl Context<'_> {
    /// Nanoseconds from the start.
    fn now(&self) -> u64 {
        self.clock.now() - self.start
    }

    fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Ends the schedule now.
    fn end_now(&self) {
        self.end.store(self.now(), Ordering::Release);
    }
}

/// The complete scans of a run.
struct Scans {
    all: Vec<Scan>,
    /// Whether the store could be read when nothing was written any more.
    is_end_seen: bool,
}

/// A run and each of its puts, by worker.
struct Driven<T> {
    run: CorrectedRun,
    written: Vec<Written>,
    /// Whether the store could be read when nothing was written any more.
    is_end_seen: bool,
    conducted: T,
}

/// Runs it on an empty store. Failed puts are counted, and are no error.
///
/// # Errors
/// [`Error::Plan`] for a number of apps that is not fixed; [`Error::Internal`] if a thread
/// panicked.
pub fn corrected(
    options: &CorrectedOptions,
    store: &Arc<dyn KeyedStore>,
    clock: &dyn Clock,
) -> Result<CorrectedRun, Error> {
    let driven = drive(options, store, clock, |_| ())?;
    let Driven {
        mut run,
        written,
        is_end_seen,
        ..
    } = driven;
    judge(&mut run, &written, is_end_seen);
    Ok(run)
}

/// Drives the store by the schedule, scans it, and calls `conduct` meanwhile.
fn drive<T>(
    options: &CorrectedOptions,
    store: &Arc<dyn KeyedStore>,
    clock: &dyn Clock,
    conduct: impl FnOnce(&Context<'_>) -> T,
) -> Result<Driven<T>, Error> {
    if options.simulator.new_apps > 0 {
        return Err(
            Error::plan("cannot add apps in the corrected experiment").because_of("its number of apps is fixed")
        );
    }
    let simulator = Simulator::new(options.simulator);
    let beats = Beats::new(&simulator).map_err(|error| Error::internal("cannot name keys").because(&error))?;
    let workers = options.workers.max(1);
    let schedules: Vec<Schedule> = (0..workers)
        .map(|worker| Schedule::new(&simulator, worker, workers, options.seconds))
        .collect();
    let own = Process::own();
    let servers: Vec<Process> = options.servers.iter().filter_map(|pid| Process::watch(*pid)).collect();
    let context = Context {
        store,
        clock,
        beats: &beats,
        stop: &options.stop,
        start: clock.now(),
        end: AtomicU64::new(options.seconds * SECOND_NS),
    };
    let (written, scans, conducted) = run_threads(&context, &schedules, conduct)?;
    let mut run = summed(&written, &scans.all, context.end());
    let capabilities = store.capabilities();
    run.durability = capabilities.acknowledges.to_string();
    run.copies = capabilities.copies;
    run.apps = options.simulator.apps;
    run.seconds = context.end() as f64 / SECOND_NS as f64;
    run.keys_due = schedules
        .iter()
        .map(|schedule| schedule.keys_before(context.end()))
        .sum();
    run.own = own.and_then(|process| process.usage());
    run.servers = servers.iter().filter_map(Process::usage).collect::<Vec<Usage>>();
    Ok(Driven {
        run,
        written,
        is_end_seen: scans.is_end_seen,
        conducted,
    })
}

fn run_threads<T>(
    context: &Context<'_>,
    schedules: &[Schedule],
    conduct: impl FnOnce(&Context<'_>) -> T,
) -> Result<(Vec<Written>, Scans, T), Error> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = schedules
            .iter()
            .map(|schedule| scope.spawn(move || worker::run(context, schedule)))
            .collect();
        let scanning = scope.spawn(|| scan_often(context, &is_over));
        let conducted = conduct(context);
        let written: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Release);
        let scans = scanning.join();
        let panicked = |panic: Box<dyn std::any::Any + Send>| {
            Error::internal("a thread of the experiment panicked").because_of(panic_message(&*panic))
        };
        let written = written.into_iter().collect::<Result<Vec<_>, _>>().map_err(panicked)?;
        Ok((written, scans.map_err(panicked)?, conducted))
    })
}

/// Scans as soon as every instance has been acknowledged, then again and again, and once when
/// nothing is written any more.
fn scan_often(context: &Context<'_>, is_over: &AtomicBool) -> Scans {
    let mut all = Vec::new();
    let mut next = 0;
    loop {
        let is_last = is_over.load(Ordering::Acquire);
        let is_due = context.now() >= next && context.beats.are_all_acknowledged();
        if is_due || is_last {
            // A scan that fails has found nothing out.
            let scan = context.beats.scan(context.store, context.clock, context.start);
            all.extend(scan);
            next = context.now() + SCAN_EVERY_NS;
            if is_last {
                let is_end_seen = scan.is_some();
                return Scans { all, is_end_seen };
            }
        }
        let look = context.clock.now() + SECOND_NS / 20;
        context.clock.wait_until(look);
    }
}

fn summed(written: &[Written], scans: &[Scan], end: u64) -> CorrectedRun {
    let mut responses = Histogram::new();
    let mut run = CorrectedRun::default();
    let mut last_done = 0;
    for worker in written {
        responses.merge(&worker.responses);
        run.keys_acknowledged += worker.acknowledged;
        run.keys_failed += worker.failed;
        run.keys_late += worker.late;
        last_done = last_done.max(worker.last_done);
    }
    let all = written.iter().flat_map(|worker| &worker.puts);
    let of_last_interval = all.filter(|put| put.due + HEARTBEAT_INTERVAL_S * SECOND_NS >= end);
    let last_interval: Vec<f64> = of_last_interval.map(|put| put.took_seconds()).collect();
    run.response = Quantiles::new(&responses);
    run.keys_per_second = run.keys_acknowledged as f64 * SECOND_NS as f64 / last_done.max(1) as f64;
    run.behind_seconds = tsb_core::stats::median(&last_interval).unwrap_or_default();
    run.fresh_at_seconds = scans.iter().find(|scan| scan.is_fresh()).map(|scan| scan.at_seconds);
    run.lost = scans.iter().map(|scan| scan.lost).max().unwrap_or_default();
    run.scans = scans.to_vec();
    run
}

/// Says whether the store kept all instances fresh, and if not, why.
fn judge(run: &mut CorrectedRun, written: &[Written], is_end_seen: bool) {
    let mut broke = Vec::new();
    if !is_end_seen {
        broke.push("the store could not be read when nothing was written any more".to_owned());
    }
    if let Some(error) = written.iter().find_map(|worker| worker.first_error.as_ref()) {
        broke.push(format!("{} keys failed: {error}", run.keys_failed));
    } else if run.keys_failed > 0 {
        broke.push(format!("{} keys were refused", run.keys_failed));
    }
    if run.lost > 0 {
        broke.push(format!("{} acknowledged instances were not found", run.lost));
    }
    if run.behind_seconds > BEHIND_S {
        broke.push(format!(
            "puts of the last {HEARTBEAT_INTERVAL_S} s took {:.1} s from when they were due: more is due than it takes",
            run.behind_seconds
        ));
    }
    let first = run.scans.iter().position(Scan::is_fresh);
    match first {
        None => {
            let last = run.scans.last().copied().unwrap_or_default();
            broke.push(format!(
                "no scan found every instance; the last one missed {} of {}",
                last.not_fresh(),
                last.expected
            ));
        }
        Some(first) => {
            let after = run.scans[first..].iter().find(|scan| !scan.is_fresh());
            broke.extend(after.map(|scan| {
                format!(
                    "at {:.0} s {} of {} instances were not fresh any more",
                    scan.at_seconds,
                    scan.not_fresh(),
                    scan.expected
                )
            }));
        }
    }
    run.is_kept = broke.is_empty();
    run.broke = broke;
}

#[cfg(test)]
mod tests;
