//! A day of history of some series of the feed, with every right answer about it.

use tsb_core::batch::BatchBuf;
use tsb_core::report::experiment::dalmatiner::DalmatinerPlan;
use tsb_core::time::{Clock, SECOND_NS};
use tsb_core::workload::Workload;
use tsb_core::{SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Refusals, Scope, Store};

use super::feed::workload;
use crate::audit::{Columns, Rules};
use crate::error::Error;

/// Its length.
pub(super) const DAY_S: u64 = 86_400;
/// Samples of a write.
const WRITE: usize = 10_000;

/// The history, in memory.
pub(super) struct History {
    /// The feed of which it is a part.
    pub(super) workload: Workload,
    /// Its series.
    pub(super) ids: Vec<SeriesId>,
    /// The first timestamp behind it: a whole hour.
    pub(super) end: Timestamp,
    columns: Vec<Columns>,
}

impl History {
    /// The last whole day, up to the last whole hour, of `count` series that are spread over the
    /// feed.
    ///
    /// # Errors
    /// If the feed cannot have that many series.
    pub(super) fn new(asked: &DalmatinerPlan, series: u64, count: u64, clock: &dyn Clock) -> Result<Self, Error> {
        let workload = Workload::new(&workload(asked, series))
            .map_err(|error| Error::plan(format!("cannot make a feed of {series} series")).because(&error))?;
        let all = workload.catalog().len() as u64;
        let count = count.min(all).max(1);
        let ids: Vec<SeriesId> = (0..count).map(|place| SeriesId((place * all / count) as u32)).collect();
        let end = Timestamp::from_secs(clock.wall().as_secs() / 3_600 * 3_600);
        let columns = generated(&workload, &ids, end + -((DAY_S * SECOND_NS) as i64));
        Ok(Self {
            workload,
            ids,
            end,
            columns,
        })
    }

    /// The definitions of its series.
    pub(super) fn definitions(&self) -> Vec<(SeriesId, SeriesKey)> {
        let all = self.workload.catalog().definitions();
        self.ids
            .iter()
            .filter_map(|id| all.get(id.0 as usize).cloned())
            .collect()
    }

    /// Number of samples.
    pub(super) fn samples(&self) -> u64 {
        self.columns.iter().map(|columns| columns.len() as u64).sum()
    }

    /// Writes it, second by second, and flushes it.
    ///
    /// # Errors
    /// If the store does not take all of it, as a sentence.
    pub(super) fn write(&self, store: &dyn Store) -> Result<(), String> {
        let longest = self.columns.iter().map(Columns::len).max().unwrap_or(0);
        let (mut batch, mut refused) = (BatchBuf::with_capacity(WRITE), Refusals::new());
        let mut send = |batch: &mut BatchBuf| {
            let ack = store
                .write(&batch.as_batch(), &mut refused)
                .map_err(|error| error.to_string())?;
            batch.clear();
            match (ack.rejected, refused.as_slice().first()) {
                (0, _) => Ok(()),
                (_, Some(first)) => Err(format!("a sample of the history was refused: {}", first.reason.name())),
                (_, None) => Err("a sample of the history was refused".to_owned()),
            }
        };
        for second in 0..longest {
            for (id, columns) in self.ids.iter().zip(&self.columns) {
                if let (Some(at), Some(value)) = (columns.times.get(second), columns.values.get(second)) {
                    batch.push(*id, *at, *value);
                }
            }
            if batch.len() >= WRITE {
                send(&mut batch)?;
            }
        }
        if !batch.is_empty() {
            send(&mut batch)?;
        }
        let flushed = store.flush(Scope::All, store.capabilities().reaches);
        flushed.map_err(|error| error.to_string())
    }

    /// The maximum of each step of the last `span_s` seconds of a series, by its place.
    pub(super) fn maxima(&self, place: usize, span_s: u64, step_s: u64) -> Columns {
        let mut rows = Columns::default();
        let Some(columns) = self.columns.get(place) else {
            return rows;
        };
        let from = self.end + -((span_s * SECOND_NS) as i64);
        let first = columns.times.partition_point(|at| *at < from);
        maxima(&columns.times[first..], &columns.values[first..], step_s, &mut rows);
        rows
    }
}

/// Whether rows are those that a store of these rules has to return.
///
/// # Errors
/// What was expected, and what came, as a sentence.
pub(super) fn check(expected: &Columns, found: &Columns, rules: &Rules) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} rows instead of {}", found.len(), expected.len()));
    }
    let largest = rules.largest(&expected.values);
    let pairs = expected.times.iter().zip(&expected.values);
    let mut both = pairs.zip(found.times.iter().zip(&found.values));
    let wrong =
        both.find(|((at, value), (found_at, found))| at != found_at || !rules.is_same(**value, **found, largest));
    match wrong {
        None => Ok(()),
        Some(((at, value), (found_at, found))) => Err(format!("{found} at {found_at} instead of {value} at {at}")),
    }
}

/// The samples of a day of some series.
fn generated(workload: &Workload, ids: &[SeriesId], base: Timestamp) -> Vec<Columns> {
    let mut replay = workload.replay(base);
    let of_series = |id: &SeriesId| {
        let mut columns = Columns::default();
        replay.series(*id, 0..DAY_S, &mut |chunk| columns.extend(chunk));
        columns
    };
    ids.iter().map(of_series).collect()
}

/// The maximum of each step of samples in time order. Steps begin at multiples of their length.
pub(super) fn maxima(times: &[Timestamp], values: &[f64], step_s: u64, into: &mut Columns) {
    let step_ns = (step_s * SECOND_NS) as i64;
    let step_of = |at: Timestamp| Timestamp(at.0.div_euclid(step_ns) * step_ns);
    for (at, value) in times.iter().zip(values) {
        let step = step_of(*at);
        match (into.times.last(), into.values.last_mut()) {
            (Some(last), Some(max)) if *last == step => *max = max.max(*value),
            _ => into.push(step, *value),
        }
    }
}
