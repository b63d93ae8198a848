//! Generations: a full head becomes the aging generation, whose series move into chunks one after
//! the other.
//!
//! The pace follows how full the next head is: in its first half the series move, in its second
//! half their part of the log is deleted. So the work of each commit is proportional to what it
//! commits, and everything is done before the next head is full.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::params;
use tsb_core::bytes::{Reader, varint};

use super::view::{AgingGeneration, AgingStore, DroppingGeneration, Generation, View, key};
use super::writer::{HeadState, Writer};
use super::{TickShared, panicked};
use crate::block::Wanted;
use crate::error::Result;
use crate::sqlite::file::on_disk;

/// Upper bound of the samples in a head, which bounds memory and log.
const MAX_SAMPLES: u64 = 400_000_000;
/// Chunks of an expired generation deleted per commit.
const DROPPED_AT_ONCE: i64 = 256;

/// Number of samples at which the head is full.
fn head_capacity(shared: &TickShared) -> u64 {
    let series = shared.keys.read().map_or(1, |keys| keys.defined());
    let samples = shared.options.tail.max(1).saturating_mul(series.max(1) as u64);
    samples.min(MAX_SAMPLES)
}

impl Writer {
    /// The fill level of the head: 1 is full.
    pub(super) fn progress(&self, shared: &TickShared) -> f64 {
        self.head.samples as f64 / head_capacity(shared) as f64
    }

    /// Writes the table rows of a generation that began since the last commit.
    pub(super) fn put_rotation(&mut self, shared: &TickShared) -> Result<()> {
        if self.head.is_stored {
            return Ok(());
        }
        if let Some(aging) = &self.aging {
            let view = shared.view()?;
            let generation = view
                .generations
                .iter()
                .find(|generation| generation.number == aging.number);
            let (oldest, newest) = generation.map_or((0, 0), |generation| (generation.oldest, generation.newest));
            self.change(
                shared,
                "UPDATE generation SET oldest = ?2, newest = ?3, state = 'aging' WHERE number = ?1",
                params![aging.number, oldest, newest],
            )?;
        }
        self.change(
            shared,
            "INSERT INTO generation VALUES (?1, ?2, NULL, NULL, 0, 0, 0, 'head', NULL)",
            params![self.head.number, self.head.first_seq],
        )?;
        Ok(())
    }

    /// Moves the series that are due.
    pub(super) fn move_due_series(&mut self, shared: &TickShared) -> Result<()> {
        let progress = self.progress(shared);
        let Some(aging) = &self.aging else { return Ok(()) };
        let due = if progress >= 0.5 {
            aging.series
        } else {
            (f64::from(aging.series) * progress * 2.0) as u32
        };
        if aging.moved >= aging.series || aging.moved >= due {
            return Ok(());
        }
        let Some(mut aging) = self.aging.take() else {
            return Ok(());
        };
        let moved = (aging.moved..due).try_for_each(|number| self.move_one(shared, &mut aging, number));
        aging.moved = due;
        let stored = moved.and_then(|()| self.put_moved(shared, &aging));
        self.aging = Some(aging);
        stored
    }

    fn move_one(&mut self, shared: &TickShared, aging: &mut AgingGeneration, number: u32) -> Result<()> {
        self.parts.clear();
        aging
            .store
            .take(number, (i64::MIN, i64::MAX), Wanted::Blocks, &mut self.parts)?;
        let prior = aging.prior.get(number as usize).copied().unwrap_or(i64::MIN);
        if self.parts.first().is_some_and(|part| part.start <= prior) {
            aging.shadowed += self.count_shadowed(shared, aging, number, prior)?;
        }
        let connection = self.connection.as_ref().ok_or(crate::Error::Closed)?;
        let packed = self.packer.pack(&self.parts);
        let intervals = packed.map_or(&[][..], |packed| packed.intervals);
        let kept = self.kept.take(connection, aging.number, number, intervals);
        shared.database.done("write", kept)?;
        let Some(packed) = packed else {
            return Ok(());
        };
        aging.samples += packed.samples;
        aging.bytes += packed.bytes.len() as u64;
        let key = key(aging.number, number);
        let statement = connection.prepare_cached("INSERT INTO chunk VALUES (?1, ?2)");
        let run = statement.and_then(|mut statement| statement.execute(params![key, packed.bytes]));
        shared.database.done("write", run).map(drop)
    }

    /// Number of samples in `parts` that replace one in an older generation.
    fn count_shadowed(&mut self, shared: &TickShared, aging: &AgingGeneration, number: u32, prior: i64) -> Result<u64> {
        let range = (self.parts[0].start, prior.saturating_add(1));
        let mut older = Vec::new();
        let view = shared.view()?;
        let before = view
            .generations
            .iter()
            .filter(|generation| generation.number < aging.number);
        for generation in before.filter(|generation| generation.overlaps(range)) {
            let connection = self.connection()?;
            super::collect::take_chunk(shared, connection, generation.number, number, range, &mut older)?;
        }
        let older = super::collect::times(&older, range);
        let ours = super::collect::times(&self.parts, range);
        Ok(ours.iter().filter(|at| older.binary_search(at).is_ok()).count() as u64)
    }

    fn put_moved(&self, shared: &TickShared, aging: &AgingGeneration) -> Result<()> {
        let is_whole = aging.moved >= aging.series;
        let newest = if is_whole {
            Some(put_newest(&shared.older.read().map_err(panicked)?))
        } else {
            None
        };
        self.change(
            shared,
            "UPDATE generation SET samples = ?2, shadowed = ?3, moved = ?4, state = ?5, newest_of = ?6 WHERE number = ?1",
            params![
                aging.number,
                aging.samples as i64,
                aging.shadowed as i64,
                aging.moved,
                if is_whole { "whole" } else { "aging" },
                newest
            ],
        )
        .map(drop)
    }

    /// Deletes as much of the aging generation's log as is due, once all its series have moved.
    pub(super) fn delete_moved_frames(&mut self, shared: &TickShared) -> Result<()> {
        let progress = self.progress(shared);
        let Some(aging) = &self.aging else { return Ok(()) };
        if aging.moved < aging.series || progress < 0.5 {
            return Ok(());
        }
        let frames = (aging.end_seq - aging.first_seq) as f64;
        let due = aging.first_seq + (frames * (progress * 2.0 - 1.0).clamp(0.0, 1.0)).ceil() as i64;
        if due <= aging.deleted_until {
            return Ok(());
        }
        self.change(shared, "DELETE FROM tick WHERE seq < ?1", [due])?;
        let share = (due - aging.deleted_until) as f64 / frames.max(1.0);
        let bytes = ((aging.log_bytes as f64 * share) as u64).min(self.log_bytes);
        self.log_bytes -= bytes;
        if let Some(aging) = &mut self.aging {
            aging.deleted_until = due;
        }
        Ok(())
    }

    /// Deletes some chunks of an expired generation.
    pub(super) fn delete_expired_chunks(&mut self, shared: &TickShared) -> Result<()> {
        if self.dropping.is_none() {
            self.dropping = self.begin_dropping(shared)?;
        }
        let Some(dropping) = &mut self.dropping else {
            return Ok(());
        };
        let from = dropping.next;
        dropping.next += DROPPED_AT_ONCE;
        let (number, next) = (dropping.number, dropping.next);
        let keys = [number << 32 | from, number << 32 | next];
        self.change(shared, "DELETE FROM chunk WHERE key >= ?1 AND key < ?2", keys)?;
        if self.kept.has_table {
            self.change(shared, "DELETE FROM summary WHERE key >= ?1 AND key < ?2", keys)?;
        }
        let series = shared.keys.read().map_err(panicked)?.count();
        if next >= i64::from(series) {
            self.change(shared, "DELETE FROM generation WHERE number = ?1", [number])?;
            self.dropping = None;
        }
        Ok(())
    }

    /// The oldest generation, if all of it has expired; it is hidden from readers from now on.
    fn begin_dropping(&mut self, shared: &TickShared) -> Result<Option<DroppingGeneration>> {
        let cutoff = shared.cutoff(self.head.newest);
        let view = shared.view()?;
        let aging = view.aging.as_ref().map(|aging| aging.number);
        let expired = |generation: &&Generation| generation.newest < cutoff && Some(generation.number) != aging;
        let Some(expired) = view.generations.iter().find(expired).copied() else {
            return Ok(None);
        };
        self.change(
            shared,
            "UPDATE generation SET state = 'dropping' WHERE number = ?1",
            [expired.number],
        )?;
        let generations = view.generations.iter().copied();
        let left = View {
            head: Arc::clone(&view.head),
            aging: view.aging.clone(),
            generations: generations
                .filter(|generation| generation.number != expired.number)
                .collect(),
            older_newest: view.older_newest,
        };
        *shared.view.write().map_err(panicked)? = Arc::new(left);
        shared.expired.fetch_add(expired.samples, Ordering::Relaxed);
        Ok(Some(DroppingGeneration {
            number: expired.number,
            next: 0,
        }))
    }

    /// After a commit: frees the memory of series that have moved, and begins a new generation if
    /// the head is full.
    pub(super) fn after_commit(&mut self, shared: &TickShared) -> Result<()> {
        if let Some(aging) = &self.aging {
            shared.epoch.fetch_add(1, Ordering::AcqRel);
            // After the epoch: who knows of the table takes a snapshot that has it.
            shared.has_summaries.store(self.kept.has_table, Ordering::Release);
            aging.store.release_below(aging.moved)?;
            if aging.moved >= aging.series && aging.deleted_until >= aging.end_seq {
                self.end_aging(shared)?;
            }
        }
        if self.aging.is_none() && self.head.samples >= head_capacity(shared) {
            self.rotate(shared)?;
        }
        self.prepare_next(shared)
    }

    fn end_aging(&mut self, shared: &TickShared) -> Result<()> {
        let Some(aging) = self.aging.take() else { return Ok(()) };
        let view = shared.view()?;
        let mut generations = view.generations.clone();
        for generation in generations
            .iter_mut()
            .filter(|generation| generation.number == aging.number)
        {
            generation.samples = aging.samples;
            generation.bytes = aging.bytes;
        }
        let next = View {
            head: Arc::clone(&view.head),
            aging: None,
            generations,
            older_newest: view.older_newest,
        };
        *shared.view.write().map_err(panicked)? = Arc::new(next);
        Ok(())
    }

    /// Makes the head the aging generation. The table rows for that are written with the next
    /// commit.
    fn rotate(&mut self, shared: &TickShared) -> Result<()> {
        let view = shared.view()?;
        let series = shared.keys.read().map_err(panicked)?.count();
        let mut older = shared.older.write().map_err(panicked)?;
        let prior = older.clone();
        view.head.raise_newest(0..series, &mut older)?;
        drop(older);
        let head = self.next_head.take(series);
        let mut generations = view.generations.clone();
        generations.push(Generation {
            number: self.head.number,
            oldest: self.head.oldest,
            newest: self.head.newest,
            samples: 0,
            bytes: 0,
        });
        let aging = AgingStore {
            number: self.head.number,
            store: Arc::clone(&view.head),
        };
        let next = View {
            head,
            aging: Some(Arc::new(aging)),
            generations,
            older_newest: view.older_newest.max(self.head.newest),
        };
        self.aging = Some(AgingGeneration {
            number: self.head.number,
            first_seq: self.head.first_seq,
            end_seq: self.seq,
            store: Arc::clone(&view.head),
            moved: 0,
            series,
            samples: 0,
            shadowed: 0,
            bytes: 0,
            deleted_until: self.head.first_seq,
            log_bytes: self.log_bytes,
            prior,
        });
        let newest = self.head.newest;
        self.head = HeadState::new(self.head.number + 1, self.seq);
        self.head.newest = newest;
        self.encoder.restart();
        *shared.view.write().map_err(panicked)? = Arc::new(next);
        Ok(())
    }
}

/// Encodes the newest timestamps of all series numbers as runs of equal differences: (count,
/// difference).
fn put_newest(newest: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut last, mut run, mut step) = (0i64, 0u64, 0i64);
    for at in newest {
        let next = at.wrapping_sub(last);
        last = *at;
        if run > 0 && next == step {
            run += 1;
            continue;
        }
        put_run(&mut out, run, step);
        (run, step) = (1, next);
    }
    put_run(&mut out, run, step);
    out
}

fn put_run(out: &mut Vec<u8>, run: u64, step: i64) {
    if run > 0 {
        varint::put(out, run);
        varint::put_signed(out, step);
    }
}

/// Decodes what [`put_newest`] has encoded: at most `series` numbers.
pub(super) fn get_newest(bytes: &[u8], series: usize) -> Option<Vec<i64>> {
    let mut cursor = Reader::new(bytes);
    let (mut newest, mut last) = (Vec::new(), 0i64);
    while !cursor.rest().is_empty() {
        let (run, step) = (cursor.varint().ok()?, cursor.signed().ok()?);
        if run > (series - newest.len()) as u64 {
            return None;
        }
        for _ in 0..run {
            last = last.wrapping_add(step);
            newest.push(last);
        }
    }
    newest.resize(series, i64::MIN);
    Some(newest)
}

/// Bytes that a frame takes in the file.
pub(super) fn frame_bytes(len: usize) -> u64 {
    on_disk(len as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_timestamps_come_back_and_take_little_where_series_agree() {
        let mut newest = vec![1_700_000_000_000_000_000; 1000];
        newest.extend([i64::MIN, i64::MAX, 5]);
        let bytes = put_newest(&newest);
        assert!(bytes.len() < 64, "{} bytes", bytes.len());
        assert_eq!(get_newest(&bytes, 1003), Some(newest.clone()));
        newest.push(i64::MIN);
        assert_eq!(get_newest(&bytes, 1004), Some(newest));
        assert_eq!(get_newest(&bytes, 1002), None);
        assert_eq!(get_newest(&bytes[..bytes.len() - 1], 1003), None);
    }
}
