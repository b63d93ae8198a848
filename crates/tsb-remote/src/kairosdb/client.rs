//! The client: writes batches as JSON, and answers queries by queries of the server.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::body::{MS_NS, body};
use super::connection::{Asked, KairosDbConnection, Wanted};
use super::cursor::KairosDbCursor;
use super::names::{MARK_TAG, NUMBER_TAG, VERSION, beginning, tagged};
use crate::Client;
use crate::acks::Acks;
use crate::json_samples::unwritable;
use crate::series_registry::SeriesRegistry;
use crate::sorted_rows::SortedRows;
use crate::unanswered::UnansweredSender;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{labels_to_json, read, write};
use tsb_stores::store::{Ack, Capabilities, Position, Query, Reason, Refusals, Scope, Stats, TimeRange};

mod opening;
mod put;

pub(super) use opening::{remove_runs, series};

/// Series whose names are stored by one request.
const NAMES_MAX: usize = 10_000;
/// Number of series in one question for their newest samples: the server reads them one by one.
const NEWEST_MAX: usize = 20;
/// Number of such questions in flight: the server answers five series at a time.
const IN_FLIGHT: usize = 4;
/// The times that KairosDB can hold.
pub(super) const TIMES: TimeRange = TimeRange {
    start: Timestamp(0),
    ..TimeRange::ALL
};
/// Between two looks whether the names of series are visible.
const PAUSE: Duration = Duration::from_millis(20);
const NAMES_ACTION: &str = "store the names of series";
/// How long an accepted sample may stay invisible: the server's queue is written out every half second
/// at the latest, and a busy datastore takes its time.
const VISIBILITY_DELAY_MS: u64 = 5_000;

/// A client that stores samples in metrics of KairosDB.
#[derive(Debug)]
pub struct KairosDbClient {
    connection: Arc<KairosDbConnection>,
    /// Where samples go, if not over HTTP.
    put: Option<UnansweredSender>,
    registry: SeriesRegistry,
    known: RwLock<KnownSeries>,
    acks: Acks,
}

/// What requests say of each series, by number.
#[derive(Debug, Default)]
pub(super) struct KnownSeries {
    metrics: Vec<Box<str>>,
    /// How a part of a request begins.
    beginnings: Vec<Box<str>>,
    /// Metric and tags; `None` where no lines are sent.
    of_lines: Option<Vec<SeriesKey>>,
}

impl KnownSeries {
    fn add(&mut self, prefix: &str, key: &SeriesKey) {
        let tagged = tagged(prefix, self.metrics.len() as u32, key);
        self.metrics.push(tagged.name().into());
        self.beginnings.push(beginning(&tagged).into());
        if let Some(of_lines) = &mut self.of_lines {
            of_lines.push(tagged);
        }
    }

    fn asked(&self, number: u32) -> Asked {
        Asked {
            metric: self.metrics[number as usize].to_string(),
            tag: NUMBER_TAG,
            value: number.to_string(),
        }
    }
}

impl KairosDbClient {
    /// What an acknowledgement is worth.
    const fn acknowledges(&self) -> Durability {
        match self.put {
            Some(_) => Durability::Unconfirmed,
            None => Durability::Volatile,
        }
    }

    /// Writes a batch as one request. Returns the refused samples, by index.
    async fn post(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let rejected = unwritable(batch, TIMES, MS_NS);
        let rows = SortedRows::of(batch, &rejected);
        if rows.len() > 0 {
            let body = body(&rows, &read(&self.known).beginnings);
            self.connection.write("write samples", body).await?;
        }
        Ok(rejected)
    }

    /// Stores the numbers that the server does not know yet, and waits until they are visible. Storing one again changes nothing.
    async fn save_series(&self) -> Result<()> {
        let Some(unsaved) = self.registry.unsaved().await else {
            return Ok(());
        };
        for series in unsaved.series().chunks(NAMES_MAX) {
            let rows: Vec<_> = series
                .iter()
                .map(|(number, key)| {
                    let name = serde_json::json!([key.name(), labels_to_json(key)]);
                    (*number, name.to_string())
                })
                .collect();
            let list = serde_json::json!([{
                "name": self.connection.prefix(),
                "type": "string",
                "tags": {MARK_TAG: VERSION},
                "datapoints": rows,
            }]);
            let list = list.to_string().into_bytes();
            self.connection.write(NAMES_ACTION, list).await?;
        }
        if let Some((last, _)) = unsaved.series().last() {
            self.await_listed(*last).await?;
        }
        unsaved.saved();
        Ok(())
    }

    /// Waits until the list of series has this number: a client that opens the prefix before would not see it, and
    /// give the number to another series.
    async fn await_listed(&self, number: u32) -> Result<()> {
        let range = TimeRange {
            start: Timestamp(i64::from(number) * MS_NS),
            end: Timestamp::MAX,
        };
        let listed = async {
            let list = [self.connection.list()];
            loop {
                let found = self
                    .connection
                    .query::<String>(NAMES_ACTION, &list, range, Wanted::Last)
                    .await?;
                if found.iter().any(|names| !names.is_empty()) {
                    return Ok(());
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let in_time = tokio::time::timeout(self.connection.timeout(), listed).await;
        in_time.unwrap_or_else(|_| {
            let why = "the server took them, and does not show them";
            Err(self.connection.server().unanswered(NAMES_ACTION, why))
        })
    }

    async fn newest_of(&self, numbers: &[u32]) -> Result<Vec<Option<Timestamp>>> {
        const ACTION: &str = "ask for the newest samples";
        let asked: Vec<Asked> = {
            let known = read(&self.known);
            numbers.iter().map(|number| known.asked(*number)).collect()
        };
        let found = self
            .connection
            .query::<f64>(ACTION, &asked, TimeRange::ALL, Wanted::Last)
            .await?;
        let newest = found.into_iter().map(|samples| {
            let newest = samples.into_iter().map(|(ms, _)| ms).max();
            newest.map(|ms| Timestamp(ms.saturating_mul(MS_NS)))
        });
        Ok(newest.collect())
    }
}

impl fmt::Display for KairosDbClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kairosdb")
    }
}

impl Client for KairosDbClient {
    type Cursor = KairosDbCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.acknowledges(), self.acknowledges());
        capabilities.resolution_ns = MS_NS;
        capabilities.special_values = false;
        capabilities.persistent = true;
        capabilities.visibility_delay_ms = VISIBILITY_DELAY_MS;
        // A count reads every sample.
        capabilities.counts_samples = false;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        if self.put.is_some() {
            for (_, key) in series {
                put::check(key, self.connection.prefix())?;
            }
        }
        self.registry.define(series, |new| {
            let mut known = write(&self.known);
            for (_, key) in new {
                known.add(self.connection.prefix(), key);
            }
        })?;
        self.save_series().await
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = self.registry.keys().numbered(batch, &mut numbers)?;
        self.save_series().await?;
        let rejected = match &self.put {
            Some(sender) => self.put(sender, &numbered).await?,
            None => self.post(&numbered).await?,
        };
        Ok(self.acks.ack(batch.len(), &rejected, refused, self.acknowledges()))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, self.acknowledges(), 0)
    }

    /// Does nothing: the server has no request that waits for its queue.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        if level > self.acknowledges() {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "a flush: the server does not say when its queue is written",
            });
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<KairosDbCursor> {
        self.acks.check_open()?;
        if query.resample.is_some() {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "resampling",
            });
        }
        let numbers = self.registry.keys().numbers(query.series)?;
        let known = read(&self.known);
        let series = query.series.iter().copied();
        let asked: VecDeque<_> = series
            .zip(numbers.into_iter().map(|number| known.asked(number)))
            .collect();
        Ok(KairosDbCursor::new(&self.connection, query.range, asked))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(series)?;
        // Collected, as a stream over borrowed chunks is not general enough for the compiler.
        let questions: Vec<_> = numbers
            .chunks(NEWEST_MAX)
            .map(|numbers| self.newest_of(numbers))
            .collect();
        let found: Vec<Vec<Option<Timestamp>>> = futures_util::stream::iter(questions)
            .buffered(IN_FLIGHT)
            .try_collect()
            .await?;
        for (newest, into) in found.into_iter().flatten().zip(into) {
            *into = newest;
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
        if self.acks.close()
            && let Some(sender) = &self.put
        {
            sender.close().await;
        }
        Ok(())
    }
}
