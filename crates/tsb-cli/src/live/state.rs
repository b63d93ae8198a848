//! The state of a run in progress, written by the run and read by the live view and the metrics
//! endpoint. Neither is on the emitting path.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::emit::LiveTotals;
use tsb_core::latency::{CELLS, Cells, cell_highest};
use tsb_core::report::Interval;

use tsb_run::foreign;
use tsb_run::{HostStatus, IntervalLatencies, Phase, Progress, RunInfo};

/// Number of reporting intervals kept for the view: an hour at one per second.
const INTERVALS_MAX: usize = 3_600;

/// Number of messages kept for the view.
const MESSAGES_MAX: usize = 8;

/// A histogram in coarse cells, of all operations since the run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoarseHistogram {
    counts: Vec<u64>,
    sum_ns: u128,
}

impl Default for CoarseHistogram {
    fn default() -> Self {
        Self {
            counts: vec![0; CELLS],
            sum_ns: 0,
        }
    }
}

impl CoarseHistogram {
    /// Adds the operations of an interval.
    pub fn add(&mut self, cells: &Cells) {
        for (cell, count) in cells.iter() {
            if let Some(slot) = self.counts.get_mut(cell) {
                *slot += count;
                self.sum_ns += u128::from(count) * u128::from(cell_highest(cell));
            }
        }
    }

    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Operations that took at most `limit_ns`; only cells that end at or below the limit are
    /// counted.
    pub fn count_within(&self, limit_ns: u64) -> u64 {
        let counts = self.counts.iter().enumerate();
        counts
            .take_while(|&(cell, _)| cell_highest(cell) <= limit_ns)
            .map(|(_, count)| count)
            .sum()
    }

    /// The sum of all times, in nanoseconds, at most 1/8 too large.
    pub const fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The upper end of the cell that contains the quantile, in nanoseconds: at most 1/8 too
    /// large. `None` with fewer than ten operations beyond it, as in reports.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let all = self.count();
        if ((all as f64 * (1.0 - quantile) + 1e-6) as u64) < tsb_core::latency::BEYOND_MIN {
            return None;
        }
        let rank = (quantile * all as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map(cell_highest)
    }

    /// The upper end of the slowest operation's cell, in nanoseconds.
    pub fn max(&self) -> Option<u64> {
        self.counts.iter().rposition(|&count| count > 0).map(cell_highest)
    }
}

/// Everything that the view and the metrics show.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// The facts that do not change.
    pub subject: RunInfo,
    /// The current phase.
    pub phase: Phase,
    /// Time since sending began, in nanoseconds.
    pub elapsed_ns: u64,
    /// The emitter's counters.
    pub totals: LiveTotals,
    /// Samples accepted.
    pub accepted: u64,
    /// Samples refused.
    pub rejected: u64,
    /// Age of the stalest series at the last poll, in milliseconds.
    pub staleness_ms: Option<f64>,
    /// The newest reporting intervals, oldest first.
    pub intervals: VecDeque<Interval>,
    /// Number of intervals before those.
    pub earlier_intervals: usize,
    /// Due until done.
    pub response: CoarseHistogram,
    /// Start until the receiver had read it, on a wire without answers.
    pub delivery: CoarseHistogram,
    /// Start until done; where there is a delivery, from its end.
    pub service: CoarseHistogram,
    /// Due until start.
    pub lag: CoarseHistogram,
    /// The last messages.
    pub messages: VecDeque<String>,
    /// CPU time since sending began, in nanoseconds: this process, then those watched.
    pub cpu_ns: Vec<u64>,
    /// The hosts that share the run, lost ones first; empty for a run by this process.
    pub hosts: Vec<HostLine>,
}

/// A host that shares the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLine {
    /// How far it is, escaped for the terminal.
    pub text: String,
    /// Whether the run goes on without it.
    pub is_lost: bool,
}

/// The shared state.
#[derive(Debug, Default)]
pub struct SharedState(Mutex<LiveState>);

impl LiveState {
    /// Samples per second asked for now: by the plan, or by the newest interval if the rate
    /// varies; `None` for a closed loop.
    pub fn asked_per_second(&self) -> Option<f64> {
        let by_slice = || {
            let newest = self.intervals.back()?;
            let before = self.intervals.iter().rev().nth(1).map_or(0, |interval| interval.end_ns);
            let length_ns = newest.end_ns.saturating_sub(before).max(1);
            Some(newest.asked? as f64 * 1e9 / length_ns as f64)
        };
        self.subject.asked_per_second.or_else(by_slice)
    }
}

impl SharedState {
    /// An empty state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the state. Hold it only as long as copying takes.
    pub fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the state with at most `intervals` intervals.
    pub fn snapshot(&self, intervals: usize) -> LiveState {
        let state = self.lock();
        let newest = state.intervals.len().saturating_sub(intervals);
        LiveState {
            subject: state.subject.clone(),
            phase: state.phase,
            elapsed_ns: state.elapsed_ns,
            totals: state.totals,
            accepted: state.accepted,
            rejected: state.rejected,
            staleness_ms: state.staleness_ms,
            intervals: state.intervals.range(newest..).cloned().collect(),
            earlier_intervals: state.earlier_intervals + newest,
            response: state.response.clone(),
            delivery: state.delivery.clone(),
            service: state.service.clone(),
            lag: state.lag.clone(),
            messages: state.messages.clone(),
            cpu_ns: state.cpu_ns.clone(),
            hosts: state.hosts.clone(),
        }
    }

    /// Resets the state for another run; messages are kept.
    pub fn begin(&self, subject: RunInfo) {
        let mut state = self.lock();
        let messages = std::mem::take(&mut state.messages);
        *state = LiveState {
            subject,
            messages,
            ..LiveState::default()
        };
    }

    /// Sets the phase.
    pub fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
    }

    /// Updates the counters.
    pub fn update(&self, progress: &Progress) {
        let mut state = self.lock();
        state.elapsed_ns = progress.elapsed_ns;
        state.totals = progress.totals;
        state.accepted = progress.accepted.unwrap_or(state.accepted);
        state.rejected = progress.rejected.unwrap_or(state.rejected);
        state.staleness_ms = progress.staleness_ms.or(state.staleness_ms);
    }

    /// Sets how far the hosts are.
    pub fn set_hosts(&self, hosts: &[HostStatus<'_>]) {
        let line = |host: &HostStatus<'_>| HostLine {
            text: foreign::line(&host.to_string()).into_owned(),
            is_lost: host.lost.is_some(),
        };
        let mut lines: Vec<HostLine> = hosts.iter().map(line).collect();
        lines.sort_by_key(|line| !line.is_lost);
        self.lock().hosts = lines;
    }

    /// Adds a message, escaped for the terminal.
    pub fn say(&self, text: &str) {
        let mut state = self.lock();
        if state.messages.len() == MESSAGES_MAX {
            state.messages.pop_front();
        }
        state.messages.push_back(foreign::line(text).into_owned());
    }

    /// Adds an interval with the latencies of its operations.
    pub fn add(&self, interval: Interval, timed: &IntervalLatencies) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for (cells, times) in [
            (&interval.response_cells, &mut state.response),
            (&timed.delivery, &mut state.delivery),
            (&timed.service, &mut state.service),
            (&timed.lag, &mut state.lag),
        ] {
            if let Some(cells) = cells {
                times.add(cells);
            }
        }
        let used = std::iter::once(interval.cpu_ns).chain(interval.watched.iter().map(|other| other.cpu_ns));
        let used: Vec<u64> = used.collect();
        let processes = used.len().max(state.cpu_ns.len());
        state.cpu_ns.resize(processes, 0);
        for (sum, used) in state.cpu_ns.iter_mut().zip(used) {
            *sum += used;
        }
        if state.intervals.len() == INTERVALS_MAX {
            state.intervals.pop_front();
            state.earlier_intervals += 1;
        }
        state.intervals.push_back(interval);
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::Histogram;

    use super::*;

    #[test]
    fn times_add_up_and_quantiles_are_upper_edges() {
        let mut histogram = Histogram::new();
        (1..=1_000u64).for_each(|value| histogram.record(value * 1_000));
        let cells = Cells::new(&histogram).unwrap();
        let mut times = CoarseHistogram::default();
        times.add(&cells);
        times.add(&cells);
        assert_eq!(times.count(), 2_000);
        for quantile in [0.5, 0.9, 0.99] {
            let (shown, exact) = (times.quantile(quantile).unwrap(), (quantile * 1e6) as u64);
            assert!(shown >= exact && shown <= exact + exact / 8, "{quantile}: {shown}");
        }
        assert_eq!(times.quantile(0.999), None);
        assert!(times.max().is_some_and(|max| (1_000_000..1_125_000).contains(&max)));
        assert_eq!(times.count_within(u64::MAX), 2_000);
        assert_eq!(times.count_within(999), 0);
    }

    #[test]
    fn lost_hosts_come_first() {
        let shared = SharedState::new();
        let mut lost = HostStatus::new("b", "running");
        lost.lost = Some("it was killed");
        shared.set_hosts(&[HostStatus::new("a", "running"), lost]);
        let hosts = shared.snapshot(1).hosts;
        assert!(hosts[0].is_lost && hosts[0].text.contains("b: running") && hosts[0].text.contains("killed"));
        assert_eq!(hosts.len(), 2);
    }

    #[test]
    fn a_state_keeps_a_bounded_past_and_begins_anew() {
        let shared = SharedState::new();
        for index in 0..INTERVALS_MAX as u64 + 5 {
            let mut interval = Interval::default();
            interval.end_ns = index;
            shared.add(interval, &IntervalLatencies::default());
            shared.say(&index.to_string());
        }
        let state = shared.lock().clone();
        assert_eq!(
            (state.intervals.len(), state.messages.len()),
            (INTERVALS_MAX, MESSAGES_MAX)
        );
        assert_eq!(state.intervals.front().map(|interval| interval.end_ns), Some(5));
        assert_eq!(state.earlier_intervals, 5);
        assert_eq!(shared.snapshot(10).earlier_intervals, INTERVALS_MAX + 5 - 10);
        shared.begin(RunInfo::default());
        assert!(shared.lock().intervals.is_empty() && !shared.lock().messages.is_empty());
    }
}
