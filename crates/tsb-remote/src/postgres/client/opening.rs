//! Opens a schema: checks who uses it, and reads the stored series.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tsb_core::SeriesKey;

use super::super::connection::{Effect, Pool};
use super::super::options::PostgresOptions;
use super::super::schema::{self, Schema, VERSION};
use super::super::settings::Settings;
use super::{PostgresClient, Shared};
use crate::Address;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::Result;
use tsb_stores::parts::key_of;

/// The first version with `ON CONFLICT`, as `server_version_num` counts.
const OLDEST_SERVER: i32 = 90_500;

impl PostgresClient {
    /// Connects and opens the schema: a new one is made, and one with the same table is reopened.
    ///
    /// # Errors
    /// [`Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Spec`](tsb_stores::Error::Spec) if the schema holds something else, or the server lacks
    /// what the options ask for.
    pub async fn connect(address: &Address, options: &PostgresOptions) -> Result<Self> {
        let shared = shared(address, options)?;
        let settings = settings(&shared.pool).await?;
        let is_new = prepare(&shared, options).await?;
        let (keys, initial_samples) = if is_new {
            (Vec::new(), 0)
        } else {
            let count = shared.schema.count();
            let count = shared
                .pool
                .whole_table("count the samples", Effect::Reads, &count)
                .await?;
            (stored_series(&shared).await?, count.unwrap_or(0) as u64)
        };
        Ok(Self {
            shared: Arc::new(shared),
            settings,
            write: options.write,
            is_hypertable: options.hypertable_chunk_ns.is_some(),
            registry: SeriesRegistry::new(keys, options.max_series),
            initial_samples,
            superseded: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            acks: Acks::default(),
        })
    }
}

/// The series that earlier runs left in a schema.
///
/// # Errors
/// As [`PostgresClient::connect`], and [`Spec`](tsb_stores::Error::Spec) if no run has used the schema.
pub(in crate::postgres) async fn series(address: &Address, options: &PostgresOptions) -> Result<Vec<SeriesKey>> {
    let shared = shared(address, options)?;
    if marker(&shared).await?.is_none() {
        let schema = &shared.schema.name;
        return Err(schema::error(format!("schema {schema} holds nothing of a run")));
    }
    let series = stored_series(&shared).await;
    shared.pool.close();
    series
}

/// Removes a schema that runs have filled. Without one, it does nothing.
///
/// # Errors
/// As [`PostgresClient::connect`]: tables of another program are not removed.
pub(in crate::postgres) async fn remove_runs(address: &Address, options: &PostgresOptions) -> Result<()> {
    let shared = shared(address, options)?;
    if marker(&shared).await?.is_some() {
        drop_schema(&shared).await?;
    } else {
        check_empty(&shared).await?;
    }
    shared.pool.close();
    Ok(())
}

fn shared(address: &Address, options: &PostgresOptions) -> Result<Shared> {
    Ok(Shared {
        schema: Schema::new(options)?,
        pool: Pool::new(address, options)?,
    })
}

/// The settings of a session as this client opens them.
async fn settings(pool: &Pool) -> Result<Settings> {
    const ACTION: &str = "ask for its settings";
    const NAMES: &str = "SELECT current_setting('server_version_num'), current_setting('synchronous_commit'), \
                         current_setting('fsync'), current_setting('synchronous_standby_names')";
    let rows = query(pool, ACTION, NAMES, &[]).await?;
    let of = |place: usize| -> String {
        let value = rows.first().and_then(|row| row.try_get(place).ok());
        value.unwrap_or_default()
    };
    if of(0).parse::<i32>().is_ok_and(|version| version < OLDEST_SERVER) {
        return Err(schema::error(
            "the server is older than PostgreSQL 9.5, which has no ON CONFLICT",
        ));
    }
    let settings = Settings::parse(&of(1), &of(2), &of(3));
    settings.ok_or_else(|| {
        let values = format!("synchronous_commit {:?} and fsync {:?}", of(1), of(2));
        pool.failed(
            ACTION,
            format!("{values} say nothing about durability that this client knows"),
        )
    })
}

/// Prepares the schema. Returns whether it was empty.
async fn prepare(shared: &Shared, options: &PostgresOptions) -> Result<bool> {
    let mut marker = marker(shared).await?;
    if marker.is_some() && options.drop {
        drop_schema(shared).await?;
        marker = None;
    }
    if let Some(marker) = marker {
        return check_marker(shared, marker, options).map(|()| false);
    }
    check_empty(shared).await?;
    if options.hypertable_chunk_ns.is_some() {
        check_extension(shared).await?;
    }
    simple(
        shared,
        "make its tables",
        &shared.schema.prepare(options.hypertable_chunk_ns),
    )
    .await?;
    Ok(true)
}

/// Refuses a schema with tables that are no run's: nothing of ours may remove them.
async fn check_empty(shared: &Shared) -> Result<()> {
    const TABLES: &str = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                          WHERE n.nspname = $1 LIMIT 1";
    let name = &shared.schema.name;
    let rows = query(&shared.pool, "list its tables", TABLES, &[name]).await?;
    match rows.first() {
        None => Ok(()),
        Some(row) => Err(schema::error(format!(
            "schema {name} holds {}, which no run made; name a schema that nothing else uses",
            row.try_get::<_, String>(0).unwrap_or_default()
        ))),
    }
}

/// Says what is missing for a hypertable.
async fn check_extension(shared: &Shared) -> Result<()> {
    const EXTENSION: &str = "SELECT installed_version IS NOT NULL FROM pg_available_extensions \
                             WHERE name = 'timescaledb'";
    let rows = query(&shared.pool, "ask for TimescaleDB", EXTENSION, &[]).await?;
    let is_installed = rows.first().map(|row| row.try_get::<_, bool>(0).unwrap_or_default());
    match is_installed {
        Some(true) => Ok(()),
        Some(false) => Err(schema::error(
            "hypertable=1 needs TimescaleDB in this database: run CREATE EXTENSION timescaledb",
        )),
        None => Err(schema::error(
            "hypertable=1 needs TimescaleDB, which this server does not have; install it, or leave hypertable out",
        )),
    }
}

/// The version and the chunk of a hypertable, in the marker; `None` without one.
async fn marker(shared: &Shared) -> Result<Option<(i32, Option<i64>)>> {
    const ACTION: &str = "ask whose schema it is";
    let (pool, schema) = (&shared.pool, &shared.schema);
    let exists = "SELECT to_regclass($1::text) IS NOT NULL";
    let rows = query(pool, ACTION, exists, &[&schema.marker_table()]).await?;
    let is_there = rows.first().is_some_and(|row| row.try_get(0).unwrap_or_default());
    if !is_there {
        return Ok(None);
    }
    let rows = query(pool, ACTION, &schema.marker(), &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| pool.failed(ACTION, "its marker has no row"))?;
    let read = || Ok((row.try_get(0)?, row.try_get(1)?));
    let marker = read().map_err(|error: tokio_postgres::Error| pool.failed(ACTION, error.to_string()))?;
    Ok(Some(marker))
}

fn check_marker(shared: &Shared, (version, chunk_ns): (i32, Option<i64>), options: &PostgresOptions) -> Result<()> {
    let name = &shared.schema.name;
    let kind = |chunk_ns: Option<i64>| match chunk_ns {
        None => "a plain table".to_owned(),
        Some(chunk_ns) => format!("a hypertable with chunks of {chunk_ns} ns"),
    };
    if version != VERSION {
        return Err(schema::error(format!(
            "schema {name} has tables of version {version}, and this program knows version {VERSION}"
        )));
    }
    if chunk_ns == options.hypertable_chunk_ns {
        return Ok(());
    }
    Err(schema::error(format!(
        "schema {name} holds {}, and {} is asked for; name another one, or drop=1 to remove it",
        kind(chunk_ns),
        kind(options.hypertable_chunk_ns)
    )))
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(shared: &Shared) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let rows = query(&shared.pool, ACTION, &shared.schema.all_series(), &[]).await?;
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let number = row.try_get::<_, i32>(0);
        let key = match (number, row.try_get::<_, &str>(1), row.try_get::<_, &str>(2)) {
            (Ok(number), Ok(name), Ok(labels)) if number as usize == keys.len() => key_of(name, labels),
            _ => None,
        };
        let unreadable = || {
            let why = format!("that of series {} cannot be read", keys.len());
            shared.pool.failed(ACTION, why)
        };
        let key = key.ok_or_else(unreadable)?;
        keys.push(key);
    }
    Ok(keys)
}

async fn drop_schema(shared: &Shared) -> Result<()> {
    let statement = shared.schema.drop();
    shared
        .pool
        .whole_table("drop the schema", Effect::Writes, &statement)
        .await
        .map(drop)
}

async fn query(pool: &Pool, action: &str, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    let checkout = pool.checkout(action).await?;
    let rows = checkout.session.client.query(statement, values);
    let rows = pool.answer(action, Effect::Reads, rows).await?;
    checkout.give_back();
    Ok(rows)
}

/// Runs statements as one transaction.
async fn simple(shared: &Shared, action: &str, statements: &str) -> Result<()> {
    let checkout = shared.pool.checkout(action).await?;
    let run = checkout.session.client.batch_execute(statements);
    shared.pool.answer(action, Effect::Writes, run).await?;
    checkout.give_back();
    Ok(())
}
