//! Opens a database: checks who uses it, and reads the stored series.

use std::sync::{Arc, RwLock};

use tsb_core::SeriesKey;

use super::super::connection::{InfluxConnection, spec_error};
use super::super::names::{InfluxSeries, OWN, identifier};
use super::super::options::InfluxOptions;
use super::{InfluxClient, influx_series};
use crate::Address;
use crate::acks::Acks;
use crate::line_protocol::string_field;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::Result;
use tsb_stores::parts::key_of;

/// Series per request that asks for their names.
const NAMES_MAX: usize = 50_000;
/// The version of what this client stores.
const VERSION: &str = "1";

/// Whose database it is.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// There is none of this name.
    Absent,
    /// It holds nothing.
    Empty,
    /// A run has marked it, and has written all series into a measurement, or each into one of its own.
    Run { measurement: Option<String> },
}

impl InfluxClient {
    /// Connects and opens the database: one that is absent or empty is made and marked, one that
    /// a run has marked is reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Error::Spec`](tsb_stores::Error::Spec) if it is no InfluxDB 1.x, or the database holds
    /// something else.
    pub async fn connect(address: &Address, options: &InfluxOptions) -> Result<Self> {
        let connection = InfluxConnection::new(address, options)?;
        // Before anything is dropped for it.
        if let Some(measurement) = &options.measurement {
            InfluxSeries::new(&SeriesKey::new("a"), Some(measurement))
                .map_err(|why| spec_error(format!("measurement {measurement:?} cannot be used: {why}")))?;
        }
        connection.check_version().await?;
        let keys = prepare(&connection, options).await?;
        let series = keys.iter().map(|key| influx_series(key, options));
        let series: Vec<InfluxSeries> = series.collect::<Result<_>>()?;
        let initial_samples = if keys.is_empty() { 0 } else { count(&connection).await? };
        Ok(Self {
            connection: Arc::new(connection),
            options: options.clone(),
            registry: SeriesRegistry::new(keys, options.max_series),
            series: RwLock::new(series),
            initial_samples,
            acks: Acks::default(),
        })
    }
}

/// The series that earlier runs left in a database.
///
/// # Errors
/// As [`InfluxClient::connect`], and [`Error::Spec`](tsb_stores::Error::Spec) if no run has used
/// the database.
pub(in crate::influx) async fn series(address: &Address, options: &InfluxOptions) -> Result<Vec<SeriesKey>> {
    let connection = InfluxConnection::new(address, options)?;
    connection.check_version().await?;
    match owner(&connection).await? {
        Owner::Run { .. } => stored_series(&connection).await,
        Owner::Absent | Owner::Empty => Err(spec_error(format!(
            "database {} holds nothing of a run",
            connection.database()
        ))),
    }
}

/// Removes a database that runs have filled.
///
/// # Errors
/// As [`InfluxClient::connect`]: measurements of another program are not removed.
pub(in crate::influx) async fn remove_runs(address: &Address, options: &InfluxOptions) -> Result<()> {
    let connection = InfluxConnection::new(address, options)?;
    connection.check_version().await?;
    match owner(&connection).await? {
        Owner::Run { .. } => drop_database(&connection).await,
        Owner::Absent | Owner::Empty => Ok(()),
    }
}

async fn drop_database(connection: &InfluxConnection) -> Result<()> {
    let drop = format!("DROP DATABASE {}", connection.identifier());
    connection.change("drop the database", &drop).await
}

/// Makes the database ready. Returns the series that are stored there.
async fn prepare(connection: &InfluxConnection, options: &InfluxOptions) -> Result<Vec<SeriesKey>> {
    let mut found = owner(connection).await?;
    if let Owner::Run { measurement } = &found {
        if !options.drop {
            check_measurement(connection, measurement.as_deref(), options)?;
            return stored_series(connection).await;
        }
        drop_database(connection).await?;
        found = Owner::Absent;
    }
    if found == Owner::Absent {
        let create = format!("CREATE DATABASE {}", connection.identifier());
        connection.change("make the database", &create).await?;
    }
    // Below all numbers of series.
    let measurement = options.measurement.as_deref().map_or(String::new(), |measurement| {
        format!(",measurement={}", string_field(measurement))
    });
    let marker = format!("{OWN} version=\"{VERSION}\"{measurement} -1\n");
    connection.write_own("mark the database", marker).await?;
    Ok(Vec::new())
}

/// Whose database it is; one with measurements and without a marker is refused: nothing of ours
/// may write there.
async fn owner(connection: &InfluxConnection) -> Result<Owner> {
    const ACTION: &str = "ask whose database it is";
    let names = connection.ask::<(String,)>(ACTION, "SHOW DATABASES").await?;
    let mut names = names
        .iter()
        .flat_map(|result| &result.series)
        .flat_map(|rows| &rows.values);
    if !names.any(|(name,)| name == connection.database()) {
        return Ok(Owner::Absent);
    }
    let marker = format!(
        "SELECT \"version\", \"measurement\" FROM {} WHERE time = -1",
        identifier(OWN)
    );
    let results = connection.ask::<(i64, String, Option<String>)>(ACTION, &marker).await?;
    match results.first().and_then(|result| result.series.first()?.values.first()) {
        Some((_, version, measurement)) if version == VERSION => Ok(Owner::Run {
            measurement: measurement.clone(),
        }),
        Some((_, version, _)) => Err(spec_error(format!(
            "database {} holds what another version wrote: {version}; name another one",
            connection.database()
        ))),
        None => measurements(connection).await,
    }
}

/// Series are found only where they were written.
fn check_measurement(connection: &InfluxConnection, found: Option<&str>, options: &InfluxOptions) -> Result<()> {
    let in_words = |measurement: Option<&str>| {
        measurement.map_or("measurements of their own".to_owned(), |measurement| {
            format!("the measurement {measurement:?}")
        })
    };
    let asked = options.measurement.as_deref();
    if found == asked {
        return Ok(());
    }
    Err(spec_error(format!(
        "database {} holds series in {}, and the option measurement names {}",
        connection.database(),
        in_words(found),
        in_words(asked)
    )))
}

/// An unmarked database must be empty.
async fn measurements(connection: &InfluxConnection) -> Result<Owner> {
    let found = connection
        .ask::<(String,)>("ask whose database it is", "SHOW MEASUREMENTS LIMIT 1")
        .await?;
    let mut names = found
        .iter()
        .flat_map(|result| &result.series)
        .flat_map(|rows| &rows.values);
    match names.next() {
        None => Ok(Owner::Empty),
        Some((other,)) => Err(spec_error(format!(
            "database {} holds the measurement {other:?}, which no run made; name a database that nothing else uses",
            connection.database()
        ))),
    }
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &InfluxConnection) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let mut keys = Vec::new();
    loop {
        let first = keys.len();
        let statement = format!(
            "SELECT \"name\", \"labels\" FROM {} WHERE time >= {first} ORDER BY time LIMIT {NAMES_MAX}",
            identifier(OWN)
        );
        let results = connection.ask::<(i64, String, String)>(ACTION, &statement).await?;
        let rows = results
            .iter()
            .flat_map(|result| &result.series)
            .flat_map(|rows| &rows.values);
        for (number, name, labels) in rows {
            let is_next = *number == keys.len() as i64;
            let Some(key) = key_of(name, labels).filter(|_| is_next) else {
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

/// The number of stored samples.
pub(super) async fn count(connection: &InfluxConnection) -> Result<u64> {
    const STATEMENT: &str = "SELECT count(*) FROM /.*/ WHERE time <= 9223372036854775806";
    let results = connection
        .ask::<Vec<serde_json::Value>>("count the samples", STATEMENT)
        .await?;
    let counted = results
        .iter()
        .flat_map(|result| &result.series)
        .filter(|rows| rows.name != OWN);
    let counts = counted.flat_map(|rows| &rows.values).flat_map(|row| row.iter().skip(1));
    Ok(counts.filter_map(serde_json::Value::as_u64).sum())
}
