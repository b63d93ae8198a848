//! Opens a prefix: checks whose metrics it has, and reads the stored series.

use std::sync::{Arc, RwLock};

use tsb_core::wire::Protocol;
use tsb_core::{SeriesKey, Timestamp};

use super::super::body::MS_NS;
use super::super::connection::{KairosDbConnection, Wanted, spec_error};
use super::super::options::KairosDbOptions;
use super::{KairosDbClient, KnownSeries};
use crate::Address;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use crate::unanswered::UnansweredSender;
use tsb_stores::error::Result;
use tsb_stores::parts::key_of;
use tsb_stores::store::TimeRange;

/// Series per request that asks for their names.
const NAMES_MAX: usize = 50_000;

impl KairosDbClient {
    /// Connects and opens a prefix: one that runs have used is reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Error::Spec`](tsb_stores::Error::Spec) if it is no KairosDB, or the metrics are another
    /// program's.
    pub async fn connect(address: &Address, options: &KairosDbOptions) -> Result<Self> {
        let connection = KairosDbConnection::new(address, options)?;
        connection.check_version().await?;
        let mut keys = stored_series(&connection).await?;
        if !keys.is_empty() && options.drop {
            delete_all(&connection).await?;
            keys.clear();
        } else if keys.is_empty() {
            check_unused(&connection).await?;
        }
        let mut known = KnownSeries {
            of_lines: options.put.is_some().then(Vec::new),
            ..KnownSeries::default()
        };
        for key in &keys {
            known.add(connection.prefix(), key);
        }
        let put =
            UnansweredSender::for_put_lines("KairosDB", options.put.as_deref(), Protocol::Kairosdb, options.timeout)
                .await?;
        Ok(Self {
            connection: Arc::new(connection),
            put,
            registry: SeriesRegistry::new(keys, options.max_series),
            known: RwLock::new(known),
            acks: Acks::default(),
        })
    }
}

/// The series that earlier runs left under a prefix.
///
/// # Errors
/// As [`KairosDbClient::connect`], and [`Error::Spec`](tsb_stores::Error::Spec) if no run has used
/// the prefix.
pub(in crate::kairosdb) async fn series(address: &Address, options: &KairosDbOptions) -> Result<Vec<SeriesKey>> {
    let connection = KairosDbConnection::new(address, options)?;
    connection.check_version().await?;
    let keys = stored_series(&connection).await?;
    if keys.is_empty() {
        return Err(spec_error(format!(
            "prefix {} holds nothing of a run",
            connection.prefix()
        )));
    }
    Ok(keys)
}

/// Deletes the metrics that runs have filled.
///
/// # Errors
/// As [`KairosDbClient::connect`]: metrics of another program are not deleted.
pub(in crate::kairosdb) async fn remove_runs(address: &Address, options: &KairosDbOptions) -> Result<()> {
    let connection = KairosDbConnection::new(address, options)?;
    connection.check_version().await?;
    if stored_series(&connection).await?.is_empty() {
        return Ok(());
    }
    delete_all(&connection).await
}

/// The list of series last: without it, nobody knows whose the others are.
async fn delete_all(connection: &KairosDbConnection) -> Result<()> {
    let metrics = connection.metrics().await?;
    for metric in metrics.iter().filter(|metric| *metric != connection.prefix()) {
        connection.delete(metric).await?;
    }
    connection.delete(connection.prefix()).await
}

/// Refuses a prefix whose metrics have samples that no run has written. The names of deleted metrics
/// stay, without samples.
async fn check_unused(connection: &KairosDbConnection) -> Result<()> {
    const ACTION: &str = "ask whose metrics they are";
    for metric in connection.metrics().await? {
        if connection.has_samples(ACTION, &metric).await? {
            let prefix = connection.prefix();
            return Err(spec_error(format!(
                "there is a metric {metric:?} which no run of this version has written; name a prefix that nothing \
                 else uses, as kairosdb://HOST/{prefix}2"
            )));
        }
    }
    Ok(())
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &KairosDbConnection) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let mut keys = Vec::new();
    loop {
        let first = keys.len();
        let range = TimeRange {
            start: Timestamp(first as i64 * MS_NS),
            end: Timestamp::MAX,
        };
        let found = connection
            .query::<String>(ACTION, &[connection.list()], range, Wanted::First(NAMES_MAX))
            .await?;
        for (number, name) in found.into_iter().flatten() {
            let pair = serde_json::from_str::<(String, String)>(&name).ok();
            let key = pair
                .filter(|_| number == keys.len() as i64)
                .and_then(|(name, labels)| key_of(&name, &labels));
            let Some(key) = key else {
                let why = format!("that of series {} cannot be read", keys.len());
                return Err(connection.server().failed(ACTION, why));
            };
            keys.push(key);
        }
        if keys.len() < first + NAMES_MAX {
            return Ok(keys);
        }
    }
}
