//! The client: maps series to numbers, writes batches, and answers queries.

use std::fmt;
use std::sync::{Arc, RwLock};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::EtcdConnection;
use super::cursor::EtcdCursor;
use super::key_space::KeySpace;
use super::lease::Leases;
use super::message::{Range, StatusRequest};
use super::options::EtcdOptions;
use crate::Client;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::Result;
use tsb_stores::store::{Ack, Capabilities, Footprint, Position, Query, Refusals, Scope, Stats};

mod newest;
mod opening;
mod save_series;
mod writing;

pub(super) use opening::{remove_runs, series};

/// Maximum number of comparisons or operations in a transaction of the client's own: etcd's
/// default limit.
const OPERATIONS: usize = 128;

/// A client that stores samples below a prefix of etcd.
pub struct EtcdClient {
    connection: Arc<EtcdConnection>,
    key_space: KeySpace,
    options: EtcdOptions,
    leases: Option<Leases>,
    copies: u32,
    registry: SeriesRegistry,
    /// The newest timestamp seen of each series number: searches start there.
    seen: RwLock<Vec<Timestamp>>,
    /// Number of samples that were there when the client was opened.
    initial_samples: u64,
    acks: Acks,
}

impl EtcdClient {
    async fn count(&self) -> Result<u64> {
        let all = Range {
            count_only: true,
            ..self.key_space.samples()
        };
        Ok(self.connection.ask("count the samples", all).await?.count as u64)
    }

    async fn footprint(&self, samples: u64) -> Result<Footprint> {
        let status = self.connection.ask("ask for sizes", StatusRequest {}).await?;
        let mut footprint = Footprint::of_sealed(status.used_bytes as u64, samples);
        footprint.free_bytes = (status.file_bytes - status.used_bytes).max(0) as u64;
        Ok(footprint)
    }
}

/// The range of a single key.
fn single_key(key: prost::bytes::Bytes) -> Range {
    Range {
        key,
        ..Range::default()
    }
}

impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdClient")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("etcd")
    }
}

impl Client for EtcdClient {
    type Cursor = EtcdCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Synced, Durability::Synced);
        capabilities.resample = true;
        capabilities.copies = self.copies;
        capabilities.persistent = true;
        capabilities.retention_ns = self.options.ttl_ns;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.define(series, |_| ())?;
        self.save_series().await
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = self.registry.keys().numbered(batch, &mut numbers)?;
        self.save_series().await?;
        let rejected = self.write_batch(&numbered).await?;
        Ok(self.acks.ack(batch.len(), &rejected, refused, Durability::Synced))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, Durability::Synced, 0)
    }

    /// Nothing to do: every ack has the highest level already.
    async fn flush(&self, scope: Scope<'_>, _level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<EtcdCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(EtcdCursor::new(&self.connection, &self.key_space, query, &numbers))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(series)?;
        self.newest_of(&numbers, into).await
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.check(series)?;
        into.fill(None);
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        let written = self.initial_samples + accepted;
        let samples = self.count().await.unwrap_or(written);
        // Missing samples were overwritten, or have expired if there are leases: the server does
        // not count either.
        let gone = written.saturating_sub(samples);
        let (superseded, expired) = if self.leases.is_none() { (gone, 0) } else { (0, gone) };
        let series = self.registry.keys().defined() as u64;
        let mut stats = Stats::new(series, samples, accepted);
        stats.superseded = superseded;
        stats.expired = expired;
        stats.footprint = self.footprint(samples).await.unwrap_or_default();
        stats
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}
