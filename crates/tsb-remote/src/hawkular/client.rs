//! The client: writes batches as JSON, and answers queries by what the interface reads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, RwLock};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::{HawkularConnection, Id};
use super::cursor::HawkularCursor;
use super::names::id_of;
use super::{MS_NS, spec_error};
use crate::Client;
use crate::acks::Acks;
use crate::admission::Admission;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{Keys, lock, read, write};
use tsb_stores::store::{Ack, Capabilities, Position, Query, Refusals, Scope, Stats};

mod opening;
mod writing;

pub(super) use opening::{remove_runs, series};

/// A client that stores samples in gauges of a tenant.
#[derive(Debug)]
pub struct HawkularClient {
    connection: Arc<HawkularConnection>,
    keys: RwLock<Keys>,
    /// The ids of the series, by number.
    ids: RwLock<Vec<Id>>,
    /// Of a server that says nothing of samples which it does not keep.
    admission: Option<Mutex<Admission>>,
    /// Maximum number of samples per request.
    samples_max: usize,
    acks: Acks,
}

impl HawkularClient {
    fn ids_of(&self, numbers: &[u32]) -> Vec<Id> {
        let ids = read(&self.ids);
        let of = |number: &u32| Arc::clone(&ids[*number as usize]);
        numbers.iter().map(of).collect()
    }
}

/// The id of a series; refuses one that has none.
fn checked_id(key: &SeriesKey) -> Result<Id> {
    let id = id_of(key).map_err(|why| spec_error(format!("series {key} cannot be stored there: {why}")))?;
    Ok(id.into())
}

fn at(ms: i64) -> Timestamp {
    Timestamp(ms.saturating_mul(MS_NS))
}

impl fmt::Display for HawkularClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hawkular")
    }
}

impl Client for HawkularClient {
    type Cursor = HawkularCursor;

    fn capabilities(&self) -> Capabilities {
        self.connection.rules().capabilities()
    }

    /// Sends nothing: a gauge is there once it has a sample.
    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        for (_, key) in series {
            checked_id(key)?;
        }
        let mut keys = write(&self.keys);
        let mut ids = write(&self.ids);
        for key in keys.define(series)? {
            ids.push(checked_id(&key)?);
        }
        Ok(())
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = read(&self.keys).numbered(batch, &mut numbers)?;
        let rejected = self.write_batch(&numbered).await?;
        let level = self.connection.rules().acknowledges;
        Ok(self.acks.ack(batch.len(), &rejected, refused, level))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, self.connection.rules().acknowledges, 0)
    }

    /// Does nothing: there is no request that makes more of an ack.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).check_scope(scope)?;
        if level > self.connection.rules().acknowledges {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "a flush: no request makes more of an acknowledgement",
            });
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<HawkularCursor> {
        self.acks.check_open()?;
        if query.resample.is_some() {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "resampling",
            });
        }
        let numbers = read(&self.keys).numbers(query.series)?;
        let series: VecDeque<_> = query.series.iter().copied().zip(self.ids_of(&numbers)).collect();
        Ok(HawkularCursor::new(&self.connection, query.range, series))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        let found = self.connection.newest(&self.ids_of(&numbers)).await?;
        for (into, newest) in into.iter_mut().zip(found) {
            *into = newest.map(at);
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        let Some(admission) = &self.admission else {
            into.fill(None);
            return Ok(());
        };
        let admission = lock(admission);
        for (number, into) in numbers.iter().zip(into) {
            *into = admission.newest(*number).map(at);
        }
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        Stats::new(read(&self.keys).defined() as u64, accepted, accepted)
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}
