//! The client: maps series to numbers, writes batches, and tracks durability levels.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::Error as DriverError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::{Effect, Pool, Session, refusal};
use super::copy::binary_copy;
use super::cursor::PostgresCursor;
use super::options::WriteMethod;
use super::schema::Schema;
use super::settings::Settings;
use crate::Client;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use crate::sorted_rows::SortedRows;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::labels_to_json;
use tsb_stores::store::{Ack, Capabilities, Footprint, Position, Query, Reason, Refusals, Scope, Stats};

mod opening;

pub(super) use opening::{remove_runs, series};

/// Number of attempts for a statement that waited for another one in a circle.
const ATTEMPTS: usize = 10;
/// Bytes of one message of a `COPY`.
const COPY_MESSAGE_BYTES: usize = 1 << 20;
/// Maximum number of series in one question for their newest samples.
const NEWEST_MAX: usize = 10_000;
/// Maximum number of series that one statement adds.
const SERIES_MAX: usize = 10_000;

/// A client that stores samples in a schema of PostgreSQL.
pub struct PostgresClient {
    shared: Arc<Shared>,
    settings: Settings,
    write: WriteMethod,
    is_hypertable: bool,
    registry: SeriesRegistry,
    /// Number of samples that were there when the client was opened.
    initial_samples: u64,
    superseded: AtomicU64,
    synced: AtomicU64,
    acks: Acks,
}

/// What a query needs of the client.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) schema: Schema,
}

impl PostgresClient {
    /// Stores the numbers that the schema does not know yet.
    async fn save_series(&self) -> Result<()> {
        if let Some(unsaved) = self.registry.unsaved().await {
            for some in unsaved.series().chunks(SERIES_MAX) {
                self.insert_series(some).await?;
            }
            unsaved.saved();
        }
        Ok(())
    }

    async fn insert_series(&self, series: &[(u32, SeriesKey)]) -> Result<()> {
        const ACTION: &str = "store the names of series";
        let ids: Vec<i32> = series.iter().map(|(number, _)| *number as i32).collect();
        let names: Vec<&str> = series.iter().map(|(_, key)| key.name()).collect();
        let labels: Vec<String> = series.iter().map(|(_, key)| labels_to_json(key)).collect();
        let (pool, schema) = (&self.shared.pool, &self.shared.schema);
        let mut checkout = pool.checkout(ACTION).await?;
        let session = &mut checkout.session;
        let added = async {
            let add = session.prepared(&schema.add_series()).await?;
            session.client.execute(&add, &[&ids, &names, &labels]).await?;
            // They may be there from an earlier attempt without an answer.
            let compare = session.prepared(&schema.other_series()).await?;
            let other = session.client.query_opt(&compare, &[&ids, &names, &labels]).await?;
            other.map(|row| row.try_get::<_, i32>(0)).transpose()
        };
        let other = pool.answer(ACTION, Effect::Writes, added).await?;
        checkout.give_back();
        match other {
            None => Ok(()),
            Some(number) => Err(pool.failed(
                ACTION,
                format!("series {number} has another name there: another program writes into this schema"),
            )),
        }
    }

    /// Writes rows. Returns how many replaced a stored one.
    async fn write_rows(&self, rows: &SortedRows) -> Result<u64> {
        const ACTION: &str = "write samples";
        let (pool, schema) = (&self.shared.pool, &self.shared.schema);
        let mut checkout = pool.checkout(ACTION).await?;
        let mut statement = schema.write(self.write);
        let mut is_plain = true;
        for _ in 0..ATTEMPTS {
            let session = &mut checkout.session;
            let written = pool.answer(ACTION, Effect::Writes, async {
                match (is_plain, self.write) {
                    (true, WriteMethod::Copy) => copy(session, &statement, rows).await.map(|()| 0),
                    (true, WriteMethod::Insert) => insert(session, &statement, rows).await.map(|()| 0),
                    (false, _) => replace(session, &statement, rows).await,
                }
            });
            let error = match written.await {
                Ok(replaced) => {
                    checkout.give_back();
                    return Ok(replaced);
                }
                Err(error) => error,
            };
            // In both cases nothing of the statement was applied.
            match refusal(&error) {
                Some(code) if *code == SqlState::UNIQUE_VIOLATION && is_plain => {
                    is_plain = false;
                    statement = schema.replace();
                }
                Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED => {}
                _ => return Err(error),
            }
        }
        Err(pool.failed(ACTION, "the server found it in a deadlock again and again"))
    }

    /// Commits a change and waits for the log, which then also holds everything committed before.
    async fn barrier(&self) -> Result<()> {
        const ACTION: &str = "flush";
        let pool = &self.shared.pool;
        let checkout = pool.checkout(ACTION).await?;
        let statements = self.shared.schema.barrier();
        let flushed = checkout.session.client.batch_execute(&statements);
        pool.answer(ACTION, Effect::Reads, flushed).await?;
        checkout.give_back();
        Ok(())
    }

    async fn sizes(&self, samples: u64) -> Result<Footprint> {
        const ACTION: &str = "ask for sizes";
        let pool = &self.shared.pool;
        let checkout = pool.checkout(ACTION).await?;
        let statement = self.shared.schema.sizes(self.is_hypertable);
        let asked = async {
            let row = checkout.session.client.query_one(&statement, &[]).await?;
            Ok((row.try_get::<_, Option<i64>>(0)?, row.try_get::<_, i64>(1)?))
        };
        let (sample_bytes, series_bytes) = pool.answer(ACTION, Effect::Reads, asked).await?;
        checkout.give_back();
        let mut footprint = Footprint::of_sealed(sample_bytes.unwrap_or(0) as u64, samples);
        footprint.series_bytes = series_bytes as u64;
        Ok(footprint)
    }

    async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        const ACTION: &str = "ask for the newest samples";
        let pool = &self.shared.pool;
        let ids: Vec<i32> = numbers.iter().map(|number| *number as i32).collect();
        let mut checkout = pool.checkout(ACTION).await?;
        let session = &mut checkout.session;
        let asked = async {
            let statement = session.prepared(&self.shared.schema.newest()).await?;
            let rows = session.client.query(&statement, &[&ids]).await?;
            for row in rows {
                let (place, newest): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
                // Places count from 1.
                if let Some(slot) = into.get_mut((place - 1) as usize) {
                    *slot = newest.map(Timestamp);
                }
            }
            Ok(())
        };
        pool.answer(ACTION, Effect::Reads, asked).await?;
        checkout.give_back();
        Ok(())
    }
}

async fn copy(session: &mut Session, statement: &str, rows: &SortedRows) -> std::result::Result<(), DriverError> {
    let statement = session.prepared(statement).await?;
    let mut sink = pin!(session.client.copy_in(&statement).await?);
    let mut bytes = Bytes::from(binary_copy(rows));
    while !bytes.is_empty() {
        let message = bytes.split_to(bytes.len().min(COPY_MESSAGE_BYTES));
        sink.send(message).await?;
    }
    sink.finish().await.map(drop)
}

async fn insert(session: &mut Session, statement: &str, rows: &SortedRows) -> std::result::Result<(), DriverError> {
    let statement = session.prepared(statement).await?;
    let columns: [&(dyn ToSql + Sync); 3] = [&rows.series, &rows.times, &rows.values];
    session.client.execute(&statement, &columns).await.map(drop)
}

async fn replace(session: &mut Session, statement: &str, rows: &SortedRows) -> std::result::Result<u64, DriverError> {
    let statement = session.prepared(statement).await?;
    let row = session
        .client
        .query_one(&statement, &[&rows.series, &rows.times, &rows.values])
        .await?;
    row.try_get::<_, i64>(0).map(|replaced| replaced as u64)
}

impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient")
            .field("shared", &self.shared)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = if self.is_hypertable { ", hypertable" } else { "" };
        let write = match self.write {
            WriteMethod::Copy => "copy",
            WriteMethod::Insert => "insert",
        };
        write!(f, "postgres({write}{table})")
    }
}

impl Client for PostgresClient {
    type Cursor = PostgresCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.settings.acknowledges(), self.settings.reaches());
        capabilities.resample = true;
        capabilities.copies = self.settings.copies();
        capabilities.persistent = true;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.define(series, |_| {})?;
        self.save_series().await
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let rows = {
            let mut numbers = Vec::new();
            SortedRows::of(&self.registry.keys().numbered(batch, &mut numbers)?, &[])
        };
        self.save_series().await?;
        let level = self.settings.acknowledges();
        let in_batch = (batch.len() - rows.len()) as u64;
        let rejected = match self.write_rows(&rows).await {
            Ok(replaced) => {
                self.superseded.fetch_add(in_batch + replaced, Ordering::Relaxed);
                Vec::new()
            }
            Err(error) if refusal(&error) == Some(&SqlState::DISK_FULL) => {
                (0..batch.len() as u32).map(|index| (index, Reason::Full)).collect()
            }
            Err(error) => return Err(error),
        };
        Ok(self.acks.ack(batch.len(), &rejected, refused, level))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks
            .durable(level, self.settings.acknowledges(), self.synced.load(Ordering::Acquire))
    }

    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        if level > self.settings.reaches() {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "synced: the server's setting fsync is off",
            });
        }
        if level > self.settings.acknowledges() {
            let written = self.acks.accepted();
            self.barrier().await?;
            self.synced.fetch_max(written, Ordering::AcqRel);
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<PostgresCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(PostgresCursor::new(&self.shared, query, numbers))
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
        let superseded = self.superseded.load(Ordering::Relaxed);
        let samples = (self.initial_samples + accepted).saturating_sub(superseded);
        let mut stats = Stats::new(self.registry.keys().defined() as u64, samples, accepted);
        stats.superseded = superseded;
        stats.footprint = self.sizes(samples).await.unwrap_or_default();
        stats
    }

    async fn close(&self) -> Result<()> {
        if !self.acks.close() {
            return Ok(());
        }
        let flushed = self.barrier().await;
        self.shared.pool.close();
        flushed
    }
}
