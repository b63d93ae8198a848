//! The null store: accepts samples and drops them, to measure the ceiling of the generator.
//!
//! It performs only the checks that every store must perform (ids, closing), so a run against it
//! shows the maximum rate of generator and contract.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Timestamp};

use crate::error::{Error, Result};
use crate::open_state::ClosedFlag;
use crate::store::{Ack, Capabilities, Exactness, OnConflict, Position, Query, Refusals, Scope, Stats, Store, Visitor};

/// Accepts every sample of every defined series, and keeps none.
#[derive(Debug, Default)]
pub struct NullStore {
    // Ids below this are defined: the null store does not need the keys.
    defined: AtomicU64,
    accepted: AtomicU64,
    closed: ClosedFlag,
}

impl NullStore {
    /// An open null store.
    pub fn new() -> Self {
        Self::default()
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }
}

impl fmt::Display for NullStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null")
    }
}

/// The largest id of a batch, if it has a sample.
fn largest_id(batch: &Batch<'_>) -> Option<SeriesId> {
    match batch.ids() {
        Ids::Range(first) => batch.len().checked_sub(1).map(|last| SeriesId(first.0 + last as u32)),
        Ids::Each(ids) => ids.iter().copied().max(),
    }
}

impl Store for NullStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: false,
            resample: false,
            exactness: Exactness::Nothing,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: true,
            persistent: false,
            ..Capabilities::new(Durability::Unconfirmed, Durability::Unconfirmed)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.closed.check_open()?;
        if let Some(largest) = series.iter().map(|(id, _)| id.0).max() {
            self.defined.fetch_max(u64::from(largest) + 1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, _refused: &mut Refusals) -> Result<Ack> {
        self.closed.check_open()?;
        if let Some(id) = largest_id(batch)
            && u64::from(id.0) >= self.defined.load(Ordering::Acquire)
        {
            return Err(Error::UnknownSeries { id });
        }
        let accepted = batch.len();
        let before = self.accepted.fetch_add(accepted as u64, Ordering::Relaxed);
        Ok(Ack::new(
            accepted,
            0,
            Position(before + accepted as u64),
            Durability::Unconfirmed,
        ))
    }

    fn durable(&self, level: Durability) -> Position {
        if level > Durability::Unconfirmed {
            Position(0)
        } else {
            Position(self.accepted.load(Ordering::Relaxed))
        }
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        self.closed.check_open()?;
        if level > Durability::Unconfirmed {
            Err(self.unsupported("flush"))
        } else {
            Ok(())
        }
    }

    fn query(&self, _query: &Query<'_>, _visit: &mut Visitor<'_>) -> Result<()> {
        self.closed.check_open()?;
        Err(self.unsupported("query"))
    }

    fn newest(&self, _series: &[SeriesId], _into: &mut [Option<Timestamp>]) -> Result<()> {
        self.closed.check_open()?;
        Err(self.unsupported("newest"))
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.closed.check_open()?;
        into.iter_mut().take(series.len()).for_each(|slot| *slot = None);
        Ok(())
    }

    fn stats(&self) -> Stats {
        Stats {
            series: self.defined.load(Ordering::Relaxed),
            accepted: self.accepted.load(Ordering::Relaxed),
            ..Stats::default()
        }
    }

    fn close(&self) -> Result<()> {
        self.closed.close();
        Ok(())
    }
}
