//! Opens a place: checks the server, and reads which series are there.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};

use serde::Deserialize;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::wire::Protocol;
use tsb_core::{SeriesKey, Timestamp};

use super::super::connection::VictoriaConnection;
use super::super::exposition::parsed;
use super::super::names::place_selector;
use super::super::options::VictoriaOptions;
use super::super::times::KeptTimes;
use super::{Known, VictoriaClient, start_of};
use crate::Address;
use crate::acks::Acks;
use crate::http::{LineReader, Request};
use crate::unanswered::UnansweredSender;
use tsb_stores::error::Result;
use tsb_stores::parts::Keys;
use tsb_stores::store::TimeRange;

impl VictoriaClient {
    /// Connects and opens the place.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Error::Spec`](tsb_stores::Error::Spec) if it is no VictoriaMetrics.
    pub async fn connect(address: &Address, options: &VictoriaOptions) -> Result<Self> {
        let connection = VictoriaConnection::new(address, options)?;
        let state = connection.state().await?;
        if options.drop {
            connection.delete().await?;
        }
        let clock = MonotonicClock::new();
        let keys = stored_series(&connection, clock.wall()).await?;
        let initial_samples = if keys.is_empty() {
            0
        } else {
            count(&connection, clock.wall()).await?
        };
        let starts = keys
            .iter()
            .map(|key| start_of(key, connection.place()))
            .collect::<Result<_>>()?;
        let put = UnansweredSender::for_put_lines(
            "VictoriaMetrics",
            options.put.as_deref(),
            Protocol::Opentsdb,
            options.timeout,
        )
        .await?;
        Ok(Self {
            connection: Arc::new(connection),
            put,
            options: options.clone(),
            retention_ms: state.retention_ms,
            keys: RwLock::new(Keys::new(keys.clone(), options.max_series)),
            known: RwLock::new(Known { keys, starts }),
            seen: RwLock::default(),
            initial_samples,
            initial_bytes: state.bytes,
            synced: AtomicU64::new(0),
            shown_ns: AtomicU64::new(0),
            acks: Acks::default(),
            clock,
        })
    }
}

/// The series with samples under a label.
///
/// # Errors
/// As [`VictoriaClient::connect`].
pub(in crate::victoriametrics) async fn series(address: &Address, options: &VictoriaOptions) -> Result<Vec<SeriesKey>> {
    let connection = VictoriaConnection::new(address, options)?;
    connection.state().await?;
    stored_series(&connection, MonotonicClock::new().wall()).await
}

/// Deletes all series under a label.
///
/// # Errors
/// As [`VictoriaClient::connect`].
pub(in crate::victoriametrics) async fn remove_runs(address: &Address, options: &VictoriaOptions) -> Result<()> {
    let connection = VictoriaConnection::new(address, options)?;
    connection.state().await?;
    connection.delete().await
}

/// The series in the order of their keys.
async fn stored_series(connection: &VictoriaConnection, now: Timestamp) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "list the series";
    let Some(range) = KeptTimes::new(now, i64::MAX).parameters(TimeRange::ALL) else {
        return Ok(Vec::new());
    };
    let answer = connection
        .newest(ACTION, &[place_selector(connection.place())], &range)
        .await?;
    let (mut lines, mut keys) = (LineReader::new(answer), BTreeSet::new());
    while let Some(line) = lines.next().await? {
        let Some((key, _)) = std::str::from_utf8(&line).ok().and_then(parsed) else {
            return Err(connection.server().unanswered(ACTION, "a line cannot be read"));
        };
        keys.insert(key);
    }
    Ok(keys.into_iter().collect())
}

/// The answer to a query whose result is one number, or none.
#[derive(Debug, Deserialize)]
struct Counted {
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    result: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct Sample {
    value: (f64, String),
}

/// The number of stored samples.
async fn count(connection: &VictoriaConnection, now: Timestamp) -> Result<u64> {
    const ACTION: &str = "count the samples";
    // The server looks back some time more, and finds nothing in a window that begins before 1970.
    let end_s = now.0 / SECOND_NS as i64 + 2 * 86_400;
    let selector = place_selector(connection.place());
    let (query, time) = (
        format!("sum(count_over_time({selector}[{}s]))", end_s - 7 * 86_400),
        end_s.to_string(),
    );
    let fields = [("query", query.as_str()), ("time", time.as_str()), ("nocache", "1")];
    let answer = connection
        .ask(ACTION, &Request::form("/api/v1/query", &fields).reading())
        .await?;
    let counted: Counted = serde_json::from_slice(answer.body()).map_err(|error| {
        connection
            .server()
            .unanswered(ACTION, format!("the answer cannot be read: {error}"))
    })?;
    let first = counted
        .data
        .result
        .first()
        .and_then(|sample| sample.value.1.parse::<f64>().ok());
    Ok(first.unwrap_or(0.0) as u64)
}
