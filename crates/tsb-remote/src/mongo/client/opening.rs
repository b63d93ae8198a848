//! Opens a database: checks who uses it, and reads the stored series.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mongodb::bson::{Document, doc};
use tsb_core::SeriesKey;

use super::super::connection::MongoConnection;
use super::super::layout::Layout;
use super::super::options::MongoOptions;
use super::{MARKER, MongoClient, SERIES, number};
use crate::Address;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::key_of;

impl MongoClient {
    /// Connects and opens the database: an empty one is prepared, and one with the same layout is
    /// reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no server answers, [`Error::Spec`] if the database holds
    /// something else.
    pub async fn connect(address: &Address, options: &MongoOptions) -> Result<Self> {
        let connection = MongoConnection::open(address, options).await?;
        let members = connection.members().await?;
        let mut layout = Layout::new(options);
        let is_new = prepare(&connection, &layout, options).await?;
        let keys = if is_new {
            layout.begin();
            Vec::new()
        } else {
            stored_series(&connection).await?
        };
        let numbered: Vec<_> = (0..).zip(keys.iter().cloned()).collect();
        layout.add_series(&numbered);
        let initial_samples = if is_new { 0 } else { count(&connection, &layout).await? };
        Ok(Self {
            copies: options.write_concern.copies(members),
            connection: Arc::new(connection),
            layout: Arc::new(layout),
            options: options.clone(),
            registry: SeriesRegistry::new(keys, options.max_series),
            initial_samples,
            attempted: AtomicU64::new(initial_samples),
            synced: AtomicU64::new(0),
            acks: Acks::default(),
        })
    }
}

/// The series that earlier runs left in a database.
///
/// # Errors
/// As [`MongoClient::connect`], and [`Error::Spec`] if no run has used the database.
pub(in crate::mongo) async fn series(address: &Address, options: &MongoOptions) -> Result<Vec<SeriesKey>> {
    let connection = MongoConnection::open(address, options).await?;
    if marker(&connection).await?.is_none() {
        let database = connection.database();
        return Err(spec_error(format!("database {database} holds nothing of a run")));
    }
    stored_series(&connection).await
}

/// Removes a database that runs have filled. Without anything there, it does nothing.
///
/// # Errors
/// As [`MongoClient::connect`]: collections of another program are not removed.
pub(in crate::mongo) async fn remove_runs(address: &Address, options: &MongoOptions) -> Result<()> {
    let connection = MongoConnection::open(address, options).await?;
    if marker(&connection).await?.is_some() {
        return connection.drop_database().await;
    }
    check_empty(&connection).await
}

/// Refuses a database with collections that are no run's: nothing of ours may remove them.
async fn check_empty(connection: &MongoConnection) -> Result<()> {
    let collections = connection.collections().await?;
    match collections.iter().find(|name| !name.starts_with("system.")) {
        Some(other) => Err(spec_error(format!(
            "database {} holds the collection {other}, which no run made; name a database that nothing else uses",
            connection.database()
        ))),
        None => Ok(()),
    }
}

/// Prepares the database. Returns whether it was empty.
async fn prepare(connection: &MongoConnection, layout: &Layout, options: &MongoOptions) -> Result<bool> {
    let mut marker = marker(connection).await?;
    if marker.is_some() && options.drop {
        connection.drop_database().await?;
        marker = None;
    }
    if let Some(marker) = marker {
        return check_marker(connection, layout, &marker).map(|()| false);
    }
    check_empty(connection).await?;
    let concern = options.write_concern.journaled().document(connection.timeout());
    for mut alternatives in layout.preparations() {
        for command in &mut alternatives {
            command.insert("writeConcern", concern.clone());
        }
        first_accepted(connection, alternatives).await?;
    }
    let mut document = doc! { "_id": "layout" };
    document.extend(layout.marker());
    let insert = doc! { "insert": MARKER, "documents": [document], "writeConcern": concern };
    connection.change("mark the database", insert).await?;
    Ok(true)
}

/// Runs the commands in order, until one is not refused by the server.
async fn first_accepted(connection: &MongoConnection, alternatives: Vec<Document>) -> Result<()> {
    let mut outcome = Ok(());
    for command in alternatives {
        outcome = connection.change("make collections", command).await.map(drop);
        if !matches!(outcome, Err(Error::Backend { .. })) {
            break;
        }
    }
    outcome
}

async fn marker(connection: &MongoConnection) -> Result<Option<Document>> {
    let find = doc! { "find": MARKER, "filter": { "_id": "layout" }, "limit": 1, "singleBatch": true };
    connection.find_one("ask whose database it is", find).await
}

fn check_marker(connection: &MongoConnection, layout: &Layout, marker: &Document) -> Result<()> {
    let mut found = marker.clone();
    found.remove("_id");
    let asked = layout.marker();
    if found == asked {
        return Ok(());
    }
    Err(spec_error(format!(
        "database {} holds samples as {found}, and {asked} is asked for; name another one, or drop=1 to remove them",
        connection.database()
    )))
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &MongoConnection) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let mut keys = Vec::new();
    let mut cursor = connection
        .aggregate(ACTION, SERIES, vec![doc! { "$sort": { "_id": 1 } }])
        .await?;
    while connection.advance(ACTION, &mut cursor).await? {
        let document = cursor.current();
        let key = match (
            document.get_i32("_id"),
            document.get_str("name"),
            document.get_str("labels"),
        ) {
            (Ok(number), Ok(name), Ok(labels)) if number as usize == keys.len() => key_of(name, labels),
            _ => None,
        };
        match key {
            Some(key) => keys.push(key),
            None => return Err(connection.failed(ACTION, format!("that of series {} cannot be read", keys.len()))),
        }
    }
    Ok(keys)
}

/// The number of stored samples.
async fn count(connection: &MongoConnection, layout: &Layout) -> Result<u64> {
    const ACTION: &str = "count the samples";
    let Some(aggregation) = layout.count() else {
        let mut count = 0;
        for name in layout.names() {
            count += number(&connection.ask(ACTION, doc! { "count": name }).await?, "n");
        }
        return Ok(count);
    };
    let mut cursor = connection
        .aggregate(ACTION, &aggregation.collection, aggregation.pipeline)
        .await?;
    if !connection.advance(ACTION, &mut cursor).await? {
        return Ok(0);
    }
    let counted = Document::try_from(cursor.current()).map_err(|error| connection.failed(ACTION, error))?;
    Ok(number(&counted, "n"))
}

fn spec_error(what: String) -> Error {
    Error::Spec {
        spec: "mongo:".to_owned(),
        what,
    }
}
