//! Opens a database: checks who uses it, and reads the stored series.

use std::sync::Arc;

use serde::Deserialize;
use tsb_core::{SeriesKey, Timestamp};

use super::super::connection::{ClickHouseConnection, spec_error};
use super::super::options::ClickHouseOptions;
use super::super::tables::VERSION;
use super::ClickHouseClient;
use crate::Address;
use crate::acks::Acks;
use crate::numbered_rows::NewestSeen;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::Result;
use tsb_stores::parts::key_of;

/// Series per request that asks for their names.
const NAMES_MAX: usize = 50_000;
const WHOSE: &str = "ask whose database it is";

/// Whose database it is.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// There is none of this name, it holds nothing, or it was not made whole.
    Nobody,
    /// A run has marked it.
    Run,
}

/// A stored series.
#[derive(Debug, Deserialize)]
struct StoredSeries {
    id: usize,
    key_name: String,
    key_labels: String,
    /// 1 if two of this number have different names.
    others: u8,
}

impl ClickHouseClient {
    /// Connects and opens the database: one that is absent or empty is made and marked, one that
    /// a run has marked is reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Error::Spec`](tsb_stores::Error::Spec) if it is no ClickHouse, or the database holds
    /// something else.
    pub async fn connect(address: &Address, options: &ClickHouseOptions) -> Result<Self> {
        let connection = ClickHouseConnection::new(address, options)?;
        connection.check_version().await?;
        let keys = prepare(&connection, options).await?;
        Ok(Self {
            connection: Arc::new(connection),
            registry: SeriesRegistry::new(keys, options.max_series),
            seen: NewestSeen::new(Timestamp::MIN),
            acks: Acks::default(),
        })
    }
}

/// The series that earlier runs left in a database.
///
/// # Errors
/// As [`ClickHouseClient::connect`], and [`Error::Spec`](tsb_stores::Error::Spec) if no run has
/// used the database.
pub(in crate::clickhouse) async fn series(address: &Address, options: &ClickHouseOptions) -> Result<Vec<SeriesKey>> {
    let connection = ClickHouseConnection::new(address, options)?;
    connection.check_version().await?;
    match owner(&connection).await? {
        Owner::Run => stored_series(&connection).await,
        Owner::Nobody => Err(spec_error(format!(
            "database {} holds nothing of a run",
            connection.tables().database()
        ))),
    }
}

/// Removes a database that runs have filled.
///
/// # Errors
/// As [`ClickHouseClient::connect`]: tables of another program are not removed.
pub(in crate::clickhouse) async fn remove_runs(address: &Address, options: &ClickHouseOptions) -> Result<()> {
    let connection = ClickHouseConnection::new(address, options)?;
    connection.check_version().await?;
    match owner(&connection).await? {
        Owner::Run => drop_database(&connection).await,
        Owner::Nobody => Ok(()),
    }
}

async fn drop_database(connection: &ClickHouseConnection) -> Result<()> {
    connection.change("drop the database", connection.tables().drop()).await
}

/// Makes the database ready. Returns the series that are stored there.
async fn prepare(connection: &ClickHouseConnection, options: &ClickHouseOptions) -> Result<Vec<SeriesKey>> {
    if owner(connection).await? == Owner::Run {
        if !options.drop {
            return stored_series(connection).await;
        }
        drop_database(connection).await?;
    }
    for statement in connection.tables().make() {
        connection.change("make the database", statement).await?;
    }
    Ok(Vec::new())
}

/// Whose database it is; one with tables and without a marker is refused: nothing of ours may write
/// there.
async fn owner(connection: &ClickHouseConnection) -> Result<Owner> {
    let tables = connection.tables();
    let lines = async |statement: String| -> Result<Vec<String>> {
        let answer = connection.ask(WHOSE, statement).await?;
        let text = String::from_utf8_lossy(answer.body());
        Ok(text.lines().map(str::to_owned).collect())
    };
    if lines(tables.is_there()).await?.is_empty() {
        return Ok(Owner::Nobody);
    }
    let names = lines(tables.names()).await?;
    if names.iter().any(|name| name == "tsb") {
        return marked(connection).await;
    }
    match names.first() {
        None => Ok(Owner::Nobody),
        Some(other) => Err(spec_error(format!(
            "database {} holds the table {other:?} and no mark of a run; name a database that nothing else uses",
            tables.database()
        ))),
    }
}

async fn marked(connection: &ClickHouseConnection) -> Result<Owner> {
    let answer = connection.ask(WHOSE, connection.tables().version()).await?;
    let version = answer.body().first_chunk().copied().map(u32::from_le_bytes);
    match version {
        Some(VERSION) => Ok(Owner::Run),
        Some(0) => Ok(Owner::Nobody),
        found => Err(spec_error(format!(
            "database {} holds what another version wrote: {}; name another one",
            connection.tables().database(),
            found.unwrap_or_default()
        ))),
    }
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &ClickHouseConnection) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let mut keys = Vec::new();
    loop {
        let first = keys.len();
        let answer = connection
            .ask(ACTION, connection.tables().series(first, NAMES_MAX))
            .await?;
        for line in answer
            .body()
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let key = serde_json::from_slice::<StoredSeries>(line).ok();
            let key = key.filter(|stored| stored.id == keys.len() && stored.others == 0);
            let Some(key) = key.and_then(|stored| key_of(&stored.key_name, &stored.key_labels)) else {
                let why = format!("that of series {} cannot be read, or is not the only one", keys.len());
                return Err(connection.server().failed(ACTION, why));
            };
            keys.push(key);
        }
        if keys.len() < first + NAMES_MAX {
            return Ok(keys);
        }
    }
}
