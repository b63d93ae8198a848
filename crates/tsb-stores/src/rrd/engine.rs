//! The interface of an engine: creates a file, inspects it, updates it, reads rows.

use std::fmt::Debug;
use std::path::Path;

use tsb_rrd::{OpenFile, ReadAhead, Residency, RrdFile, Session, Stage};

use crate::damage::Damage;
use crate::error::{Error, Result};

/// Our own engine or librrd. Callers must not use one path concurrently.
pub(super) trait Engine: Debug + Send + Sync {
    /// Creates a file that takes updates after `start_s`.
    fn create(&self, path: &Path, start_s: i64) -> EngineResult<()>;

    /// Reads the newest update and row of an existing file.
    fn inspect(&self, path: &Path, buffers: &mut Buffers) -> EngineResult<FileSummary>;

    /// Applies updates (`time:value`) to a file, in one pass.
    fn update(
        &self,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        updates: &[String],
    ) -> EngineResult<PassResult>;

    /// Starts reading, without waiting, what an update up to `until_s` will need of a file, as
    /// far as `stage` says. A descriptor opened for this is kept for the update.
    fn prefetch(
        &self,
        stage: Stage,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        until_s: i64,
    ) -> Residency;

    /// Closes the handle of a file.
    fn release(&self, handle: &mut FileHandle);

    /// Appends the known rows of an archive that end in `[from_s, to_s)`.
    fn rows(
        &self,
        path: &Path,
        handle: &mut FileHandle,
        buffers: &mut Buffers,
        range: &RowRange,
        into: &mut Vec<(i64, f64)>,
    ) -> EngineResult<()>;
}

/// The rows asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowRange {
    pub(super) archive: usize,
    pub(super) from_s: i64,
    pub(super) to_s: i64,
}

/// A file between two calls: closed, or open in one of three ways.
#[derive(Debug, Default)]
pub(super) enum FileHandle {
    #[default]
    Closed,
    Open(Box<OpenFile>),
    /// Opened ahead for the next update, which closes it.
    Prefetched(RrdFile),
    Exclusive(Box<tsb_rrd::ExclusiveFile>),
}

/// Buffers of one call, reused by later ones.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) session: Session,
    /// Whether files were found in the page cache.
    pub(super) ahead: ReadAhead,
    /// Texts of updates; only the first ones are in use.
    pub(super) texts: Vec<String>,
    /// The index in the batch of each text.
    pub(super) indexes: Vec<usize>,
    /// The indexes of a batch's samples, grouped by series.
    pub(super) order: Vec<u32>,
    /// The end of each group in `order`.
    pub(super) parts: Vec<u32>,
}

/// The contents of a file, as far as the store needs them.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSummary {
    /// The newest update, in microseconds since the epoch.
    pub(super) newest_us: i64,
    /// The end of the newest known row of the first archive.
    pub(super) row_s: Option<i64>,
}

/// The outcome of a pass.
#[derive(Debug)]
pub(super) struct PassResult {
    /// Number of updates applied.
    pub(super) applied: usize,
    /// Why the next one was not applied.
    pub(super) stopped: Option<Stop>,
    /// The newest update in the file, in microseconds; relevant if another process wrote a later
    /// one.
    pub(super) newest_us: i64,
    /// The end of the newest known row of the first archive, if this pass wrote one.
    pub(super) row_s: Option<i64>,
}

/// Why an update was not applied.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file has a later one.
    NotLater,
    /// The text is not a valid number.
    Unreadable,
}

/// The error of an engine's call.
#[derive(Debug)]
pub(super) enum EngineError {
    /// Another process has locked the file: try again.
    Locked,
    /// A retry would fail as well.
    Final(FinalError),
}

/// An error that a retry would not cure.
#[derive(Debug)]
pub(super) enum FinalError {
    /// This file is damaged, missing or unreadable. Other files are not affected.
    Damaged(Box<Damage>),
    /// The header is valid, but differs from the store's layout: either this file's header is
    /// damaged, or the store was opened with wrong options, which the error says.
    Foreign(Box<Damage>, Error),
    /// An error of the store as a whole.
    Failed(Error),
}

impl FinalError {
    /// The damage of a file that was sound before; `Err` for an error of the whole store.
    pub(super) fn damage(self) -> Result<Damage> {
        match self {
            Self::Damaged(damage) | Self::Foreign(damage, _) => Ok(*damage),
            Self::Failed(error) => Err(error),
        }
    }

    /// The error of a call that created the file.
    pub(super) fn error(self) -> Error {
        match self {
            Self::Failed(error) | Self::Foreign(_, error) => error,
            Self::Damaged(damage) => Error::Corrupt {
                path: damage.path,
                offset: 0,
                what: damage.what,
            },
        }
    }
}

/// The result of an engine's call.
pub(super) type EngineResult<T> = std::result::Result<T, EngineError>;

/// An error about a file, as [`EngineError`].
pub(super) fn failed(
    action: &str,
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> EngineError {
    EngineError::Final(FinalError::Failed(failure(action, path, source)))
}

/// An error about a file, as the store's error.
pub(super) fn failure(action: &str, path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Backend {
        action: format!("{action} {}", path.display()),
        source: source.into(),
    }
}

/// Repeats a call while another process has the file locked, as long as `wait` returns true.
pub(super) fn retry_while_locked<T>(
    path: &Path,
    mut wait: impl FnMut() -> bool,
    mut call: impl FnMut() -> EngineResult<T>,
) -> std::result::Result<T, FinalError> {
    loop {
        match call() {
            Ok(done) => return Ok(done),
            Err(EngineError::Final(error)) => return Err(error),
            Err(EngineError::Locked) if wait() => {}
            Err(EngineError::Locked) => {
                return Err(FinalError::Failed(failure(
                    "lock",
                    path,
                    "another process holds its lock",
                )));
            }
        }
    }
}
