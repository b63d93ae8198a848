//! Opens a file: reads its table of generations, and replays the log into memory.

mod log_reader;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use rusqlite::Connection;
use tsb_core::{Batch, Ids, SeriesId, SeriesKey, Timestamp};

use super::generations::get_newest;
use super::read::Readers;
use super::view::{AgingGeneration, AgingStore, Generation, View};
use super::writer::{HeadState, Writer};
use super::{SCHEMA, TickShared, memory, panicked};
use crate::error::Result;
use crate::numbers::{Keys, key_of};
use crate::open_state::PoisonFlag;
use crate::sqlite::SqliteOptions;
use crate::sqlite::file::Database;
use crate::sqlite::wal::Witness;
use log_reader::LogEnd;

/// A row of the table of generations.
#[derive(Debug)]
struct GenerationRow {
    number: i64,
    first_seq: i64,
    oldest: i64,
    newest: i64,
    samples: u64,
    shadowed: u64,
    moved: u32,
    state: String,
    newest_of: Option<Vec<u8>>,
}

impl GenerationRow {
    fn generation(&self) -> Generation {
        Generation {
            number: self.number,
            oldest: self.oldest,
            newest: self.newest,
            samples: self.samples,
            bytes: 0,
        }
    }
}

/// Opens a file and replays its log into memory.
pub(super) fn open(path: &Path, options: SqliteOptions) -> Result<TickShared> {
    let (database, mut connection) = Database::open(path, &options, &SCHEMA)?;
    let wal = database.watch(&mut connection)?;
    let (keys, key_bytes) = read_keys(&database, &connection)?;
    let rows = read_generations(&database, &connection)?;
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'summary'";
    let tables = connection.query_row(tables, [], |row| row.get::<_, i64>(0));
    let has_summaries = database.done("read", tables)? > 0;
    let series = keys.len() as u32;
    let [whole @ .., head] = rows.as_slice() else {
        return Err(database.corrupt("it has no generation"));
    };
    let (aging, whole) = match whole {
        [whole @ .., aging] if aging.state == "aging" => (Some(aging), whole),
        _ => (None, whole),
    };
    let whole: Vec<&GenerationRow> = whole.iter().filter(|row| row.state != "dropping").collect();
    if head.state != "head" || whole.iter().any(|row| row.state != "whole") {
        return Err(database.corrupt("its generations are in no possible state"));
    }
    let older = match whole.iter().rev().find_map(|row| row.newest_of.as_deref()) {
        Some(bytes) => get_newest(bytes, series as usize).ok_or_else(|| database.corrupt("newest timestamps"))?,
        None => vec![i64::MIN; series as usize],
    };
    let held = whole.iter().map(|row| row.samples).sum::<u64>();
    let shadowed = whole.iter().map(|row| row.shadowed).sum::<u64>();
    let first = aging.unwrap_or(head);
    let mut state = HeadState::new(first.number, first.first_seq);
    state.is_stored = true;
    let memory = memory();
    memory.define_ids(0..series);
    let generations: Vec<Generation> = whole.iter().map(|row| row.generation()).collect();
    let view = View {
        head: memory,
        aging: None,
        older_newest: generations
            .iter()
            .map(|generation| generation.newest)
            .max()
            .unwrap_or(i64::MIN),
        generations,
    };
    let mut writer = Writer::new(connection, wal, first.first_seq, state);
    writer.key_bytes = key_bytes;
    writer.kept.has_table = has_summaries;
    let max_series = options.max_series;
    let mut shared = TickShared {
        options,
        readers: Readers::open(),
        writer: Mutex::new(writer),
        keys: RwLock::new(Keys::new(keys, max_series)),
        view: RwLock::new(Arc::new(view)),
        older: RwLock::new(older),
        epoch: AtomicU64::new(0),
        has_summaries: AtomicBool::new(has_summaries),
        newest_of_all: AtomicI64::new(i64::MIN),
        accepted: AtomicU64::new(0),
        superseded: AtomicU64::new(0),
        expired: AtomicU64::new(0),
        held_before: AtomicU64::new(held - shadowed.min(held)),
        committed: AtomicU64::new(0),
        synced: AtomicU64::new(0),
        open: PoisonFlag::default(),
        damage: Vec::new(),
        database,
    };
    replay_log(&shared, series, aging, head)?;
    let next = shared.writer()?.seq;
    shared.damage = shared.database.damage(|Witness(seq, _)| Ok(seq <= next))?;
    Ok(shared)
}

/// Replays the aging generation and the head.
fn replay_log(shared: &TickShared, series: u32, aging: Option<&GenerationRow>, head: &GenerationRow) -> Result<()> {
    let mut replay = LogReplay {
        shared,
        series,
        skipped: vec![i64::MIN; series as usize],
    };
    if let Some(aging) = aging {
        replay.aging(aging, head)?;
    }
    replay.head(head)
}

fn read_keys(database: &Database, connection: &Connection) -> Result<(Vec<SeriesKey>, u64)> {
    let mut keys = Vec::new();
    let mut bytes = 0;
    let read = connection
        .prepare("SELECT number, name, labels FROM series ORDER BY number")
        .and_then(|mut statement| {
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (number, name, labels): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                bytes += (name.len() + labels.len()) as u64 + 16;
                keys.push((number, key_of(&name, &labels)));
            }
            Ok(())
        });
    database.done("read the series of", read)?;
    let in_order = keys
        .into_iter()
        .enumerate()
        .map(|(index, (number, key))| key.filter(|_| number == index as i64));
    let keys: Option<Vec<_>> = in_order.collect();
    Ok((keys.ok_or_else(|| database.corrupt("its table of series"))?, bytes))
}

fn read_generations(database: &Database, connection: &Connection) -> Result<Vec<GenerationRow>> {
    let sql = "SELECT number, first_seq, coalesce(oldest, 0), coalesce(newest, 0), samples, shadowed, moved, state, \
        newest_of FROM generation ORDER BY number";
    let read = connection.prepare(sql).and_then(|mut statement| {
        let rows = statement.query_map([], |row| {
            Ok(GenerationRow {
                number: row.get(0)?,
                first_seq: row.get(1)?,
                oldest: row.get(2)?,
                newest: row.get(3)?,
                samples: row.get::<_, i64>(4)?.unsigned_abs(),
                shadowed: row.get::<_, i64>(5)?.unsigned_abs(),
                moved: row.get(6)?,
                state: row.get(7)?,
                newest_of: row.get(8)?,
            })
        })?;
        rows.collect()
    });
    database.done("read the generations of", read)
}

/// The state of a replay.
struct LogReplay<'a> {
    shared: &'a TickShared,
    series: u32,
    /// Per series number, the newest timestamp of samples that are in chunks already.
    skipped: Vec<i64>,
}

impl LogReplay<'_> {
    /// Replays the frames of the aging generation.
    fn aging(&mut self, aging: &GenerationRow, head: &GenerationRow) -> Result<()> {
        let mut writer = self.shared.writer()?;
        let bytes = self
            .frames(&mut writer, aging.first_seq..head.first_seq, aging.moved)?
            .bytes;
        let view = self.shared.view()?;
        let mut older = self.shared.older.write().map_err(panicked)?;
        let prior = older.clone();
        view.head.raise_newest(0..self.series, &mut older)?;
        for (older, skipped) in older.iter_mut().zip(&self.skipped) {
            *older = (*older).max(*skipped);
        }
        drop(older);
        // Samples in chunks are counted by the generation's row; the others have just been
        // counted.
        self.shared
            .held_before
            .fetch_add(aging.samples - aging.shadowed.min(aging.samples), Ordering::Relaxed);
        writer.aging = Some(AgingGeneration {
            number: aging.number,
            first_seq: aging.first_seq,
            end_seq: head.first_seq,
            store: Arc::clone(&view.head),
            moved: aging.moved,
            series: self.series,
            samples: aging.samples,
            shadowed: aging.shadowed,
            bytes: 0,
            deleted_until: aging.first_seq,
            log_bytes: bytes,
            prior,
        });
        let mut generations = view.generations.clone();
        generations.push(Generation {
            samples: 0,
            ..aging.generation()
        });
        let next = memory();
        next.define_ids(0..self.series);
        let next = View {
            head: next,
            aging: Some(Arc::new(AgingStore {
                number: aging.number,
                store: Arc::clone(&view.head),
            })),
            generations,
            older_newest: view.older_newest.max(aging.newest),
        };
        *self.shared.view.write().map_err(panicked)? = Arc::new(next);
        writer.head = HeadState::new(head.number, head.first_seq);
        writer.head.is_stored = true;
        Ok(())
    }

    /// Replays the head; the next write continues it.
    fn head(&mut self, head: &GenerationRow) -> Result<()> {
        let mut writer = self.shared.writer()?;
        let writer = &mut *writer;
        let read = self.frames(writer, head.first_seq..i64::MAX, 0)?;
        writer.encoder.resume(read.decoder);
        let older_newest = self.shared.view()?.older_newest;
        writer.head.newest = writer.head.newest.max(older_newest);
        self.shared.newest_of_all.store(writer.head.newest, Ordering::Release);
        if writer.aging.is_none() {
            self.resume_deletion(writer, head)?;
        }
        Ok(())
    }

    /// Resumes the deletion of frames whose samples are all in chunks.
    fn resume_deletion(&self, writer: &mut Writer, head: &GenerationRow) -> Result<()> {
        let sql = "SELECT coalesce(min(seq), ?1), coalesce(sum(length(frame)), 0) FROM tick WHERE seq < ?1";
        let found = writer
            .connection()?
            .query_row(sql, [head.first_seq], |row| Ok((row.get(0)?, row.get(1)?)));
        let (first_seq, bytes): (i64, i64) = self.shared.database.done("read the log of", found)?;
        let before = self.shared.view()?.generations.last().copied();
        if let Some(before) = before.filter(|_| first_seq < head.first_seq) {
            writer.log_bytes += bytes as u64;
            writer.aging = Some(AgingGeneration {
                number: before.number,
                first_seq,
                end_seq: head.first_seq,
                store: memory(),
                moved: self.series,
                series: self.series,
                samples: before.samples,
                shadowed: 0,
                bytes: 0,
                deleted_until: first_seq,
                log_bytes: bytes as u64,
                prior: Vec::new(),
            });
        }
        Ok(())
    }

    /// Applies frames, except the samples of series numbers below `moved`.
    fn frames(&mut self, writer: &mut Writer, seqs: Range<i64>, moved: u32) -> Result<LogEnd> {
        if seqs.start != writer.seq {
            let missing = format!("frame {} of the log is missing", writer.seq);
            return Err(self.shared.database.corrupt(&missing));
        }
        let view = self.shared.view()?;
        let (database, series) = (&self.shared.database, self.series);
        let read = log_reader::for_each_batch(database, seqs, series, |batch| self.apply(writer, &view, batch, moved))?;
        writer.seq = read.seq;
        writer.log_bytes += read.bytes;
        Ok(read)
    }

    fn apply(&mut self, writer: &mut Writer, view: &View, batch: &Batch<'_>, moved: u32) -> Result<()> {
        if moved == 0 {
            return self.apply_all(writer, view, batch);
        }
        if let Ids::Range(first) = batch.ids() {
            let gone = (moved.saturating_sub(first.0) as usize).min(batch.len());
            self.skip(&batch.slice(0..gone));
            return self.apply_all(writer, view, &batch.slice(gone..batch.len()));
        }
        let (mut ids, mut times, mut values): (Vec<SeriesId>, Vec<Timestamp>, Vec<f64>) = Default::default();
        for index in 0..batch.len() {
            if batch.id(index).0 < moved {
                self.skip(&batch.slice(index..index + 1));
            } else {
                ids.push(batch.id(index));
                times.push(batch.time(index));
                values.push(batch.values()[index]);
            }
        }
        let left = Batch::new(Ids::Each(&ids), tsb_core::Times::Each(&times), &values);
        self.apply_all(writer, view, &left)
    }

    fn skip(&mut self, batch: &Batch<'_>) {
        for (id, at, _) in batch.iter() {
            let newest = &mut self.skipped[id.index()];
            *newest = (*newest).max(at.0);
        }
    }

    fn apply_all(&self, writer: &mut Writer, view: &View, batch: &Batch<'_>) -> Result<()> {
        let superseded = writer.apply(self.shared, view, batch)?;
        let held = &self.shared.held_before;
        held.fetch_add(batch.len() as u64, Ordering::Relaxed);
        held.fetch_sub(superseded as u64, Ordering::Relaxed);
        Ok(())
    }
}
