//! Opens a tenant: checks whose gauges it has, and removes what runs have left there.

use std::sync::{Arc, Mutex, RwLock};

use futures_util::{StreamExt, TryStreamExt};
use tsb_core::SeriesKey;

use super::super::connection::{HawkularConnection, Id};
use super::super::names::key_of;
use super::super::options::HawkularOptions;
use super::super::spec_error;
use super::HawkularClient;
use crate::Address;
use crate::acks::Acks;
use crate::admission::Admission;
use tsb_stores::error::Result;
use tsb_stores::parts::Keys;

/// Deletions in flight.
const IN_FLIGHT: usize = 8;

/// A gauge that a run has made.
type Gauge = (Id, SeriesKey);

impl HawkularClient {
    /// Connects and opens a tenant: one that runs have used is reopened.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers,
    /// [`Error::Spec`](tsb_stores::Error::Spec) if it is neither a Hawkular nor a Mohawk, or the gauges are
    /// another program's, and [`Error::Backend`](tsb_stores::Error::Backend) if what an earlier run left is to
    /// be removed and cannot be.
    pub async fn connect(address: &Address, options: &HawkularOptions) -> Result<Self> {
        let connection = HawkularConnection::open(address, options).await?;
        let mut gauges = gauges(&connection).await?;
        if options.drop {
            delete_all(&connection, &gauges).await?;
            // Mohawk still lists them.
            gauges.clear();
        }
        let admission = if connection.rules().admits() {
            Some(Mutex::new(admission(&connection, &gauges).await?))
        } else {
            None
        };
        let (ids, keys) = gauges.into_iter().unzip();
        Ok(Self {
            connection: Arc::new(connection),
            keys: RwLock::new(Keys::new(keys, options.max_series)),
            ids: RwLock::new(ids),
            admission,
            samples_max: options.samples.max(1),
            acks: Acks::default(),
        })
    }
}

/// The series that runs left samples of.
///
/// # Errors
/// As [`HawkularClient::connect`], and [`Error::Spec`](tsb_stores::Error::Spec) if there are none.
pub(in crate::hawkular) async fn series(address: &Address, options: &HawkularOptions) -> Result<Vec<SeriesKey>> {
    let connection = HawkularConnection::open(address, options).await?;
    let filled = filled(&connection, &gauges(&connection).await?).await?;
    if filled.is_empty() {
        let tenant = connection.tenant();
        return Err(spec_error(format!("tenant {tenant} holds nothing of a run")));
    }
    Ok(filled.into_iter().map(|(_, key)| key).collect())
}

/// Deletes what runs have filled.
///
/// # Errors
/// As [`HawkularClient::connect`]: gauges of another program are not deleted.
pub(in crate::hawkular) async fn remove_runs(address: &Address, options: &HawkularOptions) -> Result<()> {
    let connection = HawkularConnection::open(address, options).await?;
    delete_all(&connection, &gauges(&connection).await?).await
}

/// The gauges of a tenant, which must all be of runs.
async fn gauges(connection: &HawkularConnection) -> Result<Vec<Gauge>> {
    let listed = connection.gauges().await?.into_iter().map(|gauge| {
        let key = key_of(&gauge.id).ok_or_else(|| {
            let (id, tenant) = (&gauge.id, connection.tenant());
            spec_error(format!(
                "there is a gauge {id:?} which no run of this version has written; name a tenant that nothing else \
                 uses, as hawkular://HOST/{tenant}2"
            ))
        })?;
        Ok((gauge.id.into(), key))
    });
    listed.collect()
}

/// The gauges that have samples.
async fn filled(connection: &HawkularConnection, gauges: &[Gauge]) -> Result<Vec<Gauge>> {
    let newest = newest(connection, gauges).await?;
    let filled = gauges.iter().zip(newest).filter(|(_, newest)| newest.is_some());
    Ok(filled.map(|(gauge, _)| gauge.clone()).collect())
}

async fn newest(connection: &HawkularConnection, gauges: &[Gauge]) -> Result<Vec<Option<i64>>> {
    let ids: Vec<Id> = gauges.iter().map(|(id, _)| Arc::clone(id)).collect();
    connection.newest(&ids).await
}

/// Admits what is behind the newest sample of each gauge.
async fn admission(connection: &HawkularConnection, gauges: &[Gauge]) -> Result<Admission> {
    let mut admission = Admission::default();
    for (number, newest) in (0..).zip(newest(connection, gauges).await?) {
        if let Some(at_ms) = newest {
            admission.seed(number, at_ms);
        }
    }
    Ok(admission)
}

/// Deletes gauges, and looks that their samples are gone: Mohawk's memory and MongoDB only say so.
async fn delete_all(connection: &HawkularConnection, gauges: &[Gauge]) -> Result<()> {
    let filled = filled(connection, gauges).await?;
    // Collected, as a stream over borrowed gauges is not general enough for the compiler.
    let deletions: Vec<_> = filled.iter().map(|(id, _)| connection.delete(id)).collect();
    let deletions = futures_util::stream::iter(deletions).buffered(IN_FLIGHT);
    deletions.try_collect::<Vec<()>>().await?;
    let left = self::filled(connection, &filled).await?.len();
    if left == 0 {
        return Ok(());
    }
    let why = format!(
        "it says that it did, and still has samples of {left} gauges; one that keeps samples in memory has none after \
         a restart: restart it, or name another tenant"
    );
    let action = format!("remove the gauges of tenant {}", connection.tenant());
    Err(connection.server().failed(&action, why))
}
