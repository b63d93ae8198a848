//! Makes a store from a closure that only writes, for systems with an ingest path and no way to
//! read back.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::parts::ClosedFlag;
use tsb_stores::{
    Ack, Capabilities, Error, Exactness, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor,
};

/// The keys of a run's series, by id.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Option<SeriesKey>>);

impl Keys {
    /// The key of a series; `None` if it was not defined.
    pub fn get(&self, id: SeriesId) -> Option<&SeriesKey> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    fn add(&mut self, id: SeriesId, key: &SeriesKey) {
        let index = id.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        self.0[index] = Some(key.clone());
    }
}

/// A store made from a closure that receives batches. A run into it says `UNVERIFIED`, as
/// nothing can be read back; rate, latency and cost are measured as for any other store.
///
/// Emitting threads call the closure concurrently. It accepts the whole batch or returns an
/// error: [`Error::Unreachable`] if nothing of it was sent, [`Error::Unknown`] or [`Error::Unanswered`]
/// if it may have been; any other error ends the run.
pub struct WriteOnly<W> {
    name: String,
    level: Durability,
    write: W,
    keys: RwLock<Keys>,
    accepted: AtomicU64,
    closed: ClosedFlag,
}

impl<W: Fn(&Keys, &Batch<'_>) -> Result<()> + Send + Sync> WriteOnly<W> {
    /// A store called `name`. A batch that `write` accepted has reached `level`.
    pub fn new(name: impl Into<String>, level: Durability, write: W) -> Self {
        Self {
            name: name.into(),
            level,
            write,
            keys: RwLock::default(),
            accepted: AtomicU64::new(0),
            closed: ClosedFlag::new(),
        }
    }
}

impl<W> WriteOnly<W> {
    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.name.clone(),
            what,
        }
    }
}

impl<W> fmt::Debug for WriteOnly<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteOnly")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<W> fmt::Display for WriteOnly<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl<W: Fn(&Keys, &Batch<'_>) -> Result<()> + Send + Sync + 'static> Store for WriteOnly<W> {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.level, self.level);
        capabilities.query = false;
        capabilities.exactness = Exactness::Nothing;
        capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.closed.check_open()?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for (id, key) in series {
            keys.add(*id, key);
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, _refused: &mut Refusals) -> Result<Ack> {
        self.closed.check_open()?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = (0..batch.len())
            .map(|index| batch.id(index))
            .find(|id| keys.get(*id).is_none());
        if let Some(id) = unknown {
            return Err(Error::UnknownSeries { id });
        }
        (self.write)(&keys, batch)?;
        let taken = batch.len();
        let before = self.accepted.fetch_add(taken as u64, Ordering::AcqRel);
        Ok(Ack::new(taken, 0, Position(before + taken as u64), self.level))
    }

    fn durable(&self, level: Durability) -> Position {
        let is_reached = level <= self.level;
        Position(if is_reached {
            self.accepted.load(Ordering::Acquire)
        } else {
            0
        })
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        self.closed.check_open()?;
        if level > self.level {
            return Err(self.unsupported("flush"));
        }
        Ok(())
    }

    fn query(&self, _query: &Query<'_>, _visit: &mut Visitor<'_>) -> Result<()> {
        self.closed.check_open()?;
        Err(self.unsupported("query"))
    }

    fn newest(&self, _series: &[SeriesId], _into: &mut [Option<Timestamp>]) -> Result<()> {
        self.closed.check_open()?;
        Err(self.unsupported("newest"))
    }

    fn newest_accepted(&self, _series: &[SeriesId], _into: &mut [Option<Timestamp>]) -> Result<()> {
        self.closed.check_open()?;
        Err(self.unsupported("newest_accepted"))
    }

    fn stats(&self) -> Stats {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        Stats::new(keys.0.len() as u64, 0, self.accepted.load(Ordering::Acquire))
    }

    fn close(&self) -> Result<()> {
        self.closed.close();
        Ok(())
    }
}
