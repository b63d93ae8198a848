//! One series: its file, and the state known without reading it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::time::MonotonicClock;
use tsb_core::{Batch, Timestamp};
use tsb_rrd::{Residency, Stage};

use super::engine::{
    Buffers, Engine, EngineError, FileHandle, FinalError, PassResult, RowRange, Stop, retry_while_locked,
};
use super::lock_timeout;
use super::update_text::{Micros, write_update};
use crate::damage::{Damage, DamageLog};
use crate::error::{Error, Result};
use crate::store::{Derivation, Reason, Refusals};

/// The parts of the store that a series uses.
pub(super) struct SeriesContext<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) derivation: Derivation,
    pub(super) clock: &'a MonotonicClock,
    /// Number of sound files.
    pub(super) files: &'a AtomicU64,
    /// The log of damaged files.
    pub(super) damage: &'a DamageLog,
}

/// A series and its file, which may not exist yet.
#[derive(Debug)]
pub(super) struct Series {
    path: PathBuf,
    handle: FileHandle,
    // The newest update in the file; `None` if there is no file, or it is damaged.
    newest: Option<Micros>,
    // The end of the newest known row of the first archive.
    row_s: Option<i64>,
    // The file is damaged or missing: samples are refused, and queries return nothing, until it
    // is whole again. It is never created anew, since that would silently lose its contents.
    is_damaged: bool,
}

/// The result of opening the file of a series.
#[derive(Debug)]
pub(super) enum FileStatus {
    /// There is no file yet.
    Absent,
    /// A sound file.
    Sound,
    /// A damaged file.
    Damaged(Damage),
    /// A file with another layout: it is damaged, or the store has the wrong options, which the
    /// error says.
    Foreign(Damage, Error),
}

impl Series {
    /// A series, with the state of its file if it exists.
    ///
    /// # Errors
    /// Errors that concern more than this file.
    pub(super) fn inspect(
        context: &SeriesContext<'_>,
        path: PathBuf,
        buffers: &mut Buffers,
    ) -> Result<(Self, FileStatus)> {
        let mut series = Self {
            handle: FileHandle::Closed,
            newest: None,
            row_s: None,
            is_damaged: false,
            path,
        };
        let found = match series.path.try_exists() {
            Ok(false) => FileStatus::Absent,
            _ => series.read_header(context, buffers)?,
        };
        series.is_damaged = matches!(found, FileStatus::Damaged(_) | FileStatus::Foreign(..));
        Ok((series, found))
    }

    /// Reads the state of an existing file.
    fn read_header(&mut self, context: &SeriesContext<'_>, buffers: &mut Buffers) -> Result<FileStatus> {
        match retry_while_locked(&self.path, lock_timeout(context.clock), || {
            context.engine.inspect(&self.path, buffers)
        }) {
            Ok(summary) => {
                self.newest = Some(Micros(summary.newest_us));
                self.row_s = summary.row_s;
                Ok(FileStatus::Sound)
            }
            Err(FinalError::Damaged(damage)) => Ok(FileStatus::Damaged(*damage)),
            Err(FinalError::Foreign(damage, error)) => Ok(FileStatus::Foreign(*damage, error)),
            Err(FinalError::Failed(error)) => Err(error),
        }
    }

    /// Whether the file can be used. A damaged file is checked again, since it may have been
    /// replaced.
    fn is_usable(&mut self, context: &SeriesContext<'_>, buffers: &mut Buffers) -> Result<bool> {
        if self.is_damaged && matches!(self.read_header(context, buffers)?, FileStatus::Sound) {
            self.is_damaged = false;
            context.files.fetch_add(1, Ordering::Relaxed);
        }
        Ok(!self.is_damaged)
    }

    /// Notes that the file has become unusable, and closes its handle.
    fn note_damage(&mut self, context: &SeriesContext<'_>, damage: Damage) {
        context.engine.release(&mut self.handle);
        (self.newest, self.row_s, self.is_damaged) = (None, None, true);
        context.files.fetch_sub(1, Ordering::Relaxed);
        context.damage.note(damage);
    }

    /// The newest timestamp that a raw query would return.
    pub(super) fn newest_row(&self) -> Option<Timestamp> {
        self.row_s.map(Timestamp::from_secs)
    }

    /// The newest update in the file, in whole microseconds.
    pub(super) fn newest_update(&self) -> Option<Timestamp> {
        self.newest.map(|at| Timestamp(at.0.saturating_mul(1_000)))
    }

    /// Starts reading what a write up to `until` will need.
    pub(super) fn prefetch(
        &mut self,
        context: &SeriesContext<'_>,
        stage: Stage,
        until: Timestamp,
        buffers: &mut Buffers,
    ) -> Residency {
        if self.newest.is_none() {
            return Residency::NotProbed;
        }
        let Self { path, handle, .. } = self;
        context.engine.prefetch(stage, path, handle, buffers, until.as_secs())
    }

    /// Closes a descriptor that was opened ahead for a write that did not happen.
    pub(super) fn close_prefetched(&mut self) {
        if let FileHandle::Prefetched(_) = self.handle {
            self.handle = FileHandle::Closed;
        }
    }

    /// Writes the samples at `indexes` of a batch, all of this series, in one pass over the file.
    /// Returns how many were accepted; the others are refused.
    pub(super) fn write(
        &mut self,
        context: &SeriesContext<'_>,
        batch: &Batch<'_>,
        indexes: impl Iterator<Item = usize>,
        buffers: &mut Buffers,
        refused: &mut Refusals,
    ) -> Result<usize> {
        if !self.is_usable(context, buffers)? {
            indexes.for_each(|index| refused.push(index, Reason::Damaged));
            return Ok(0);
        }
        let mut texts = std::mem::take(&mut buffers.texts);
        let mut taken = std::mem::take(&mut buffers.indexes);
        let first = self.admit(context, batch, indexes, &mut texts, &mut taken, refused);
        let result = match first {
            None => Ok(0),
            Some(first) => self.apply(context, first, buffers, &texts, &taken, refused),
        };
        buffers.texts = texts;
        buffers.indexes = taken;
        result
    }

    /// Refuses samples that the file cannot take, and converts the rest to text. Returns the time
    /// of the first accepted one.
    #[expect(
        clippy::too_many_arguments,
        reason = "buffers of the caller, used again by the next series"
    )]
    fn admit(
        &self,
        context: &SeriesContext<'_>,
        batch: &Batch<'_>,
        indexes: impl Iterator<Item = usize>,
        texts: &mut Vec<String>,
        taken: &mut Vec<usize>,
        refused: &mut Refusals,
    ) -> Option<Micros> {
        taken.clear();
        let mut first = None;
        let mut newest = self.newest;
        for index in indexes {
            if texts.len() <= taken.len() {
                texts.push(String::new());
            }
            let text = &mut texts[taken.len()];
            let value = batch.values()[index];
            let admitted = Micros::of(batch.time(index))
                .ok_or(Reason::Unrepresentable)
                .and_then(|at| in_order(newest, at).map(|()| at))
                .and_then(|at| write_update(text, at, value, context.derivation).map(|()| at));
            match admitted {
                Ok(at) => {
                    newest = Some(at);
                    first = first.or(newest);
                    taken.push(index);
                }
                Err(reason) => refused.push(index, reason),
            }
        }
        first
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "buffers of the caller, used again by the next series"
    )]
    fn apply(
        &mut self,
        context: &SeriesContext<'_>,
        first: Micros,
        buffers: &mut Buffers,
        texts: &[String],
        taken: &[usize],
        refused: &mut Refusals,
    ) -> Result<usize> {
        if self.newest.is_none() {
            self.create(context, first)?;
        }
        let mut accepted = 0;
        // A refused update ends a pass; the updates after it take another pass.
        let mut done = 0;
        while done < taken.len() {
            let pass = match self.pass(context, buffers, &texts[done..taken.len()]) {
                Ok(pass) => pass,
                Err(error) => {
                    self.note_damage(context, error.damage()?);
                    for &index in &taken[done..] {
                        refused.push(index, Reason::Damaged);
                    }
                    break;
                }
            };
            let PassResult {
                applied,
                stopped,
                newest_us,
                row_s,
            } = pass;
            self.newest = Some(Micros(newest_us));
            self.row_s = self.row_s.max(row_s);
            accepted += applied;
            done += applied;
            if let Some(stop) = stopped {
                let reason = match stop {
                    Stop::NotLater => Reason::Late,
                    Stop::Unreadable => Reason::Unrepresentable,
                };
                if let Some(&index) = taken.get(done) {
                    refused.push(index, reason);
                }
                done += 1;
            }
        }
        Ok(accepted)
    }

    fn pass(
        &mut self,
        context: &SeriesContext<'_>,
        buffers: &mut Buffers,
        texts: &[String],
    ) -> std::result::Result<PassResult, FinalError> {
        let Self { path, handle, .. } = self;
        retry_while_locked(path, lock_timeout(context.clock), || {
            let result = context.engine.update(path, handle, buffers, texts);
            if matches!(result, Err(EngineError::Final(_))) {
                // After an error the open handle may be stale: close it, and read the file next
                // time.
                context.engine.release(handle);
            }
            result
        })
    }

    /// Creates the file, which starts one second before its first update.
    fn create(&mut self, context: &SeriesContext<'_>, first: Micros) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| crate::error::Error::Backend {
                action: format!("make folder {}", folder.display()),
                source: source.into(),
            })?;
        }
        let start_s = first.seconds() - 1;
        let created = retry_while_locked(&self.path, lock_timeout(context.clock), || {
            context.engine.create(&self.path, start_s)
        });
        created.map_err(FinalError::error)?;
        self.newest = Some(Micros(start_s * 1_000_000));
        context.files.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Appends the known rows asked for.
    pub(super) fn read(
        &mut self,
        context: &SeriesContext<'_>,
        buffers: &mut Buffers,
        range: &RowRange,
        into: &mut Vec<(i64, f64)>,
    ) -> Result<()> {
        if !self.is_usable(context, buffers)? || self.newest.is_none() {
            return Ok(());
        }
        let Self { path, handle, .. } = self;
        let before = into.len();
        let read = retry_while_locked(path, lock_timeout(context.clock), || {
            into.truncate(before);
            context.engine.rows(path, handle, buffers, range, into)
        });
        if let Err(error) = read {
            into.truncate(before);
            self.note_damage(context, error.damage()?);
        }
        Ok(())
    }
}

/// Whether a sample at `at` may follow one at `newest`. librrd parses times as floats, so a file
/// may hold a time that is a microsecond too small.
pub fn in_order(newest: Option<Micros>, at: Micros) -> std::result::Result<(), Reason> {
    match newest {
        Some(newest) if (at.0 - newest.0).abs() <= 1 => Err(Reason::Duplicate),
        Some(newest) if at < newest => Err(Reason::Late),
        _ => Ok(()),
    }
}
