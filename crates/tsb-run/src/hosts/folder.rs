//! A folder as a store of keys, for processes of one machine: each key is a file.
//!
//! A file is written beside and renamed, so a reader finds the old value or the new one. Its first
//! line is the time of day at which the key is gone.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tsb_core::Durability;
use tsb_core::time::Clock;
use tsb_stores::keyed::{Key, KeyedCapabilities, KeyedStore, KeyedVisitor, MAX_VALUE_BYTES, Put, PutAck};
use tsb_stores::parts::ClosedFlag;
use tsb_stores::{Error, Reason, Refusals, Result};

/// The end of a file's name: no key ends so, since a segment has no `=`.
const ENDING: &str = "=value";
/// An empty file that says that the folder is one of keys, whose contents may be removed.
const MARKER: &str = "=keys";

/// A folder of keys.
pub(super) struct KeyedFolder {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    open: ClosedFlag,
}

impl fmt::Display for KeyedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "folder:{}", self.folder.display())
    }
}

impl fmt::Debug for KeyedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyedFolder({self})")
    }
}

impl KeyedFolder {
    /// Opens a folder, which is created if it is not there. Keys expire by the time of day of
    /// `clock`.
    ///
    /// # Errors
    /// If it cannot be created, or holds something else: [`delete_below`](KeyedStore::delete_below)
    /// would remove that.
    pub(super) fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let made = create(folder).and_then(|()| mark(folder));
        made.map_err(|error| failed("keep keys in", folder, error))?;
        Ok(Self {
            folder: folder.to_owned(),
            clock,
            open: ClosedFlag::new(),
        })
    }

    fn file_of(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}{ENDING}"))
    }

    /// Writes a file beside, whose name no other thread of any process uses, and renames it.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            create(parent)?;
        }
        let thread = std::thread::current().id();
        let beside = self.folder.join(format!("={}-{thread:?}", std::process::id()));
        fs::write(&beside, text)?;
        fs::rename(beside, path)
    }

    /// The value in a file, if it is there and has not expired.
    fn value_in(&self, path: &Path) -> Result<Option<String>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(failed("read", path, error)),
        };
        let (gone_at, value) = text.split_once('\n').unwrap_or_default();
        let gone_at: i64 = gone_at
            .parse()
            .map_err(|_| failed("read", path, io::Error::other("its first line is no time")))?;
        Ok((self.clock.wall().0 < gone_at).then(|| value.to_owned()))
    }

    /// Visits the keys in a folder and below, in no order.
    fn visit(&self, folder: &Path, visit: &mut KeyedVisitor<'_>) -> Result<ControlFlow<()>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_gone(&error) => return Ok(ControlFlow::Continue(())),
            Err(error) => return Err(failed("list", folder, error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| failed("list", folder, error))?.path();
            let flow = match self.key_of(&path) {
                Some(key) => match self.value_in(&path)? {
                    Some(value) => visit(&key, &value),
                    None => ControlFlow::Continue(()),
                },
                None if path.is_dir() => self.visit(&path, visit)?,
                None => ControlFlow::Continue(()),
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn key_of(&self, path: &Path) -> Option<Key> {
        let below = path.strip_prefix(&self.folder).ok()?.to_str()?;
        Key::new(below.strip_suffix(ENDING)?).ok()
    }
}

impl KeyedStore for KeyedFolder {
    fn capabilities(&self) -> KeyedCapabilities {
        let mut capabilities = KeyedCapabilities::new(Durability::Buffered);
        capabilities.persistent = true;
        capabilities
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        self.open.check_open()?;
        let mut too_long = Vec::new();
        for (index, put) in puts.iter().enumerate() {
            if put.value.len() > MAX_VALUE_BYTES {
                too_long.push((index, Reason::Unrepresentable));
                continue;
            }
            let lives_ns = put.ttl_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
            let gone_at = lives_ns.map_or(i64::MAX, |ns| self.clock.wall().0.saturating_add(ns));
            let path = self.file_of(&put.key);
            self.replace(&path, &format!("{gone_at}\n{}", put.value))
                .map_err(|error| failed("write", &path, error))?;
        }
        Ok(PutAck::refusing(puts.len(), too_long, refused, Durability::Buffered))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        self.open.check_open()?;
        let mut there = 0;
        for key in keys {
            let path = self.file_of(key);
            let was_there = self.value_in(&path)?.is_some();
            match fs::remove_file(&path) {
                Ok(()) => there += usize::from(was_there),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(failed("remove", &path, error)),
            }
        }
        Ok(there)
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.open.check_open()?;
        let removed = match prefix {
            Some(prefix) => remove(&self.folder.join(prefix.as_str())),
            None => remove_all_but_marker(&self.folder),
        };
        removed.map_err(|error| failed("remove keys in", &self.folder, error))
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.open.check_open()?;
        self.value_in(&self.file_of(key))
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        self.open.check_open()?;
        let folder = prefix.map_or_else(|| self.folder.clone(), |prefix| self.folder.join(prefix.as_str()));
        self.visit(&folder, visit).map(drop)
    }

    fn close(&self) -> Result<()> {
        self.open.close();
        Ok(())
    }
}

/// Puts the marker into a folder that is empty, or has it.
fn mark(folder: &Path) -> io::Result<()> {
    let marker = folder.join(MARKER);
    let is_empty = fs::read_dir(folder)?.next().is_none();
    // The marker comes first into a folder, so another process may just have put it there.
    if !is_empty && !marker.exists() {
        return Err(io::Error::other(
            "it is not empty, and a run removes everything in the folder of its hosts: give a new one",
        ));
    }
    fs::write(marker, "")
}

fn remove_all_but_marker(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        // The folder's owner has removed it with all that it held.
        Err(error) if is_gone(&error) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if !path.ends_with(MARKER) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a file or a folder, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn failed(action: &str, path: &Path, error: io::Error) -> Error {
    Error::Backend {
        action: format!("{action} {}", path.display()),
        source: error.into(),
    }
}

/// Creates a folder that another process may create or remove at the same time.
fn create(folder: &Path) -> io::Result<()> {
    const TRIES: usize = 100;
    for _ in 1..TRIES {
        match fs::create_dir_all(folder) {
            // It was there, and was removed before it was looked at.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
    fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use tsb_core::time::{ManualClock, SECOND_NS};
    use tsb_stores::keyed::conformance::{KeyedFixture, KeyedPlace, checks};

    use super::*;

    struct Folders;

    struct Place {
        folder: tempfile::TempDir,
        clock: Arc<ManualClock>,
    }

    impl KeyedFixture for Folders {
        fn name(&self) -> String {
            "folder".to_owned()
        }
        fn place(&self) -> Result<Box<dyn KeyedPlace>> {
            let folder = tempfile::tempdir().map_err(|error| failed("create", Path::new("/tmp"), error))?;
            Ok(Box::new(Place {
                folder,
                clock: Arc::new(ManualClock::new()),
            }))
        }
        fn ttl_ns(&self) -> u64 {
            SECOND_NS
        }
    }

    impl KeyedPlace for Place {
        fn open(&self) -> Result<Box<dyn KeyedStore>> {
            Ok(Box::new(KeyedFolder::open(self.folder.path(), self.clock())?))
        }
        fn clock(&self) -> Arc<dyn Clock> {
            Arc::clone(&self.clock) as Arc<dyn Clock>
        }
    }

    #[test]
    fn a_folder_that_holds_something_else_is_refused_and_kept() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let home = tempfile::tempdir().unwrap();
        let letter = home.path().join("letter.txt");
        fs::write(&letter, "dear").unwrap();
        let refused = KeyedFolder::open(home.path(), Arc::clone(&clock)).unwrap_err();
        assert!(format!("{refused:?}").contains("not empty"), "{refused:?}");
        assert_eq!(fs::read_to_string(&letter).unwrap(), "dear");
        let own = home.path().join("run");
        for _ in 0..2 {
            let keys = KeyedFolder::open(&own, Arc::clone(&clock)).unwrap();
            let key = Key::new("plan").unwrap();
            let put = Put::new(key.clone(), "text".to_owned());
            let _ = keys.put(&[put], &mut Refusals::new()).unwrap();
            keys.delete_below(None).unwrap();
            assert_eq!(keys.get(&key).unwrap(), None);
        }
    }

    #[test]
    fn it_keeps_the_contract_of_stores_of_keys() {
        let all = checks(Folders);
        assert!(all.len() > 10);
        for check in all {
            let outcome = check.run();
            assert!(outcome.is_ok(), "{}: {outcome:?}", check.name());
        }
    }
}
