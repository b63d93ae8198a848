//! A shard: some files of a cache, their account, and which of them are open.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use foldhash::fast::FixedState;

use super::entries::Entries;
use super::entry::Entry;
use tsb_stores::parts::{CountedCondvar, lock};
use tsb_stores::write_cache::Account;

/// The entries of a shard, under one lock.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) entries: Entries,
    /// Files that a thread has open. At most one may: librrd's lock belongs to the process, and
    /// closing a second descriptor would release it.
    pub(super) busy: HashSet<Box<str>, FixedState>,
    pub(super) account: Account,
}

impl Shard {
    /// The entry of a file, and the account of its values.
    pub(super) fn find(&mut self, name: &str) -> Option<(&mut Entry, &mut Account)> {
        let entry = self.entries.get_mut(name)?;
        Some((entry, &mut self.account))
    }
}

/// A shard with its lock, and a condition variable for threads that wait for a file.
#[derive(Debug, Default)]
pub(super) struct ShardMutex {
    shard: Mutex<Shard>,
    file_released: CountedCondvar,
}

impl ShardMutex {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shard> {
        lock(&self.shard)
    }

    /// Locks the shard, unless another thread has it locked.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Shard>> {
        self.shard.try_lock().ok()
    }

    /// Locks the shard at a moment when no thread has the file open.
    pub(super) fn lock_idle(&self, name: &str) -> MutexGuard<'_, Shard> {
        let mut shard = self.lock();
        while shard.busy.contains(name) {
            shard = self.file_released.wait(shard);
        }
        shard
    }

    /// Lets other threads open the file again.
    pub(super) fn release(&self, name: &str) {
        self.lock().busy.remove(name);
        self.file_released.notify_all();
    }

    /// While the claim is held no other thread opens the file. The caller must have checked,
    /// under this lock, that the file is not busy.
    pub(super) fn claim<'a>(&'a self, shard: &mut Shard, name: &'a str) -> Claim<'a> {
        shard.busy.insert(name.into());
        Claim {
            shard_mutex: self,
            name,
        }
    }
}

/// The exclusive right to open a file.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    shard_mutex: &'a ShardMutex,
    name: &'a str,
}

impl Claim<'_> {
    /// Leaves the release to another thread, which must call [`ShardMutex::release`].
    pub(super) fn hand_over(self) {
        std::mem::forget(self);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.shard_mutex.release(self.name);
    }
}
