//! The client: writes batches as lines, and answers queries by InfluxQL.

use std::fmt::{self, Write};
use std::sync::{Arc, RwLock};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::InfluxConnection;
use super::cursor::InfluxCursor;
use super::names::{InfluxSeries, OWN};
use super::options::InfluxOptions;
use crate::Client;
use crate::acks::Acks;
use crate::line_protocol::string_field;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{labels_to_json, read, write};
use tsb_stores::store::{Ack, Capabilities, Footprint, Position, Query, Refusals, Scope, Stats};

mod newest;
mod opening;
mod sizes;
mod writing;

pub(super) use opening::{remove_runs, series};

/// Series whose names are stored by one request.
const NAMES_MAX: usize = 5_000;

/// A client that stores samples in a database of InfluxDB 1.x.
#[derive(Debug)]
pub struct InfluxClient {
    connection: Arc<InfluxConnection>,
    options: InfluxOptions,
    registry: SeriesRegistry,
    /// By number.
    series: RwLock<Vec<InfluxSeries>>,
    /// Number of samples that were there when the client was opened.
    initial_samples: u64,
    acks: Acks,
}

impl InfluxClient {
    /// Stores the numbers that the database does not know yet: in one series of strings, whose
    /// timestamps are the numbers. Storing one again changes nothing.
    async fn save_series(&self) -> Result<()> {
        let Some(unsaved) = self.registry.unsaved().await else {
            return Ok(());
        };
        for series in unsaved.series().chunks(NAMES_MAX) {
            let mut lines = String::new();
            for (number, key) in series {
                let (name, labels) = (string_field(key.name()), string_field(&labels_to_json(key)));
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{OWN} name={name},labels={labels} {number}");
            }
            self.connection.write_own("store the names of series", lines).await?;
        }
        unsaved.saved();
        Ok(())
    }

    fn series_of(&self, numbers: &[u32]) -> Vec<InfluxSeries> {
        let series = read(&self.series);
        numbers.iter().map(|number| series[*number as usize].clone()).collect()
    }
}

/// Refuses a series that this wire cannot carry.
fn influx_series(key: &SeriesKey, options: &InfluxOptions) -> Result<InfluxSeries> {
    InfluxSeries::new(key, options.measurement.as_deref()).map_err(|why| Error::Spec {
        spec: "influx:".to_owned(),
        what: format!("series {key} cannot be stored there: {why}"),
    })
}

impl fmt::Display for InfluxClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("influx")
    }
}

impl Client for InfluxClient {
    type Cursor = InfluxCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Synced, Durability::Synced);
        capabilities.resample = true;
        capabilities.special_values = false;
        capabilities.persistent = true;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        for (_, key) in series {
            influx_series(key, &self.options)?;
        }
        self.registry.define(series, |new| {
            // All of them can be carried: they were tried before.
            write(&self.series).extend(new.iter().filter_map(|(_, key)| influx_series(key, &self.options).ok()));
        })?;
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

    async fn query(&self, query: &Query<'_>) -> Result<InfluxCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(InfluxCursor::new(&self.connection, query, self.series_of(&numbers)))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(series)?;
        self.newest_of(&self.series_of(&numbers), into).await
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
        let samples = opening::count(&self.connection).await.unwrap_or(written);
        let series = self.registry.keys().defined() as u64;
        let mut stats = Stats::new(series, samples, accepted);
        stats.superseded = written.saturating_sub(samples);
        stats.footprint = self.footprint(samples).await.unwrap_or_else(|_| Footprint::default());
        stats
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}
