//! The stores of keys by name, each opened in a fresh place.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use tsb_core::resource::{Listening, listeners};
use tsb_core::time::Clock;
use tsb_stores::Result as StoreResult;
use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions, KeyedSeries, KeyedSeriesOptions, KeyedStore};

use crate::error::Error;
use crate::place::RoundPlace;
use crate::spec::Spec;

/// Maximum number of keys in an embedded store.
const MAX_KEYS: usize = 20_000_000;

/// How the keys of an experiment are laid out in a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// A sorted map: `memory:`.
    Memory,
    /// A row per key in a file of its own, one synced transaction per put: `sqlite:`.
    Sqlite,
    /// Keys as series of a store of samples: `series+STORE`.
    Series(Spec),
    /// A cluster of etcd.
    Etcd {
        /// How it is spoken to.
        interface: EtcdInterface,
        /// `HOST:PORT`, separated by commas.
        hosts: String,
    },
}

/// How keys are written to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtcdInterface {
    /// Version 2 over HTTP, one request per key, as the document's client: `etcd2:HOSTS`.
    V2,
    /// Version 3, one request per key: `etcd3-single:HOSTS`.
    V3Single,
    /// Version 3, transactions of up to 128 puts: `etcd3:HOSTS`.
    V3,
}

impl EtcdInterface {
    const ALL: [(Self, &'static str); 3] = [
        (Self::V2, "etcd2"),
        (Self::V3Single, "etcd3-single"),
        (Self::V3, "etcd3"),
    ];

    /// What the specs of all of them begin with.
    pub fn schemes() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(|(_, scheme)| scheme)
    }

    fn scheme(self) -> &'static str {
        let found = Self::ALL.iter().find(|(interface, _)| *interface == self);
        found.map_or("etcd", |(_, scheme)| scheme)
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            Error::plan(format!("cannot use the store of keys {text}"))
                .because_of(why)
                .hint(
                    "give memory:, sqlite:, series+memory:, etcd2:HOST:PORT, etcd3-single:HOST:PORT or etcd3:HOST:PORT",
                )
        };
        if let Some(samples) = text.strip_prefix("series+") {
            let spec: Spec = samples.parse().map_err(|error| Error::opening(text, &error))?;
            return Ok(Self::Series(spec));
        }
        let (scheme, rest) = text.split_once(':').ok_or_else(|| refuse("it has no scheme"))?;
        match scheme {
            "memory" | "sqlite" if !rest.is_empty() => Err(refuse(
                "it takes no path or option: its place is made in the folder of --dir",
            )),
            "memory" => Ok(Self::Memory),
            "sqlite" => Ok(Self::Sqlite),
            _ => {
                let found = EtcdInterface::ALL.iter().find(|(_, name)| *name == scheme);
                let (interface, _) = found.ok_or_else(|| refuse("there is no such store of keys"))?;
                let hosts = rest.strip_prefix("//").unwrap_or(rest);
                if hosts.is_empty() || hosts.contains(['/', '?', '@']) {
                    return Err(refuse(
                        "it needs the addresses of the cluster, HOST:PORT with commas between them",
                    ));
                }
                Ok(Self::Etcd {
                    interface: *interface,
                    hosts: hosts.to_owned(),
                })
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite => f.write_str("sqlite:"),
            Self::Series(spec) => write!(f, "series+{spec}"),
            Self::Etcd { interface, hosts } => write!(f, "{}:{hosts}", interface.scheme()),
        }
    }
}

/// A store in a fresh place.
#[derive(Debug)]
pub struct OpenedKeys {
    store: Arc<dyn KeyedStore>,
    place: Option<RoundPlace>,
    is_prefix: bool,
    name: String,
}

/// How a store is opened.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The name of the experiment, which is part of the names of places at a server.
    pub experiment: &'a str,
    /// The number of the place; no two runs of one process share it.
    pub place: u32,
    /// The folder for files.
    pub folder: &'a Path,
    /// Requests of one put in flight at a time, for a server.
    pub in_flight: usize,
    /// The clock by which keys expire.
    pub clock: Arc<dyn Clock>,
}

impl Layout {
    /// Opens the store in a place that holds nothing.
    ///
    /// # Errors
    /// If it cannot be opened, this build does not have it, or its place is not empty.
    pub fn open(&self, opening: &Opening<'_>) -> Result<OpenedKeys, Error> {
        let clock = Arc::clone(&opening.clock);
        let mut place = None;
        let store: Arc<dyn KeyedStore> = match self {
            Self::Memory => Arc::new(KeyedMemory::new(KeyedMemoryOptions { max_keys: MAX_KEYS }, clock)),
            Self::Sqlite => file::open(opening).map_err(|error| Error::opening(self, &error))?,
            Self::Series(spec) => {
                let round = RoundPlace::new(spec, opening.place)?;
                let options = KeyedSeriesOptions {
                    max_keys: MAX_KEYS,
                    max_values: MAX_KEYS,
                };
                let samples = round.spec().open();
                let keys = samples.and_then(|samples| KeyedSeries::new(samples, options, clock));
                let keys = keys.map_err(|error| Error::opening(self, &error))?;
                place = Some(round);
                Arc::new(keys)
            }
            Self::Etcd { interface, hosts } => {
                let opened = etcd::open(*interface, hosts, opening);
                opened.map_err(|error| Error::opening(self, &error))?
            }
        };
        let opened = OpenedKeys {
            store,
            place,
            is_prefix: matches!(self, Self::Etcd { .. }),
            name: self.to_string(),
        };
        opened.check_empty()
    }

    /// The processes of the server, where they run on this machine.
    pub fn servers(&self) -> Vec<u32> {
        let Self::Etcd { hosts, .. } = self else {
            return Vec::new();
        };
        let ports: Vec<Listening> = hosts.split(',').filter_map(Listening::of_local).collect();
        listeners(&ports)
    }
}

impl OpenedKeys {
    /// The store.
    pub fn store(&self) -> Arc<dyn KeyedStore> {
        Arc::clone(&self.store)
    }

    fn check_empty(self) -> Result<Self, Error> {
        let mut found = None;
        let listed = self.store.list(None, &mut |key, _| {
            found = Some(key.to_string());
            ControlFlow::Break(())
        });
        listed.map_err(|error| Error::opening(&self.name, &error))?;
        match found {
            None => Ok(self),
            // The place of another process is left as it is.
            Some(key) => Err(Error::plan(format!("cannot use {}", self.name))
                .because_of(format!("its place is not empty: it holds {key}"))
                .hint("start again, which takes another place")),
        }
    }

    /// Removes what was stored, and closes the store; the file of `sqlite:` goes with its folder.
    ///
    /// # Errors
    /// Those of the store, and of removing files.
    pub fn remove(self) -> Result<(), Error> {
        let failed =
            |error: &tsb_stores::Error| Error::unreachable(format!("cannot empty {}", self.name)).because(error);
        if self.is_prefix {
            self.store.delete_below(None).map_err(|error| failed(&error))?;
        }
        self.store.close().map_err(|error| failed(&error))?;
        self.place.map_or(Ok(()), RoundPlace::remove)
    }
}

#[cfg(feature = "sqlite")]
mod file {
    use super::{Arc, KeyedStore, MAX_KEYS, Opening, StoreResult};
    use tsb_stores::sqlite::{KeyedFile, KeyedFileOptions, Synchronous};

    /// The file is removed with its folder.
    pub(super) fn open(opening: &Opening<'_>) -> StoreResult<Arc<dyn KeyedStore>> {
        let path = opening.folder.join(format!("keys-{}.db", opening.place));
        let options = KeyedFileOptions {
            synchronous: Synchronous::Full,
            max_keys: MAX_KEYS,
        };
        Ok(Arc::new(KeyedFile::open(&path, options, Arc::clone(&opening.clock))?))
    }
}

#[cfg(not(feature = "sqlite"))]
mod file {
    use super::{Arc, KeyedStore, Opening, StoreResult, unbuilt};

    pub(super) fn open(_opening: &Opening<'_>) -> StoreResult<Arc<dyn KeyedStore>> {
        Err(unbuilt("sqlite"))
    }
}

#[cfg(feature = "etcd")]
mod etcd {
    use std::time::Duration;

    use super::{Arc, EtcdInterface, KeyedStore, Opening, StoreResult};
    use tsb_remote::Address;
    use tsb_remote::etcd::{EtcdOptions, open_keyed, open_keyed_v2};

    pub(super) fn open(
        interface: EtcdInterface,
        hosts: &str,
        opening: &Opening<'_>,
    ) -> StoreResult<Arc<dyn KeyedStore>> {
        let prefix = format!("tsb-{}-{}-{}", opening.experiment, std::process::id(), opening.place);
        let address = Address::parse("etcd", "prefix", &format!("//{hosts}/{prefix}"))?;
        let options = EtcdOptions {
            operations: if interface == EtcdInterface::V3 { 128 } else { 1 },
            parallel: opening.in_flight,
            // A list of all keys of an overloaded server takes long.
            timeout: Duration::from_secs(30),
            ..EtcdOptions::default()
        };
        Ok(match interface {
            EtcdInterface::V2 => Arc::new(open_keyed_v2(&address, &options)?),
            EtcdInterface::V3 | EtcdInterface::V3Single => Arc::new(open_keyed(&address, &options)?),
        })
    }
}

#[cfg(not(feature = "etcd"))]
mod etcd {
    use super::{Arc, EtcdInterface, KeyedStore, Opening, StoreResult, unbuilt};

    pub(super) fn open(
        _interface: EtcdInterface,
        _hosts: &str,
        _opening: &Opening<'_>,
    ) -> StoreResult<Arc<dyn KeyedStore>> {
        Err(unbuilt("etcd"))
    }
}

#[cfg(not(all(feature = "sqlite", feature = "etcd")))]
fn unbuilt(feature: &str) -> tsb_stores::Error {
    tsb_stores::Error::Spec {
        spec: format!("{feature}:"),
        what: format!("this build does not have it; build with --features {feature}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_read_and_printed_and_a_wrong_one_explained() {
        for text in [
            "memory:",
            "sqlite:",
            "series+memory:",
            "etcd2:127.0.0.1:4001",
            "etcd3-single:a:1,b:2",
            "etcd3:127.0.0.1:2379",
        ] {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        for (text, words) in [
            ("memory", "no scheme"),
            ("sqlite:/x.db", "no path"),
            ("zookeeper:h:1", "no such store"),
            ("etcd3:", "addresses"),
            ("etcd2:h:1/p", "addresses"),
            ("series+nothing:", "nothing"),
        ] {
            let error = text.parse::<Layout>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
