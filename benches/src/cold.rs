//! Files that are not in memory, and the proof that they are not.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Advice, fadvise, syncfs};

use crate::rrd::path_of;

/// Files that one call of `fincore` is given.
const AT_ONCE: usize = 500;

/// How much of some files is in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident {
    /// Bytes in memory.
    pub bytes: u64,
    /// Bytes in all.
    pub of_bytes: u64,
}

/// Has nothing of a set of files in memory: what is dirty is synced first, as it would stay.
/// Names and inodes stay.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn chill(folder: &Path, count: usize) {
    let root = File::open(folder).expect("the folder");
    syncfs(&root).expect("a sync");
    for index in 0..count {
        let file = File::open(path_of(folder, index)).expect("a file");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    }
}

/// Has all of a set of files in memory, as far as there is room.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn warm(folder: &Path, count: usize) {
    for index in 0..count {
        std::fs::read(path_of(folder, index)).expect("a file");
    }
}

/// How much of a set of files is in memory, by mincore(2) as `fincore` asks it; `None` without
/// that program.
pub fn resident(folder: &Path, count: usize) -> Option<Resident> {
    let mut sum = Resident::default();
    let paths: Vec<_> = (0..count).map(|index| path_of(folder, index)).collect();
    for some in paths.chunks(AT_ONCE) {
        let mut fincore = Command::new("fincore");
        let output = fincore.args(["-b", "-n", "-o", "RES,SIZE"]).args(some).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        for line in text.lines() {
            let mut words = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
            sum.bytes += words.next()?;
            sum.of_bytes += words.next()?;
        }
    }
    Some(sum)
}

/// What the disk under a folder has done since it was attached.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskUse {
    /// Requests to read that it has finished.
    pub reads: u64,
    /// Requests to write that it has finished.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl DiskUse {
    /// Up to now; nothing where the folder is on no disk.
    pub fn of(folder: &Path) -> Self {
        // Documentation/block/stat.rst of the kernel: the unit is always 512 bytes.
        const SECTOR: u64 = 512;
        let fields = || {
            let device = rustix::fs::stat(folder).ok()?.st_dev;
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
            let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
            Some(Self {
                reads: *numbers.first()?,
                writes: *numbers.get(4)?,
                written_bytes: numbers.get(6)? * SECTOR,
            })
        };
        fields().unwrap_or_default()
    }

    /// What it has done since then.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            written_bytes: self.written_bytes - earlier.written_bytes,
        }
    }
}
