//! Opens a place: checks whose tables they are, and reads the stored series.

use std::sync::Arc;

use tsb_core::SeriesKey;

use super::super::connection::{QuestDbConnection, spec_error};
use super::super::lines::FIRST_TIME;
use super::super::options::QuestDbOptions;
use super::QuestDbClient;
use crate::Address;
use crate::acks::Acks;
use crate::numbered_rows::NewestSeen;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::Result;
use tsb_stores::parts::key_of;

/// Series per request that asks for their names.
const NAMES_MAX: usize = 50_000;

/// Whose tables they are.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// There are none under this prefix.
    Nobody,
    /// A run has marked them.
    Run,
}

impl QuestDbClient {
    /// Connects and opens the tables of a prefix: those that are absent are made, those that a run has
    /// marked are reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Error::Spec`](tsb_stores::Error::Spec) if it is no QuestDB, or the tables are another
    /// program's.
    pub async fn connect(address: &Address, options: &QuestDbOptions) -> Result<Self> {
        let connection = QuestDbConnection::new(address, options)?;
        connection.check_version().await?;
        let keys = prepare(&connection, options).await?;
        Ok(Self {
            connection: Arc::new(connection),
            registry: SeriesRegistry::new(keys, options.max_series),
            seen: NewestSeen::new(FIRST_TIME),
            acks: Acks::default(),
        })
    }
}

/// The series that earlier runs left under a prefix.
///
/// # Errors
/// As [`QuestDbClient::connect`], and [`Error::Spec`](tsb_stores::Error::Spec) if no run has used
/// the prefix.
pub(in crate::questdb) async fn series(address: &Address, options: &QuestDbOptions) -> Result<Vec<SeriesKey>> {
    let connection = QuestDbConnection::new(address, options)?;
    connection.check_version().await?;
    match owner(&connection).await? {
        Owner::Run => stored_series(&connection).await,
        Owner::Nobody => Err(spec_error(format!(
            "prefix {} holds nothing of a run",
            connection.tables().prefix()
        ))),
    }
}

/// Removes the tables that runs have filled.
///
/// # Errors
/// As [`QuestDbClient::connect`]: tables of another program are not removed.
pub(in crate::questdb) async fn remove_runs(address: &Address, options: &QuestDbOptions) -> Result<()> {
    let connection = QuestDbConnection::new(address, options)?;
    connection.check_version().await?;
    match owner(&connection).await? {
        Owner::Run => drop_tables(&connection).await,
        Owner::Nobody => Ok(()),
    }
}

async fn drop_tables(connection: &QuestDbConnection) -> Result<()> {
    for statement in connection.tables().drop() {
        connection.change("drop the tables", &statement).await?;
    }
    Ok(())
}

/// Makes the tables ready. Returns the series that are stored there.
async fn prepare(connection: &QuestDbConnection, options: &QuestDbOptions) -> Result<Vec<SeriesKey>> {
    let owner = owner(connection).await?;
    if owner == Owner::Run && options.drop {
        drop_tables(connection).await?;
    }
    // Also those of a run: it may have ended before they were whole.
    for statement in connection.tables().make() {
        connection.change("make the tables", &statement).await?;
    }
    if owner == Owner::Nobody || options.drop {
        return Ok(Vec::new());
    }
    stored_series(connection).await
}

/// Whose tables they are; those without a mark are refused: nothing of ours may write there.
async fn owner(connection: &QuestDbConnection) -> Result<Owner> {
    let tables = connection.tables();
    let names = connection
        .ask::<(String,)>("ask whose tables they are", &tables.present())
        .await?;
    let (mark, prefix) = (tables.mark_table(), tables.prefix());
    if names.iter().any(|(name,)| *name == mark) {
        return Ok(Owner::Run);
    }
    let of_us = [tables.samples_table(), tables.series_table()];
    match names.iter().find(|(name,)| !of_us.contains(name)).or(names.first()) {
        None => Ok(Owner::Nobody),
        Some((name,)) if of_us.contains(name) => Err(spec_error(format!(
            "there is a table {name:?} and no mark of a run; name a prefix that nothing else uses, as \
             questdb://HOST/{prefix}2"
        ))),
        Some((name,)) => Err(spec_error(format!(
            "another version has written the tables of {prefix}, which {name:?} marks; name another prefix"
        ))),
    }
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &QuestDbConnection) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    connection.settle(&connection.tables().series_table()).await?;
    let mut keys = Vec::new();
    loop {
        let first = keys.len();
        let statement = connection.tables().series(first, NAMES_MAX);
        let rows = connection.ask::<(usize, String, String)>(ACTION, &statement).await?;
        for (number, name, labels) in rows {
            let name = serde_json::from_str::<String>(&name).ok();
            let key = name
                .filter(|_| number == keys.len())
                .and_then(|name| key_of(&name, &labels));
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
