//! What an engine does for the store: create a file, look at it, update it, read rows.

use std::fmt::Debug;
use std::path::Path;

use tsb_rrd::{Ahead, KeptFile, RrdFile, Seen, Session, Stage};

use crate::damage::Damage;
use crate::error::{Error, Result};

/// Our own engine or librrd. A path is used by one caller at a time.
pub(super) trait Engine: Debug + Send + Sync {
    /// Creates a file that takes updates after `start_s`.
    fn create(&self, path: &Path, start_s: i64) -> Done<()>;

    /// What an existing file holds.
    fn look(&self, path: &Path, room: &mut Room) -> Done<Look>;

    /// Gives a file some readings, `time:value`, in one pass.
    fn update(&self, path: &Path, kept: &mut Kept, room: &mut Room, readings: &[String]) -> Done<Pass>;

    /// Has the system read what an update up to `until_s` will need of a file, as far as the
    /// stage says, and does not wait for it. A descriptor that was opened for that stays for
    /// the update.
    fn ask(&self, stage: Stage, path: &Path, kept: &mut Kept, room: &mut Room, until_s: i64) -> Seen;

    /// Forgets what is kept of a file.
    fn let_go(&self, kept: &mut Kept);

    /// Appends the rows of an archive that are known and end in `[from_s, to_s)`.
    fn rows(&self, path: &Path, kept: &mut Kept, room: &mut Room, ask: &Ask, into: &mut Vec<(i64, f64)>) -> Done<()>;
}

/// Which rows are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) archive: usize,
    pub(super) from_s: i64,
    pub(super) to_s: i64,
}

/// What stays of a file between calls.
#[derive(Debug, Default)]
pub(super) enum Kept {
    #[default]
    Nothing,
    Open(Box<KeptFile>),
    /// Opened for the next update, which closes it.
    Ready(RrdFile),
    Held(Box<tsb_rrd::Held>),
}

/// Buffers for one call, used again by the next.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) session: Session,
    /// Whether files were found in memory.
    pub(super) ahead: Ahead,
    /// Texts of readings; the first ones are in use.
    pub(super) texts: Vec<String>,
    /// Where in the batch each of them stands.
    pub(super) indexes: Vec<usize>,
    /// The samples of a batch, one series after the other.
    pub(super) order: Vec<u32>,
    /// Where each of them ends.
    pub(super) parts: Vec<u32>,
}

/// What is found in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// The newest reading, in microseconds since the epoch.
    pub(super) newest_us: i64,
    /// The end of the newest row of the first archive that is known.
    pub(super) row_s: Option<i64>,
}

/// What a pass did.
#[derive(Debug)]
pub(super) struct Pass {
    /// Readings that were taken.
    pub(super) applied: usize,
    /// Why the next one was not.
    pub(super) stopped: Option<Stop>,
    /// The newest reading, in microseconds, where somebody else wrote a later one.
    pub(super) newest_us: i64,
    /// The end of the newest known row of the first archive, if this pass wrote one.
    pub(super) row_s: Option<i64>,
}

/// Why a reading was not taken.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file has a later one.
    NotLater,
    /// It cannot be read as a number.
    Unreadable,
}

/// What an engine could not do.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another process has the lock: try again.
    Locked,
    /// It will not be done either if it is tried again at once.
    Ended(Ended),
}

/// What an engine could not do, whatever the locks.
#[derive(Debug)]
pub(super) enum Ended {
    /// This file is damaged, gone or not ours to read. It says nothing of other files.
    Damaged(Box<Damage>),
    /// A sound header, and another one than the store's files have: this file's header is
    /// damaged, or the store was opened with the wrong options, which is the error.
    Foreign(Box<Damage>, Error),
    /// Something that concerns the store as a whole.
    Failed(Error),
}

impl Ended {
    /// The damage of a file that was sound before.
    pub(super) fn damage(self) -> Result<Damage> {
        match self {
            Self::Damaged(damage) | Self::Foreign(damage, _) => Ok(*damage),
            Self::Failed(error) => Err(error),
        }
    }

    /// The error of a call that had no file before.
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
pub(super) type Done<T> = std::result::Result<T, Trouble>;

/// An error about a file, in the words of the store.
pub(super) fn failed(
    action: &str,
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Trouble {
    Trouble::Ended(Ended::Failed(failure(action, path, source)))
}

/// The same as the error itself.
pub(super) fn failure(action: &str, path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Backend {
        action: format!("{action} {}", path.display()),
        source: source.into(),
    }
}

/// The same call again while another process has the lock, for as long as `wait` says.
pub(super) fn retried<T>(
    path: &Path,
    mut wait: impl FnMut() -> bool,
    mut call: impl FnMut() -> Done<T>,
) -> std::result::Result<T, Ended> {
    loop {
        match call() {
            Ok(done) => return Ok(done),
            Err(Trouble::Ended(ended)) => return Err(ended),
            Err(Trouble::Locked) if wait() => {}
            Err(Trouble::Locked) => {
                return Err(Ended::Failed(failure("lock", path, "another process holds its lock")));
            }
        }
    }
}
