//! Our own engine, on `tsb-rrd`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tsb_rrd::{Error as RrdError, ExclusiveFile, Layout, OpenFile, Residency, RrdFile, Stage, Updated, rows};

use super::classify::{classify, foreign};
use super::engine::{Ask, Engine, EngineResult, Kept, Look, Pass, Room, Stop, failed};

/// Our engine: passes under librrd's lock, or files held exclusively.
#[derive(Debug)]
pub(super) struct Native {
    layout: Arc<Layout>,
    is_exclusive: bool,
    max_open: usize,
    open: AtomicUsize,
}

impl Native {
    pub(super) fn new(layout: Arc<Layout>, is_exclusive: bool, max_open: usize) -> Self {
        Self {
            layout,
            is_exclusive,
            max_open,
            open: AtomicUsize::new(0),
        }
    }

    /// The newest update, and the newest row of the first archive if it is known.
    #[cfg(feature = "librrd")]
    pub(super) fn look_at_newest(&self, path: &Path, room: &mut Room) -> EngineResult<Look> {
        let result = RrdFile::open_as(path, &self.layout).and_then(|file| {
            let newest = file.newest(&mut room.session)?;
            let newest_s = newest.seconds;
            let span_s = self
                .layout
                .archives()
                .first()
                .map_or(1, |archive| archive.steps * self.layout.step_s()) as i64;
            let known = rows(&file, &mut room.session, 0, newest_s - span_s + 1, newest_s + 1)?;
            let known = known.into_iter().rev().find(|row| is_known(&row.values));
            Ok(Look {
                newest_us: micros(newest),
                row_s: known.map(|row| row.end_s),
            })
        });
        result.map_err(|error| classify("read", path, error))
    }

    fn held<'a>(&self, path: &Path, kept: &'a mut Kept) -> EngineResult<&'a mut ExclusiveFile> {
        if !matches!(kept, Kept::Held(_)) {
            let held = ExclusiveFile::open(path, &self.layout).map_err(|error| classify("hold", path, error))?;
            *kept = Kept::Held(Box::new(held));
        }
        match kept {
            Kept::Held(held) => Ok(held),
            _ => Err(failed("hold", path, "it was let go")),
        }
    }

    /// Runs one pass, with the kept descriptor, the one opened ahead, or a new one.
    fn pass(&self, path: &Path, kept: &mut Kept, room: &mut Room, updates: &[String]) -> Result<Updated, RrdError> {
        let result = match std::mem::take(kept) {
            Kept::Open(mut file) => {
                let result = file.update(&mut room.session, updates);
                *kept = Kept::Open(file);
                result
            }
            Kept::Ready(file) => self.first_pass(file, kept, room, updates),
            _ => return self.first_pass(RrdFile::open_as(path, &self.layout)?, kept, room, updates),
        };
        match result {
            // The file was replaced by another: open that one.
            Err(error) if matches!(error.cause(), RrdError::Changed) => {
                self.forget(kept);
                self.first_pass(RrdFile::open_as(path, &self.layout)?, kept, room, updates)
            }
            result => result,
        }
    }

    /// Runs a pass with a new descriptor, which is kept if fewer than `max_open` are open.
    fn first_pass(
        &self,
        file: RrdFile,
        kept: &mut Kept,
        room: &mut Room,
        updates: &[String],
    ) -> Result<Updated, RrdError> {
        let is_kept = self.open.fetch_add(1, Ordering::AcqRel) < self.max_open;
        if !is_kept {
            self.open.fetch_sub(1, Ordering::AcqRel);
            return file.update_and_close(&mut room.session, updates);
        }
        let mut file = Box::new(OpenFile::new(file));
        let result = file.update(&mut room.session, updates);
        *kept = Kept::Open(file);
        result
    }

    fn forget(&self, kept: &mut Kept) {
        if let Kept::Open(_) = std::mem::take(kept) {
            self.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn micros(at: tsb_rrd::Moment) -> i64 {
    at.seconds.saturating_mul(1_000_000).saturating_add(at.micros)
}

fn pass_of(updated: Updated, path: &Path) -> EngineResult<Pass> {
    let stopped = match updated.stopped {
        None => None,
        Some(RrdError::NotLater { .. }) => Some(Stop::NotLater),
        Some(RrdError::InvalidUpdate { .. }) => Some(Stop::Unreadable),
        Some(other) => return Err(classify("update", path, other)),
    };
    Ok(Pass {
        applied: updated.applied,
        stopped,
        newest_us: micros(updated.newest),
        row_s: updated.row_s,
    })
}

impl Engine for Native {
    fn create(&self, path: &Path, start_s: i64) -> EngineResult<()> {
        let created = tsb_rrd::create(path, &self.layout, start_s, seed_of(path));
        // A new file cannot be damaged, so the error concerns the store.
        created.map_err(|error| failed("create", path, error))
    }

    fn look(&self, path: &Path, room: &mut Room) -> EngineResult<Look> {
        let error = |error| classify("read", path, error);
        let file = RrdFile::open(path).map_err(error)?;
        if **file.layout() != *self.layout {
            return Err(foreign(path));
        }
        let newest_us = micros(file.newest(&mut room.session).map_err(error)?);
        let known = rows(&file, &mut room.session, 0, i64::MIN, i64::MAX).map_err(error)?;
        let mut known = known.into_iter().rev().filter(|row| is_known(&row.values));
        Ok(Look {
            newest_us,
            row_s: known.next().map(|row| row.end_s),
        })
    }

    fn update(&self, path: &Path, kept: &mut Kept, room: &mut Room, updates: &[String]) -> EngineResult<Pass> {
        let updated = if self.is_exclusive {
            self.held(path, kept)?.update(&mut room.session, updates)
        } else {
            self.pass(path, kept, room, updates)
        };
        pass_of(updated.map_err(|error| classify("update", path, error))?, path)
    }

    fn ask(&self, stage: Stage, path: &Path, kept: &mut Kept, room: &mut Room, until_s: i64) -> Residency {
        if self.is_exclusive {
            return Residency::NotProbed;
        }
        if let (Kept::Nothing, Stage::Header) = (&*kept, stage)
            && let Ok(file) = RrdFile::open_as(path, &self.layout)
        {
            *kept = Kept::Ready(file);
        }
        let file = match kept {
            Kept::Open(kept) => kept.file(),
            Kept::Ready(file) => file,
            Kept::Nothing | Kept::Held(_) => return Residency::NotProbed,
        };
        match stage {
            Stage::Header => file.prefetch_header(),
            Stage::Rows => file
                .prefetch_rows(&mut room.session, until_s)
                .unwrap_or_else(Residency::from),
            Stage::Update => Residency::NotProbed,
        }
    }

    fn let_go(&self, kept: &mut Kept) {
        self.forget(kept);
    }

    fn rows(
        &self,
        path: &Path,
        kept: &mut Kept,
        room: &mut Room,
        ask: &Ask,
        into: &mut Vec<(i64, f64)>,
    ) -> EngineResult<()> {
        let read = |file: &RrdFile, room: &mut Room| rows(file, &mut room.session, ask.archive, ask.from_s, ask.to_s);
        let found = match kept {
            Kept::Open(kept_file) => match read(kept_file.file(), room) {
                Err(error) if matches!(error.cause(), RrdError::Changed) => {
                    self.forget(kept);
                    RrdFile::open_as(path, &self.layout).and_then(|file| read(&file, room))
                }
                result => result,
            },
            // Files in exclusive use are written through, so the file is complete.
            _ => RrdFile::open_as(path, &self.layout).and_then(|file| read(&file, room)),
        };
        let found = found.map_err(|error| classify("read", path, error))?;
        let known = found.into_iter().filter(|row| is_known(&row.values));
        into.extend(known.filter_map(|row| Some((row.end_s, *row.values.first()?))));
        Ok(())
    }
}

fn is_known(values: &[f64]) -> bool {
    values.first().is_some_and(|value| !value.is_nan())
}

/// Derived from the name, so that the same store always gets the same bytes.
fn seed_of(path: &Path) -> u64 {
    let bytes = path.file_name().map_or(&[][..], std::ffi::OsStr::as_encoded_bytes);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
