//! A disk in memory that loses what was not synced when the power goes.
//!
//! A store writes its files through something of its own that is a folder in production
//! and this disk in tests. What a file holds is certain once the file was synced; a name, or
//! that it is gone, once the folder was. After a power cut the rest is there in part, in any
//! order, with writes cut off in their middle: what file systems and disks are allowed to do.
//!
//! ```
//! use tsb_stores::conformance::LossyDisk;
//!
//! # fn main() -> std::io::Result<()> {
//! let disk = LossyDisk::new();
//! let log = disk.open("log");
//! disk.sync_folder()?;
//! log.append(b"certain")?;
//! log.sync()?;
//! log.append(b", perhaps")?;
//! let left = disk.after_power_cut(42).open("log").read_all();
//! assert!(left.starts_with(b"certain"));
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::rng::Rng;
use crate::locks::lock;

/// The disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct LossyDisk {
    state: Arc<Mutex<DiskState>>,
}

/// An open file of a [`LossyDisk`]. Clones are the same file.
#[derive(Clone, Debug)]
pub struct LossyFile {
    disk: LossyDisk,
    file: u64,
}

/// The fault of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Every sync fails.
    Sync,
    /// Every write finds the disk full.
    Full,
}

#[derive(Clone, Debug, Default)]
struct DiskState {
    names: BTreeMap<String, u64>,
    /// The synced names, and the changes that are not synced, in order.
    certain_names: BTreeMap<String, u64>,
    pending: Vec<Vec<(String, Option<u64>)>>,
    files: BTreeMap<u64, Content>,
    next_file: u64,
    fault: Option<Fault>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    /// The contents as programs see them.
    now: Vec<u8>,
    certain: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => {
                let end = at + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*at..end].copy_from_slice(bytes);
            }
            Self::Resize(len) => to.resize(*len, 0),
        }
    }
}

impl Content {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }

    /// The contents after a power cut: none of the unsynced writes, all of them, or most often
    /// some; sometimes half of a write.
    fn left(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.certain.clone();
        let share = rng.below(5);
        for change in &self.unsynced {
            let is_kept = rng.below(4) < share;
            match change {
                Change::Write(at, written) if is_kept && rng.below(8) == 0 => {
                    let half = written[..written.len() / 2].to_vec();
                    Change::Write(*at, half).apply(&mut bytes);
                }
                change if is_kept => change.apply(&mut bytes),
                _ => {}
            }
        }
        bytes
    }
}

impl LossyDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        lock(&self.state)
    }

    /// Opens a file; creates an empty one if it does not exist.
    pub fn open(&self, name: &str) -> LossyFile {
        let mut state = self.state();
        let file = if let Some(&file) = state.names.get(name) {
            file
        } else {
            state.next_file += 1;
            let file = state.next_file;
            state.files.insert(file, Content::default());
            state.set_names(vec![(name.to_owned(), Some(file))]);
            file
        };
        LossyFile {
            disk: self.clone(),
            file,
        }
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Removes a file; open handles keep it.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Keep its contents: the medium may still have the name.
        state.set_names(vec![(name.to_owned(), None)]);
        Ok(())
    }

    /// Renames a file, replacing a file of that name.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let file = state.names.get(from).copied().ok_or(io::ErrorKind::NotFound)?;
        state.set_names(vec![(to.to_owned(), Some(file)), (from.to_owned(), None)]);
        Ok(())
    }

    /// Syncs the names, as syncing a folder does.
    ///
    /// # Errors
    /// While syncs are made to fail.
    pub fn sync_folder(&self) -> io::Result<()> {
        let mut state = self.state();
        state.check(Fault::Sync)?;
        state.pending.clear();
        state.certain_names = state.names.clone();
        Ok(())
    }

    /// Makes syncs or writes fail from now on, or work again.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    /// The disk after a power cut now: another disk, with everything on it synced. The result
    /// depends only on `seed` and the writes.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let state = self.state();
        let mut rng = Rng::new(seed);
        // The file system's journal keeps names in order: a prefix of the changes survives.
        let kept = rng.below(state.pending.len() as u64 + 1) as usize;
        let mut names = state.certain_names.clone();
        state.pending[..kept]
            .iter()
            .for_each(|change| apply(change, &mut names));
        let files = names.values().filter_map(|file| {
            let bytes = state.files.get(file)?.left(&mut rng);
            let content = Content {
                now: bytes.clone(),
                certain: bytes,
                unsynced: Vec::new(),
            };
            Some((*file, content))
        });
        let after = DiskState {
            files: files.collect(),
            names: names.clone(),
            certain_names: names,
            next_file: state.next_file,
            ..DiskState::default()
        };
        Self {
            state: Arc::new(Mutex::new(after)),
        }
    }
}

impl DiskState {
    /// Changes names as one unit: all of them survive, or none.
    fn set_names(&mut self, change: Vec<(String, Option<u64>)>) {
        apply(&change, &mut self.names);
        self.pending.push(change);
    }

    fn check(&self, fault: Fault) -> io::Result<()> {
        let error = match fault {
            _ if self.fault != Some(fault) => return Ok(()),
            Fault::Sync => io::Error::other("the disk fails to sync, as the test asked"),
            Fault::Full => io::Error::new(io::ErrorKind::StorageFull, "the disk is full, as the test asked"),
        };
        Err(error)
    }
}

fn apply(change: &[(String, Option<u64>)], names: &mut BTreeMap<String, u64>) {
    for (name, file) in change {
        match file {
            Some(file) => names.insert(name.clone(), *file),
            None => names.remove(name),
        };
    }
}

impl LossyFile {
    fn with<T>(&self, run: impl FnOnce(&mut Content) -> T) -> T {
        run(self.disk.state().files.entry(self.file).or_default())
    }

    fn change(&self, change: impl FnOnce(&Content) -> Change) -> io::Result<()> {
        self.disk.state().check(Fault::Full)?;
        self.with(|content| {
            let change = change(content);
            content.change(change);
        });
        Ok(())
    }

    /// Writes bytes at an offset; a gap after the file's end is filled with zeros.
    ///
    /// # Errors
    /// While the disk is made to be full.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(|_| Change::Write(offset as usize, bytes.to_vec()))
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// While the disk is made to be full.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.change(|content| Change::Write(content.now.len(), bytes.to_vec()))
    }

    /// Truncates the file, or extends it by zeros.
    ///
    /// # Errors
    /// While the disk is made to be full.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|_| Change::Resize(len as usize))
    }

    /// Reads bytes from an offset. Returns how many there were.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> usize {
        self.with(|content| {
            let rest = content.now.get(offset as usize..).unwrap_or_default();
            let len = rest.len().min(into.len());
            into[..len].copy_from_slice(&rest[..len]);
            len
        })
    }

    /// All bytes.
    pub fn read_all(&self) -> Vec<u8> {
        self.with(|content| content.now.clone())
    }

    /// Syncs the contents of the file. Its name needs [`LossyDisk::sync_folder`].
    ///
    /// # Errors
    /// While syncs are made to fail.
    pub fn sync(&self) -> io::Result<()> {
        self.disk.state().check(Fault::Sync)?;
        self.with(|content| {
            for change in std::mem::take(&mut content.unsynced) {
                change.apply(&mut content.certain);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synced_bytes_survive_every_power_cut_and_other_bytes_some() {
        let disk = LossyDisk::new();
        let file = disk.open("a");
        disk.sync_folder().unwrap();
        file.append(b"0123").unwrap();
        file.sync().unwrap();
        file.write_at(b"XY", 6).unwrap();
        assert_eq!(file.read_all(), b"0123\0\0XY");
        let left: Vec<Vec<u8>> = (0..100)
            .map(|seed| disk.after_power_cut(seed).open("a").read_all())
            .collect();
        assert!(left.iter().all(|bytes| bytes.starts_with(b"0123")));
        for expected in [&b"0123"[..], b"0123\0\0XY", b"0123\0\0X"] {
            assert!(left.iter().any(|bytes| bytes == expected), "{expected:?}");
        }
    }

    #[test]
    fn names_are_certain_after_a_sync_of_the_folder_only() {
        let disk = LossyDisk::new();
        let file = disk.open("new");
        file.append(b"x").unwrap();
        file.sync().unwrap();
        let seen = |disk: &LossyDisk| {
            (0..50)
                .map(|seed| disk.after_power_cut(seed).names().len())
                .sum::<usize>()
        };
        assert!((1..50).contains(&seen(&disk)));
        disk.sync_folder().unwrap();
        assert_eq!(seen(&disk), 50);
        disk.rename("new", "old").unwrap();
        let after = |seed| disk.after_power_cut(seed);
        assert!((0..50).any(|seed| after(seed).names() == ["new"]));
        assert!((0..50).any(|seed| after(seed).names() == ["old"]));
        disk.remove("old").unwrap();
        assert!(disk.names().is_empty());
        assert!(disk.remove("old").is_err());
        assert_eq!(file.read_all(), b"x");
    }

    #[test]
    fn faults_fail_their_calls_until_they_are_cleared() {
        let disk = LossyDisk::new();
        let file = disk.open("a");
        disk.set_fault(Some(Fault::Sync));
        assert!(file.append(b"x").is_ok() && file.sync().is_err() && disk.sync_folder().is_err());
        disk.set_fault(Some(Fault::Full));
        assert_eq!(file.append(b"y").unwrap_err().kind(), io::ErrorKind::StorageFull);
        disk.set_fault(None);
        assert!(file.set_len(0).is_ok() && file.sync().is_ok());
        assert_eq!(file.read_at(&mut [0; 4], 0), 0);
    }
}
