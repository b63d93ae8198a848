//! The client: writes batches as lines, and answers queries by SQL.

use std::fmt::{self, Write};
use std::sync::Arc;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::QuestDbConnection;
use super::cursor::QuestDbCursor;
use super::lines::{lines, unwritable};
use crate::Client;
use crate::acks::Acks;
use crate::line_protocol::string_field;
use crate::numbered_rows::{NewestSeen, listed};
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::labels_to_json;
use tsb_stores::store::{Ack, Capabilities, Footprint, OnConflict, Position, Query, Refusals, Scope, Stats};

mod opening;

pub(super) use opening::{remove_runs, series};

/// Series whose names are stored by one request.
const NAMES_MAX: usize = 10_000;
/// Maximum number of series in one question for their newest samples: their numbers must fit into the
/// 64 KiB of the head of a request.
const NEWEST_MAX: usize = 4_000;
/// Bytes of a row in the files of its columns, which are not compressed.
const ROW_BYTES: u64 = 4 + 8 + 8;
/// After which a server without a queue of work shows what it has acknowledged; 30 ms were measured.
const VISIBILITY_DELAY_MS: u64 = 1_000;

/// A client that stores samples in tables of QuestDB.
#[derive(Debug)]
pub struct QuestDbClient {
    connection: Arc<QuestDbConnection>,
    registry: SeriesRegistry,
    seen: NewestSeen,
    acks: Acks,
}

impl QuestDbClient {
    /// Stores the numbers that the server does not know yet. Storing one again changes nothing.
    async fn save_series(&self) -> Result<()> {
        let Some(unsaved) = self.registry.unsaved().await else {
            return Ok(());
        };
        let table = self.connection.tables().series_table();
        for series in unsaved.series().chunks(NAMES_MAX) {
            let mut lines = String::new();
            for (number, key) in series {
                // As JSON, which has no line feed.
                let name = string_field(&serde_json::Value::from(key.name()).to_string());
                let labels = string_field(&labels_to_json(key));
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{table} name={name},labels={labels} {number}");
            }
            self.connection
                .write("store the names of series", lines.into_bytes())
                .await?;
        }
        unsaved.saved();
        Ok(())
    }

    async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        let Some(bound) = self.seen.bound(numbers) else {
            return Ok(());
        };
        let list = listed(numbers.iter().copied());
        let statement = self.connection.tables().newest(&list, bound.0);
        let found = self
            .connection
            .ask::<(u32, i64)>("ask for the newest samples", &statement)
            .await?;
        let found = found.into_iter().map(|(number, at)| (number, Timestamp(at)));
        self.seen.answer(found.collect(), numbers, into);
        Ok(())
    }

    /// Waits until all samples that were acknowledged are visible.
    async fn settle(&self) -> Result<()> {
        self.connection.settle(&self.connection.tables().samples_table()).await
    }

    /// Number of samples, and their bytes. The files of the last partition are made longer than what
    /// they hold, and cut when the next one begins.
    async fn sizes(&self) -> Result<(u64, Footprint)> {
        self.settle().await?;
        let statement = self.connection.tables().sizes();
        let rows = self
            .connection
            .ask::<(bool, u64, u64)>("ask for sizes", &statement)
            .await?;
        let (mut samples, mut footprint) = (0, Footprint::default());
        for (is_active, count, bytes) in rows {
            samples += count;
            if is_active {
                footprint.head_bytes = bytes.min(count * ROW_BYTES);
                footprint.free_bytes = bytes - footprint.head_bytes;
            } else {
                (footprint.sealed_bytes, footprint.sealed_samples) = (bytes, count);
            }
        }
        Ok((samples, footprint))
    }
}

impl fmt::Display for QuestDbClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("questdb")
    }
}

impl Client for QuestDbClient {
    type Cursor = QuestDbCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Buffered, Durability::Buffered);
        capabilities.resample = true;
        capabilities.special_values = false;
        capabilities.duplicate = OnConflict::KeptBoth;
        capabilities.persistent = true;
        capabilities.visibility_delay_ms = VISIBILITY_DELAY_MS;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.define(series, |_| {})?;
        self.save_series().await
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let rejected = unwritable(batch);
        let lines = {
            let mut numbers = Vec::new();
            let numbered = self.registry.keys().numbered(batch, &mut numbers)?;
            lines(&self.connection.tables().samples_table(), &numbered, &rejected)
        };
        self.save_series().await?;
        if !lines.is_empty() {
            self.connection.write("write samples", lines).await?;
        }
        Ok(self.acks.ack(batch.len(), &rejected, refused, Durability::Buffered))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, Durability::Buffered, 0)
    }

    /// Waits until what was acknowledged is visible: every ack has the highest level already.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        if level > Durability::Buffered {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "synced: the server syncs no file of samples",
            });
        }
        self.settle().await
    }

    async fn query(&self, query: &Query<'_>) -> Result<QuestDbCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(QuestDbCursor::new(&self.connection, query, numbers))
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
