//! Reads the files of a cache: rows, heads, dumps and lists.

use std::fs::read_dir;
use std::path::Path;

use tsb_rrd::{Cf, Fetched, InfoValue, RrdFile, Session};

use super::error::{FileError, FileResult};
use super::{FETCH_MAX, FileCache, librrd};

/// Attempts to open a file that another process has locked, and the pause between them.
const TRIES: u32 = 40;
const PAUSE_NS: u64 = 5_000_000;
/// Upper bound, in bytes, of the XML of one `DUMP`.
const DUMP_MAX: usize = 256 << 20;
/// Upper bounds of the number of names in a list, and of the depth of folders.
const NAMES_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 64;

impl FileCache {
    /// Rows of a file, after its queue was written, and the names of its data sources.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn fetch(
        &self,
        file: &str,
        cf: &str,
        range_s: (i64, i64),
        session: &mut Session,
    ) -> FileResult<(Vec<String>, Fetched)> {
        let name = self.shared.base.name(file)?;
        // Ignore errors: a suspended file is answered from what it contains, and other failures
        // are reported by the next flush.
        let _ = self.shared.write_file(&name, session, None);
        let ours = |file: &RrdFile, session: &mut Session| {
            let Some(cf) = Cf::from_name(cf) else {
                let what = "the RRD does not contain an RRA matching the chosen CF";
                return Err(tsb_rrd::Error::Definition(what.to_owned()));
            };
            let fetched = tsb_rrd::fetch(file, session, cf, range_s, FETCH_MAX)?;
            let sources = file.layout().sources().iter();
            Ok((sources.map(|source| source.name.clone()).collect(), fetched))
        };
        self.read_locked(&name, session, ours, |path| librrd::fetch(path, cf, range_s, FETCH_MAX))
    }

    /// The head of a file; queued updates are not reflected in it.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn info(&self, file: &str, session: &mut Session) -> FileResult<Vec<(String, InfoValue)>> {
        let name = self.shared.base.name(file)?;
        let mut facts = vec![(
            "filename".to_owned(),
            InfoValue::Text(self.shared.base.display_path(&name)),
        )];
        facts.extend(self.read_locked(&name, session, tsb_rrd::info, librrd::info)?);
        Ok(facts)
    }

    /// The end of the oldest row of an archive, in seconds since the epoch.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn first(&self, file: &str, archive: usize, session: &mut Session) -> FileResult<i64> {
        let name = self.shared.base.name(file)?;
        let ours = |file: &RrdFile, session: &mut Session| tsb_rrd::first(file, session, archive);
        self.read_locked(&name, session, ours, |path| librrd::first(path, archive))
    }

    /// The time of the newest update in a file, in seconds since the epoch, without queued
    /// updates.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn last(&self, file: &str, session: &mut Session) -> FileResult<i64> {
        let name = self.shared.base.name(file)?;
        let ours = |file: &RrdFile, session: &mut Session| Ok(file.newest(session)?.seconds);
        self.read_locked(&name, session, ours, librrd::last)
    }

    /// A file as XML, after its queue was written, in the form of `rrdtool dump`.
    ///
    /// # Errors
    /// [`FileError`]; without the feature `librrd`, for every file.
    pub fn dump(&self, file: &str, session: &mut Session) -> FileResult<Vec<u8>> {
        let name = self.shared.base.name(file)?;
        let _ = self.shared.write_file(&name, session, None);
        self.with_claim(&name, |path| librrd::dump(path, DUMP_MAX))
    }

    /// Reads a file that no other thread of this process has open, with our own engine, or with
    /// librrd if ours cannot handle the file.
    fn read_locked<T>(
        &self,
        name: &str,
        session: &mut Session,
        mut ours: impl FnMut(&RrdFile, &mut Session) -> tsb_rrd::Result<T>,
        mut librrds: impl FnMut(&Path) -> tsb_rrd::Result<T>,
    ) -> FileResult<T> {
        self.with_claim(name, |path| match RrdFile::open(path) {
            Err(error) if librrd::is_for_librrd(&error) => librrds(path),
            opened => opened.and_then(|file| ours(&file, session)),
        })
    }

    /// Runs `act` on a file that no other thread of this process has open. Retries while another
    /// process has the file locked.
    fn with_claim<T>(&self, name: &str, mut act: impl FnMut(&Path) -> tsb_rrd::Result<T>) -> FileResult<T> {
        self.shared.base.check_file(name)?;
        let shard_mutex = self.shared.shard_of(name);
        let claim = shard_mutex.claim(&mut shard_mutex.lock_idle(name), name);
        let answer = self.retry_while_locked(name, &mut act);
        drop(claim);
        answer
    }

    /// As `with_claim`, for a caller who holds the claim.
    pub(super) fn retry_while_locked<T>(
        &self,
        name: &str,
        act: &mut dyn FnMut(&Path) -> tsb_rrd::Result<T>,
    ) -> FileResult<T> {
        let path = self.shared.base.path(name);
        let mut tries = 0;
        let answer = loop {
            tries += 1;
            match act(&path) {
                Err(error) if matches!(error.cause(), tsb_rrd::Error::Locked) && tries < TRIES => {
                    let clock = &self.shared.clock;
                    clock.wait_until(clock.now() + PAUSE_NS);
                }
                answer => break answer,
            }
        };
        answer.map_err(|error| match error {
            tsb_rrd::Error::Definition(what) => FileError::Create(what),
            error => self.shared.rrd_error(name, error),
        })
    }

    /// The files and folders in a folder, or all files below it, sorted.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn list(&self, folder: &str, is_recursive: bool) -> FileResult<Vec<String>> {
        let name = self.shared.base.name(folder.trim_start_matches('/'))?;
        let mut names = Vec::new();
        match self.shared.base.walk(&name)? {
            None if !name.is_empty() => return Err(FileError::Missing(self.shared.base.display_path(&name))),
            Some(kind) if kind.is_file() => {
                names.extend(name.rsplit('/').next().map(str::to_owned));
                return Ok(names);
            }
            _ => {}
        }
        self.list_into(&name, "", is_recursive, 0, &mut names)?;
        names.sort_unstable();
        Ok(names)
    }

    fn list_into(
        &self,
        folder: &str,
        prefix: &str,
        is_recursive: bool,
        depth: usize,
        names: &mut Vec<String>,
    ) -> FileResult<()> {
        let path = self.shared.base.path(folder);
        let failed = |source| FileError::Io {
            file: self.shared.base.display_path(folder),
            source,
        };
        for entry in read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            if names.len() >= NAMES_MAX {
                break;
            }
            let below = format!("{prefix}{name}");
            if kind.is_dir() && is_recursive && depth < DEPTH_MAX {
                let inner = if folder.is_empty() {
                    name
                } else {
                    format!("{folder}/{name}")
                };
                self.list_into(&inner, &format!("{below}/"), true, depth + 1, names)?;
            } else if (kind.is_dir() && !is_recursive) || (kind.is_file() && is_rrd(&name)) {
                names.push(below);
            }
        }
        Ok(())
    }
}

fn is_rrd(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rrd")
}
