//! The lock of a database file: one store may write it, under whatever name.
//!
//! SQLite's own locks last for one transaction, while the writing store has its newest samples in
//! memory. So a store holds two advisory locks: one on the database itself, which holds for all
//! of its names, and one on a file beside it. The second is taken first: a process that closes
//! any descriptor of a database loses SQLite's locks on it, so the database must be opened only
//! if this process does not have it open already.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::with_suffix;
use crate::error::{Error, Result};

/// Maximum number of symbolic links that are followed for a file that does not exist yet.
const LINKS_MAX: usize = 40;

/// Excludes other stores from a file while it lives.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    wal: PathBuf,
    /// The lock file beside the database.
    file: Arc<File>,
    // Must be closed after SQLite has closed its own descriptor.
    database: Option<File>,
}

impl Lock {
    /// Takes the lock of a database; `database` must be its real path.
    pub(super) fn take(database: &Path) -> Result<Self> {
        let path = with_suffix(database, "-lock");
        let file = beside_database(database, &path)?;
        check_names(database)?;
        let held = hold(database)?;
        Ok(Self {
            path,
            wal: with_suffix(database, "-wal"),
            file: Arc::new(file),
            database: held,
        })
    }

    /// The lock file, which also holds the count of the write-ahead log.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The count in the file is needed while there is a log. Otherwise a leftover file is
        // harmless: only the lock on it counts.
        if fs::metadata(&self.wal).map_or(true, |wal| wal.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
        // Unlock explicitly: a lock lasts until every copy of its descriptor is closed, and a
        // child that another thread has just forked has copies until it executes its program.
        for file in self.database.iter().chain([&*self.file]) {
            let _ = file.unlock();
        }
    }
}

/// The path of a file with all symbolic links resolved, even if the file does not exist yet.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => break,
        }
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::canonicalize(folder),
        _ => fs::canonicalize("."),
    };
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

fn failed(database: &Path, what: impl Into<String>) -> Error {
    Error::Backend {
        action: format!("open {}", database.display()),
        source: what.into().into(),
    }
}

fn taken(database: &Path) -> Error {
    failed(database, "another process, or this one, has it open as a store")
}

/// Opens and locks the file beside a database.
fn beside_database(database: &Path, path: &Path) -> Result<File> {
    let cannot = |error: io::Error| failed(database, format!("cannot lock {}: {error}", path.display()));
    loop {
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
            Err(TryLockError::WouldBlock) => return Err(taken(database)),
        }
        // The previous owner may have removed the file meanwhile: then this lock would exclude no
        // one.
        let held = file.metadata().map_err(cannot)?;
        if fs::metadata(path).is_ok_and(|now| now.ino() == held.ino()) {
            return Ok(file);
        }
    }
}

/// Refuses a file with several names: SQLite keeps a log per name, so a commit under one name is
/// missing under the others.
fn check_names(database: &Path) -> Result<()> {
    match fs::metadata(database) {
        Ok(there) if there.is_file() && there.nlink() > 1 => Err(failed(
            database,
            format!(
                "it has {} names (hard links), and SQLite would keep a log of its own for each of them; \
                 remove the other names, or make a copy of it",
                there.nlink()
            ),
        )),
        _ => Ok(()),
    }
}

/// Opens and locks the database. If it cannot be opened or created, SQLite reports the reason
/// later.
fn hold(database: &Path) -> Result<Option<File>> {
    let opened = File::open(database).or_else(|_| {
        let mut new = File::options();
        new.read(true).write(true).create_new(true).mode(0o644).open(database)
    });
    let Ok(file) = opened else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(taken(database)),
        // The file system has no such locks; the lock of the file beside it must do.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under load, one of many kills in `tests/crash` found the file locked although no store had
    /// it.
    #[test]
    fn a_lock_ends_with_its_store_though_a_fork_still_has_its_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("x.db");
        let lock = Lock::take(&database).unwrap();
        let held = [&*lock.file, lock.database.as_ref().unwrap()];
        let forked = held.map(|file| file.try_clone().unwrap());
        let why = Lock::take(&database).unwrap_err().to_string();
        assert!(why.contains("x.db"), "{why}");
        drop(lock);
        drop(Lock::take(&database).unwrap());
        drop(forked);
    }

    #[test]
    fn a_path_is_real_also_where_nothing_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        let (file, link, dangling) = (real.join("a"), real.join("b"), real.join("c"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("b", &dangling).unwrap();
        for path in [&file, &link, &dangling] {
            assert_eq!(real_path(path), file);
        }
        fs::write(&file, "x").unwrap();
        for path in [&file, &link, &dangling] {
            assert_eq!(real_path(path), file);
        }
        let (first, second) = (real.join("x"), real.join("y"));
        std::os::unix::fs::symlink(&second, &first).unwrap();
        std::os::unix::fs::symlink(&first, &second).unwrap();
        assert_eq!(real_path(&first).parent(), Some(&*real), "a circle ends");
    }
}
