//! The client: writes batches as blocks, and answers queries by SQL.

use std::fmt;
use std::sync::Arc;

use serde_json::json;
use tsb_core::{Batch, Durability, SeriesId, Timestamp};

use super::block::native_block;
use super::connection::{ClickHouseConnection, Fate};
use super::cursor::ClickHouseCursor;
use crate::Client;
use crate::acks::Acks;
use crate::numbered_rows::{NewestSeen, listed};
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::labels_to_json;
use tsb_stores::store::{Ack, Capabilities, Footprint, OnConflict, Position, Query, Reason, Refusals, Scope, Stats};

mod opening;

pub(super) use opening::{remove_runs, series};

/// Series whose names are stored by one request.
const NAMES_MAX: usize = 10_000;
/// Maximum number of series in one question for their newest samples: their numbers must fit into the
/// 256 KiB of a statement.
const NEWEST_MAX: usize = 10_000;

/// A client that stores samples in a database of ClickHouse.
#[derive(Debug)]
pub struct ClickHouseClient {
    connection: Arc<ClickHouseConnection>,
    registry: SeriesRegistry,
    seen: NewestSeen,
    acks: Acks,
}

impl ClickHouseClient {
    /// Stores the numbers that the database does not know yet. Storing one again changes nothing.
    async fn save_series(&self) -> Result<()> {
        const ACTION: &str = "store the names of series";
        let Some(unsaved) = self.registry.unsaved().await else {
            return Ok(());
        };
        let connection = &self.connection;
        for series in unsaved.series().chunks(NAMES_MAX) {
            let mut rows = String::new();
            for (number, key) in series {
                let row = json!({"id": number, "name": key.name(), "labels": labels_to_json(key)});
                rows.push_str(&row.to_string());
                rows.push('\n');
            }
            let statement = connection.tables().insert_series();
            let fate = connection.insert(ACTION, &statement, rows.into_bytes()).await?;
            connection.taken(ACTION, fate)?;
        }
        unsaved.saved();
        Ok(())
    }

    async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        const ACTION: &str = "ask for the newest samples";
        let Some(bound) = self.seen.bound(numbers) else {
            return Ok(());
        };
        let list = listed(numbers.iter().copied());
        let statement = self.connection.tables().newest(&list, bound.0);
        let answer = self.connection.ask(ACTION, statement).await?;
        let (rows, rest) = answer.body().as_chunks::<12>();
        if !rest.is_empty() {
            return Err(self.connection.server().unanswered(ACTION, "it ends within a row"));
        }
        let found = rows.iter().map(|[n0, n1, n2, n3, at @ ..]| {
            let number = u32::from_le_bytes([*n0, *n1, *n2, *n3]);
            (number, Timestamp(i64::from_le_bytes(*at)))
        });
        self.seen.answer(found.collect(), numbers, into);
        Ok(())
    }

    /// Number of samples, and their bytes.
    async fn sizes(&self) -> Result<(u64, Footprint)> {
        const ACTION: &str = "ask for sizes";
        let answer = self.connection.ask(ACTION, self.connection.tables().sizes()).await?;
        let (figures, _) = answer.body().as_chunks();
        let [samples, sample_bytes, series_bytes] = figures else {
            return Err(self.connection.server().unanswered(ACTION, "they are not three"));
        };
        let samples = u64::from_le_bytes(*samples);
        let mut footprint = Footprint::of_sealed(u64::from_le_bytes(*sample_bytes), samples);
        footprint.series_bytes = u64::from_le_bytes(*series_bytes);
        Ok((samples, footprint))
    }
}

impl fmt::Display for ClickHouseClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("clickhouse")
    }
}

impl Client for ClickHouseClient {
    type Cursor = ClickHouseCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Buffered, Durability::Buffered);
        capabilities.resample = true;
        capabilities.duplicate = OnConflict::KeptBoth;
        capabilities.persistent = true;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, tsb_core::SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.define(series, |_| {})?;
        self.save_series().await
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        const ACTION: &str = "write samples";
        self.acks.check_open()?;
        let block = {
            let mut numbers = Vec::new();
            native_block(&self.registry.keys().numbered(batch, &mut numbers)?)
        };
        self.save_series().await?;
        let statement = self.connection.tables().insert_samples();
        let rejected: Vec<_> = match self.connection.insert(ACTION, &statement, block).await? {
            Fate::Taken => Vec::new(),
            Fate::Full => (0..batch.len() as u32).map(|index| (index, Reason::Full)).collect(),
        };
        Ok(self.acks.ack(batch.len(), &rejected, refused, Durability::Buffered))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, Durability::Buffered, 0)
    }

    /// Nothing to do for the level that every ack has.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        if level > Durability::Buffered {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "synced: the server syncs no file of samples",
            });
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<ClickHouseCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(ClickHouseCursor::new(&self.connection, query, numbers))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(series)?;
        for (numbers, into) in numbers.chunks(NEWEST_MAX).zip(into.chunks_mut(NEWEST_MAX)) {
            self.newest_of(numbers, into).await?;
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.check(series)?;
        into.fill(None);
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        let series = self.registry.keys().defined() as u64;
        let (samples, footprint) = self.sizes().await.unwrap_or((accepted, Footprint::default()));
        let mut stats = Stats::new(series, samples, accepted);
        stats.footprint = footprint;
        stats
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}
