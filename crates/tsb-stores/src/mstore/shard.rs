//! The series that share a lock: their waiting points, and the counts of their samples.

use super::cache::{CachePolicy, CacheRules, Entry, WriteBlock};
use super::files::Files;
use super::geometry::Geometry;
use crate::error::{Error, Result};
use crate::store::Reason;
use tsb_core::Timestamp;
use tsb_core::wire::dalmatiner::point_of;

/// What every series of a store shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) geometry: Geometry,
    pub(super) rules: CacheRules,
    pub(super) files: Files,
}

/// One series.
#[derive(Debug)]
pub(super) struct Series {
    /// The number of its name.
    pub(super) number: u32,
    entry: Entry,
    // The newest point that is in a file.
    newest_in_file: Option<i64>,
}

impl Series {
    pub(super) fn new(number: u32, newest_in_file: Option<i64>) -> Self {
        Self {
            number,
            entry: Entry::default(),
            newest_in_file,
        }
    }

    /// The newest point that a query would return.
    pub(super) fn newest(&self) -> Option<i64> {
        self.newest_in_file.max(self.entry.newest())
    }
}

/// Some blocks of series.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) series: Vec<Option<Series>>,
    /// Samples that a query would return, of this life.
    pub(super) added: i64,
    pub(super) superseded: u64,
    scratch: Vec<u8>,
    // The file of the last point: it is promised.
    promised: Option<i64>,
    // Without a cache: series with points of the write that is under way.
    touched: Vec<usize>,
}

/// Why a sample was not taken.
pub(super) enum NotTaken {
    /// It is refused.
    Refused(Reason),
    /// The store has failed.
    Failed(Error),
}

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Writes the blocks of one series.
struct Out<'a> {
    files: &'a Files,
    scratch: &'a mut Vec<u8>,
    number: u32,
    newest: &'a mut Option<i64>,
}

impl WriteBlock for Out<'_> {
    type Error = Error;

    fn write(&mut self, first: i64, points: &[u64]) -> Result<()> {
        self.files.write(self.number, first, points, self.scratch)?;
        *self.newest = (*self.newest).max(Some(first + points.len() as i64 - 1));
        Ok(())
    }
}

impl Shard {
    /// Takes one sample.
    #[inline]
    pub(super) fn put(
        &mut self,
        shared: &Shared,
        place: usize,
        at: Timestamp,
        value: f64,
    ) -> std::result::Result<(), NotTaken> {
        let unrepresentable = NotTaken::Refused(Reason::Unrepresentable);
        let point = shared.geometry.point(at);
        let Some(word) = point_of(value) else {
            return Err(unrepresentable);
        };
        let offset = shared.geometry.offset(point);
        if self.promised != Some(offset) {
            if !shared.files.promise(offset) {
                return Err(NotTaken::Refused(Reason::Full));
            }
            self.promised = Some(offset);
        }
        let Some(Some(series)) = self.series.get_mut(place) else {
            return Err(unrepresentable);
        };
        let is_there = series.entry.has(point)
            || (series.newest_in_file >= Some(point) && shared.files.has(series.number, point)?);
        if shared.rules.policy == CachePolicy::Off && series.entry.is_empty() {
            self.touched.push(place);
        }
        let mut out = Out {
            files: &shared.files,
            scratch: &mut self.scratch,
            number: series.number,
            newest: &mut series.newest_in_file,
        };
        series
            .entry
            .put(&shared.rules, series.number, (point, word), &mut out)?;
        self.superseded += u64::from(is_there);
        self.added += i64::from(!is_there) - series.entry.take_forgotten() as i64;
        Ok(())
    }

    /// Ends a write: without a cache, nothing waits behind it.
    pub(super) fn end_write(&mut self, shared: &Shared) -> Result<()> {
        while let Some(place) = self.touched.pop() {
            self.flush(shared, place)?;
        }
        Ok(())
    }

    /// Writes the waiting points of one series.
    pub(super) fn flush(&mut self, shared: &Shared, place: usize) -> Result<()> {
        let Some(Some(series)) = self.series.get_mut(place) else {
            return Ok(());
        };
        let mut out = Out {
            files: &shared.files,
            scratch: &mut self.scratch,
            number: series.number,
            newest: &mut series.newest_in_file,
        };
        let written = series.entry.write_all(&shared.rules, &mut out);
        self.added -= series.entry.take_forgotten() as i64;
        written
    }

    /// Writes the waiting points of all series.
    pub(super) fn flush_all(&mut self, shared: &Shared) -> Result<()> {
        (0..self.series.len()).try_for_each(|place| self.flush(shared, place))
    }

    /// Bytes reserved for waiting points.
    pub(super) fn bytes(&self) -> u64 {
        self.series.iter().flatten().map(|series| series.entry.bytes()).sum()
    }
}
