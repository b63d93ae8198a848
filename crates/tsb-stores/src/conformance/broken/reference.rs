//! A plain store that fulfils the contract, or all of it but one point.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Times, Timestamp};

use super::flaw::Flaw;
use crate::error::{Error, Result};
use crate::resample::Resampler;
use crate::store::{
    Ack, Capabilities, Consolidation, Exactness, Footprint, OnConflict, Position, Query, Reason, Refusals, Resample,
    Scope, Stats, Store, TimeRange, Visitor,
};

mod contract;

type ReferenceRows = BTreeMap<Timestamp, Vec<f64>>;

/// The disk of a store: its contents, and whether it can be written.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The contents as the operating system has them, which outlive the process.
    series: Mutex<BTreeMap<String, ReferenceRows>>,
    /// The synced contents, which outlive a power cut.
    synced: Mutex<BTreeMap<String, ReferenceRows>>,
    pub(super) fails: AtomicBool,
    is_locked: AtomicBool,
    /// Whether a row was removed by damage.
    is_damaged: bool,
}

impl Disk {
    /// The disk after a power cut.
    pub(super) fn after_power_cut(&self) -> Self {
        let left = self.synced.lock().unwrap().clone();
        Self {
            series: Mutex::new(left.clone()),
            synced: Mutex::new(left),
            ..Self::default()
        }
    }

    /// The disk after a kill, without one row of the first series that has rows.
    pub(super) fn after_damage(&self, seed: u64) -> Option<Self> {
        let mut left = self.series.lock().unwrap().clone();
        let rows = left.values_mut().find(|rows| !rows.is_empty())?;
        let at = rows.keys().nth(seed as usize % rows.len()).copied()?;
        rows.remove(&at);
        Some(Self {
            series: Mutex::new(left.clone()),
            synced: Mutex::new(left),
            is_damaged: true,
            ..Self::default()
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) capabilities: Capabilities,
    pub(super) max_series: usize,
    pub(super) max_samples: usize,
}

#[derive(Debug)]
pub(super) struct Reference {
    flaw: Option<Flaw>,
    options: Options,
    disk: Arc<Disk>,
    state: Mutex<ReferenceState>,
    holds_lock: AtomicBool,
    racy_count: AtomicU64,
    opened_in: ThreadId,
}

#[derive(Debug, Default)]
struct ReferenceState {
    keys: BTreeMap<SeriesId, SeriesKey>,
    series: BTreeMap<SeriesId, StoredSeries>,
    accepted: u64,
    superseded: u64,
    expired: u64,
    synced: Position,
    // The samples of the last write, which are hidden from one more reader.
    hidden: Vec<(SeriesId, Timestamp)>,
    is_closed: bool,
    poison: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct StoredSeries {
    rows: ReferenceRows,
    newest: Option<Timestamp>,
    last_written: Option<Timestamp>,
}

impl Reference {
    pub(super) fn open(flaw: Option<Flaw>, options: Options, disk: Arc<Disk>) -> Result<Self> {
        if disk.is_locked.swap(true, Ordering::SeqCst) {
            return Err(Self::failed("open what another value has open"));
        }
        Ok(Self {
            flaw,
            options,
            disk,
            state: Mutex::default(),
            holds_lock: AtomicBool::new(true),
            racy_count: AtomicU64::new(0),
            opened_in: std::thread::current().id(),
        })
    }

    fn unlock(&self) {
        if self.holds_lock.swap(false, Ordering::SeqCst) {
            self.disk.is_locked.store(false, Ordering::SeqCst);
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn enter(&self) -> Result<MutexGuard<'_, ReferenceState>> {
        if self.has(Flaw::KnowsOneThread) && std::thread::current().id() != self.opened_in {
            return Err(Self::failed("work in another thread"));
        }
        let state = self.state.lock().unwrap();
        if state.is_closed {
            return Err(Error::Closed);
        }
        match &state.poison {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(state),
        }
    }

    fn failed(action: &str) -> Error {
        Error::Backend {
            action: action.to_owned(),
            source: "it is meant to".into(),
        }
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }

    fn is_defined(&self, state: &ReferenceState, id: SeriesId) -> bool {
        let is_below = || state.keys.keys().any(|&other| other > id);
        state.keys.contains_key(&id) || (self.has(Flaw::DefinesAllBelow) && is_below())
    }

    fn name_on_disk(&self, id: SeriesId, key: &SeriesKey) -> String {
        if self.has(Flaw::BindsIdsOnDisk) {
            id.to_string()
        } else {
            key.to_string()
        }
    }

    /// The series whose rows a write or read of `id` uses.
    fn target(&self, state: &ReferenceState, id: SeriesId) -> SeriesId {
        let name = |id: SeriesId| state.keys.get(&id).map(|key| key.name().to_owned());
        if self.has(Flaw::IgnoresLabels) {
            state
                .keys
                .keys()
                .copied()
                .find(|&other| name(other) == name(id))
                .unwrap_or(id)
        } else {
            id
        }
    }

    fn kept_value(&self, value: f64) -> f64 {
        match self.options.capabilities.exactness {
            Exactness::Float32 => f64::from(value as f32),
            Exactness::Decimals(decimals) => {
                let scale = 10_f64.powi(i32::from(decimals));
                let rounded = (value * scale).round() / scale;
                if rounded.is_finite() { rounded } else { value }
            }
            Exactness::Significant(digits) => {
                // Writing a number and reading it again cannot fail.
                format!("{value:.*e}", usize::from(digits.saturating_sub(1)))
                    .parse()
                    .unwrap_or(value)
            }
            _ if self.has(Flaw::RoundsToFloat) => f64::from(value as f32),
            _ if self.has(Flaw::MakesEveryNanTheSame) && value.is_nan() => f64::NAN,
            _ if self.has(Flaw::LosesTheSignOfZero) && value == 0.0 => 0.0,
            _ => value,
        }
    }

    fn refusal(&self, state: &ReferenceState, line: &StoredSeries, at: Timestamp, value: f64) -> Option<Reason> {
        let c = &self.options.capabilities;
        let is_late = line.newest.is_some_and(|newest| at < newest);
        let keeps_ns = self.options.capabilities.retention_ns.unwrap_or(i64::MAX);
        if line.newest.is_some_and(|newest| newest - at >= keeps_ns) && self.options.capabilities.retention_ns.is_some()
        {
            Some(Reason::Expired)
        } else if !c.special_values && !value.is_finite() && !self.has(Flaw::DropsSpecialValues) {
            Some(Reason::Unrepresentable)
        } else if c.late == OnConflict::Rejected && is_late && !self.has(Flaw::TakesLateInsteadOfRefusing) {
            Some(Reason::Late)
        } else if c.duplicate == OnConflict::Rejected
            && line.rows.contains_key(&at)
            && !self.has(Flaw::OverwritesInsteadOfRefusing)
        {
            Some(Reason::Duplicate)
        } else if state.accepted >= self.options.max_samples as u64 && !self.has(Flaw::DropsWhenFull) {
            Some(Reason::Full)
        } else {
            None
        }
    }

    /// Stores one sample. Returns how many samples it superseded and expired.
    fn put(&self, state: &ReferenceState, line: &mut StoredSeries, at: Timestamp, value: f64) -> (u64, u64) {
        let is_late = line.newest.is_some_and(|newest| at < newest);
        let is_dropped = (is_late && self.has(Flaw::DropsLateSamples))
            || (!value.is_finite() && self.has(Flaw::DropsSpecialValues))
            || (state.accepted % 100_000 == 99_999 && self.has(Flaw::LosesOneOfAHundredThousand))
            || state.accepted >= self.options.max_samples as u64;
        if is_dropped {
            return (0, 0);
        }
        let at = if self.has(Flaw::ClampsOldTimes) {
            at.max(Timestamp(0))
        } else {
            at
        };
        line.last_written = Some(at);
        let rows = line.rows.entry(at).or_default();
        let mut superseded = 0;
        if self.has(Flaw::KeepsTheEarlier) && !rows.is_empty() {
            superseded = 1;
        } else {
            let keeps_both = self.options.capabilities.duplicate == OnConflict::KeptBoth;
            if !keeps_both || self.has(Flaw::KeepsOneOfBoth) {
                superseded = rows.len() as u64;
                rows.clear();
            }
            rows.push(self.kept_value(value));
        }
        line.newest = line.newest.max(Some(at));
        let mut expired = 0;
        if let (Some(keeps_ns), Some(newest)) = (self.options.capabilities.retention_ns, line.newest) {
            let kept = line.rows.split_off(&(newest + (1 - keeps_ns)));
            expired = line.rows.values().map(|rows| rows.len() as u64).sum();
            line.rows = kept;
        }
        (superseded, expired)
    }

    /// Applies one sample. Returns whether it was refused. With the race flaw, gives other
    /// threads a chance in between.
    fn apply<'a>(
        &'a self,
        mut state: MutexGuard<'a, ReferenceState>,
        sample: (SeriesId, Timestamp, f64),
        refused: &mut Option<Reason>,
    ) -> MutexGuard<'a, ReferenceState> {
        let (id, at, value) = sample;
        let id = self.target(&state, id);
        let mut line = state.series.remove(&id).unwrap_or_default();
        if self.has(Flaw::LosesSamplesInARace) {
            state.series.insert(id, line.clone());
            drop(state);
            // Long enough for another writer to run in between, even on a busy machine.
            (0..50).for_each(|_| std::thread::yield_now());
            state = self.state.lock().unwrap();
        }
        *refused = self.refusal(&state, &line, at, value);
        if refused.is_none() {
            let (superseded, expired) = self.put(&state, &mut line, at, value);
            state.accepted += 1;
            state.superseded += if self.has(Flaw::ForgetsToCountSuperseded) {
                0
            } else {
                superseded
            };
            state.expired += expired;
        }
        state.series.insert(id, line);
        state
    }

    /// The samples of a batch, as this store interprets them.
    fn read(&self, batch: &Batch<'_>) -> Vec<(usize, (SeriesId, Timestamp, f64))> {
        let mut samples: Vec<_> = batch.iter().enumerate().collect();
        if let (Times::Each(_), Flaw::UsesOneTimeForAll) = (batch.times(), self.flaw.unwrap_or(Flaw::Descends)) {
            let first = samples.first().map(|(_, sample)| sample.1);
            for (_, sample) in &mut samples {
                sample.1 = first.unwrap_or_default();
            }
        }
        if let (Ids::Each(ids), Flaw::TakesIdsAsRange) = (batch.ids(), self.flaw.unwrap_or(Flaw::Descends)) {
            let first = ids.first().map_or(0, |id| id.0);
            for (index, sample) in &mut samples {
                sample.0 = SeriesId(first + *index as u32);
            }
        }
        if self.has(Flaw::ReversesABatch) {
            samples.reverse();
        }
        samples
    }

    /// Refuses a batch because of its sample `unknown`.
    fn reject<'a>(
        &'a self,
        mut state: MutexGuard<'a, ReferenceState>,
        samples: &[(usize, (SeriesId, Timestamp, f64))],
        unknown: usize,
    ) -> Error {
        if self.has(Flaw::AppliesUpToTheUnknown) {
            for (_, sample) in &samples[..unknown] {
                state = self.apply(state, *sample, &mut None);
            }
        }
        if self.has(Flaw::StaysBrokenAfterAWrite) {
            state.poison = Some("an unknown series".to_owned());
        }
        Error::UnknownSeries {
            id: samples[unknown].1.0,
        }
    }

    /// Counts again outside of the lock; the correct store does not do this.
    fn count(&self, accepted: u64) {
        let racy = self.racy_count.load(Ordering::SeqCst);
        if self.has(Flaw::LosesCountsInARace) {
            std::thread::yield_now();
        }
        self.racy_count.store(racy + accepted, Ordering::SeqCst);
        if self.has(Flaw::LosesWritesWhileClosing) {
            // Long enough for a close to run in between.
            (0..50).for_each(|_| std::thread::yield_now());
            let mut state = self.state.lock().unwrap();
            if state.is_closed {
                state.accepted -= accepted;
            }
        }
    }

    fn refuse(&self, refused: &mut Refusals, index: usize, reason: Reason) {
        match self.flaw {
            Some(Flaw::RefusesWithoutIndex) => {}
            Some(Flaw::RefusesTheNextIndex) => refused.push(index + 1, reason),
            _ => refused.push(index, reason),
        }
    }

    fn rows(&self, line: &StoredSeries, range: TimeRange) -> (Vec<Timestamp>, Vec<f64>) {
        let is_in = |at: Timestamp| match self.flaw {
            Some(Flaw::IncludesTheEnd) => range.start <= at && at <= range.end,
            Some(Flaw::ExcludesTheStart) => range.start < at && at < range.end,
            _ => range.start <= at && at < range.end,
        };
        let near = line.rows.range(range.start..).take_while(|(at, _)| **at <= range.end);
        let rows = near.flat_map(|(at, values)| values.iter().map(|value| (*at, *value)));
        let rows = rows.filter(|(at, _)| is_in(*at));
        let most = if self.has(Flaw::AnswersAThousandRows) {
            1_000
        } else {
            usize::MAX
        };
        let mut rows: Vec<_> = rows.take(most).collect();
        if self.has(Flaw::Descends) {
            rows.reverse();
        }
        rows.into_iter().unzip()
    }

    fn resampled(&self, line: &StoredSeries, range: TimeRange, resample: Resample) -> (Vec<Timestamp>, Vec<f64>) {
        let step = resample.step_ns;
        let range = if self.has(Flaw::IgnoresTheRangeOfRows) {
            let start = Timestamp(range.start.0.div_euclid(step).saturating_mul(step));
            TimeRange { start, ..range }
        } else {
            range
        };
        let (mut times, mut values) = self.rows(line, range);
        if self.has(Flaw::AveragesOverNan) && resample.consolidation == Consolidation::Average {
            values
                .iter_mut()
                .filter(|value| value.is_nan())
                .for_each(|value| *value = 0.0);
        }
        if self.has(Flaw::SumsBackwards) {
            let (first, last) = (times.first().copied(), times.last().copied());
            let is_one_step = first.map(|at| at.0.div_euclid(step)) == last.map(|at| at.0.div_euclid(step));
            if is_one_step && resample.consolidation == Consolidation::Sum {
                values.reverse();
            }
        }
        let shift = if self.has(Flaw::StepsFromTheRangesStart) {
            range.start.0.rem_euclid(step)
        } else {
            0
        };
        for at in &mut times {
            *at = *at + -shift;
        }
        let mut resampler = Resampler::new(resample);
        times
            .iter()
            .zip(&values)
            .for_each(|(at, value)| resampler.push(*at, *value));
        let (mut times, values) = resampler.finish();
        for at in &mut times {
            *at = *at + shift;
        }
        if self.has(Flaw::TruncatesNegativeSteps) {
            times.iter_mut().filter(|at| at.0 < 0).for_each(|at| *at = *at + step);
        }
        (times, values)
    }

    fn check_known(&self, state: &ReferenceState, ids: &[SeriesId]) -> Result<()> {
        match ids.iter().find(|&&id| !self.is_defined(state, id)) {
            Some(&id) if !self.has(Flaw::AnswersForTheUnknown) => Err(Error::UnknownSeries { id }),
            _ => Ok(()),
        }
    }

    /// The samples that a reader may see now.
    fn visible(state: &mut ReferenceState, asked: &[SeriesId]) -> BTreeMap<SeriesId, StoredSeries> {
        let mut series: BTreeMap<_, _> = asked
            .iter()
            .filter_map(|id| Some((*id, state.series.get(id)?.clone())))
            .collect();
        for (id, at) in state.hidden.drain(..) {
            if let Some(line) = series.get_mut(&id) {
                line.rows.remove(&at);
            }
        }
        series
    }

    /// Samples on the disk of series that have not been defined since the opening.
    fn samples_of_others(&self, state: &ReferenceState) -> u64 {
        let names: Vec<String> = state.keys.iter().map(|(id, key)| self.name_on_disk(*id, key)).collect();
        let disk = self.disk.series.lock().unwrap();
        let others = disk.iter().filter(|(name, _)| !names.contains(name));
        others
            .flat_map(|(_, rows)| rows.values())
            .map(|values| values.len() as u64)
            .sum()
    }

    fn sync(&self, state: &mut ReferenceState) -> Result<()> {
        if self.disk.fails.load(Ordering::SeqCst) {
            if self.has(Flaw::CoversAFailedFlush) {
                state.synced = Position(state.accepted);
            }
            if !self.has(Flaw::TriesAFailedFlushAgain) {
                state.poison = Some("the disk failed".to_owned());
            }
            return Err(Self::failed("sync"));
        }
        if !self.has(Flaw::FlushesNothing) {
            let mut disk = self.disk.series.lock().unwrap();
            for (&id, line) in &state.series {
                if let Some(key) = state.keys.get(&id) {
                    disk.insert(self.name_on_disk(id, key), line.rows.clone());
                }
            }
            if !self.has(Flaw::SyncsToTheCache) {
                *self.disk.synced.lock().unwrap() = disk.clone();
            }
        }
        state.synced = Position(state.accepted);
        Ok(())
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reference")
    }
}
