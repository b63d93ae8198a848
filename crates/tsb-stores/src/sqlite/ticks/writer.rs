//! The writer: applies a batch to the head, the frame and the counts.

use std::sync::atomic::Ordering;

use rusqlite::Connection;
use tsb_core::time::MonotonicClock;
use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Times, Timestamp};

use super::next_head::NextHead;
use super::summaries::KeptMaxima;
use super::view::{AgingGeneration, DroppingGeneration, View};
use super::{TickShared, panicked};
use crate::block::{Part, Wanted};
use crate::error::{Error, Result};
use crate::sqlite::chunk::Packer;
use crate::sqlite::commits::Commits;
use crate::sqlite::log::FrameEncoder;
use crate::sqlite::wal::Wal;
use crate::sqlite::{Commit, Synchronous};
use crate::store::{Ack, Position, Reason, Refusals};

/// Bytes from which on a frame is committed, whatever the interval.
const MAX_FRAME_BYTES: usize = 1 << 20;

/// The writer's state, behind the store's lock.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once closed.
    pub(super) connection: Option<Connection>,
    pub(super) clock: MonotonicClock,
    pub(super) encoder: FrameEncoder,
    /// The key of the next frame.
    pub(super) seq: i64,
    /// Series whose keys are not in the file yet.
    pub(super) new_keys: Vec<(u32, SeriesKey)>,
    pub(super) head: HeadState,
    pub(super) aging: Option<AgingGeneration>,
    pub(super) dropping: Option<DroppingGeneration>,
    pub(super) next_head: NextHead,
    pub(super) packer: Packer,
    pub(super) kept: KeptMaxima,
    pub(super) parts: Vec<Part>,
    pub(super) wal: Wal,
    pub(super) commits: Commits,
    /// Bytes of the log and of the key table in the file. Approximate.
    pub(super) log_bytes: u64,
    pub(super) key_bytes: u64,
    /// The newest timestamp at the last commit.
    pub(super) committed_until: Option<i64>,
    ids: Vec<SeriesId>,
    unexpired: UnexpiredSamples,
}

/// The state of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadState {
    pub(super) number: i64,
    pub(super) first_seq: i64,
    pub(super) samples: u64,
    pub(super) oldest: i64,
    pub(super) newest: i64,
    /// Whether the file has its row.
    pub(super) is_stored: bool,
}

impl HeadState {
    pub(super) fn new(number: i64, first_seq: i64) -> Self {
        Self {
            number,
            first_seq,
            samples: 0,
            oldest: i64::MAX,
            newest: i64::MIN,
            is_stored: false,
        }
    }
}

/// The samples of a batch that are not refused.
#[derive(Debug, Default)]
struct UnexpiredSamples {
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl Writer {
    pub(super) fn new(connection: Connection, wal: Wal, seq: i64, head: HeadState) -> Self {
        Self {
            connection: Some(connection),
            clock: MonotonicClock::new(),
            encoder: FrameEncoder::default(),
            seq,
            new_keys: Vec::new(),
            head,
            aging: None,
            dropping: None,
            next_head: NextHead::default(),
            packer: Packer::default(),
            kept: KeptMaxima::default(),
            parts: Vec::new(),
            wal,
            commits: Commits::default(),
            log_bytes: 0,
            key_bytes: 0,
            committed_until: None,
            ids: Vec::new(),
            unexpired: UnexpiredSamples::default(),
        }
    }

    pub(super) fn commits(&self) -> Commits {
        self.commits
    }

    pub(super) fn define(&mut self, shared: &TickShared, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut keys = shared.keys.write().map_err(panicked)?;
        let first = keys.count();
        let new = keys.define(series)?;
        let count = keys.count();
        drop(keys);
        let view = shared.view()?;
        view.head.define_ids(first..count);
        shared.older.write().map_err(panicked)?.resize(count as usize, i64::MIN);
        if let Some(aging) = &mut self.aging {
            aging.prior.resize(count as usize, i64::MIN);
        }
        self.new_keys.extend((first..count).zip(new));
        self.commit_keys(shared)
    }

    pub(super) fn write(&mut self, shared: &TickShared, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let mut accepted = 0;
        if !batch.is_empty() {
            let mut ids = std::mem::take(&mut self.ids);
            let keys = shared.keys.read().map_err(panicked)?;
            let numbered = keys.numbered(batch, &mut ids);
            drop(keys);
            let written = numbered.and_then(|numbered| self.write_numbered(shared, &numbered, refused));
            self.ids = ids;
            accepted = written?;
        }
        Ok(Ack::new(
            accepted,
            batch.len() - accepted,
            Position(shared.accepted.load(Ordering::Acquire)),
            shared.acknowledges(),
        ))
    }

    fn write_numbered(&mut self, shared: &TickShared, batch: &Batch<'_>, refused: &mut Refusals) -> Result<usize> {
        let accepted = match shared.options.retention_ns {
            Some(_) => self.take_unexpired(shared, batch, refused)?,
            None => self.take(shared, batch)?,
        };
        let newest = self.head.newest;
        let until = *self.committed_until.get_or_insert(newest);
        let due = match shared.options.commit {
            Commit::Each => true,
            Commit::Every(interval_ns) => newest.saturating_sub(until) >= interval_ns,
        };
        if due || self.encoder.len() >= MAX_FRAME_BYTES {
            self.commit(shared)?;
        }
        Ok(accepted)
    }

    /// Accepts all samples of a batch.
    fn take(&mut self, shared: &TickShared, batch: &Batch<'_>) -> Result<usize> {
        let view = shared.view()?;
        let superseded = self.apply(shared, &view, batch)?;
        self.encoder.add(batch);
        shared.superseded.fetch_add(superseded as u64, Ordering::Relaxed);
        shared.accepted.fetch_add(batch.len() as u64, Ordering::AcqRel);
        Ok(batch.len())
    }

    /// Accepts the samples of a batch that have not expired.
    fn take_unexpired(&mut self, shared: &TickShared, batch: &Batch<'_>, refused: &mut Refusals) -> Result<usize> {
        let (oldest, newest) = span(batch);
        if oldest >= shared.cutoff(newest.max(self.head.newest)) {
            return self.take(shared, batch);
        }
        let mut newest = self.head.newest;
        let mut unexpired = std::mem::take(&mut self.unexpired);
        unexpired.clear();
        for (index, (id, at, value)) in batch.iter().enumerate() {
            newest = newest.max(at.0);
            if at.0 < shared.cutoff(newest) {
                refused.push(index, Reason::Expired);
            } else {
                unexpired.push(id, at, value);
            }
        }
        let taken = if unexpired.values.len() == batch.len() {
            self.take(shared, batch)
        } else {
            self.take(shared, &unexpired.batch())
        };
        self.unexpired = unexpired;
        taken
    }

    /// Applies a batch to the head. Returns how many samples replaced an older one.
    pub(super) fn apply(&mut self, shared: &TickShared, view: &View, batch: &Batch<'_>) -> Result<usize> {
        if batch.is_empty() {
            return Ok(0);
        }
        let (oldest, newest) = span(batch);
        let superseded = if oldest > view.older_newest {
            view.head.apply(batch)?
        } else {
            self.apply_beside_older(shared, view, batch)?
        };
        self.head.samples += batch.len() as u64;
        self.head.oldest = self.head.oldest.min(oldest);
        self.head.newest = self.head.newest.max(newest);
        shared.newest_of_all.store(self.head.newest, Ordering::Release);
        Ok(superseded)
    }

    /// [`Writer::apply`] if series may have samples of the same time in older generations.
    fn apply_beside_older(&mut self, shared: &TickShared, view: &View, batch: &Batch<'_>) -> Result<usize> {
        let older = shared.older.read().map_err(panicked)?;
        let is_late = |index: usize| batch.time(index).0 <= older[batch.id(index).index()];
        if !(0..batch.len()).any(is_late) {
            return view.head.apply(batch);
        }
        let mut superseded = 0;
        for index in 0..batch.len() {
            if is_late(index) && !self.head_holds(view, batch.id(index), batch.time(index))? {
                superseded += usize::from(self.older_holds(shared, view, batch.id(index).0, batch.time(index).0)?);
            }
            superseded += view.head.apply(&batch.slice(index..index + 1))?;
        }
        Ok(superseded)
    }

    fn head_holds(&mut self, view: &View, id: SeriesId, at: Timestamp) -> Result<bool> {
        self.parts.clear();
        view.head
            .take(id.0, (at.0, at.0.saturating_add(1)), Wanted::Samples, &mut self.parts)?;
        Ok(super::collect::holds(&self.parts, at.0))
    }

    /// Whether a generation before the head has a sample of this series and time.
    fn older_holds(&mut self, shared: &TickShared, view: &View, number: u32, at: i64) -> Result<bool> {
        self.parts.clear();
        let range = (at, at.saturating_add(1));
        if let Some(aging) = &view.aging {
            aging.store.take(number, range, Wanted::Samples, &mut self.parts)?;
        }
        let Some(connection) = &self.connection else {
            return Err(Error::Closed);
        };
        for generation in view.generations.iter().filter(|generation| generation.overlaps(range)) {
            super::collect::take_chunk(shared, connection, generation.number, number, range, &mut self.parts)?;
        }
        Ok(super::collect::holds(&self.parts, at))
    }

    pub(super) fn flush(&mut self, shared: &TickShared, level: Durability) -> Result<()> {
        if level < Durability::Buffered {
            return Ok(());
        }
        self.commit(shared)?;
        if level == Durability::Synced && shared.options.synchronous == Synchronous::Normal {
            self.sync(shared)?;
        }
        Ok(())
    }

    /// Commits what is pending, unless the store has failed, and closes the file.
    pub(super) fn close(&mut self, shared: &TickShared) -> Result<()> {
        let Some(was) = shared.open.begin_close() else {
            return Ok(());
        };
        let flushed = was.and_then(|()| {
            self.commit(shared)?;
            self.sync(shared)
        });
        shared.readers.close();
        let connection = self.connection.take();
        let closed = connection.map_or(Ok(()), |connection| connection.close().map_err(|(_, error)| error));
        flushed?;
        shared.database.done("close", closed)
    }
}

impl UnexpiredSamples {
    fn clear(&mut self) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
    }

    fn push(&mut self, id: SeriesId, at: Timestamp, value: f64) {
        self.ids.push(id);
        self.times.push(at);
        self.values.push(value);
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(Ids::Each(&self.ids), Times::Each(&self.times), &self.values)
    }
}

/// The earliest and the latest timestamp of a batch. The batch must not be empty.
pub(super) fn span(batch: &Batch<'_>) -> (i64, i64) {
    match batch.times() {
        Times::One(at) => (at.0, at.0),
        Times::Each(times) => times.iter().fold((i64::MAX, i64::MIN), |(oldest, newest), at| {
            (oldest.min(at.0), newest.max(at.0))
        }),
    }
}
