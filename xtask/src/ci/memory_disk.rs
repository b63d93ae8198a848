//! A folder in memory for the files of servers under test.
//!
//! Servers sync what they write, often once per request. Tests of clients write thousands of small
//! requests, and would measure nothing but how long the disk takes, which a busy disk makes minutes.
//! Processes are killed there, and files survive that in memory as on a disk; power cuts are made
//! elsewhere, by the steps `crashes` and `faults`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{empty_folder, remove_folder, target_folder};

/// The file system in memory that Linux machines have.
const MEMORY: &str = "/dev/shm";
/// Free bytes that it must have: servers reserve logs before they write them.
const FREE_MIN: u64 = 8 << 30;

/// A folder in memory, which is removed with this.
#[derive(Debug)]
pub(super) struct MemoryDisk {
    folder: PathBuf,
    /// Another run of the same build waits: it would empty the folder.
    _lock: File,
}

impl MemoryDisk {
    /// Makes the folder of this build; `None` where there is no room for it in memory.
    pub(super) fn new() -> Result<Option<Self>> {
        let free = rustix::fs::statvfs(MEMORY).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
        if free < FREE_MIN {
            return Ok(None);
        }
        let target = target_folder()?;
        let lock = File::create(target.join("memory-disk.lock")).context("cannot lock the folder in memory")?;
        lock.lock().context("cannot lock the folder in memory")?;
        let disk = Self {
            folder: Path::new(MEMORY).join(name_of(&target)),
            _lock: lock,
        };
        // What an earlier run left there stays for now: by it, servers that it left running are stopped.
        empty_folder(disk.temporary())?;
        Ok(Some(disk))
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// A folder within for temporary files of tests.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        if let Err(error) = remove_folder(&self.folder) {
            eprintln!("{error:#}");
        }
    }
}

/// One name per build folder: two checkouts are tested side by side.
fn name_of(target: &Path) -> String {
    let parts = target
        .iter()
        .filter_map(|part| part.to_str())
        .filter(|part| *part != "/");
    format!("tsb-{}", parts.collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_build_folder_has_its_own() {
        assert_eq!(name_of(Path::new("/a/b/target")), "tsb-a-b-target");
        assert_ne!(name_of(Path::new("/a/b/target")), name_of(Path::new("/a/c/target")));
    }
}
