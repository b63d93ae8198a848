//! The entries of a shard, in a hash table by file name.
//!
//! A name is hashed once per update: the same hash selects the shard and the place in the table.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::entry::Entry;

/// The hash of a name.
pub(super) fn hash_of(name: &str) -> u64 {
    FixedState::default().hash_one(name)
}

/// Entries with distinct names.
#[derive(Debug, Default)]
pub(super) struct Entries(HashTable<Entry>);

impl Entries {
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.0.find(hash_of(name), |entry| *entry.name == *name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.find(hash_of(name), name)
    }

    /// The file with this name; `hash` must be the hash of `name`.
    pub(super) fn find(&mut self, hash: u64, name: &str) -> Option<&mut Entry> {
        self.0.find_mut(hash, |entry| *entry.name == *name)
    }

    /// A file whose name has this hash, which is nearly always the right one: names are not
    /// compared.
    pub(super) fn find_by_hash(&self, hash: u64) -> Option<&Entry> {
        self.0.find(hash, |entry| entry.hash == hash)
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        self.0.insert_unique(entry.hash, entry, |entry| entry.hash);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Entry> {
        let found = self.0.find_entry(hash_of(name), |entry| *entry.name == *name);
        found.ok().map(|place| place.remove().0)
    }

    /// Removes the entries for which `is` returns true, one per step of the iterator.
    pub(super) fn take_if(&mut self, mut is: impl FnMut(&Entry) -> bool) -> impl Iterator<Item = Entry> {
        self.0.extract_if(move |entry| is(entry))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.0.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
