//! Commits: one transaction with the frame and a part of the pending moves, then a checkpoint if
//! due. Any failure poisons the store, since the state of SQLite and the disk is then uncertain.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, params};
use tsb_core::time::Clock;

use super::TickShared;
use super::writer::Writer;
use crate::activity::ActivityKind;
use crate::error::{Error, Result, chain};
use crate::numbers::labels_to_json;
use crate::sqlite::Synchronous;
use crate::sqlite::commits::LongestCommit;
use crate::sqlite::file::{ROW_BYTES, on_disk};
use crate::sqlite::wal::Witness;

/// Upper bound of the new series written with one commit, which bounds the time that they add.
const KEYS_AT_ONCE: usize = 1000;

impl Writer {
    /// Commits everything pending.
    pub(super) fn commit(&mut self, shared: &TickShared) -> Result<()> {
        if self.encoder.len() == 0 {
            return Ok(());
        }
        let committed = self.try_commit(shared);
        committed.map_err(|error| poison(shared, "a commit", error))
    }

    fn try_commit(&mut self, shared: &TickShared) -> Result<()> {
        let under_way = shared.database.activity.begin(ActivityKind::Commit);
        let begun = self.clock.now();
        let mut filled_at = begun;
        self.transact(shared, |writer| {
            writer.fill(shared)?;
            filled_at = writer.clock.now();
            Ok(())
        })?;
        let synced_at = self.clock.now();
        drop(under_way);
        self.encoder.clear();
        self.new_keys.clear();
        self.head.is_stored = true;
        self.committed_until = Some(self.head.newest);
        let position = shared.accepted.load(Ordering::Acquire);
        shared.committed.store(position, Ordering::Release);
        if shared.options.synchronous == Synchronous::Full {
            shared.synced.store(position, Ordering::Release);
        }
        self.count(shared);
        self.after_commit(shared)?;
        let rotated_at = self.clock.now();
        let journal_bytes = self.wal.bytes();
        let checkpointed = self.checkpoint_when_due(shared)?;
        let ended = self.clock.now();
        let one = LongestCommit {
            total_ns: ended - begun,
            rows_ns: filled_at - begun,
            sync_ns: synced_at - filled_at,
            checkpoint_ns: if checkpointed { ended - rotated_at } else { 0 },
            rotation_ns: rotated_at - synced_at,
        };
        self.commits.note(one, journal_bytes);
        Ok(())
    }

    /// Records outside of the log that it holds one more commit.
    fn count(&mut self, shared: &TickShared) {
        let is_synced = shared.options.synchronous == Synchronous::Full;
        self.wal.committed(Witness(self.seq, 0), is_synced);
    }

    /// Runs `fill` in one transaction.
    fn transact(&mut self, shared: &TickShared, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.run(shared, "BEGIN IMMEDIATE")?;
        if let Err(error) = fill(self).and_then(|()| self.run(shared, "COMMIT")) {
            // It may have been rolled back already; the first error is the one that counts.
            let _ = self.run(shared, "ROLLBACK");
            return Err(error);
        }
        Ok(())
    }

    /// Writes the keys of new series if there are many, so that `define` waits for that and not
    /// the first batch. Fewer keys are written with the next commit.
    pub(super) fn commit_keys(&mut self, shared: &TickShared) -> Result<()> {
        while self.new_keys.len() >= KEYS_AT_ONCE {
            let rest = self.new_keys.split_off(KEYS_AT_ONCE);
            let written = self.transact(shared, |writer| writer.put_keys(shared));
            self.new_keys = rest;
            self.count(shared);
            let written = written.and_then(|()| self.checkpoint_when_due(shared));
            written.map_err(|error| poison(shared, "a commit of series", error))?;
        }
        Ok(())
    }

    /// Writes everything that belongs to the transaction.
    fn fill(&mut self, shared: &TickShared) -> Result<()> {
        self.put_keys(shared)?;
        self.put_rotation(shared)?;
        self.put_frame(shared)?;
        self.move_due_series(shared)?;
        self.delete_moved_frames(shared)?;
        self.delete_expired_chunks(shared)
    }

    pub(super) fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().ok_or(Error::Closed)
    }

    /// Runs a cached statement without parameters or rows.
    pub(super) fn run(&self, shared: &TickShared, sql: &str) -> Result<()> {
        let statement = self.connection()?.prepare_cached(sql);
        let run = statement.and_then(|mut statement| statement.execute([]));
        shared.database.done("write", run).map(drop)
    }

    /// Runs a statement that inserts, changes or deletes. Returns the number of rows.
    pub(super) fn change(&self, shared: &TickShared, sql: &str, values: impl rusqlite::Params) -> Result<usize> {
        let statement = self.connection()?.prepare_cached(sql);
        let run = statement.and_then(|mut statement| statement.execute(values));
        shared.database.done("write", run)
    }

    fn put_keys(&mut self, shared: &TickShared) -> Result<()> {
        let mut bytes = 0;
        for (number, key) in &self.new_keys {
            let labels = labels_to_json(key);
            bytes += (key.name().len() + labels.len()) as u64 + ROW_BYTES;
            self.change(
                shared,
                "INSERT INTO series VALUES (?1, ?2, ?3)",
                params![number, key.name(), labels],
            )?;
        }
        self.key_bytes += bytes;
        Ok(())
    }

    fn put_frame(&mut self, shared: &TickShared) -> Result<()> {
        let connection = self.connection.as_ref().ok_or(Error::Closed)?;
        let frame = self.encoder.frame();
        let bytes = frame.len() as u64;
        let statement = connection.prepare_cached("INSERT INTO tick VALUES (?1, ?2)");
        let run = statement.and_then(|mut statement| statement.execute(params![self.seq, frame]));
        shared.database.done("write", run)?;
        self.seq += 1;
        self.log_bytes += on_disk(bytes);
        Ok(())
    }

    /// Makes a checkpoint if the write-ahead log has reached its bound. Returns whether it did.
    fn checkpoint_when_due(&mut self, shared: &TickShared) -> Result<bool> {
        let connection = self.connection.as_ref().ok_or(Error::Closed)?;
        let _under_way = shared.database.activity.begin(ActivityKind::Checkpoint);
        let made = self
            .wal
            .checkpoint_when_due(connection, shared.options.checkpoint_bytes);
        shared.database.done("checkpoint", made)
    }

    /// Syncs everything committed, if commits do not wait for a sync.
    pub(super) fn sync(&mut self, shared: &TickShared) -> Result<()> {
        let position = shared.committed.load(Ordering::Acquire);
        if shared.options.synchronous == Synchronous::Normal && shared.synced.load(Ordering::Acquire) < position {
            // One commit that waits syncs the whole log, earlier commits included.
            let synced = self.run(shared, "PRAGMA synchronous=FULL").and_then(|()| {
                self.change(
                    shared,
                    "INSERT INTO tsb VALUES ('synced', ?1) ON CONFLICT DO UPDATE SET value = ?1",
                    [self.seq],
                )?;
                self.run(shared, "PRAGMA synchronous=NORMAL")
            });
            synced.map_err(|error| poison(shared, "a sync", error))?;
            self.wal.committed(Witness(self.seq, 0), true);
            shared.synced.store(position, Ordering::Release);
        }
        Ok(())
    }
}

/// Records a permanent failure of the store.
pub(super) fn poison(shared: &TickShared, what: &str, error: Error) -> Error {
    shared.open.poison(|| format!("{what} failed: {}", chain(&error)));
    error
}
