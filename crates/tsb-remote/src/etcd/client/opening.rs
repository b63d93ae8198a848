//! Opens a prefix: checks who uses it, and reads the stored series.

use std::sync::{Arc, RwLock};

use tsb_core::SeriesKey;

use super::super::connection::EtcdConnection;
use super::super::key_space::{KeySpace, MARKER, after, series_of};
use super::super::lease::Leases;
use super::super::message::{Compare, DeleteRange, MemberList, Put, Range, Txn};
use super::super::options::EtcdOptions;
use super::{EtcdClient, single_key};
use crate::Address;
use crate::acks::Acks;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::{Error, Result};

/// Maximum number of keys removed by one request.
const REMOVED_MAX: i64 = 10_000;
/// The question before anything is written.
const ASKING: &str = "ask whose prefix it is";
/// Number of series per page.
const NAMES_MAX: i64 = 1_000;

impl EtcdClient {
    /// Connects and opens the prefix: an empty one is marked, and one that a run has marked is
    /// reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no member answers, [`Error::Spec`] if the prefix holds keys of
    /// another program.
    pub async fn connect(address: &Address, options: &EtcdOptions) -> Result<Self> {
        let connection = EtcdConnection::new(address, options)?;
        let members = connection.ask("ask for the members", MemberList {}).await?.members;
        let voters = members.iter().filter(|member| !member.is_learner).count();
        let key_space = KeySpace::new(address.place());
        let is_new = prepare(&connection, &key_space, address, options).await?;
        let stored = if is_new {
            Vec::new()
        } else {
            stored_series(&connection, &key_space).await?
        };
        let mut client = Self {
            connection: Arc::new(connection),
            key_space,
            options: options.clone(),
            leases: options.ttl_ns.map(Leases::new),
            copies: voters as u32 / 2 + 1,
            registry: SeriesRegistry::new(stored, options.max_series),
            seen: RwLock::default(),
            initial_samples: 0,
            acks: Acks::default(),
        };
        if !is_new {
            client.initial_samples = client.count().await?;
        }
        Ok(client)
    }
}

/// The series that earlier runs left below a prefix.
///
/// # Errors
/// As [`EtcdClient::connect`], and [`Error::Spec`] if no run has used the prefix.
pub(in crate::etcd) async fn series(address: &Address, options: &EtcdOptions) -> Result<Vec<SeriesKey>> {
    let connection = EtcdConnection::new(address, options)?;
    let key_space = KeySpace::new(address.place());
    let found = connection.ask(ASKING, single_key(key_space.marker())).await?;
    match found.pairs.first() {
        Some(marker) if marker.value == MARKER => stored_series(&connection, &key_space).await,
        _ => Err(Error::Spec {
            spec: "etcd:".to_owned(),
            what: format!("below {} is nothing of a run of this version", address.place()),
        }),
    }
}

/// Removes what runs left below a prefix. Without anything there, it does nothing.
///
/// # Errors
/// As [`EtcdClient::connect`]: keys of another program are not removed.
pub(in crate::etcd) async fn remove_runs(address: &Address, options: &EtcdOptions) -> Result<()> {
    let connection = EtcdConnection::new(address, options)?;
    let key_space = KeySpace::new(address.place());
    if is_marked(&connection, &key_space, address).await? {
        remove_keys(&connection, &key_space).await?;
    }
    check_empty(&connection, &key_space, address).await
}

/// Whether a run of this version has marked the prefix.
async fn is_marked(connection: &EtcdConnection, key_space: &KeySpace, address: &Address) -> Result<bool> {
    let found = connection.ask(ASKING, single_key(key_space.marker())).await?;
    match found.pairs.first() {
        Some(marker) if marker.value != MARKER => {
            let found = String::from_utf8_lossy(&marker.value);
            Err(spec_error(address, &format!("what another version wrote: {found}")))
        }
        marker => Ok(marker.is_some()),
    }
}

/// Removes the keys of runs; the marker last, so that an interrupted removal can be repeated.
async fn remove_keys(connection: &EtcdConnection, key_space: &KeySpace) -> Result<()> {
    for range in [key_space.samples(), key_space.names(), single_key(key_space.marker())] {
        remove(connection, range).await?;
    }
    Ok(())
}

/// Refuses a prefix with keys that are no run's: nothing of ours may remove them.
async fn check_empty(connection: &EtcdConnection, key_space: &KeySpace, address: &Address) -> Result<()> {
    let first = Range {
        limit: 1,
        keys_only: true,
        ..key_space.everything()
    };
    match connection.ask(ASKING, first).await?.pairs.first() {
        Some(other) => {
            let key = other.key.escape_ascii();
            Err(spec_error(address, &format!("the key {key}, which no run made")))
        }
        None => Ok(()),
    }
}

/// Prepares the prefix. Returns whether it was empty, and is marked now.
async fn prepare(
    connection: &EtcdConnection,
    key_space: &KeySpace,
    address: &Address,
    options: &EtcdOptions,
) -> Result<bool> {
    if is_marked(connection, key_space, address).await? {
        if !options.drop {
            return Ok(false);
        }
        remove_keys(connection, key_space).await?;
    }
    check_empty(connection, key_space, address).await?;
    let mark = Txn {
        compare: vec![Compare::absent(key_space.marker())],
        success: vec![
            Put {
                key: key_space.marker(),
                value: MARKER.into(),
                lease: 0,
            }
            .into(),
        ],
        failure: Vec::new(),
    };
    if connection.ask("mark the prefix", mark).await?.succeeded {
        Ok(true)
    } else {
        Err(spec_error(address, "a run that began at this moment"))
    }
}

/// Removes keys, page by page.
async fn remove(connection: &EtcdConnection, mut range: Range) -> Result<()> {
    const ACTION: &str = "remove what an earlier run has left";
    loop {
        let page = Range {
            limit: REMOVED_MAX,
            keys_only: true,
            ..range.clone()
        };
        let page = connection.ask(ACTION, page).await?;
        let Some(last) = page.pairs.last() else { return Ok(()) };
        let end = after(&last.key);
        let delete = DeleteRange {
            key: range.key.clone(),
            end: end.clone(),
        };
        connection.ask(ACTION, delete).await?;
        if !page.more {
            return Ok(());
        }
        range.key = end;
    }
}

/// The series in the order of their numbers, which have no gaps.
async fn stored_series(connection: &EtcdConnection, key_space: &KeySpace) -> Result<Vec<SeriesKey>> {
    const ACTION: &str = "read the names of series";
    let mut keys = Vec::new();
    let mut range = Range {
        limit: NAMES_MAX,
        ..key_space.names()
    };
    loop {
        let page = connection.ask(ACTION, range.clone()).await?;
        for pair in &page.pairs {
            let is_next = key_space.number_of(&pair.key) == Some(keys.len() as u32);
            match series_of(&pair.value).filter(|_| is_next) {
                Some(key) => keys.push(key),
                None => return Err(connection.failed(ACTION, format!("that of series {} cannot be read", keys.len()))),
            }
        }
        match page.pairs.last() {
            Some(last) if page.more => range.key = after(&last.key),
            _ => return Ok(keys),
        }
    }
}

fn spec_error(address: &Address, what: &str) -> Error {
    Error::Spec {
        spec: "etcd:".to_owned(),
        what: format!(
            "below {} is {what}; name another prefix, or drop=1 to remove what a run of this version has left",
            address.place()
        ),
    }
}
