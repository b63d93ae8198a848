//! Replay: regenerates every sample of a series that was sent, in sending order.
//!
//! An audit compares a store with it. It works series by series, as stores answer queries, and
//! needs only (seed, series, ticks).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Workload;
use super::columns::{CHUNK, ColumnGenerator};
use super::disorder::{DisorderModel, SampleOutcome};
use super::trace::RecordedWorkload;
use super::value_model::{self, ValueModel};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Number of ticks whose keys are cached; the keys of later ticks are recomputed each time.
const KEPT_TICKS: u64 = 1 << 20;

/// How a sample was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentAs {
    /// In the operation of its own tick.
    OnTime,
    /// The second copy of a sample sent on time.
    Duplicate,
    /// In the operation of the next tick, after that tick's sample.
    OutOfOrder,
    /// In an operation one or more ticks later.
    Late,
}

/// Samples of one series, in sending order.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// Tick of the operation that sent the first sample.
    pub first_tick: u64,
    /// Tick of the operation that sent each sample; absent: consecutive ticks from `first_tick`.
    pub ticks: Option<&'a [u64]>,
    /// Their timestamps.
    pub times: SentTimes<'a>,
    /// Their values.
    pub values: &'a [f64],
    /// How each sample was sent; absent: all on time.
    pub how: Option<&'a [SentAs]>,
}

/// The timestamps of consecutive samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentTimes<'a> {
    /// Equally spaced: `first`, and `step_ns` more for each that follows.
    Regular {
        /// The first timestamp.
        first: Timestamp,
        /// Nanoseconds between two timestamps.
        step_ns: u64,
    },
    /// One timestamp per sample.
    Each(&'a [Timestamp]),
}

impl<'a> Sent<'a> {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The timestamp of sample `index`.
    #[inline]
    pub fn time(&self, index: usize) -> Timestamp {
        match self.times {
            SentTimes::Regular { first, step_ns } => first + (index as i64) * (step_ns as i64),
            SentTimes::Each(times) => times[index],
        }
    }

    /// Iterates over the samples: tick of the operation, timestamp, value, and how it was sent.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Timestamp, f64, SentAs)> + 'a {
        let this = *self;
        this.values.iter().enumerate().map(move |(index, &value)| {
            let tick = this.ticks.map_or(this.first_tick + index as u64, |ticks| ticks[index]);
            let how = this.how.map_or(SentAs::OnTime, |how| how[index]);
            (tick, this.time(index), value, how)
        })
    }
}

/// Regenerates what was sent. Each auditor owns one.
#[derive(Debug)]
pub struct Replay<'w> {
    workload: &'w Workload,
    checkpoint: Option<Arc<Checkpoint>>,
    base: Timestamp,
    keys: TickKeys,
    values: Vec<f64>,
    sent: Columns,
}

/// The running states of all series before one tick: a starting point for a [`Replay`] or a
/// [`Generator`](super::Generator) that begins late.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    tick: u64,
    /// State by series; for a series born later, its state at birth.
    states: Vec<f64>,
}

impl Checkpoint {
    /// The tick whose preceding states it holds.
    pub fn tick(&self) -> u64 {
        self.tick
    }
}

impl Workload {
    /// The states before `tick` (in each group's own ticks), computed from an earlier checkpoint
    /// or from the first tick: 8 bytes per series.
    pub fn checkpoint(&self, tick: u64, from: Option<&Checkpoint>) -> Checkpoint {
        let mut replay = self.replay(Timestamp(0));
        replay.start_from(from.cloned().map(Arc::new));
        let series = 0..self.catalog().len() as u32;
        Checkpoint {
            tick,
            states: series.map(|id| replay.state_before(SeriesId(id), tick)).collect(),
        }
    }
}

/// Reusable columns of samples.
#[derive(Debug, Default)]
struct Columns {
    ticks: Vec<u64>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    how: Vec<SentAs>,
}

impl Columns {
    fn clear(&mut self) {
        self.ticks.clear();
        self.times.clear();
        self.values.clear();
        self.how.clear();
    }

    fn push(&mut self, tick: u64, at: Timestamp, value: f64, how: SentAs) {
        self.ticks.push(tick);
        self.times.push(at);
        self.values.push(value);
        self.how.push(how);
    }
}

/// The keys of ticks from 0 on, computed once and used for every series.
#[derive(Debug)]
struct TickKeys {
    seed: u64,
    kept: Vec<u64>,
    scratch: Vec<u64>,
}

impl TickKeys {
    fn of(&mut self, ticks: Range<u64>) -> &[u64] {
        let seed = self.seed;
        if ticks.end > KEPT_TICKS {
            self.scratch.clear();
            self.scratch.extend(ticks.map(|tick| value_model::tick_key(seed, tick)));
            return &self.scratch;
        }
        let known = self.kept.len() as u64;
        self.kept
            .extend((known..ticks.end).map(|tick| value_model::tick_key(seed, tick)));
        &self.kept[ticks.start as usize..ticks.end as usize]
    }
}

impl<'w> Replay<'w> {
    pub(super) fn new(workload: &'w Workload, base: Timestamp) -> Self {
        Self {
            workload,
            checkpoint: None,
            base,
            keys: TickKeys {
                seed: workload.spec.seed,
                kept: Vec::new(),
                scratch: Vec::new(),
            },
            values: vec![0.0; CHUNK],
            sent: Columns::default(),
        }
    }

    /// Starts at a checkpoint instead of the first tick, if the checkpoint lies before the
    /// requested ticks. This changes the cost of a replay, not its result.
    pub fn start_from(&mut self, checkpoint: Option<Arc<Checkpoint>>) {
        self.checkpoint = checkpoint;
    }

    /// Calls `visit` with every sample of `series` that the operations of `ticks` sent, in sending
    /// order and in chunks. Ticks at which the series was not alive sent none.
    ///
    /// Values depend on all earlier ticks of the series or on a checkpoint, so a range that begins
    /// late also costs the computation of the ticks before it.
    pub fn series(&mut self, series: SeriesId, ticks: Range<u64>, visit: &mut dyn FnMut(&Sent<'_>)) {
        let workload = self.workload;
        let (Some(group), Some(block)) = (workload.group_of(series), workload.block_of(series)) else {
            return;
        };
        let ticks = ticks.start.max(block.ticks.start)..ticks.end.min(block.ticks.end);
        if ticks.is_empty() {
            return;
        }
        if workload.disorder.any() {
            self.disordered(series, group, ticks, block.ticks.clone(), visit);
        } else if let Some(recorded) = &workload.recorded {
            self.recorded(recorded, series, group, ticks, visit);
        } else {
            self.plain(series, group, ticks, visit);
        }
    }

    /// A series with exactly one sample per tick.
    fn plain(&mut self, series: SeriesId, group: usize, ticks: Range<u64>, visit: &mut dyn FnMut(&Sent<'_>)) {
        let workload = self.workload;
        let mut column = self.column_at(series, ticks.start);
        let step_ns = workload.groups()[group].interval_ns;
        let jitter_key = workload.disorder.jitter_key(series.0);
        let mut start = ticks.start;
        while start < ticks.end {
            let end = ticks.end.min(start + CHUNK as u64);
            let keys = self.keys.of(start..end);
            let values = &mut self.values[..keys.len()];
            column.fill(start, keys, values);
            let first = workload.timestamp(group, start, self.base);
            let times = if workload.disorder.jitters() {
                let times = &mut self.sent.times;
                times.clear();
                times.extend(
                    regular(first, step_ns)
                        .zip(keys)
                        .map(|(at, &key)| workload.disorder.jittered(at, jitter_key, key)),
                );
                SentTimes::Each(times)
            } else {
                SentTimes::Regular { first, step_ns }
            };
            visit(&Sent {
                first_tick: start,
                ticks: None,
                times,
                values,
                how: None,
            });
            start = end;
        }
    }

    /// A series of a recording, with a sample at some ticks.
    fn recorded(
        &mut self,
        recorded: &RecordedWorkload,
        series: SeriesId,
        group: usize,
        ticks: Range<u64>,
        visit: &mut dyn FnMut(&Sent<'_>),
    ) {
        let workload = self.workload;
        let disorder = &workload.disorder;
        let jitter_key = disorder.jitter_key(series.0);
        let mut samples = recorded.samples(group, series.0, ticks);
        loop {
            self.sent.clear();
            for (tick, value) in samples.by_ref().take(CHUNK) {
                let mut at = workload.timestamp(group, tick, self.base);
                if disorder.jitters() {
                    at = disorder.jittered(at, jitter_key, value_model::tick_key(workload.spec.seed, tick));
                }
                self.sent.push(tick, at, value, SentAs::OnTime);
            }
            let Some(&first_tick) = self.sent.ticks.first() else {
                return;
            };
            visit(&Sent {
                first_tick,
                ticks: Some(&self.sent.ticks),
                times: SentTimes::Each(&self.sent.times),
                values: &self.sent.values,
                how: None,
            });
        }
    }

    /// A series with disorder: any number of samples per tick.
    fn disordered(
        &mut self,
        series: SeriesId,
        group: usize,
        ticks: Range<u64>,
        life: Range<u64>,
        visit: &mut dyn FnMut(&Sent<'_>),
    ) {
        let workload = self.workload;
        let disorder = &workload.disorder;
        // These operations may send samples of earlier ticks.
        let mut start = ticks.start.saturating_sub(disorder.reach()).max(life.start);
        let mut column = self.column_at(series, start);
        let mut disordered = DisorderedSeries {
            disorder,
            recorded: workload.recorded.as_ref(),
            series: series.0,
            outcome_key: disorder.outcome_key(series.0),
            jitter_key: disorder.jitter_key(series.0),
            death: life.end,
            from: ticks.start,
            step_ns: workload.groups()[group].interval_ns,
            swapped: None,
            late: BTreeMap::new(),
        };
        while start < ticks.end {
            let end = ticks.end.min(start + CHUNK as u64);
            let keys = self.keys.of(start..end);
            let values = &mut self.values[..keys.len()];
            column.fill(start, keys, values);
            self.sent.clear();
            let parts = keys.chunks(TICKS_AT_ONCE).zip(values.chunks(TICKS_AT_ONCE));
            for (first, (keys, values)) in (start..).step_by(TICKS_AT_ONCE).zip(parts) {
                let at = workload.timestamp(group, first, self.base);
                disordered.push(first, at, keys, values, &mut self.sent);
            }
            if let Some(&first_tick) = self.sent.ticks.first() {
                visit(&Sent {
                    first_tick,
                    ticks: Some(&self.sent.ticks),
                    times: SentTimes::Each(&self.sent.times),
                    values: &self.sent.values,
                    how: Some(&self.sent.how),
                });
            }
            start = end;
        }
    }

    /// The running state of a series before a tick.
    pub(super) fn state_before(&mut self, series: SeriesId, tick: u64) -> f64 {
        self.column_at(series, tick).state
    }

    /// A series positioned so that `tick` is next.
    fn column_at(&mut self, series: SeriesId, tick: u64) -> ColumnGenerator {
        let workload = self.workload;
        let (model, keys) = (workload.model(series.0), workload.keys(series.0));
        let mut column = ColumnGenerator::new(model, keys, model.start(keys));
        if model == ValueModel::Recorded {
            return column;
        }
        let mut start = workload.lifetime(series).map_or(0, |life| life.start);
        if let Some(checkpoint) = self.checkpoint.as_deref()
            && (start + 1..=tick).contains(&checkpoint.tick)
            && let Some(&state) = checkpoint.states.get(series.index())
        {
            column.state = state;
            start = checkpoint.tick;
        }
        while start < tick {
            let end = tick.min(start + CHUNK as u64);
            let tick_keys = self.keys.of(start..end);
            column.fill(start, tick_keys, &mut self.values[..tick_keys.len()]);
            start = end;
        }
        column
    }
}

/// The timestamps of consecutive ticks. Beyond the end of time they wrap: saturating arithmetic
/// would cost more than the rest of a sample.
fn regular(first: Timestamp, step_ns: u64) -> impl Iterator<Item = Timestamp> {
    let mut next = first.0;
    std::iter::repeat_with(move || {
        let at = next;
        next = next.wrapping_add(step_ns as i64);
        Timestamp(at)
    })
}

/// Number of ticks whose outcomes are examined together.
const TICKS_AT_ONCE: usize = 16;

/// One series with disorder, advanced tick by tick.
#[derive(Debug)]
struct DisorderedSeries<'a> {
    disorder: &'a DisorderModel,
    recorded: Option<&'a RecordedWorkload>,
    series: u32,
    outcome_key: u64,
    jitter_key: u64,
    death: u64,
    /// Samples of operations before this tick are not visited.
    from: u64,
    step_ns: u64,
    /// A sample held back for the next tick.
    swapped: Option<(Timestamp, f64)>,
    /// Samples held back, by (operation's tick, own tick).
    late: BTreeMap<(u64, u64), (Timestamp, f64)>,
}

impl DisorderedSeries<'_> {
    fn push(&mut self, first: u64, at: Timestamp, keys: &[u64], values: &[f64], sent: &mut Columns) {
        let end = first + keys.len() as u64;
        let due = self.late.first_key_value().is_some_and(|((due, _), _)| *due < end);
        let samples = keys.iter().map(|&key| (self.outcome_key, key));
        let plain = self.recorded.is_none()
            && !due
            && self.swapped.is_none()
            && first >= self.from
            && !self.disorder.any_of(samples);
        let times = regular(at, self.step_ns).zip(keys);
        let times = times.map(|(at, &key)| (key, self.disorder.jittered(at, self.jitter_key, key)));
        if plain {
            sent.ticks.extend(first..end);
            sent.times.extend(times.map(|(_, at)| at));
            sent.values.extend_from_slice(values);
            sent.how.resize(sent.values.len(), SentAs::OnTime);
            return;
        }
        let (disorder, outcome_key, death) = (self.disorder, self.outcome_key, self.death);
        for ((tick, (key, at)), &value) in (first..).zip(times).zip(values) {
            let recorded = self.recorded.map(|recorded| recorded.value(self.series, tick));
            let value = recorded.flatten().unwrap_or(value);
            let outcome = match recorded {
                Some(None) => SampleOutcome::Missing,
                _ => disorder.of(outcome_key, tick, key, death),
            };
            let followed = self.swapped.take();
            match outcome {
                SampleOutcome::Swapped => self.swapped = Some((at, value)),
                SampleOutcome::Late(by) => {
                    self.late.insert((tick + by, tick), (at, value));
                }
                SampleOutcome::OnTime | SampleOutcome::Twice | SampleOutcome::Missing => {}
            }
            let send = tick >= self.from;
            if send && matches!(outcome, SampleOutcome::OnTime | SampleOutcome::Twice) {
                sent.push(tick, at, value, SentAs::OnTime);
            }
            if send && outcome == SampleOutcome::Twice {
                sent.push(tick, at, value, SentAs::Duplicate);
            }
            if let (Some((at, value)), true) = (followed, send) {
                sent.push(tick, at, value, SentAs::OutOfOrder);
            }
            while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= tick) {
                let (at, value) = entry.remove();
                if send {
                    sent.push(tick, at, value, SentAs::Late);
                }
            }
        }
    }
}
