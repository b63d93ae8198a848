//! The engine of the system's librrd.
//!
//! librrd reports neither how many updates of a call it applied nor which rows it wrote. So after
//! each call, unless the file was locked, the header and the newest row are read with our own reader.

use std::path::Path;
use std::sync::Arc;

use tsb_librrd::{Creation, Error as LibrrdError};
use tsb_rrd::{Layout, Residency, Stage};

use super::engine::{
    Buffers, Engine, EngineError, EngineResult, FileHandle, FileSummary, FinalError, PassResult, RowRange, Stop, failed,
};
use super::native::Native;

/// librrd, with one file at a time per thread.
#[derive(Debug)]
pub(super) struct Librrd {
    layout: Arc<Layout>,
    reader: Native,
    definitions: Vec<String>,
}

impl Librrd {
    pub(super) fn new(layout: Arc<Layout>) -> Self {
        let bound = |value: f64| {
            if value.is_nan() {
                "U".to_owned()
            } else {
                value.to_string()
            }
        };
        let sources = layout.sources().iter().map(|source| {
            let (min, max) = (bound(source.min), bound(source.max));
            format!(
                "DS:{}:{}:{}:{min}:{max}",
                source.name,
                source.kind.name(),
                source.heartbeat_s
            )
        });
        let archives = layout.archives().iter().map(|archive| {
            format!(
                "RRA:{}:{}:{}:{}",
                archive.cf.name(),
                archive.xff,
                archive.steps,
                archive.rows
            )
        });
        Self {
            definitions: sources.chain(archives).collect(),
            reader: Native::new(Arc::clone(&layout), false, 0),
            layout,
        }
    }

    /// Number of `updates` that are in the file, by its newest time.
    fn applied(newest_us: i64, updates: &[String]) -> usize {
        let is_in = |update: &&String| {
            let time = update.split(':').next().and_then(|time| time.parse::<f64>().ok());
            // librrd parses times as floats, which may be a microsecond off.
            time.is_some_and(|time| (time * 1e6) as i64 <= newest_us + 1)
        };
        updates.iter().take_while(is_in).count()
    }
}

fn classify(action: &str, path: &Path, error: LibrrdError) -> EngineError {
    match error {
        LibrrdError::Locked(_) => EngineError::Locked,
        other => failed(action, path, other),
    }
}

impl Engine for Librrd {
    fn create(&self, path: &Path, start_s: i64) -> EngineResult<()> {
        let creation = Creation {
            step_s: self.layout.step_s(),
            start_s: Some(start_s),
            keeps_old: true,
            definitions: &self.definitions,
            ..Creation::default()
        };
        tsb_librrd::create(path, &creation).map_err(|error| classify("create", path, error))
    }

    fn inspect(&self, path: &Path, buffers: &mut Buffers) -> EngineResult<FileSummary> {
        self.reader.inspect(path, buffers)
    }

    fn update(
        &self,
        path: &Path,
        _handle: &mut FileHandle,
        buffers: &mut Buffers,
        updates: &[String],
    ) -> EngineResult<PassResult> {
        let result = tsb_librrd::update(path, updates);
        if let Err(error @ LibrrdError::Locked(_)) = result {
            return Err(classify("update", path, error));
        }
        let summary = self.reader.inspect_newest(path, buffers)?;
        let (applied, stopped) = match result {
            Ok(()) => (updates.len(), None),
            Err(LibrrdError::NotLater(_)) => (Self::applied(summary.newest_us, updates), Some(Stop::NotLater)),
            Err(LibrrdError::Librrd(text)) if text.contains("Cannot convert") => {
                (Self::applied(summary.newest_us, updates), Some(Stop::Unreadable))
            }
            Err(error) => return Err(classify("update", path, error)),
        };
        // If the first update was already behind the file, none of this call was applied.
        let is_behind = matches!(stopped, Some(Stop::NotLater)) && applied == updates.len();
        Ok(PassResult {
            applied: if is_behind { 0 } else { applied },
            stopped,
            newest_us: summary.newest_us,
            row_s: summary.row_s,
        })
    }

    fn prefetch(
        &self,
        _stage: Stage,
        _path: &Path,
        _handle: &mut FileHandle,
        _buffers: &mut Buffers,
        _until_s: i64,
    ) -> Residency {
        // librrd opens each file itself; nothing can be read ahead.
        Residency::NotProbed
    }

    fn release(&self, _handle: &mut FileHandle) {}

    fn rows(
        &self,
        path: &Path,
        _handle: &mut FileHandle,
        _buffers: &mut Buffers,
        range: &RowRange,
        into: &mut Vec<(i64, f64)>,
    ) -> EngineResult<()> {
        let Some(archive) = self.layout.archives().get(range.archive) else {
            return Ok(());
        };
        let mut buffers = Buffers::default();
        // librrd's error does not tell whose fault it is; our reader can.
        let mut error = |error| match self.reader.inspect(path, &mut buffers) {
            Err(damaged @ EngineError::Final(FinalError::Damaged(_) | FinalError::Foreign(..))) => damaged,
            _ => classify("fetch from", path, error),
        };
        let span_s = (archive.steps * self.layout.step_s()) as i64;
        let last_s = tsb_librrd::last(path).map_err(&mut error)?;
        let newest_s = last_s.div_euclid(span_s) * span_s;
        // Ask for no more than the archive holds: otherwise librrd answers from another archive.
        let oldest_s = newest_s - archive.rows as i64 * span_s;
        let start_s = range.from_s.saturating_sub(1).max(oldest_s);
        let end_s = range.to_s.min(newest_s + 1) - 1;
        if start_s >= end_s {
            return Ok(());
        }
        let found = tsb_librrd::fetch(path, archive.cf.name(), start_s, end_s, span_s as u64).map_err(error)?;
        let rows = found.values.chunks_exact(found.sources.len().max(1)).enumerate();
        let ends = rows.map(|(index, row)| (found.first_s + index as i64 * found.step_s as i64, row));
        let asked = ends.filter(|(end_s, _)| *end_s >= range.from_s && *end_s < range.to_s && *end_s <= newest_s);
        into.extend(
            asked.filter_map(|(end_s, row)| row.first().map(|&value| (end_s, value)).filter(|row| !row.1.is_nan())),
        );
        Ok(())
    }
}
