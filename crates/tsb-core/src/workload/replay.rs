//! Replay: every sample of a series that was sent, once more, in the order of sending.
//!
//! This is what an audit compares a store with. It goes series by series, since that is
//! how stores answer, and makes each from nothing but (seed, series, ticks).

use std::collections::BTreeMap;
use std::ops::Range;

use super::Workload;
use super::columns::{CHUNK, Column};
use super::disorder::Fate;
use super::law::{self, Law};
use super::trace::Recorded;
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Tick keys are kept for this many ticks; beyond, they are made anew each time.
const KEPT_TICKS: u64 = 1 << 20;

/// How a sample came to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// In the operation of its own tick.
    OnTime,
    /// The second copy of one that was.
    Duplicate,
    /// In the operation of the next tick, behind the sample of that tick.
    OutOfOrder,
    /// In an operation some ticks later.
    Late,
}

/// Some samples of one series, in the order of sending.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The tick of the operation that sent the first.
    pub first_tick: u64,
    /// The tick of the operation that sent each; absent: one after the other from
    /// `first_tick` on.
    pub ticks: Option<&'a [u64]>,
    /// Their timestamps.
    pub times: SentTimes<'a>,
    /// Their values.
    pub values: &'a [f64],
    /// How each came to be sent; absent: all on time.
    pub how: Option<&'a [How]>,
}

/// The timestamps of a stretch of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentTimes<'a> {
    /// `first`, and so many nanoseconds more for each that follows.
    Regular {
        /// The first.
        first: Timestamp,
        /// Nanoseconds from one to the next.
        step_ns: u64,
    },
    /// One each.
    Each(&'a [Timestamp]),
}

impl<'a> Sent<'a> {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
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

    /// Sample after sample: tick of the operation, timestamp, value, and how it was sent.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Timestamp, f64, How)> + 'a {
        let this = *self;
        this.values.iter().enumerate().map(move |(index, &value)| {
            let tick = this.ticks.map_or(this.first_tick + index as u64, |ticks| ticks[index]);
            let how = this.how.map_or(How::OnTime, |how| how[index]);
            (tick, this.time(index), value, how)
        })
    }
}

/// Makes what was sent again. Each auditor owns one.
#[derive(Debug)]
pub struct Replay<'w> {
    workload: &'w Workload,
    base: Timestamp,
    keys: TickKeys,
    values: Vec<f64>,
    sent: Columns,
}

/// Columns of samples, reused.
#[derive(Debug, Default)]
struct Columns {
    ticks: Vec<u64>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    how: Vec<How>,
}

impl Columns {
    fn clear(&mut self) {
        self.ticks.clear();
        self.times.clear();
        self.values.clear();
        self.how.clear();
    }

    fn push(&mut self, tick: u64, at: Timestamp, value: f64, how: How) {
        self.ticks.push(tick);
        self.times.push(at);
        self.values.push(value);
        self.how.push(how);
    }
}

/// The keys of ticks from 0 on, made once and used for every series.
#[derive(Debug)]
struct TickKeys {
    seed: u64,
    kept: Vec<u64>,
    passing: Vec<u64>,
}

impl TickKeys {
    fn of(&mut self, ticks: Range<u64>) -> &[u64] {
        let seed = self.seed;
        if ticks.end > KEPT_TICKS {
            self.passing.clear();
            self.passing.extend(ticks.map(|tick| law::tick_key(seed, tick)));
            return &self.passing;
        }
        let known = self.kept.len() as u64;
        self.kept
            .extend((known..ticks.end).map(|tick| law::tick_key(seed, tick)));
        &self.kept[ticks.start as usize..ticks.end as usize]
    }
}

impl<'w> Replay<'w> {
    pub(super) fn new(workload: &'w Workload, base: Timestamp) -> Self {
        Self {
            workload,
            base,
            keys: TickKeys {
                seed: workload.spec.seed,
                kept: Vec::new(),
                passing: Vec::new(),
            },
            values: vec![0.0; CHUNK],
            sent: Columns::default(),
        }
    }

    /// Every sample of `series` that the operations of `ticks` sent, in the order of
    /// sending, in chunks. Ticks at which it was not alive sent nothing of it.
    ///
    /// Values follow from the first tick of the series on, so a range that begins late
    /// costs the ticks before it too, though not their visit.
    pub fn series(&mut self, series: SeriesId, ticks: Range<u64>, visit: &mut dyn FnMut(&Sent<'_>)) {
        let workload = self.workload;
        let (Some(group), Some(block)) = (workload.group_of(series), workload.block_of(series)) else {
            return;
        };
        let ticks = ticks.start.max(block.ticks.start)..ticks.end.min(block.ticks.end);
        if ticks.is_empty() {
            return;
        }
        if workload.fates.any() {
            self.disordered(series, group, ticks, block.ticks.clone(), visit);
        } else if let Some(recorded) = &workload.recorded {
            self.recorded(recorded, series, group, ticks, visit);
        } else {
            self.plain(series, group, ticks, visit);
        }
    }

    /// One sample for each tick.
    fn plain(&mut self, series: SeriesId, group: usize, ticks: Range<u64>, visit: &mut dyn FnMut(&Sent<'_>)) {
        let workload = self.workload;
        let mut column = self.column_at(series, ticks.start);
        let step_ns = workload.groups()[group].interval_ns;
        let jitter_key = workload.fates.jitter_key(series.0);
        let mut start = ticks.start;
        while start < ticks.end {
            let end = ticks.end.min(start + CHUNK as u64);
            let keys = self.keys.of(start..end);
            let values = &mut self.values[..keys.len()];
            column.fill(start, keys, values);
            let first = workload.timestamp(group, start, self.base);
            let times =
                if workload.fates.jitters() {
                    let times = &mut self.sent.times;
                    times.clear();
                    times.extend((0..).zip(keys).map(|(index, &key)| {
                        first + index * step_ns as i64 + workload.fates.jitter_ns(jitter_key, key)
                    }));
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

    /// What a recording holds of a series: a sample at some ticks.
    fn recorded(
        &mut self,
        recorded: &Recorded,
        series: SeriesId,
        group: usize,
        ticks: Range<u64>,
        visit: &mut dyn FnMut(&Sent<'_>),
    ) {
        let workload = self.workload;
        let fates = &workload.fates;
        let jitter_key = fates.jitter_key(series.0);
        let mut samples = recorded.samples(series.0, ticks);
        loop {
            self.sent.clear();
            for (tick, value) in samples.by_ref().take(CHUNK) {
                let mut at = workload.timestamp(group, tick, self.base);
                if fates.jitters() {
                    at = at + fates.jitter_ns(jitter_key, law::tick_key(workload.spec.seed, tick));
                }
                self.sent.push(tick, at, value, How::OnTime);
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

    /// None, one or several samples for each tick.
    fn disordered(
        &mut self,
        series: SeriesId,
        group: usize,
        ticks: Range<u64>,
        life: Range<u64>,
        visit: &mut dyn FnMut(&Sent<'_>),
    ) {
        let workload = self.workload;
        let fates = &workload.fates;
        let (fate_key, jitter_key) = (fates.fate_key(series.0), fates.jitter_key(series.0));
        // Samples of earlier ticks may have been sent in these.
        let mut start = ticks.start.saturating_sub(fates.reach()).max(life.start);
        let mut column = self.column_at(series, start);
        let mut swapped = None;
        let mut late: BTreeMap<(u64, u64), (Timestamp, f64)> = BTreeMap::new();
        while start < ticks.end {
            let end = ticks.end.min(start + CHUNK as u64);
            let keys = self.keys.of(start..end);
            column.fill(start, keys, &mut self.values[..keys.len()]);
            self.sent.clear();
            for ((tick, &tick_key), &value) in (start..).zip(keys).zip(&self.values) {
                let recorded = workload
                    .recorded
                    .as_ref()
                    .map(|recorded| recorded.value(series.0, tick));
                let value = recorded.flatten().unwrap_or(value);
                let mut at = workload.timestamp(group, tick, self.base);
                if fates.jitters() {
                    at = at + fates.jitter_ns(jitter_key, tick_key);
                }
                let send = tick >= ticks.start;
                let followed = swapped.take();
                let fate = match recorded {
                    Some(None) => Fate::Missing,
                    _ => fates.of(fate_key, tick, tick_key, life.end),
                };
                match fate {
                    Fate::OnTime if send => self.sent.push(tick, at, value, How::OnTime),
                    Fate::Twice if send => {
                        self.sent.push(tick, at, value, How::OnTime);
                        self.sent.push(tick, at, value, How::Duplicate);
                    }
                    Fate::OnTime | Fate::Twice | Fate::Missing => {}
                    Fate::Swapped => swapped = Some((at, value)),
                    Fate::Late(by) => {
                        late.insert((tick + by, tick), (at, value));
                    }
                }
                if let (Some((at, value)), true) = (followed, send) {
                    self.sent.push(tick, at, value, How::OutOfOrder);
                }
                while let Some(entry) = late.first_entry() {
                    if entry.key().0 > tick {
                        break;
                    }
                    let (at, value) = entry.remove();
                    if send {
                        self.sent.push(tick, at, value, How::Late);
                    }
                }
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

    /// A series, ready to make `tick` next.
    fn column_at(&mut self, series: SeriesId, tick: u64) -> Column {
        let workload = self.workload;
        let (law, keys) = (workload.law(series.0), workload.keys(series.0));
        let mut column = Column::new(law, keys, law.start(keys));
        if law == Law::Recorded {
            return column;
        }
        let mut start = workload.lifetime(series).map_or(0, |life| life.start);
        while start < tick {
            let end = tick.min(start + CHUNK as u64);
            let tick_keys = self.keys.of(start..end);
            column.fill(start, tick_keys, &mut self.values[..tick_keys.len()]);
            start = end;
        }
        column
    }
}
