//! The recorder: samples this machine's own values into a trace, tick by tick.
//!
//! Ticks are due at absolute times of a [`Clock`], so a slow tick does not delay the next. For
//! processes, it records the short command name and numbers: no command line, no environment, no
//! user.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{TraceDefect, TraceProblems};
use super::writer::{TraceTotals, TraceWriter};
use crate::proc::recorded::ROOT;
use crate::time::{Clock, SECOND_NS};

mod machine;
mod processes;

use machine::Machine;

/// The processes to record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Processes {
    /// None: the machine's own values only.
    None,
    /// The busiest, at most this number at a time. A process is added at the second tick that sees
    /// it, so that many short-lived processes do not fill the trace with series of one sample (the
    /// first tick adds the existing ones). It is kept until it ends, or until it has been idle for
    /// 30 ticks and a busy one needs its place.
    Top(usize),
    /// These processes, until they end.
    Pids(Vec<u32>),
}

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Nanoseconds between ticks, at least [`SHORTEST_INTERVAL_NS`].
    pub interval_ns: u64,
    /// Duration of the recording; `None`: until it is stopped.
    pub duration_ns: Option<u64>,
    /// The processes to record.
    pub processes: Processes,
    /// Prefixes of command names to record; empty: any name.
    pub names: Vec<String>,
    /// Maximum number of series; further ones are left out and counted.
    pub max_series: usize,
    /// Interval at which samples are written, in nanoseconds: the most that a kill can lose.
    pub block_ns: u64,
    /// The root of the kernel's files: `/proc`, another folder in tests.
    pub root: PathBuf,
}

/// A tick takes milliseconds; with a shorter interval, the recording would measure itself.
pub const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

/// Maximum sleep before the recorder checks whether to stop.
const LOOK_NS: u64 = SECOND_NS / 5;

impl Default for RecordOptions {
    /// Once per second until stopped, the 64 busiest processes, 50,000 series, one block per
    /// minute.
    fn default() -> Self {
        Self {
            interval_ns: SECOND_NS,
            duration_ns: None,
            processes: Processes::Top(64),
            names: Vec::new(),
            max_series: 50_000,
            block_ns: 60 * SECOND_NS,
            root: PathBuf::from(ROOT),
        }
    }
}

/// The result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSummary {
    /// The contents of the file.
    pub totals: TraceTotals,
    /// Ticks sampled.
    pub ticks: u64,
    /// Ticks that were skipped because an earlier one was still being sampled when they were due.
    pub missed_ticks: u64,
    /// The largest delay of a tick's start after its due time.
    pub lag_ns_max: u64,
    /// What was left out: unreadable files, and values that an f64 cannot represent.
    pub problems: TraceProblems,
}

/// Records until the duration has passed or `stop` is set, and completes the file.
///
/// # Errors
/// A defect of the options, or of writing. Missing or unreadable files in `/proc` are not errors:
/// they are counted in the summary.
pub fn record(
    options: &RecordOptions,
    clock: &dyn Clock,
    out: impl Write,
    stop: &AtomicBool,
) -> Result<RecordSummary, TraceDefect> {
    let mut recorder = MachineRecorder::new(options, out)?;
    let start = clock.now();
    let end = options.duration_ns.map(|duration| start.saturating_add(duration));
    let mut due = start;
    let mut written_at = start;
    while end.is_none_or(|end| due < end) && wait(clock, due, stop) {
        let lag = clock.now().saturating_sub(due);
        recorder.summary.lag_ns_max = recorder.summary.lag_ns_max.max(lag);
        recorder.tick(clock)?;
        if due - written_at >= options.block_ns {
            recorder.writer.flush()?;
            written_at = due;
        }
        due += options.interval_ns;
        let behind = clock.now().saturating_sub(due) / options.interval_ns;
        recorder.summary.missed_ticks += behind;
        due += behind * options.interval_ns;
    }
    recorder.finish()
}

/// Waits until `due`; returns `false` if it is stopped before.
fn wait(clock: &dyn Clock, due: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let now = clock.now();
        if now >= due {
            return true;
        }
        clock.wait_until(due.min(now + LOOK_NS));
    }
}

/// Samples tick by tick into a trace; [`record`] calls it in a loop.
#[derive(Debug)]
pub struct MachineRecorder<W> {
    writer: TraceWriter<W>,
    machine: Machine,
    summary: RecordSummary,
}

impl<W: Write> MachineRecorder<W> {
    /// Starts the file.
    pub fn new(options: &RecordOptions, out: W) -> Result<Self, TraceDefect> {
        if options.interval_ns < SHORTEST_INTERVAL_NS {
            return Err(TraceDefect::Invalid {
                what: "the interval of a recording is at least 10 ms",
            });
        }
        let interval = options.interval_ns.to_string();
        let hertz = rustix::param::clock_ticks_per_second().to_string();
        let page = rustix::param::page_size().to_string();
        let notes = [
            ("source", "proc"),
            ("interval_ns", interval.as_str()),
            ("ticks_per_second", hertz.as_str()),
            ("page_bytes", page.as_str()),
        ];
        Ok(Self {
            writer: TraceWriter::new(out, &notes)?,
            machine: Machine::new(options),
            summary: RecordSummary::default(),
        })
    }

    /// Samples everything once. All samples of a tick get the time at which it began.
    pub fn tick(&mut self, clock: &dyn Clock) -> Result<(), TraceDefect> {
        let at = clock.wall();
        let tick = self.summary.ticks;
        self.machine
            .sample(tick, at, &mut self.writer, &mut self.summary.problems)?;
        self.summary.ticks += 1;
        Ok(())
    }

    /// Writes the pending samples, so that a later kill cannot lose them.
    pub fn flush(&mut self) -> Result<(), TraceDefect> {
        self.writer.flush()
    }

    /// Writes the end of the file.
    pub fn finish(self) -> Result<RecordSummary, TraceDefect> {
        let (_, totals) = self.writer.finish()?;
        Ok(RecordSummary { totals, ..self.summary })
    }
}

#[cfg(test)]
mod tests;
