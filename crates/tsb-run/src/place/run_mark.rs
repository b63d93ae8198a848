//! The file by which a run marks its place: locked as long as the run goes on, and removed at its
//! end. A killed run leaves it unlocked, with the words by which the next run names it.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tsb_core::Timestamp;

use super::Place;
use crate::error::Error;

/// Most bytes of a mark that are read; a longer file is no mark.
const BYTES_MAX: u64 = 1 << 16;
/// How often a mark that another run removes meanwhile is made anew.
const TRIES: usize = 10;

/// What a run writes into its mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// The process.
    pid: u32,
    /// When it was made, in nanoseconds since the Unix epoch.
    began_at_ns: i64,
    /// The journal of the run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    journal: Option<PathBuf>,
}

/// The mark of this process's run at a place.
#[derive(Debug)]
pub(crate) struct RunMark {
    path: PathBuf,
    // Holds the lock while it is open.
    file: File,
}

/// A run that marked a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EarlierRun {
    /// Whether it goes on.
    pub state: EarlierRunState,
    /// Its process, if the mark is whole.
    pub pid: Option<u32>,
    /// When it began, if the mark is whole.
    pub began: Option<Timestamp>,
    /// Its journal, if it had one that is still there.
    pub journal: Option<PathBuf>,
}

/// What became of a run that marked a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRunState {
    /// It goes on: its process holds the lock.
    GoesOn,
    /// Its process ended without closing the place.
    Ended,
}

impl fmt::Display for EarlierRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a run")?;
        if let Some(began) = self.began {
            let since = Duration::from_nanos(u64::try_from(began.0).unwrap_or(0));
            write!(
                f,
                " that began at {}",
                humantime::format_rfc3339_seconds(UNIX_EPOCH + since)
            )?;
        }
        if let Some(pid) = self.pid {
            write!(f, " (process {pid})")?;
        }
        f.write_str(match self.state {
            EarlierRunState::GoesOn => " goes on there",
            EarlierRunState::Ended => " was killed there, or ended without closing it",
        })?;
        let journal = self.journal.as_ref().filter(|_| self.state == EarlierRunState::Ended);
        match journal {
            Some(journal) => write!(f, "; tsb verify {} tells what it lost", journal.display()),
            None => Ok(()),
        }
    }
}

/// Finds the run that marked a place by this file.
pub(super) fn find(path: &Path) -> Result<Option<EarlierRun>, Error> {
    let failure = |error: &io::Error| Error::unreachable(format!("cannot read {}", path.display())).because(error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failure(&error)),
    };
    let state = match file.try_lock_shared() {
        Ok(()) => EarlierRunState::Ended,
        Err(TryLockError::WouldBlock) => EarlierRunState::GoesOn,
        Err(TryLockError::Error(error)) => return Err(failure(&error)),
    };
    let mut bytes = Vec::new();
    (&file)
        .take(BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| failure(&error))?;
    // A run that was killed at this moment may have left half a mark.
    let mark = serde_json::from_slice::<Mark>(&bytes).ok();
    Ok(Some(EarlierRun {
        state,
        pid: mark.as_ref().map(|mark| mark.pid),
        began: mark.as_ref().map(|mark| Timestamp(mark.began_at_ns)),
        journal: mark.and_then(|mark| mark.journal).filter(|path| path.is_file()),
    }))
}

impl RunMark {
    /// Marks a place for a run that begins now; `None` at a server. A mark that a killed run left
    /// is replaced.
    ///
    /// # Errors
    /// [`Error::Plan`] if another run goes on there, and [`Error::Unwritten`] if the file cannot
    /// be written.
    pub(crate) fn make(place: &Place, now: Timestamp, journal: Option<&Path>) -> Result<Option<Self>, Error> {
        let Some(path) = place.run_mark() else { return Ok(None) };
        let mark = Mark {
            pid: std::process::id(),
            began_at_ns: now.0,
            journal: journal.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
        };
        let failure = |error: &io::Error| Error::unwritten(path.display(), error);
        for _ in 0..TRIES {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = file.map_err(|error| failure(&error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(goes_on(place)),
                Err(TryLockError::Error(error)) => return Err(failure(&error)),
            }
            // IMPORTANT: a run that ended meanwhile has removed its mark; a lock on a file without
            // a name keeps nobody out.
            if !is_named(&file, &path) {
                continue;
            }
            let text = serde_json::to_string(&mark).map_err(|error| failure(&error.into()))?;
            file.set_len(0)
                .and_then(|()| file.write_all(format!("{text}\n").as_bytes()))
                .map_err(|error| failure(&error))?;
            return Ok(Some(Self { path, file }));
        }
        Err(goes_on(place))
    }

    /// Removes the mark: the run has closed its place.
    ///
    /// # Errors
    /// [`Error::Unwritten`] if the file cannot be removed.
    pub(crate) fn remove(self) -> Result<(), Error> {
        // While the lock is held, so that the mark of a later run is not removed.
        let removed = fs::remove_file(&self.path);
        drop(self.file);
        removed.map_err(|error| Error::unwritten(self.path.display(), &error))
    }
}

/// Why no run may begin at a place where another one goes on.
pub(crate) fn goes_on(place: &Place) -> Error {
    let run = place.earlier_run().ok().flatten();
    let why = run.map_or_else(|| "another run goes on there".to_owned(), |run| run.to_string());
    Error::plan(format!("cannot run into {place}"))
        .because_of(why)
        .hint("two runs would be in each other's figures: wait for its end, or give another path")
}

/// Whether `path` is the name of this file.
fn is_named(file: &File, path: &Path) -> bool {
    let ids = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, named) = (file.metadata().map(ids), fs::metadata(path).map(ids));
    open.is_ok_and(|open| named.is_ok_and(|named| open == named))
}
