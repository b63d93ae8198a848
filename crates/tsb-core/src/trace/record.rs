//! The recorder: samples this machine's own values into a trace, tick after tick.
//!
//! Ticks are due at absolute times of a [`Clock`], so a slow tick does not shift the
//! next. Of a process it records the short command name and numbers: no command line,
//! no environment, no user.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{TraceDefect, TraceProblems};
use super::writer::{TraceTotals, TraceWriter};
use crate::time::{Clock, SECOND_NS};

mod machine;
mod processes;

use machine::Machine;

/// Which processes to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processes {
    /// None: the machine's own values only.
    None,
    /// The busiest, at most so many at a time. One is taken up at the second tick that
    /// sees it, so that a machine that starts many short processes does not fill the trace
    /// with series of one sample (the first tick of all takes what is there). It stays
    /// until it ends, or until it has been idle for 30 ticks and a busy one needs its place.
    Top(usize),
    /// These, as long as they live.
    Pids(Vec<u32>),
}

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Nanoseconds between ticks, at least [`SHORTEST_INTERVAL_NS`].
    pub interval_ns: u64,
    /// How long to record; `None` until told to stop.
    pub duration_ns: Option<u64>,
    /// Which processes.
    pub processes: Processes,
    /// Only processes whose command name begins with one of these; empty: any name.
    pub names: Vec<String>,
    /// Most series; further ones are left out and counted.
    pub max_series: usize,
    /// How much a kill may lose: after so long, what was sampled is written.
    pub block_ns: u64,
    /// Where the kernel's files are: `/proc`, elsewhere in tests.
    pub root: PathBuf,
}

/// A tick takes milliseconds; closer together, the recording would measure itself.
pub const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

/// Longest the recorder sleeps before it looks whether to stop.
const LOOK_NS: u64 = SECOND_NS / 5;

impl Default for RecordOptions {
    /// Once a second until told to stop, the 64 busiest processes, 50,000 series, a
    /// block a minute.
    fn default() -> Self {
        Self {
            interval_ns: SECOND_NS,
            duration_ns: None,
            processes: Processes::Top(64),
            names: Vec::new(),
            max_series: 50_000,
            block_ns: 60 * SECOND_NS,
            root: PathBuf::from("/proc"),
        }
    }
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSummary {
    /// What the file holds.
    pub totals: TraceTotals,
    /// Ticks sampled.
    pub ticks: u64,
    /// Ticks that were due while an earlier one was still being sampled: not recorded.
    pub missed_ticks: u64,
    /// The longest that a tick began after it was due.
    pub lag_ns_max: u64,
    /// What was left out: files that could not be read, values that no f64 holds.
    pub problems: TraceProblems,
}

/// Records until the duration is over or `stop` is set, and finishes the file.
///
/// # Errors
/// A defect of the options, or of writing. What `/proc` does not have or does not let us
/// read is no error: it is counted in the summary.
pub fn record(
    options: &RecordOptions,
    clock: &dyn Clock,
    out: impl Write,
    stop: &AtomicBool,
) -> Result<RecordSummary, TraceDefect> {
    let mut recorder = Recorder::new(options, out)?;
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

/// Waits for `due`; `false` when told to stop before.
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

/// Samples tick by tick into a trace; [`record`] is the loop around it.
#[derive(Debug)]
pub struct Recorder<W> {
    writer: TraceWriter<W>,
    machine: Machine,
    summary: RecordSummary,
}

impl<W: Write> Recorder<W> {
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

    /// Samples everything once. All samples of a tick bear the time at which it began.
    pub fn tick(&mut self, clock: &dyn Clock) -> Result<(), TraceDefect> {
        let at = clock.wall();
        let tick = self.summary.ticks;
        self.machine
            .sample(tick, at, &mut self.writer, &mut self.summary.problems)?;
        self.summary.ticks += 1;
        Ok(())
    }

    /// Writes what waits: a kill after this loses nothing before it.
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
