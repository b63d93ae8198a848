//! Opens a keyspace: checks whose tables it holds, and reads the stored series.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tsb_core::{Durability, SeriesKey};

use super::super::connection::{CassandraConnection, spec_error};
use super::super::options::{CassandraOptions, Consistency};
use super::super::requests::RowWriter;
use super::super::tables::{Tables, bucket_of};
use super::{CassandraClient, Shared, Statements};
use crate::Address;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::key_of;

/// Most characters of a keyspace's name, of which each is a letter, a digit or `_`.
const NAME_MAX: usize = 48;

/// Whose tables a keyspace has.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// There is no keyspace, or it is empty.
    Nobody,
    /// A run has made them, with buckets of this length in nanoseconds.
    Run(i64),
}

impl CassandraClient {
    /// Connects and opens a keyspace: what is absent is made, and what runs have made is reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no server answers, [`Error::Spec`] if the keyspace holds something
    /// else, or the options do not fit it.
    pub async fn connect(address: &Address, options: &CassandraOptions) -> Result<Self> {
        let connection = connect(address, options).await?;
        let is_new = prepare(&connection, options).await?;
        let (replicas, is_logged) = replication(&connection).await?;
        check_consistency(options, replicas)?;
        let keys = if is_new {
            Vec::new()
        } else {
            stored_series(&connection).await?
        };
        let tables = connection.tables();
        let level = options.consistency.level();
        let mut statements = Statements {
            add_series: connection.prepare(tables.add_series()).await?,
            add_bucket: connection.prepare(tables.add_bucket()).await?,
            newest_buckets: connection.prepare(tables.newest_buckets()).await?,
            earlier_bucket: connection.prepare(tables.earlier_bucket()).await?,
            newest: connection.prepare(tables.newest()).await?,
        };
        statements.add_series.set_consistency(level);
        statements.add_bucket.set_consistency(level);
        let insert = connection.prepare(tables.insert()).await?;
        let acknowledges = if is_logged {
            acknowledges(&connection).await?
        } else {
            Durability::Volatile
        };
        Ok(Self {
            statements,
            writer: RowWriter::new(insert, options),
            registry: SeriesRegistry::new(keys, options.max_series),
            buckets: Mutex::default(),
            acknowledges,
            copies: options.consistency.copies(replicas),
            acks: Acks::default(),
            shared: Arc::new(Shared {
                bucket_ns: options.bucket_ns,
                buckets: connection.prepare(tables.buckets()).await?,
                samples: connection.prepare(tables.samples()).await?,
                connection,
            }),
        })
    }
}

/// The series that earlier runs left in a keyspace.
///
/// # Errors
/// As [`CassandraClient::connect`], and [`Error::Spec`] if no run has used the keyspace.
pub(in crate::cassandra) async fn series(address: &Address, options: &CassandraOptions) -> Result<Vec<SeriesKey>> {
    let connection = connect(address, options).await?;
    match owner(&connection).await? {
        Owner::Run(_) => stored_series(&connection).await,
        Owner::Nobody => Err(spec_error(format!(
            "keyspace {} holds nothing of a run",
            connection.tables().keyspace()
        ))),
    }
}

/// Removes a keyspace that runs have filled.
///
/// # Errors
/// As [`CassandraClient::connect`]: tables of another program are not removed.
pub(in crate::cassandra) async fn remove_runs(address: &Address, options: &CassandraOptions) -> Result<()> {
    let connection = connect(address, options).await?;
    if owner(&connection).await? == Owner::Nobody {
        return Ok(());
    }
    let statement = Tables::drop_keyspace(connection.tables().keyspace());
    connection.change("drop the keyspace", statement).await
}

async fn connect(address: &Address, options: &CassandraOptions) -> Result<CassandraConnection> {
    let name = address.place();
    if name.len() > NAME_MAX || name.contains('-') {
        return Err(spec_error(format!(
            "keyspace {name:?}: Cassandra takes 1 to {NAME_MAX} letters, digits and _"
        )));
    }
    CassandraConnection::connect(address, options).await
}

/// Makes the tables ready. Returns whether they are new.
async fn prepare(connection: &CassandraConnection, options: &CassandraOptions) -> Result<bool> {
    const ACTION: &str = "make the tables";
    let tables = connection.tables();
    let owner = owner(connection).await?;
    match owner {
        Owner::Run(_) if options.drop => {
            for statement in tables.drop() {
                connection.change("drop the tables", statement).await?;
            }
        }
        Owner::Run(bucket_ns) if bucket_ns != options.bucket_ns => {
            return Err(spec_error(format!(
                "keyspace {} has buckets of {bucket_ns} ns, and {} ns are asked for; name another one, or drop=1 to \
                 remove what it holds",
                tables.keyspace(),
                options.bucket_ns
            )));
        }
        Owner::Run(_) => {}
        Owner::Nobody => {
            connection
                .change("make the keyspace", tables.make_keyspace(options.replicas))
                .await?;
        }
    }
    // Also those of a run: it may have ended between the two.
    for statement in tables.make(options.bucket_ns) {
        connection.change(ACTION, statement).await?;
    }
    Ok(owner == Owner::Nobody || options.drop)
}

/// Whose tables they are; those without our mark are refused: nothing of ours may write there.
async fn owner(connection: &CassandraConnection) -> Result<Owner> {
    const TABLES: &str = "SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = ?";
    let keyspace = connection.tables().keyspace();
    let tables = connection
        .ask::<(String, Option<String>)>("ask whose tables they are", TABLES, (keyspace,))
        .await?;
    let mut owner = Owner::Nobody;
    for (name, comment) in tables {
        match bucket_of(&comment.unwrap_or_default()) {
            Some(bucket_ns) => owner = Owner::Run(bucket_ns),
            None => {
                return Err(spec_error(format!(
                    "keyspace {keyspace} has a table {name:?} which no run of this version has made; name a keyspace \
                     that nothing else uses"
                )));
            }
        }
    }
    Ok(owner)
}

/// The number of replicas of each row, and whether the keyspace uses the commit log.
async fn replication(connection: &CassandraConnection) -> Result<(u32, bool)> {
    const KEYSPACE: &str = "SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?";
    const ACTION: &str = "ask for the replication";
    let keyspace = connection.tables().keyspace();
    let rows = connection
        .ask::<(HashMap<String, String>, bool)>(ACTION, KEYSPACE, (keyspace,))
        .await?;
    let Some((replication, is_logged)) = rows.into_iter().next() else {
        return Err(connection.failed(ACTION, format!("there is no keyspace {keyspace}")));
    };
    Ok((replicas(&replication), is_logged))
}

/// The factors of all data centres together. A factor such as `3/1` counts transient replicas, too.
fn replicas(replication: &HashMap<String, String>) -> u32 {
    let factors = replication.iter().filter(|(name, _)| *name != "class");
    let numbers = factors.filter_map(|(_, factor)| factor.split('/').next()?.parse::<u32>().ok());
    numbers.sum::<u32>().max(1)
}

fn check_consistency(options: &CassandraOptions, replicas: u32) -> Result<()> {
    for level in [options.consistency, options.read_consistency] {
        if level.copies(replicas) > replicas {
            return Err(spec_error(format!(
                "consistency {} needs more replicas than the {replicas} of the keyspace; ask for fewer, or name a new \
                 keyspace with replicas={}",
                level.name(),
                level.copies(replicas)
            )));
        }
    }
    if options.consistency == Consistency::All || replicas == 1 {
        return Ok(());
    }
    let answers = options.consistency.copies(replicas) + options.read_consistency.copies(replicas);
    if answers > replicas {
        return Ok(());
    }
    Err(spec_error(format!(
        "a query that {} of {replicas} replicas answer need not see a write that {} has acknowledged; set \
         read_consistency to quorum or all",
        options.read_consistency.name(),
        options.consistency.name()
    )))
}

/// The level of an ack, by the server's settings.
async fn acknowledges(connection: &CassandraConnection) -> Result<Durability> {
    const SETTING: &str = "SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'";
    let setting = connection
        .ask::<(Option<String>,)>("ask for its settings", SETTING, ())
        .await;
    match setting {
        Ok(rows) => Ok(match rows.first() {
            Some((Some(setting),)) => level_of(setting),
            _ => Durability::Volatile,
        }),
        // Servers before version 4, and ScyllaDB, have no such table.
        Err(Error::Backend { .. }) => Ok(Durability::Volatile),
        Err(error) => Err(error),
    }
}

/// `batch` and `group` answer once the commit log is synced, `periodic` at once.
/// <https://cassandra.apache.org/doc/5.0/cassandra/managing/configuration/cass_yaml_file.html#commitlog_sync>
fn level_of(commitlog_sync: &str) -> Durability {
    match commitlog_sync {
        "batch" | "group" => Durability::Synced,
        _ => Durability::Volatile,
    }
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &CassandraConnection) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let statement = connection.prepare(connection.tables().all_series()).await?;
    let mut rows = connection
        .pages::<(i32, Option<String>, Option<String>)>(ACTION, &statement, ())
        .await?;
    rows.sort_unstable_by_key(|(number, ..)| *number);
    let mut keys = Vec::with_capacity(rows.len());
    for (number, name, labels) in rows {
        let names = (name.as_deref(), labels.as_deref());
        let key = match names {
            (Some(name), Some(labels)) if number as usize == keys.len() => key_of(name, labels),
            _ => None,
        };
        let Some(key) = key else {
            let why = format!("that of series {} cannot be read", keys.len());
            return Err(connection.failed(ACTION, why));
        };
        keys.push(key);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replication(factors: &[(&str, &str)]) -> HashMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        factors.iter().map(owned).collect()
    }

    #[test]
    fn replicas_are_counted_over_data_centres() {
        let simple = [
            ("class", "org.apache.cassandra.locator.SimpleStrategy"),
            ("replication_factor", "3"),
        ];
        assert_eq!(replicas(&replication(&simple)), 3);
        let network = [("class", "NetworkTopologyStrategy"), ("dc1", "3"), ("dc2", "2/1")];
        assert_eq!(replicas(&replication(&network)), 5);
        assert_eq!(replicas(&replication(&[("class", "LocalStrategy")])), 1);
    }

    #[test]
    fn a_read_has_to_meet_every_write() {
        let check = |write: &str, read: &str, replicas| {
            let options = CassandraOptions {
                consistency: Consistency::parse(write).unwrap(),
                read_consistency: Consistency::parse(read).unwrap(),
                ..CassandraOptions::default()
            };
            check_consistency(&options, replicas).map_err(|error| error.to_string())
        };
        for (write, read, replicas) in [
            ("quorum", "quorum", 1),
            ("quorum", "quorum", 3),
            ("one", "all", 3),
            ("all", "one", 3),
            ("one", "one", 1),
        ] {
            assert_eq!(check(write, read, replicas), Ok(()), "{write} {read} {replicas}");
        }
        let error = check("one", "quorum", 3).unwrap_err();
        assert!(error.contains("set read_consistency to quorum or all"), "{error}");
        let error = check("two", "one", 1).unwrap_err();
        assert!(error.contains("replicas=2"), "{error}");
    }

    #[test]
    fn an_ack_is_worth_what_the_commit_log_does() {
        let levels = ["periodic", "batch", "group", "another"].map(level_of);
        assert_eq!(
            levels,
            [
                Durability::Volatile,
                Durability::Synced,
                Durability::Synced,
                Durability::Volatile
            ]
        );
    }
}
