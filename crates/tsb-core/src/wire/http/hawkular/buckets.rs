//! Statistics over buckets of time, as each of Mohawk's backends computes them.

use super::behaviour::{Backend, Behaviour, HawkularOptions, Problem};
use super::data::{self, Item, MAX_READ, SLOT_MS, TOO_MUCH, Walk, clamped};
use super::window::Window;
use crate::series::SeriesKey;
use crate::wire::SampleReader;

/// One bucket of an answer. A statistic that is 0 is left out, as in Mohawk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bucket {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) is_empty: bool,
    pub(super) samples: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) avg: f64,
    pub(super) median: f64,
    pub(super) std: f64,
    pub(super) sum: f64,
}

impl Bucket {
    fn empty(start: i64, end: i64) -> Self {
        Self {
            start,
            end,
            is_empty: true,
            ..Self::default()
        }
    }

    /// Every statistic but the median and the deviation, of samples in the order of time.
    fn of(start: i64, end: i64, items: &[Item]) -> Self {
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Self::empty(start, end);
        };
        let values = items.iter().map(|item| item.1);
        let sum: f64 = values.clone().sum();
        Self {
            start,
            end,
            is_empty: false,
            samples: items.len() as u64,
            min: values.clone().fold(first.1, f64::min),
            max: values.fold(first.1, f64::max),
            first: first.1,
            last: last.1,
            avg: sum / items.len() as f64,
            sum,
            ..Self::default()
        }
    }

    /// Adds the median and the deviation of the population.
    fn complete(mut self, items: &[Item]) -> Self {
        let mut values: Vec<f64> = items.iter().map(|item| item.1).collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        if let Some(upper) = values.get(middle) {
            let lower = values[(values.len() - 1) / 2];
            self.median = lower + (upper - lower) / 2.0;
            let squares: f64 = values.iter().map(|value| (value - self.avg).powi(2)).sum();
            self.std = (squares / values.len() as f64).sqrt();
        }
        self
    }
}

/// The buckets of a metric.
pub(super) fn buckets(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    window: &Window,
    newest_ms: Option<i64>,
    options: HawkularOptions,
) -> Result<Vec<Bucket>, Problem> {
    let mut buckets = match (options.behaviour, options.backend) {
        (Behaviour::Corrected, _) => corrected(reader, key, window)?,
        (Behaviour::Mohawk0154, Backend::Memory) => return memory_0154(reader, key, window, newest_ms),
        (Behaviour::Head, Backend::Memory) => memory_head(reader, key, window)?,
        (Behaviour::Mohawk0154, Backend::Sqlite3) => return sqlite_0154(reader, key, window),
        (Behaviour::Head, Backend::Sqlite3) => {
            let step = window.bucket_ms;
            let end = window.end.div_euclid(step).saturating_add(1).saturating_mul(step);
            let found = grouped(reader, key, (floor(window.start, step), end), step)?;
            found
                .into_iter()
                .map(|(start, items)| of_sqlite(start, step, &items))
                .collect()
        }
        (_, Backend::Mongo) => {
            let step = window.bucket_ms;
            let found = grouped(reader, key, (window.start, window.end), step)?;
            found
                .into_iter()
                .map(|(start, items)| of_mongo(start, step, &items))
                .collect()
        }
    };
    if window.is_newest_first && (options.is_corrected() || options.backend != Backend::Memory) {
        buckets.reverse();
    }
    buckets.truncate(usize::try_from(window.limit).unwrap_or(usize::MAX));
    // The memory backend of the last version takes the oldest ones, and reverses those.
    if window.is_newest_first && options.is(Behaviour::Head, Backend::Memory) {
        buckets.reverse();
    }
    Ok(buckets)
}

fn floor(at: i64, step: i64) -> i64 {
    at.div_euclid(step) * step
}

/// SQLite computes neither the first nor the last value.
fn of_sqlite(start: i64, step: i64, items: &[Item]) -> Bucket {
    Bucket {
        first: 0.0,
        last: 0.0,
        ..Bucket::of(start, start + step, items)
    }
}

/// The end of a bucket is its first sample's time, rounded up: of a sample at its start, the start.
fn of_mongo(start: i64, step: i64, items: &[Item]) -> Bucket {
    let is_at_start = items.first().is_some_and(|item| item.0 == start);
    let end = if is_at_start { start } else { start + step };
    Bucket::of(start, end, items)
}

/// Samples by the multiple of `step` in which they are; without empty ones.
fn grouped(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    range: (i64, i64),
    step: i64,
) -> Result<Vec<(i64, Vec<Item>)>, Problem> {
    let mut groups: Vec<(i64, Vec<Item>)> = Vec::new();
    for item in data::all(reader, key, range)? {
        let start = floor(item.0, step);
        match groups.last_mut() {
            Some((known, items)) if *known == start => items.push(item),
            _ => groups.push((start, vec![item])),
        }
    }
    Ok(groups)
}

/// Fills gaps, ignores the order and the limit, and leaves out the part of a bucket at the end.
fn sqlite_0154(reader: &mut dyn SampleReader, key: &SeriesKey, window: &Window) -> Result<Vec<Bucket>, Problem> {
    let step = window.bucket_ms;
    let (start, end) = (floor(window.start, step), floor(window.end, step));
    let is_known = data::newest(reader, std::slice::from_ref(key))? != [None];
    if !is_known {
        return Ok(Vec::new());
    }
    let found = grouped(reader, key, (start, end), step)?;
    filled(start, end, step, found, |start, items| of_sqlite(start, step, items))
}

fn corrected(reader: &mut dyn SampleReader, key: &SeriesKey, window: &Window) -> Result<Vec<Bucket>, Problem> {
    let (start, step) = (window.start, window.bucket_ms);
    let mut groups: Vec<(i64, Vec<Item>)> = Vec::new();
    for item in data::all(reader, key, (start, window.end))? {
        let begin = start + (item.0 - start) / step * step;
        match groups.last_mut() {
            Some((known, items)) if *known == begin => items.push(item),
            _ => groups.push((begin, vec![item])),
        }
    }
    filled(start, window.end, step, groups, |begin, items| {
        Bucket::of(begin, begin.saturating_add(step), items).complete(items)
    })
}

/// Every bucket from `start` to `end`, with empty ones between the groups.
fn filled(
    start: i64,
    end: i64,
    step: i64,
    groups: Vec<(i64, Vec<Item>)>,
    bucket: impl Fn(i64, &[Item]) -> Bucket,
) -> Result<Vec<Bucket>, Problem> {
    if end.saturating_sub(start) / step > MAX_READ as i64 {
        return Err(TOO_MUCH);
    }
    let (mut at, mut buckets) = (start, Vec::new());
    let empties = |at: &mut i64, until: i64, buckets: &mut Vec<Bucket>| {
        while *at < until {
            buckets.push(Bucket::empty(*at, at.saturating_add(step)));
            *at = at.saturating_add(step);
        }
    };
    for (begin, items) in groups {
        empties(&mut at, begin, &mut buckets);
        buckets.push(bucket(begin, &items));
        at = at.saturating_add(step);
    }
    empties(&mut at, end, &mut buckets);
    Ok(buckets)
}

/// From the newest bucket back. An empty bucket counts twice against the limit, a sample at the
/// very start is left out, and only some statistics are computed.
fn memory_0154(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    window: &Window,
    newest_ms: Option<i64>,
) -> Result<Vec<Bucket>, Problem> {
    let (start, end) = clamped(window.start, window.end, newest_ms);
    let (start, end) = (floor(start, SLOT_MS), floor(end, SLOT_MS).saturating_add(SLOT_MS));
    let slots = Walk::new(start, end).slots;
    let step = (window.bucket_ms / SLOT_MS).clamp(1, slots);
    let step_ms = step * SLOT_MS;
    let items = data::all(reader, key, (start.saturating_add(1), end))?;
    let (mut until, mut counted, mut begin) = (items.len(), 0, end);
    let mut buckets = Vec::new();
    for _ in 0..slots.div_euclid(step) + i64::from(slots % step > 0) {
        if counted >= window.limit || begin < step_ms {
            break;
        }
        begin -= step_ms;
        let from = items.partition_point(|item| item.0 < begin);
        let bucket = Bucket::of(begin, begin + step_ms, &items[from..until]);
        until = from;
        counted += if bucket.is_empty { 2 } else { 1 };
        buckets.push(Bucket {
            min: 0.0,
            max: 0.0,
            first: 0.0,
            ..bucket
        });
    }
    if !window.is_newest_first {
        buckets.reverse();
    }
    Ok(buckets)
}

/// Buckets begin at the start, whose slots do not: samples of a slot that two buckets share count
/// in neither or in the later one. The last bucket may go beyond the end.
fn memory_head(reader: &mut dyn SampleReader, key: &SeriesKey, window: &Window) -> Result<Vec<Bucket>, Problem> {
    let step = (window.bucket_ms / SLOT_MS).max(1);
    let step_ms = step.saturating_mul(SLOT_MS);
    let first_slot = window.start.div_euclid(SLOT_MS);
    let slots = window.end.div_euclid(SLOT_MS).saturating_sub(first_slot);
    if slots < 0 {
        return Ok(Vec::new());
    }
    let end = (slots / step + 1).saturating_mul(step_ms).saturating_add(window.start);
    let mut groups: Vec<(i64, Vec<Item>)> = Vec::new();
    for item in data::all(reader, key, (window.start, end))? {
        let index = (item.0.div_euclid(SLOT_MS) - first_slot) / step;
        let begin = window.start + index * step_ms;
        if item.0 < begin {
            continue;
        }
        match groups.last_mut() {
            Some((known, items)) if *known == begin => items.push(item),
            _ => groups.push((begin, vec![item])),
        }
    }
    let buckets = groups.into_iter();
    Ok(buckets
        .map(|(begin, items)| Bucket::of(begin, begin + step_ms, &items))
        .collect())
}
