//! The client: writes batches as text, and answers queries from exports.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::connection::{VictoriaConnection, spec_error};
use super::cursor::VictoriaCursor;
use super::names::line_start;
use super::options::VictoriaOptions;
use super::times::{KeptTimes, MS_NS};
use crate::Client;
use crate::acks::Acks;
use crate::unanswered::UnansweredSender;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{Keys, read, write};
use tsb_stores::store::{Ack, Capabilities, Exactness, Footprint, OnConflict, Position, Query, Refusals, Scope, Stats};

mod newest;
mod opening;
mod put;
mod snapshot;
mod writing;

pub(super) use opening::{remove_runs, series};

/// Significant digits that the server keeps of a value: conformance checks it.
const DIGITS: u8 = 11;
/// How long an accepted sample may stay invisible. The server makes rows searchable every second,
/// every two in new versions; but a selector that was asked before a new series came may miss the
/// series until a cache is reset, which happens every ten seconds.
const VISIBILITY_DELAY_MS: u64 = 15_000;

/// A series, by number.
#[derive(Debug)]
struct Known {
    keys: Vec<SeriesKey>,
    /// How its lines begin.
    starts: Vec<Box<str>>,
}

/// A client that stores samples under a label of VictoriaMetrics.
#[derive(Debug)]
pub struct VictoriaClient {
    connection: Arc<VictoriaConnection>,
    /// Where samples go, if not over HTTP.
    put: Option<UnansweredSender>,
    options: VictoriaOptions,
    retention_ms: Option<i64>,
    keys: RwLock<Keys>,
    known: RwLock<Known>,
    /// The newest timestamp seen of each series number: searches start there.
    seen: RwLock<Vec<Timestamp>>,
    /// Number of samples, and bytes of the whole server, when the client was opened.
    initial_samples: u64,
    initial_bytes: u64,
    synced: AtomicU64,
    /// When the server's metrics show what the last snapshot wrote, on the clock.
    shown_ns: AtomicU64,
    acks: Acks,
    clock: MonotonicClock,
}

impl VictoriaClient {
    /// The times that the server takes at this moment.
    fn kept(&self) -> KeptTimes {
        KeptTimes::new(self.clock.wall(), self.retention_ms.unwrap_or(i64::MAX))
    }

    /// What an acknowledgement is worth.
    const fn acknowledges(&self) -> Durability {
        match self.put {
            Some(_) => Durability::Unconfirmed,
            None => Durability::Volatile,
        }
    }

    fn keys_of(&self, numbers: &[u32]) -> Vec<SeriesKey> {
        let known = read(&self.known);
        numbers
            .iter()
            .map(|number| known.keys[*number as usize].clone())
            .collect()
    }
}

/// How the lines of a series begin; refuses one that this wire cannot carry.
fn start_of(key: &SeriesKey, place: &str) -> Result<Box<str>> {
    let start = line_start(key, place);
    let start = start.map_err(|why| spec_error(format!("series {key} cannot be stored there: {why}")))?;
    Ok(start.into())
}

impl fmt::Display for VictoriaClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("victoriametrics")
    }
}

impl Client for VictoriaClient {
    type Cursor = VictoriaCursor;

    fn capabilities(&self) -> Capabilities {
        let flushes = match self.put {
            Some(_) => Durability::Unconfirmed,
            None => Durability::Synced,
        };
        let mut capabilities = Capabilities::new(self.acknowledges(), flushes);
        capabilities.exactness = Exactness::Significant(DIGITS);
        capabilities.duplicate = OnConflict::KeptBoth;
        capabilities.resolution_ns = self.put.as_ref().map_or(MS_NS, |_| put::RESOLUTION_NS);
        capabilities.special_values = false;
        capabilities.persistent = true;
        capabilities.retention_ns = self.retention_ms.and_then(|ms| ms.checked_mul(MS_NS));
        capabilities.visibility_delay_ms = VISIBILITY_DELAY_MS;
        // What was sent without an answer may not be there.
        capabilities.counts_samples = self.put.is_none();
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        let place = self.connection.place();
        for (_, key) in series {
            start_of(key, place)?;
            if self.put.is_some() {
                put::check(key, place)?;
            }
        }
        let mut keys = write(&self.keys);
        let mut known = write(&self.known);
        for key in keys.define(series)? {
            // It can be carried: it was tried before.
            known.starts.push(start_of(&key, place).unwrap_or_default());
            known.keys.push(key);
        }
        Ok(())
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = read(&self.keys).numbered(batch, &mut numbers)?;
        let rejected = match &self.put {
            Some(sender) => self.put(sender, &numbered).await?,
            None => self.write_batch(&numbered).await?,
        };
        Ok(self.acks.ack(batch.len(), &rejected, refused, self.acknowledges()))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks
            .durable(level, self.acknowledges(), self.synced.load(Ordering::Acquire))
    }

    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).check_scope(scope)?;
        if level > self.acknowledges() && self.put.is_some() {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "a flush of samples that nobody acknowledged",
            });
        }
        if level > Durability::Volatile {
            let accepted = self.acks.accepted();
            self.snapshot().await?;
            self.synced.fetch_max(accepted, Ordering::AcqRel);
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<VictoriaCursor> {
        self.acks.check_open()?;
        if query.resample.is_some() {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "resampling",
            });
        }
        let numbers = read(&self.keys).numbers(query.series)?;
        let series: VecDeque<_> = query.series.iter().copied().zip(self.keys_of(&numbers)).collect();
        let range = self.kept().parameters(query.range);
        Ok(VictoriaCursor::new(&self.connection, range, series))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        self.newest_of(&numbers, into).await
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).numbers(series)?;
        into.fill(None);
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        let samples = self.initial_samples + accepted;
        let series = read(&self.keys).defined() as u64;
        let mut stats = Stats::new(series, samples, accepted);
        let wait_ns = self.shown_ns.load(Ordering::Acquire).saturating_sub(self.clock.now());
        tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
        // Of the whole server: it does not count the bytes of a label.
        if let Ok(state) = self.connection.state().await {
            stats.footprint = Footprint::of_sealed(state.bytes.saturating_sub(self.initial_bytes), samples);
        }
        stats
    }

    async fn close(&self) -> Result<()> {
        if !self.acks.close() {
            return Ok(());
        }
        if let Some(sender) = &self.put {
            sender.close().await;
        }
        self.snapshot().await
    }
}
