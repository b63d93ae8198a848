//! Our own engine, on `tsb-rrd`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tsb_rrd::{Error as RrdError, ExclusiveFile, Layout, OpenFile, Residency, RrdFile, Stage, Updated, rows};

use super::classify::{classify, foreign};
use super::engine::{Buffers, Engine, EngineResult, FileHandle, FileSummary, PassResult, RowRange, Stop, failed};

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
    pub(super) fn inspect_newest(&self, path: &Path, buffers: &mut Buffers) -> EngineResult<FileSummary> {
        let result = RrdFile::open_as(path, &self.layout).and_then(|file| {
            let newest = file.newest(&mut buffers.session)?;
            let newest_s = newest.seconds;
            let span_s = self
                .layout
                .archives()
                .first()
                .map_or(1, |archive| archive.steps * self.layout.step_s()) as i64;
            let known = rows(&file, &mut buffers.session, 0, newest_s - span_s + 1, newest_s + 1)?;
            let known = known.into_iter().rev().find(|row| is_known(&row.values));
            Ok(FileSummary {
                newest_us: micros(newest),
                row_s: known.map(|row| row.end_s),
            })
        });
        result.map_err(|error| classify("read", path, error))
    }

    fn exclusive<'a>(&self, path: &Path, handle: &'a mut FileHandle) -> EngineResult<&'a mut ExclusiveFile> {
        if !matches!(handle, FileHandle::Exclusive(_)) {
            let held = ExclusiveFile::open(path, &self.layout).map_err(|error| classify("hold", path, error))?;
            *handle = FileHandle::Exclusive(Box::new(held));
        }
        match handle {
            FileHandle::Exclusive(held) => Ok(held),
            _ => Err(failed("hold", path, "it was let go")),
        }
    }

    /// Runs one pass, with the open descriptor, the one opened ahead, or a new one.
    fn pass(
        &self,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        updates: &[String],
    ) -> Result<Updated, RrdError> {
        let result = match std::mem::take(handle) {
            FileHandle::Open(mut file) => {
                let result = file.update(&mut buffers.session, updates);
                *handle = FileHandle::Open(file);
                result
            }
            FileHandle::Prefetched(file) => self.first_pass(file, handle, buffers, updates),
            _ => return self.first_pass(RrdFile::open_as(path, &self.layout)?, handle, buffers, updates),
        };
        match result {
            // The file was replaced by another: open that one.
            Err(error) if matches!(error.cause(), RrdError::Changed) => {
                self.close(handle);
                self.first_pass(RrdFile::open_as(path, &self.layout)?, handle, buffers, updates)
            }
            result => result,
        }
    }

    /// Runs a pass with a new descriptor, which is kept if fewer than `max_open` are open.
    fn first_pass(
        &self,
        file: RrdFile,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        updates: &[String],
    ) -> Result<Updated, RrdError> {
        let stays_open = self.open.fetch_add(1, Ordering::AcqRel) < self.max_open;
        if !stays_open {
            self.open.fetch_sub(1, Ordering::AcqRel);
            return file.update_and_close(&mut buffers.session, updates);
        }
        let mut file = Box::new(OpenFile::new(file));
        let result = file.update(&mut buffers.session, updates);
        *handle = FileHandle::Open(file);
        result
    }

    fn close(&self, handle: &mut FileHandle) {
        if let FileHandle::Open(_) = std::mem::take(handle) {
            self.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn micros(at: tsb_rrd::Moment) -> i64 {
    at.seconds.saturating_mul(1_000_000).saturating_add(at.micros)
}

fn pass_result(updated: Updated, path: &Path) -> EngineResult<PassResult> {
    let stopped = match updated.stopped {
        None => None,
        Some(RrdError::NotLater { .. }) => Some(Stop::NotLater),
        Some(RrdError::InvalidUpdate { .. }) => Some(Stop::Unreadable),
        Some(other) => return Err(classify("update", path, other)),
    };
    Ok(PassResult {
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

    fn inspect(&self, path: &Path, buffers: &mut Buffers) -> EngineResult<FileSummary> {
        let error = |error| classify("read", path, error);
        let file = RrdFile::open(path).map_err(error)?;
        if **file.layout() != *self.layout {
            return Err(foreign(path));
        }
        let newest_us = micros(file.newest(&mut buffers.session).map_err(error)?);
        let known = rows(&file, &mut buffers.session, 0, i64::MIN, i64::MAX).map_err(error)?;
        let mut known = known.into_iter().rev().filter(|row| is_known(&row.values));
        Ok(FileSummary {
            newest_us,
            row_s: known.next().map(|row| row.end_s),
        })
    }

    fn update(
        &self,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        updates: &[String],
    ) -> EngineResult<PassResult> {
        let updated = if self.is_exclusive {
            self.exclusive(path, handle)?.update(&mut buffers.session, updates)
        } else {
            self.pass(path, handle, buffers, updates)
        };
        pass_result(updated.map_err(|error| classify("update", path, error))?, path)
    }

    fn prefetch(
        &self,
        stage: Stage,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        until_s: i64,
    ) -> Residency {
        if self.is_exclusive {
            return Residency::NotProbed;
        }
        if let (FileHandle::Closed, Stage::Header) = (&*handle, stage)
            && let Ok(file) = RrdFile::open_as(path, &self.layout)
        {
            *handle = FileHandle::Prefetched(file);
        }
        let file = match handle {
            FileHandle::Open(file) => file.file(),
            FileHandle::Prefetched(file) => file,
            FileHandle::Closed | FileHandle::Exclusive(_) => return Residency::NotProbed,
        };
        match stage {
            Stage::Header => file.prefetch_header(),
            Stage::Rows => file
                .prefetch_rows(&mut buffers.session, until_s)
                .unwrap_or_else(Residency::from),
            Stage::Update => Residency::NotProbed,
        }
    }

    fn release(&self, handle: &mut FileHandle) {
        self.close(handle);
    }

    fn rows(
        &self,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        range: &RowRange,
        into: &mut Vec<(i64, f64)>,
    ) -> EngineResult<()> {
        let read = |file: &RrdFile, buffers: &mut Buffers| {
            rows(file, &mut buffers.session, range.archive, range.from_s, range.to_s)
        };
        let found = match handle {
            FileHandle::Open(file) => match read(file.file(), buffers) {
                Err(error) if matches!(error.cause(), RrdError::Changed) => {
                    self.close(handle);
                    RrdFile::open_as(path, &self.layout).and_then(|file| read(&file, buffers))
                }
                result => result,
            },
            // Files in exclusive use are written through, so the file is complete.
            _ => RrdFile::open_as(path, &self.layout).and_then(|file| read(&file, buffers)),
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
