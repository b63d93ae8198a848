//! Conformance: places at a server that runs already, one for each check.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tsb_run::place::Place;
use tsb_run::spec::open;
use tsb_stores::conformance::{Bounded, Fixture, Place as ConformancePlace};
use tsb_stores::{Result, Store};

/// A kind of server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerKind {
    /// The feature that carries its client.
    pub(crate) feature: &'static str,
    /// Whether this build has it.
    pub(crate) is_built: bool,
}

pub(crate) const MONGO: ServerKind = ServerKind {
    feature: "mongo",
    is_built: cfg!(feature = "mongo"),
};
pub(crate) const ETCD: ServerKind = ServerKind {
    feature: "etcd",
    is_built: cfg!(feature = "etcd"),
};
pub(crate) const PROMETHEUS: ServerKind = ServerKind {
    feature: "prometheus",
    is_built: cfg!(feature = "prometheus"),
};
pub(crate) const POSTGRES: ServerKind = ServerKind {
    feature: "postgres",
    is_built: cfg!(feature = "postgres"),
};
pub(crate) const INFLUX: ServerKind = ServerKind {
    feature: "influx",
    is_built: cfg!(feature = "influx"),
};
pub(crate) const VICTORIAMETRICS: ServerKind = ServerKind {
    feature: "victoriametrics",
    is_built: cfg!(feature = "victoriametrics"),
};
pub(crate) const CLICKHOUSE: ServerKind = ServerKind {
    feature: "clickhouse",
    is_built: cfg!(feature = "clickhouse"),
};
pub(crate) const QUESTDB: ServerKind = ServerKind {
    feature: "questdb",
    is_built: cfg!(feature = "questdb"),
};
pub(crate) const CASSANDRA: ServerKind = ServerKind {
    feature: "cassandra",
    is_built: cfg!(feature = "cassandra"),
};
pub(crate) const KAIROSDB: ServerKind = ServerKind {
    feature: "kairosdb",
    is_built: cfg!(feature = "kairosdb"),
};
pub(crate) const GRAPHITE: ServerKind = ServerKind {
    feature: "graphite",
    is_built: cfg!(feature = "graphite"),
};

impl ServerKind {
    /// Why a test cannot run that needs what a variable names.
    pub(crate) fn missing(self, variable: &str) -> Option<String> {
        if !self.is_built {
            return Some(format!("the feature {} is not built", self.feature));
        }
        let is_named = std::env::var(variable).is_ok();
        (!is_named).then(|| format!("{variable} is not set; cargo xtask servers up starts what it names"))
    }
}

/// A server and a way to use it.
pub(crate) struct Server {
    name: &'static str,
    kind: ServerKind,
    /// It holds the spec, as `cargo xtask servers status` shows it.
    variable: &'static str,
    options: &'static str,
    places: Arc<AtomicU32>,
}

/// A database, a prefix or a schema.
struct OwnPlace {
    spec: String,
    /// Whether it is removed some time after this value: Cassandra's memory holds a hundred tables, and
    /// not those of all checks.
    is_removed: bool,
}

/// Places that no check opens any more. Stores may still be open at the newest of them.
static LEFT: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
/// How many of them stay.
const LEFT_MAX: usize = 24;

impl Drop for OwnPlace {
    fn drop(&mut self) {
        if !self.is_removed {
            return;
        }
        let oldest = {
            let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
            left.push_back(self.spec.clone());
            (left.len() > LEFT_MAX).then(|| left.pop_front()).flatten()
        };
        let place = oldest.and_then(|spec| Place::of(&spec.parse().ok()?).ok().flatten());
        // One that stays is only a burden.
        let _ = place.map(|place| place.remove());
    }
}

impl ConformancePlace for OwnPlace {
    fn open(&self) -> Result<Box<dyn Store>> {
        open(&self.spec)
    }

    fn address(&self) -> Option<String> {
        Some(self.spec.clone())
    }
}

impl Server {
    /// The spec of the next place, with more options.
    fn next(&self, more: &str) -> String {
        let spec = std::env::var(self.variable).unwrap_or_default();
        let (address, options) = spec.split_once('?').unwrap_or((&spec, ""));
        let name_of = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
        let own: Vec<String> = self.options.split('&').map(name_of).collect();
        let others = options.split('&').filter(|option| !own.contains(&name_of(option)));
        let options = others.collect::<Vec<_>>().join("&");
        let number = self.places.fetch_add(1, Ordering::Relaxed);
        // Of this process: the server may have seen others.
        let place = format!("{}-{}-{number}", self.name, std::process::id());
        // A keyspace takes no other character.
        let place = if self.kind.feature == CASSANDRA.feature {
            place.replace('-', "_")
        } else {
            place
        };
        let hosts = address.rsplit_once('/').map_or(address, |(hosts, _)| hosts);
        let place = if self.kind.feature == POSTGRES.feature {
            format!("{address}?schema={place}")
        } else {
            format!("{hosts}/{place}?")
        };
        // Of many checks at once some wait for the others.
        format!("{place}&{options}&{}&timeout=1m&{more}", self.options)
    }
}

impl Fixture for Server {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn unavailable(&self) -> Option<String> {
        self.kind.missing(self.variable)
    }

    fn place(&self) -> Result<Box<dyn ConformancePlace>> {
        Ok(Box::new(OwnPlace {
            spec: self.next(""),
            is_removed: self.kind.feature == CASSANDRA.feature,
        }))
    }

    /// Their files are out of reach.
    fn can_damage(&self) -> bool {
        false
    }

    /// VictoriaMetrics states the growth of all its files.
    fn shares_its_size(&self) -> bool {
        self.kind.feature == VICTORIAMETRICS.feature
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn ConformancePlace>> {
        Ok(Box::new(OwnPlace {
            spec: address.to_owned(),
            // It is another process's.
            is_removed: false,
        }))
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        Ok(Some(Bounded {
            store: open(&self.next("max_series=20"))?,
            max_series: 20,
            fills_up: false,
        }))
    }
}

/// Slots of years for prefixes that begin with `past-`: the samples of the checks are of 2023.
const PAST: &str = "archives=10m:300w,1h:350w&delay=10s";

/// Every server, each in every way in which its client writes to it.
pub(crate) fn servers() -> Vec<Server> {
    let (single, set) = ("TSB_TEST_MONGO", "TSB_TEST_MONGO_SET");
    let kinds = [
        ("mongo-series", MONGO, single, "layout=series"),
        ("mongo-rows", MONGO, single, "layout=rows"),
        ("mongo-bucket", MONGO, single, "layout=bucket&span=7s"),
        // A group of eight series, so that batches are cut.
        ("mongo-ticks", MONGO, single, "layout=ticks&group=8"),
        ("mongo-mohawk", MONGO, single, "layout=mohawk"),
        ("mongo-set", MONGO, set, "layout=ticks"),
        ("etcd", ETCD, "TSB_TEST_ETCD", ""),
        // Few operations, so that batches are cut.
        ("etcd-cut", ETCD, "TSB_TEST_ETCD", "operations=7&parallel=3"),
        ("etcd-of-three", ETCD, "TSB_TEST_ETCD_THREE", ""),
        ("prometheus", PROMETHEUS, "TSB_TEST_PROMETHEUS", ""),
        ("postgres-copy", POSTGRES, "TSB_TEST_POSTGRES", "write=copy"),
        // An ack that is volatile.
        (
            "postgres-insert",
            POSTGRES,
            "TSB_TEST_POSTGRES",
            "write=insert&synchronous_commit=off",
        ),
        ("influx", INFLUX, "TSB_TEST_INFLUX", ""),
        // Few lines, so that batches are cut.
        ("influx-cut", INFLUX, "TSB_TEST_INFLUX", "lines=7"),
        ("influx-measurement", INFLUX, "TSB_TEST_INFLUX", "measurement=all"),
        ("victoriametrics", VICTORIAMETRICS, "TSB_TEST_VICTORIAMETRICS", ""),
        ("clickhouse", CLICKHOUSE, "TSB_TEST_CLICKHOUSE", ""),
        ("questdb", QUESTDB, "TSB_TEST_QUESTDB", ""),
        ("cassandra", CASSANDRA, "TSB_TEST_CASSANDRA", ""),
        // Requests of one row, and buckets that many samples of the checks lie in.
        (
            "cassandra-row",
            CASSANDRA,
            "TSB_TEST_CASSANDRA",
            "write=row&bucket=1000d",
        ),
        ("kairosdb", KAIROSDB, "TSB_TEST_KAIROSDB", ""),
        ("past-carbon", GRAPHITE, "TSB_TEST_CARBON", PAST),
        ("past-relay", GRAPHITE, "TSB_TEST_CARBON_RELAY", PAST),
        ("past-go-carbon", GRAPHITE, "TSB_TEST_GO_CARBON", PAST),
    ];
    let servers = kinds.map(|(name, kind, variable, options)| Server {
        name,
        kind,
        variable,
        options,
        places: Arc::default(),
    });
    servers.into()
}
