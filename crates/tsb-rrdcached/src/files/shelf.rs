//! Some files of a cache with their account, and who is busy with which.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use foldhash::fast::FixedState;

use super::entries::Entries;
use super::entry::Entry;
use tsb_stores::parts::{Bell, lock};
use tsb_stores::write_cache::Account;

/// Files by name, under one lock.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) entries: Entries,
    /// Files that somebody has open. librrd's lock is the process's: a second descriptor
    /// that is closed would take it away.
    pub(super) busy: HashSet<Box<str>, FixedState>,
    pub(super) account: Account,
}

impl Shelf {
    /// A file, and the account that its values are in.
    pub(super) fn find(&mut self, name: &str) -> Option<(&mut Entry, &mut Account)> {
        let entry = self.entries.get_mut(name)?;
        Some((entry, &mut self.account))
    }
}

/// A shelf with its lock, and a bell for those who wait for a file.
#[derive(Debug, Default)]
pub(super) struct Shelved {
    shelf: Mutex<Shelf>,
    bell: Bell,
}

impl Shelved {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shelf> {
        lock(&self.shelf)
    }

    /// The shelf, if nobody has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Shelf>> {
        self.shelf.try_lock().ok()
    }

    /// The shelf, at a moment at which nobody has the file open.
    pub(super) fn lock_idle(&self, name: &str) -> MutexGuard<'_, Shelf> {
        let mut shelf = self.lock();
        while shelf.busy.contains(name) {
            shelf = self.bell.wait(shelf);
        }
        shelf
    }

    /// Others may open the file again.
    pub(super) fn release(&self, name: &str) {
        self.lock().busy.remove(name);
        self.bell.ring_all();
    }

    /// Nobody else opens the file as long as this is held.
    pub(super) fn claim<'a>(&'a self, shelf: &mut Shelf, name: &'a str) -> Claim<'a> {
        shelf.busy.insert(name.into());
        Claim { shelved: self, name }
    }
}

/// The right to open a file.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    shelved: &'a Shelved,
    name: &'a str,
}

impl Claim<'_> {
    /// Somebody else calls [`Shelved::release`] for it.
    pub(super) fn hand_over(self) {
        std::mem::forget(self);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.shelved.release(self.name);
    }
}
