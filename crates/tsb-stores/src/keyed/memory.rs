//! Keys in memory: a sorted map, and the keys that expire in the order in which they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, RwLock};

use tsb_core::Durability;
use tsb_core::time::Clock;

use super::contract::{KeyedCapabilities, KeyedStore, KeyedVisitor, MAX_VALUE_BYTES, Put, PutAck};
use super::key::{Key, below};
use crate::error::{Error, Result};
use crate::locks::{read, write};
use crate::store::{Reason, Refusals};

/// Number of keys that a list visits per lock. A visitor runs without it, so it delays no put.
const PAGE: usize = 1024;

/// Limits of a store of keys in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedMemoryOptions {
    /// Maximum number of keys.
    pub max_keys: usize,
}

impl Default for KeyedMemoryOptions {
    fn default() -> Self {
        Self { max_keys: 10_000_000 }
    }
}

/// A store of keys in memory. It removes expired keys with the puts that follow.
#[derive(Debug)]
pub struct KeyedMemory {
    options: KeyedMemoryOptions,
    clock: Arc<dyn Clock>,
    // `None` once it is closed.
    keys: RwLock<Option<Keys>>,
}

#[derive(Debug, Default)]
struct Keys {
    entries: BTreeMap<Key, Entry>,
    /// Every key with a time to live, by the time of the clock at which it is gone.
    expiring: BTreeSet<(u64, Key)>,
}

#[derive(Debug)]
struct Entry {
    value: Arc<str>,
    gone_at: Option<u64>,
}

impl Entry {
    fn is_there(&self, now: u64) -> bool {
        self.gone_at.is_none_or(|gone_at| now < gone_at)
    }
}

impl KeyedMemory {
    /// An empty store, whose keys expire by this clock.
    pub fn new(options: KeyedMemoryOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            options,
            clock,
            keys: RwLock::new(Some(Keys::default())),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Keys) -> T) -> Result<T> {
        write(&self.keys).as_mut().map(change).ok_or(Error::Closed)
    }

    fn look<T>(&self, look: impl FnOnce(&Keys) -> T) -> Result<T> {
        read(&self.keys).as_ref().map(look).ok_or(Error::Closed)
    }
}

impl Keys {
    fn put(&mut self, put: &Put, now: u64, max_keys: usize) -> std::result::Result<(), Reason> {
        if put.value.len() > MAX_VALUE_BYTES {
            return Err(Reason::Unrepresentable);
        }
        if self.entries.len() >= max_keys && !self.entries.contains_key(&put.key) {
            return Err(Reason::Full);
        }
        let gone_at = put.ttl_ns.map(|ttl_ns| now.saturating_add(ttl_ns));
        let value = put.value.as_str().into();
        let before = self.entries.insert(put.key.clone(), Entry { value, gone_at });
        if let Some(was_gone_at) = before.and_then(|before| before.gone_at) {
            self.expiring.remove(&(was_gone_at, put.key.clone()));
        }
        if let Some(gone_at) = gone_at {
            self.expiring.insert((gone_at, put.key.clone()));
        }
        Ok(())
    }

    /// Removes a key. Returns whether it was there.
    fn remove(&mut self, key: &Key, now: u64) -> bool {
        let Some(entry) = self.entries.remove(key) else {
            return false;
        };
        if let Some(gone_at) = entry.gone_at {
            self.expiring.remove(&(gone_at, key.clone()));
        }
        entry.is_there(now)
    }

    fn remove_expired(&mut self, now: u64) {
        while let Some((gone_at, key)) = self.expiring.pop_first() {
            if gone_at > now {
                self.expiring.insert((gone_at, key));
                return;
            }
            self.entries.remove(&key);
        }
    }

    /// The first keys after `after` that are below `prefix`, with the value of those that have
    /// not expired.
    fn page(&self, prefix: Option<&Key>, after: Option<&Key>, now: u64) -> Vec<(Key, Option<Arc<str>>)> {
        below(&self.entries, prefix, after)
            .map(|(key, entry)| (key.clone(), entry.is_there(now).then(|| Arc::clone(&entry.value))))
            .take(PAGE)
            .collect()
    }
}

impl fmt::Display for KeyedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keyed-memory")
    }
}

impl KeyedStore for KeyedMemory {
    fn capabilities(&self) -> KeyedCapabilities {
        KeyedCapabilities::new(Durability::Volatile)
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        let rejected = self.change(|keys| {
            let now = self.clock.now();
            keys.remove_expired(now);
            let before = refused.len();
            for (index, put) in puts.iter().enumerate() {
                if let Err(reason) = keys.put(put, now, self.options.max_keys) {
                    refused.push(index, reason);
                }
            }
            refused.len() - before
        })?;
        Ok(PutAck::new(puts.len() - rejected, rejected, Durability::Volatile))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        let now = self.clock.now();
        self.change(|all| keys.iter().filter(|key| all.remove(key, now)).count())
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.change(|all| {
            loop {
                let page = all.page(prefix, None, 0);
                if page.is_empty() {
                    return;
                }
                for (key, _) in page {
                    all.remove(&key, 0);
                }
            }
        })
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        let now = self.clock.now();
        self.look(|keys| {
            let entry = keys.entries.get(key).filter(|entry| entry.is_there(now));
            entry.map(|entry| entry.value.as_ref().to_owned())
        })
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        let mut after = None;
        loop {
            let now = self.clock.now();
            let page = self.look(|keys| keys.page(prefix, after.as_ref(), now))?;
            for (key, value) in &page {
                if value.as_ref().is_some_and(|value| visit(key, value).is_break()) {
                    return Ok(());
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(()),
            }
        }
    }

    fn close(&self) -> Result<()> {
        *write(&self.keys) = None;
        Ok(())
    }
}
