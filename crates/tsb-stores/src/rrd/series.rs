//! One series: its file, and the state known without reading it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::time::MonotonicClock;
use tsb_core::{Batch, Timestamp};
use tsb_rrd::{Residency, Stage};

use super::engine::{Ask, Engine, EngineError, FinalError, Kept, Pass, Room, Stop, retry_while_locked};
use super::lock_timeout;
use super::reading::{Micros, write};
use crate::damage::{Damage, DamageLog};
use crate::error::{Error, Result};
use crate::store::{Derivation, Reason, Refusals};

/// The parts of the store that a series uses.
pub(super) struct Site<'a> {
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
    kept: Kept,
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
pub(super) enum Found {
    /// There is no file yet.
    Nothing,
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
    pub(super) fn look(site: &Site<'_>, path: PathBuf, room: &mut Room) -> Result<(Self, Found)> {
        let mut series = Self {
            kept: Kept::Nothing,
            newest: None,
            row_s: None,
            is_damaged: false,
            path,
        };
        let found = match series.path.try_exists() {
            Ok(false) => Found::Nothing,
            _ => series.read_head(site, room)?,
        };
        series.is_damaged = matches!(found, Found::Damaged(_) | Found::Foreign(..));
        Ok((series, found))
    }

    /// Reads the state of an existing file.
    fn read_head(&mut self, site: &Site<'_>, room: &mut Room) -> Result<Found> {
        match retry_while_locked(&self.path, lock_timeout(site.clock), || {
            site.engine.look(&self.path, room)
        }) {
            Ok(look) => {
                self.newest = Some(Micros(look.newest_us));
                self.row_s = look.row_s;
                Ok(Found::Sound)
            }
            Err(FinalError::Damaged(damage)) => Ok(Found::Damaged(*damage)),
            Err(FinalError::Foreign(damage, error)) => Ok(Found::Foreign(*damage, error)),
            Err(FinalError::Failed(error)) => Err(error),
        }
    }

    /// Whether the file can be used. A damaged file is checked again, since it may have been
    /// replaced.
    fn is_usable(&mut self, site: &Site<'_>, room: &mut Room) -> Result<bool> {
        if self.is_damaged && matches!(self.read_head(site, room)?, Found::Sound) {
            self.is_damaged = false;
            site.files.fetch_add(1, Ordering::Relaxed);
        }
        Ok(!self.is_damaged)
    }

    /// Notes that the file has become unusable, and drops its kept state.
    fn note_damage(&mut self, site: &Site<'_>, damage: Damage) {
        site.engine.let_go(&mut self.kept);
        (self.newest, self.row_s, self.is_damaged) = (None, None, true);
        site.files.fetch_sub(1, Ordering::Relaxed);
        site.damage.note(damage);
    }

    /// The newest timestamp that a raw query would return.
    pub(super) fn newest_row(&self) -> Option<Timestamp> {
        self.row_s.map(Timestamp::from_secs)
    }

    /// The newest update in the file, in whole microseconds.
    pub(super) fn newest_reading(&self) -> Option<Timestamp> {
        self.newest.map(|at| Timestamp(at.0.saturating_mul(1_000)))
    }

    /// Starts reading what a write up to `until` will need.
    pub(super) fn ask(&mut self, site: &Site<'_>, stage: Stage, until: Timestamp, room: &mut Room) -> Residency {
        if self.newest.is_none() {
            return Residency::NotProbed;
        }
        let Self { path, kept, .. } = self;
        site.engine.ask(stage, path, kept, room, until.as_secs())
    }

    /// Closes a descriptor that was opened ahead for a write that did not happen.
    pub(super) fn unready(&mut self) {
        if let Kept::Ready(_) = self.kept {
            self.kept = Kept::Nothing;
        }
    }

    /// Writes the samples at `indexes` of a batch, all of this series, in one pass over the file.
    /// Returns how many were accepted; the others are refused.
    pub(super) fn write(
        &mut self,
        site: &Site<'_>,
        batch: &Batch<'_>,
        indexes: impl Iterator<Item = usize>,
        room: &mut Room,
        refused: &mut Refusals,
    ) -> Result<usize> {
        if !self.is_usable(site, room)? {
            indexes.for_each(|index| refused.push(index, Reason::Damaged));
            return Ok(0);
        }
        let mut texts = std::mem::take(&mut room.texts);
        let mut taken = std::mem::take(&mut room.indexes);
        let first = self.admit(site, batch, indexes, &mut texts, &mut taken, refused);
        let result = match first {
            None => Ok(0),
            Some(first) => self.apply(site, first, room, &texts, &taken, refused),
        };
        room.texts = texts;
        room.indexes = taken;
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
        site: &Site<'_>,
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
                .and_then(|at| write(text, at, value, site.derivation).map(|()| at));
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
        site: &Site<'_>,
        first: Micros,
        room: &mut Room,
        texts: &[String],
        taken: &[usize],
        refused: &mut Refusals,
    ) -> Result<usize> {
        if self.newest.is_none() {
            self.create(site, first)?;
        }
        let mut accepted = 0;
        // A refused update ends a pass; the updates after it take another pass.
        let mut done = 0;
        while done < taken.len() {
            let pass = match self.pass(site, room, &texts[done..taken.len()]) {
                Ok(pass) => pass,
                Err(error) => {
                    self.note_damage(site, error.damage()?);
                    for &index in &taken[done..] {
                        refused.push(index, Reason::Damaged);
                    }
                    break;
                }
            };
            let Pass {
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

    fn pass(&mut self, site: &Site<'_>, room: &mut Room, texts: &[String]) -> std::result::Result<Pass, FinalError> {
        let Self { path, kept, .. } = self;
        retry_while_locked(path, lock_timeout(site.clock), || {
            let result = site.engine.update(path, kept, room, texts);
            if matches!(result, Err(EngineError::Final(_))) {
                // After an error the kept state may be wrong: drop it, and read the file next
                // time.
                site.engine.let_go(kept);
            }
            result
        })
    }

    /// Creates the file, which starts one second before its first update.
    fn create(&mut self, site: &Site<'_>, first: Micros) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| crate::error::Error::Backend {
                action: format!("make folder {}", folder.display()),
                source: source.into(),
            })?;
        }
        let start_s = first.seconds() - 1;
        let created = retry_while_locked(&self.path, lock_timeout(site.clock), || {
            site.engine.create(&self.path, start_s)
        });
        created.map_err(FinalError::error)?;
        self.newest = Some(Micros(start_s * 1_000_000));
        site.files.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Appends the known rows asked for.
    pub(super) fn read(
        &mut self,
        site: &Site<'_>,
        room: &mut Room,
        ask: &Ask,
        into: &mut Vec<(i64, f64)>,
    ) -> Result<()> {
        if !self.is_usable(site, room)? || self.newest.is_none() {
            return Ok(());
        }
        let Self { path, kept, .. } = self;
        let before = into.len();
        let read = retry_while_locked(path, lock_timeout(site.clock), || {
            into.truncate(before);
            site.engine.rows(path, kept, room, ask, into)
        });
        if let Err(error) = read {
            into.truncate(before);
            self.note_damage(site, error.damage()?);
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
