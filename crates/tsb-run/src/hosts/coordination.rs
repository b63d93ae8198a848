//! The documents that the hosts of a run share: texts under keys of a store.
//!
//! A long text is kept in pieces, and its last piece is written after the others, with a checksum: a
//! reader sees all of a text or none. Requests that fail because no server answers are repeated for a while, so
//! a run goes on while etcd elects a leader; every put here may be made twice.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_stores::keyed::{Key, KeyedStore, Put};
use tsb_stores::{Error as StoreError, Refusals, Result as StoreResult};

use super::documents::{LEADER, PLAN};
use super::folder::KeyedFolder;
use crate::controls::StopFlags;
use crate::error::Error;
use crate::spec::{Spec, Typed};

/// Most bytes of one piece: etcd takes requests of up to 1.5 MiB.
const PIECE_BYTES: usize = 512 << 10;
/// Most pieces of a text: a part of a report takes a few megabytes.
const PIECES_MAX: usize = 1 << 12;
/// How long a request is repeated while no server answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before it is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the documents are.
#[derive(Clone)]
pub enum CoordinatorAddress {
    /// `etcd://HOST[:PORT][,HOST...]/PREFIX`, with the options of the store `etcd:`.
    Etcd(Box<Spec>),
    /// `folder:PATH`, for processes of one machine: a new or empty folder, or one of an earlier run, from
    /// which everything is removed before and after the run.
    Folder(PathBuf),
}

impl CoordinatorAddress {
    /// The spec of a server, for those who complete its credentials.
    pub fn spec_mut(&mut self) -> Option<&mut Spec> {
        match self {
            Self::Etcd(spec) => Some(spec),
            Self::Folder(_) => None,
        }
    }
}

impl FromStr for CoordinatorAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix("folder:").filter(|path| !path.is_empty()) {
            return Ok(Self::Folder(path.into()));
        }
        let refuse = || {
            Error::plan(format!("cannot coordinate hosts by {text}"))
                .hint("give etcd://HOST[:PORT][,HOST...]/PREFIX, or folder:PATH for processes of one machine")
        };
        let spec = Typed::from(text).spec().map_err(|error| refuse().because(&error))?;
        if spec.scheme() != "etcd" || spec.is_wrapped() {
            return Err(refuse());
        }
        Ok(Self::Etcd(Box::new(spec)))
    }
}

impl fmt::Display for CoordinatorAddress {
    /// The address without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd(spec) => spec.fmt(f),
            Self::Folder(path) => write!(f, "folder:{}", path.display()),
        }
    }
}

impl fmt::Debug for CoordinatorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoordinatorAddress({self})")
    }
}

/// The documents of one run.
#[derive(Clone)]
pub struct Coordination {
    keys: Arc<dyn KeyedStore>,
    clock: Arc<dyn Clock>,
    name: String,
    /// The run whose documents these are; 0 without one.
    run: i64,
}

impl fmt::Display for Coordination {
    /// Its address, without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Coordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Coordination({self})")
    }
}

impl Coordination {
    /// Opens the documents at an address.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub fn open(address: &CoordinatorAddress) -> Result<Self, Error> {
        let opened = match address {
            CoordinatorAddress::Etcd(spec) => spec.open_keys(),
            CoordinatorAddress::Folder(path) => folder(path),
        };
        let keys = opened.map_err(|error| {
            Error::unreachable(format!("cannot reach {address}"))
                .because(&error)
                .hint("start etcd first, or check the address")
        })?;
        Ok(Self::new(keys, address.to_string()))
    }

    /// The documents in a store of keys, all of which are theirs.
    pub fn new(keys: Arc<dyn KeyedStore>, name: impl Into<String>) -> Self {
        Self {
            keys,
            clock: Arc::new(MonotonicClock::new()),
            name: name.into(),
            run: 0,
        }
    }

    /// The same, for the documents of one run: what is written late to another one is not among them. `plan`
    /// and `leader` belong to none.
    pub(super) fn of_run(&self, run: i64) -> Self {
        Self { run, ..self.clone() }
    }

    /// The run whose documents these are.
    pub(super) const fn run(&self) -> i64 {
        self.run
    }

    /// Puts a document.
    pub(super) fn put(&self, key: &str, document: &impl Serialize) -> Result<(), Error> {
        self.put_text(key, text_of(document)?, None)
    }

    /// Puts a document that is gone unless it is put again in time.
    pub(super) fn put_expiring(&self, key: &str, document: &impl Serialize, ttl_ns: u64) -> Result<(), Error> {
        self.put_text(key, text_of(document)?, Some(ttl_ns))
    }

    /// The document of a key; `None` if it is not there.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        let key = self.key(key)?;
        let text = self.patiently("read", || self.keys.get(&key))?;
        text.map(|text| self.read(&key, &text)).transpose()
    }

    /// Waits for the document of a key, which it asks for every `poll_ns`; `None` if it is not there by
    /// then, on this clock.
    ///
    /// # Errors
    /// If the run ends meanwhile.
    pub(super) fn wait_for<T: DeserializeOwned>(
        &self,
        key: &str,
        poll_ns: u64,
        (clock, until_ns): (&dyn Clock, u64),
        stops: &StopFlags,
    ) -> Result<Option<T>, Error> {
        loop {
            let found = self.get(key)?;
            if found.is_some() || clock.now() >= until_ns {
                return Ok(found);
            }
            stops.check()?;
            clock.wait_until(clock.now() + poll_ns);
        }
    }

    /// The documents directly below a key, by the last segment of theirs.
    pub(super) fn list<T: DeserializeOwned>(&self, below: &str) -> Result<Vec<(String, T)>, Error> {
        let prefix = self.key(below)?;
        let texts = self.patiently("list", || {
            let mut texts = Vec::new();
            self.keys.list(Some(&prefix), &mut |key, text| {
                texts.push((key.clone(), text.to_owned()));
                ControlFlow::Continue(())
            })?;
            Ok(texts)
        })?;
        let name = |key: &Key| key.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        texts
            .iter()
            .map(|(key, text)| Ok((name(key), self.read(key, text)?)))
            .collect()
    }

    /// Puts a text of any length below a key. A reader finds it once all of it is there.
    pub(super) fn put_long(&self, key: &str, text: &str) -> Result<(), Error> {
        let mut pieces = pieces_of(text);
        // A short text needs one request.
        let last = pieces.pop().unwrap_or_default();
        for (index, piece) in pieces.iter().enumerate() {
            self.put_text(&format!("{key}/piece/{index}"), (*piece).to_owned(), None)?;
        }
        let checksum = crc32fast::hash(text.as_bytes());
        self.put(&format!("{key}/whole"), &(pieces.len(), checksum, last))
    }

    /// A text that was put in pieces; `None` while not all of it is there.
    pub(super) fn get_long(&self, key: &str) -> Result<Option<String>, Error> {
        let Some((pieces, checksum, last)) = self.get::<(usize, u32, String)>(&format!("{key}/whole"))? else {
            return Ok(None);
        };
        let mut text = String::new();
        for index in 0..pieces.min(PIECES_MAX) {
            let piece = self.key(&format!("{key}/piece/{index}"))?;
            let Some(piece) = self.patiently("read", || self.keys.get(&piece))? else {
                return Ok(None);
            };
            text.push_str(&piece);
        }
        text.push_str(&last);
        // A text that is being replaced has pieces of both.
        Ok((crc32fast::hash(text.as_bytes()) == checksum).then_some(text))
    }

    /// Removes all documents.
    pub(super) fn clear(&self) -> Result<(), Error> {
        self.patiently("clear", || self.keys.delete_below(None))
    }

    fn put_text(&self, key: &str, text: String, ttl_ns: Option<u64>) -> Result<(), Error> {
        let put = Put::new(self.key(key)?, text);
        let puts = [Put { ttl_ns, ..put }];
        let mut refused = Refusals::new();
        let ack = self.patiently("write", || self.keys.put(&puts, &mut refused))?;
        if ack.rejected > 0 {
            return Err(Error::unreachable(format!("{} refused {key}", self.name)));
        }
        Ok(())
    }

    fn key(&self, key: &str) -> Result<Key, Error> {
        let is_of_all = self.run == 0 || [PLAN, LEADER].contains(&key);
        let of_run = (!is_of_all).then(|| format!("{}/{key}", self.run));
        Key::new(of_run.as_deref().unwrap_or(key))
            .map_err(|error| Error::internal(format!("cannot use the key {key} of {}", self.name)).because(&error))
    }

    fn read<T: DeserializeOwned>(&self, key: &Key, text: &str) -> Result<T, Error> {
        serde_json::from_str(text).map_err(|error| {
            Error::plan(format!("cannot read {key} of {}", self.name))
                .because(&error)
                .hint("another program, or another version of tsb, has written there: give a prefix of its own")
        })
    }

    /// Makes a request again as long as no server answers it.
    fn patiently<T>(&self, action: &str, mut request: impl FnMut() -> StoreResult<T>) -> Result<T, Error> {
        let deadline = self.clock.now() + PATIENCE.as_nanos() as u64;
        loop {
            let error = match request() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_silence = matches!(
                error,
                StoreError::Unreachable { .. } | StoreError::Unanswered { .. } | StoreError::Unknown { .. }
            );
            if !is_silence || self.clock.now() >= deadline {
                return Err(Error::unreachable(format!("cannot {action} documents of {}", self.name)).because(&error));
            }
            self.clock.wait_until(self.clock.now() + PAUSE.as_nanos() as u64);
        }
    }
}

fn folder(path: &Path) -> StoreResult<Arc<dyn KeyedStore>> {
    Ok(Arc::new(KeyedFolder::open(path, Arc::new(MonotonicClock::new()))?))
}

fn text_of(document: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(document).map_err(|error| Error::internal("cannot write a document").because(&error))
}

/// A text divided at characters, each piece as long as it may be; one empty piece of an empty text.
fn pieces_of(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > PIECE_BYTES {
        let (piece, others) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        rest = others;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use tsb_core::time::ManualClock;
    use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};

    use super::*;

    pub(crate) fn coordination() -> (Coordination, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        let options = KeyedMemoryOptions::default();
        let keys = KeyedMemory::new(options, Arc::clone(&clock) as Arc<dyn Clock>);
        (Coordination::new(Arc::new(keys), "memory"), clock)
    }

    #[test]
    fn a_document_comes_back_and_one_that_expires_does_not() {
        let (coordination, clock) = coordination();
        coordination.put("plan", &(1, "a")).unwrap();
        coordination.put_expiring("alive/x", &7, 5).unwrap();
        assert_eq!(coordination.get("plan").unwrap(), Some((1, "a".to_owned())));
        assert_eq!(coordination.list::<u32>("alive").unwrap(), [("x".to_owned(), 7)]);
        clock.advance(6);
        assert_eq!(coordination.list::<u32>("alive").unwrap(), []);
        assert!(coordination.get::<u32>("plan").is_err(), "of another type");
        coordination.clear().unwrap();
        assert_eq!(coordination.get::<(u32, String)>("plan").unwrap(), None);
    }

    #[test]
    fn a_long_text_is_there_whole_or_not_at_all() {
        let (coordination, _) = coordination();
        let text = "\u{e4}".repeat(PIECE_BYTES + 3);
        assert_eq!(coordination.get_long("part/x").unwrap(), None);
        coordination.put_long("part/x", &text).unwrap();
        assert_eq!(coordination.get_long("part/x").unwrap().as_deref(), Some(&*text));
        coordination
            .put_text("part/x/piece/1", "other".to_owned(), None)
            .unwrap();
        assert_eq!(coordination.get_long("part/x").unwrap(), None);
        coordination.put_long("part/x", "").unwrap();
        assert_eq!(coordination.get_long("part/x").unwrap().as_deref(), Some(""));
    }

    #[test]
    fn an_address_is_of_etcd_or_a_folder() {
        let shown = |text: &str| text.parse::<CoordinatorAddress>().map(|address| address.to_string());
        assert_eq!(shown("folder:/a/b").unwrap(), "folder:/a/b");
        assert!(shown("etcd://a:1,b:2/runs").unwrap().contains("a:1,b:2/runs"));
        for refused in ["memory:", "folder:", "a", "mongo://a/b"] {
            assert!(shown(refused).is_err(), "{refused}");
        }
    }
}
