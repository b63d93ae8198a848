//! Drops files from the page cache, and proves that they are gone.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Advice, fadvise, syncfs};

use crate::rrd::path_of;

/// Number of files per call of `fincore`.
const AT_ONCE: usize = 500;

/// Bytes of some files in the page cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident {
    /// Bytes in memory.
    pub bytes: u64,
    /// Bytes in all.
    pub of_bytes: u64,
}

/// Syncs, then drops a set of files from the page cache; dirty pages could not be dropped. Names
/// and inodes stay cached.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn evict(folder: &Path, count: usize) {
    let root = File::open(folder).expect("the folder");
    syncfs(&root).expect("a sync");
    for index in 0..count {
        let file = File::open(path_of(folder, index)).expect("a file");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    }
}

/// Reads a set of files into the page cache, as far as there is room.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn load(folder: &Path, count: usize) {
    for index in 0..count {
        std::fs::read(path_of(folder, index)).expect("a file");
    }
}

/// Bytes of a set of files in the page cache, as `fincore` reports them; `None` if it is not
/// installed.
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

/// Counters of the disk under a folder, since it was attached.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskUse {
    /// Completed read requests.
    pub reads: u64,
    /// Completed write requests.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl DiskUse {
    /// The counters now; 0 if the folder is not on a disk.
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

    /// The difference to earlier counters.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            written_bytes: self.written_bytes - earlier.written_bytes,
        }
    }
}
