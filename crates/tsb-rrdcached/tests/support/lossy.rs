//! A medium for a journal that loses what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tsb_stores::write_cache::{CounterFile, Medium, Segment};

/// The file that is written over and never synced.
const COUNT: &str = "tsb.journal.count";

/// Segments in memory: the bytes that are synced, and those that are not.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossyMedium(Arc<Mutex<BTreeMap<String, Arc<Mutex<FileBytes>>>>>);

#[derive(Clone, Debug, Default)]
struct FileBytes {
    synced: Vec<u8>,
    unsynced: Vec<u8>,
}

#[derive(Debug)]
struct LossyFile(Arc<Mutex<FileBytes>>);

impl Medium for LossyMedium {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let all = self.0.lock().unwrap();
        let bytes = all.get(name).ok_or(io::ErrorKind::NotFound)?.lock().unwrap();
        Ok([&bytes.synced[..], &bytes.unsynced].concat())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>> {
        let bytes = Arc::default();
        self.0.lock().unwrap().insert(name.to_owned(), Arc::clone(&bytes));
        Ok(Arc::new(LossyFile(bytes)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }

    fn rename(&self, name: &str, to: &str) -> io::Result<()> {
        let mut all = self.0.lock().unwrap();
        let bytes = all.remove(name).ok_or(io::ErrorKind::NotFound)?;
        all.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes);
        Ok(())
    }

    fn counter_file(&self, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn CounterFile>> {
        self.put(name, bytes);
        let bytes = Arc::clone(&self.0.lock().unwrap()[name]);
        Ok(Arc::new(LossyFile(bytes)))
    }

    fn release(&self) {}

    fn path_of(&self, name: &str) -> PathBuf {
        name.into()
    }
}

impl Segment for LossyFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().unsynced.extend(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let unsynced = std::mem::take(&mut bytes.unsynced);
        bytes.synced.extend(unsynced);
        Ok(())
    }
}

impl CounterFile for LossyFile {
    fn set(&self, index: usize, value: u64) {
        self.0.lock().unwrap().synced[index * 8..][..8].copy_from_slice(&value.to_le_bytes());
    }
}

impl LossyMedium {
    /// These files, by their names.
    pub(crate) fn with(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let medium = Self::default();
        for (name, bytes) in files {
            medium.put(name, bytes);
        }
        medium
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let bytes = FileBytes {
            synced: bytes.to_vec(),
            unsynced: Vec::new(),
        };
        let bytes = Arc::new(Mutex::new(bytes));
        self.0.lock().unwrap().insert(name.to_owned(), bytes);
    }

    /// Nothing can be appended while this runs.
    pub(crate) fn while_stopped<T>(&self, run: impl FnOnce() -> T) -> T {
        let segments: Vec<_> = self.0.lock().unwrap().values().cloned().collect();
        let _stopped: Vec<_> = segments.iter().map(|bytes| bytes.lock().unwrap()).collect();
        run()
    }

    /// The bytes of all files by their names.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.names().unwrap().into_iter();
        names
            .map(|name| {
                let bytes = self.read(&name).unwrap();
                (name, bytes)
            })
            .collect()
    }

    /// What is there when the power is back: of what was not synced some bytes, or their
    /// length and other bytes.
    pub(crate) fn after_power_cut(&self, random: &mut impl FnMut(usize) -> usize) -> Self {
        let all = self.0.lock().unwrap();
        let segments = all.iter().map(|(name, bytes)| {
            let mut bytes = bytes.lock().unwrap().clone();
            if name == COUNT {
                // Of the boot before, or not there.
                let whole = &mut bytes.synced;
                whole[8] ^= 1;
                let sum = crc32fast::hash(&whole[..24]);
                whole[24..28].copy_from_slice(&sum.to_le_bytes());
                if random(4) == 0 {
                    whole.fill(0);
                }
            }
            let len = random(bytes.unsynced.len() + 1);
            bytes.unsynced.truncate(len);
            if random(2) == 0 && len > 0 {
                let from = random(len);
                bytes.unsynced[from..].fill(0);
            }
            let synced = [bytes.synced, bytes.unsynced].concat();
            let survived = FileBytes {
                synced,
                unsynced: Vec::new(),
            };
            (name.clone(), Arc::new(Mutex::new(survived)))
        });
        Self(Arc::new(Mutex::new(segments.collect())))
    }
}
