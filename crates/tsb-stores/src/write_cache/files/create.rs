//! New files.

use tsb_rrd::Error as RrdError;

use super::FileCache;
use super::error::FileError;
use crate::error::chain;

/// Seconds of a step, where nothing is said: rrdtool's.
const STEP_S: u64 = 300;
/// No file starts earlier: some time in 1980.
const START_MIN_S: i64 = 315_360_000;
/// A file that starts now has its last update so long ago.
const START_BEFORE_S: i64 = 10;

/// What is asked of a new file, besides its definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Creation {
    pub(super) start_s: Option<i64>,
    pub(super) step_s: Option<u64>,
    /// One that is there is left alone.
    pub(super) keeps_old: bool,
}

impl FileCache {
    /// Creates a file, with the folders on its way, or replaces one: what waits for that is
    /// forgotten.
    pub(super) fn create(
        &self,
        file: &str,
        creation: Creation,
        definitions: &[String],
    ) -> std::result::Result<(), FileError> {
        let shared = &self.shared;
        let name = shared.base.name(file)?;
        let shown = || shared.base.shown(&name);
        let start_s = creation
            .start_s
            .unwrap_or_else(|| shared.clock.wall().as_secs() - START_BEFORE_S);
        if start_s < START_MIN_S {
            return Err(FileError::TooEarly);
        }
        let layout = tsb_rrd::define(creation.step_s.unwrap_or(STEP_S), definitions)
            .map_err(|error| FileError::Create(chain(&error)))?;
        let exists = || FileError::Create(format!("creating '{}': File exists", shown()));
        let shelved = shared.shelf_of(&name);
        let mut shelf = shelved.lock_idle(&name);
        match shared.base.walk(&name)? {
            Some(_) if creation.keeps_old => return Err(exists()),
            Some(kind) if !kind.is_file() => return Err(FileError::NotRegular(shown())),
            _ => {}
        }
        shared.remove(&mut shelf, &name)?;
        let claim = shelved.claim(&mut shelf, &name);
        drop(shelf);
        let path = shared.base.path(&name);
        let io = |source| FileError::Io { file: shown(), source };
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        let make = if creation.keeps_old {
            tsb_rrd::create
        } else {
            tsb_rrd::replace
        };
        let made = make(&path, &layout, start_s, shared.seed_of(&name));
        drop(claim);
        made.map_err(|error| match error.cause() {
            RrdError::Exists => exists(),
            _ => FileError::Create(chain(&error)),
        })
    }
}
