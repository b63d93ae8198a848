//! The client: writes rows and remembers which buckets the server knows.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use foldhash::HashSet;
use futures_util::{StreamExt, TryStreamExt};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::{CassandraConnection, Effect};
use super::cursor::CassandraCursor;
use super::requests::{RowWriter, bucket};
use crate::Client;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use crate::sorted_rows::SortedRows;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{labels_to_json, lock};
use tsb_stores::store::{Ack, Capabilities, Position, Query, Refusals, Scope, Stats};

mod opening;

pub(super) use opening::{remove_runs, series};

/// Maximum number of series in one question for their newest samples: the node that is asked reads a
/// partition for each.
const NEWEST_MAX: usize = 100;
/// Number of questions, or of rows about series, in flight for one call.
const IN_FLIGHT: usize = 16;
/// Number of buckets that are remembered as known to the server; then all are forgotten.
const BUCKETS_MAX: usize = 4_000_000;

/// A client that stores samples in a keyspace of Cassandra.
pub struct CassandraClient {
    shared: Arc<Shared>,
    statements: Statements,
    writer: RowWriter,
    registry: SeriesRegistry,
    /// Buckets that the server knows, by the number of their series.
    buckets: Mutex<HashSet<(i32, i64)>>,
    acknowledges: Durability,
    copies: u32,
    acks: Acks,
}

/// What a query needs of the client.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connection: CassandraConnection,
    pub(super) bucket_ns: i64,
    /// Asks for the buckets of a series.
    pub(super) buckets: PreparedStatement,
    /// Asks for the samples of a partition.
    pub(super) samples: PreparedStatement,
}

/// The statements that only the client uses.
struct Statements {
    add_series: PreparedStatement,
    add_bucket: PreparedStatement,
    newest_buckets: PreparedStatement,
    earlier_bucket: PreparedStatement,
    newest: PreparedStatement,
}

impl CassandraClient {
    /// Stores the numbers that the keyspace does not know yet. Storing one again changes nothing.
    async fn save_series(&self) -> Result<()> {
        const ACTION: &str = "store the names of series";
        let Some(unsaved) = self.registry.unsaved().await else {
            return Ok(());
        };
        let series = unsaved.series().iter();
        let values = series.map(|(number, key)| (*number as i32, key.name(), labels_to_json(key)));
        self.store_all(ACTION, &self.statements.add_series, values.collect())
            .await?;
        unsaved.saved();
        Ok(())
    }

    /// Stores the buckets of rows that the server does not know yet: a query reads only those that it
    /// knows. Storing one again changes nothing.
    async fn save_buckets(&self, rows: &SortedRows) -> Result<()> {
        const ACTION: &str = "store the buckets of series";
        let partitions = rows.series.iter().zip(&rows.times);
        let mut new: Vec<(i32, i64)> = {
            let known = lock(&self.buckets);
            partitions
                .map(|(series, at)| (*series, bucket(*at, self.shared.bucket_ns)))
                .filter(|partition| !known.contains(partition))
                .collect()
        };
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        self.store_all(ACTION, &self.statements.add_bucket, new.clone()).await?;
        let mut known = lock(&self.buckets);
        if known.len() + new.len() > BUCKETS_MAX {
            known.clear();
        }
        known.extend(new);
        Ok(())
    }

    /// Executes a statement with each of these values, many at a time.
    async fn store_all(
        &self,
        action: &str,
        statement: &PreparedStatement,
        values: Vec<impl SerializeRow>,
    ) -> Result<()> {
        let connection = &self.shared.connection;
        let stored = futures_util::stream::iter(values)
            .map(Ok)
            .try_for_each_concurrent(IN_FLIGHT, async |values| {
                let stored = connection.execute(statement, values);
                connection.answer(action, Effect::Writes, stored).await
            });
        stored.await
    }

    /// The newest timestamp of each of these series that has one.
    async fn newest_of(&self, numbers: &[i32]) -> Result<Vec<(i32, i64)>> {
        const ACTION: &str = "ask for the newest samples";
        let connection = &self.shared.connection;
        let newest_buckets = connection
            .pages::<(i32, Option<i64>)>(ACTION, &self.statements.newest_buckets, (numbers,))
            .await?;
        let mut by_bucket: BTreeMap<i64, Vec<i32>> = BTreeMap::new();
        for (number, bucket) in newest_buckets {
            // A series without a sample has no bucket.
            if let Some(bucket) = bucket {
                by_bucket.entry(bucket).or_default().push(number);
            }
        }
        let mut newest = Vec::with_capacity(numbers.len());
        // The newest bucket first: a series without a sample there goes on to an earlier one.
        while let Some((bucket, asked)) = by_bucket.pop_last() {
            let found = connection
                .pages::<(i32, i64)>(ACTION, &self.statements.newest, (&asked, bucket))
                .await?;
            for number in asked {
                if found.iter().any(|(of, _)| *of == number) {
                    continue;
                }
                // A write has stored the bucket and none of its samples.
                let earlier = connection
                    .pages::<(i64,)>(ACTION, &self.statements.earlier_bucket, (number, bucket))
                    .await?;
                if let Some((earlier,)) = earlier.first() {
                    by_bucket.entry(*earlier).or_default().push(number);
                }
            }
            newest.extend(found);
        }
        Ok(newest)
    }
}

impl fmt::Debug for CassandraClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassandraClient")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for CassandraClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cassandra({})", self.writer.shape().name())
    }
}

impl Client for CassandraClient {
    type Cursor = CassandraCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.acknowledges, self.acknowledges);
        capabilities.resample = true;
        capabilities.copies = self.copies;
        capabilities.persistent = true;
        // Counting reads every row.
        capabilities.counts_samples = false;
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
        self.save_buckets(&rows).await?;
        self.writer.write(&self.shared.connection, &rows).await?;
        Ok(self.acks.ack(batch.len(), &[], refused, self.acknowledges))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, self.acknowledges, 0)
    }

    /// Does nothing: every ack has the highest level already, and what it is for is visible.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        if level > self.acknowledges {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "a flush: commitlog_sync of the server says what an ack is worth",
            });
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<CassandraCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(CassandraCursor::new(&self.shared, query, numbers))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(series)?;
        let numbers: Vec<i32> = numbers.into_iter().map(|number| number as i32).collect();
        // Collected, as a stream over borrowed chunks is not general enough for the compiler.
        let questions: Vec<_> = numbers
            .chunks(NEWEST_MAX)
            .map(|numbers| self.newest_of(numbers))
            .collect();
        let found: Vec<Vec<(i32, i64)>> = futures_util::stream::iter(questions)
            .buffer_unordered(IN_FLIGHT)
            .try_collect()
            .await?;
        let newest: HashMap<i32, i64> = found.into_iter().flatten().collect();
        for (number, into) in numbers.iter().zip(into) {
            *into = newest.get(number).copied().map(Timestamp);
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
        Stats::new(self.registry.keys().defined() as u64, accepted, accepted)
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}
