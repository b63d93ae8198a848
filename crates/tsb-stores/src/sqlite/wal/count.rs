//! The count of the write-ahead log, kept outside of it. SQLite itself cannot tell that a log was
//! lost or cut off.
//!
//! It is a record in the lock file, overwritten after each commit without a sync. So it is exact
//! after a kill, and may be outdated after a power cut. Byte format: `docs/formats/sqlite.md`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tsb_core::bytes::u64_at;
use tsb_core::proc::boot;

use super::scan::Log;

/// "tsbw", and the version in the last byte. The byte at `COPYING_AT` is 1 during a checkpoint.
const MAGIC: [u8; 8] = *b"tsbw\0\0\0\x01";
/// The position of that byte.
const COPYING_AT: usize = 4;
/// Bytes of a record.
const RECORD: usize = 88;

/// Something that the database holds if, and only if, it has a certain commit: a frame's key and
/// 0, or a series and a time. Both 0: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sqlite) struct Witness(pub(in crate::sqlite) i64, pub(in crate::sqlite) i64);

/// The committed state of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogCount {
    /// The boot id of the machine; all 0 if the kernel has none.
    pub(super) boot: [u8; 16],
    /// The salts of the log, which identify it.
    pub(super) salts: (u32, u32),
    /// Number of pages in it.
    pub(super) pages: u64,
    /// Of these, pages that were synced.
    pub(super) synced: u64,
    /// Of these, pages that are in the database as well.
    pub(super) copied: u64,
    /// A checkpoint may have copied some of the others.
    pub(super) is_copying: bool,
    /// Commits since the store was opened.
    pub(super) commits: u64,
    /// The witness of the last commit.
    pub(super) witness: Witness,
}

/// The contents of a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredCount {
    /// Nothing: the store was closed, or had committed nothing.
    Nothing,
    /// Unreadable.
    Damaged,
    /// A count.
    Count(LogCount),
}

/// What is missing of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogLoss {
    /// Committed pages that are neither in the log nor in the database.
    pub(super) pages: u64,
    /// The rest of the log is older than the database: with it, SQLite would restore older pages.
    pub(super) is_stale: bool,
    /// No other program has copied the log, so the state of the database is not needed as
    /// evidence.
    pub(super) is_sure: bool,
}

impl LogCount {
    fn bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let parts: [&[u8]; 10] = [
            &MAGIC,
            &self.boot,
            &self.salts.0.to_le_bytes(),
            &self.salts.1.to_le_bytes(),
            &self.pages.to_le_bytes(),
            &self.synced.to_le_bytes(),
            &self.copied.to_le_bytes(),
            &self.commits.to_le_bytes(),
            &self.witness.0.to_le_bytes(),
            &self.witness.1.to_le_bytes(),
        ];
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        bytes[COPYING_AT] = u8::from(self.is_copying);
        let sum = u64::from(crc32fast::hash(&bytes[..at]));
        bytes[at..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let mut magic = MAGIC;
        magic[COPYING_AT] = bytes[COPYING_AT] & 1;
        if bytes[..8] != magic || u64_at(bytes, RECORD - 8)? != u64::from(crc32fast::hash(&bytes[..RECORD - 8])) {
            return None;
        }
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[8..24]);
        let salts = u64_at(bytes, 24)?;
        Some(Self {
            boot,
            salts: (salts as u32, (salts >> 32) as u32),
            pages: u64_at(bytes, 32)?,
            synced: u64_at(bytes, 40)?,
            copied: u64_at(bytes, 48)?,
            is_copying: bytes[COPYING_AT] == 1,
            commits: u64_at(bytes, 56)?,
            witness: Witness(u64_at(bytes, 64)? as i64, u64_at(bytes, 72)? as i64),
        })
    }

    /// What is missing of the log, as far as that can be told.
    pub(super) fn loss_of(&self, log: &Log, boot: [u8; 16]) -> LogLoss {
        // After a power cut, pages that were not synced may be gone.
        let committed = if self.boot == boot { self.pages } else { self.synced };
        let uncopied = committed.saturating_sub(self.copied);
        match log.salts {
            // A log that is completely in the database may have started over, but then with other
            // salts.
            Some(salts) if salts == self.salts => LogLoss {
                pages: uncopied.min(committed.saturating_sub(log.pages)),
                is_stale: log.pages < self.copied,
                is_sure: true,
            },
            // After a power cut the count may be of an earlier log.
            Some(_) if self.boot != boot => LogLoss::default(),
            _ => LogLoss {
                pages: uncopied,
                is_stale: false,
                is_sure: self.is_copying,
            },
        }
    }
}

/// Reads the count in a lock file.
pub(super) fn read(mut file: &File) -> io::Result<StoredCount> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A power cut may keep the file's length and lose its contents.
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(StoredCount::Nothing);
    }
    let whole: Option<&[u8; RECORD]> = bytes.as_slice().try_into().ok();
    Ok(whole
        .and_then(LogCount::of_bytes)
        .map_or(StoredCount::Damaged, StoredCount::Count))
}

/// Writes the count while a store is open.
#[derive(Debug)]
pub(super) struct CountWriter {
    wal: PathBuf,
    file: Arc<File>,
    count: LogCount,
}

impl CountWriter {
    /// Continues from the log as it was found, and its earlier count.
    pub(super) fn new(wal: PathBuf, file: &Arc<File>, log: &Log, before: Option<LogCount>) -> Self {
        let salts = log.salts.unwrap_or_default();
        let same = before.filter(|before| before.salts == salts);
        let counter = Self {
            wal,
            file: Arc::clone(file),
            count: LogCount {
                boot: boot(),
                salts,
                pages: log.pages,
                synced: log.pages,
                copied: same.map_or(0, |before| before.copied.min(log.pages)),
                is_copying: same.is_some_and(|before| before.is_copying),
                commits: 0,
                witness: before.map_or_else(Witness::default, |before| before.witness),
            },
        };
        // If it cannot be written, a loss of the log goes unnoticed; the store works.
        let _ = counter.file.set_len(RECORD as u64);
        counter.write();
        counter
    }

    /// Notes a commit, after which the log has this many pages.
    pub(super) fn committed(&mut self, pages: u64, witness: Witness, is_synced: bool) {
        let count = &mut self.count;
        // Only a log that is completely in the database starts over.
        if pages < count.pages || count.copied >= count.pages {
            let salts = salts(&self.wal).unwrap_or_default();
            if salts != count.salts {
                (count.salts, count.copied, count.synced) = (salts, 0, 0);
                count.is_copying = false;
            }
        }
        count.pages = pages;
        if is_synced {
            count.synced = pages;
        }
        if witness != Witness::default() {
            count.witness = witness;
        }
        count.commits += 1;
        self.write();
    }

    /// A checkpoint begins: until it ends, some pages may be in the database and others not.
    pub(super) fn copying(&mut self) {
        self.count.is_copying = true;
        self.write();
    }

    /// A checkpoint has ended, and this many pages of the log are in the database as well.
    pub(super) fn copied(&mut self, pages: u64) {
        self.count.copied = pages;
        self.count.is_copying = false;
        self.write();
    }

    fn write(&self) {
        let _ = self.file.write_all_at(&self.count.bytes(), 0);
    }
}

/// The salts of an existing log.
fn salts(wal: &Path) -> Option<(u32, u32)> {
    let mut header = [0; 32];
    File::open(wal).ok()?.read_exact(&mut header).ok()?;
    super::scan::scan(&header).salts
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: LogCount = LogCount {
        boot: [7; 16],
        salts: (1, 2),
        pages: 100,
        synced: 80,
        copied: 30,
        is_copying: false,
        commits: 9,
        witness: Witness(5, -6),
    };

    fn log(salts: Option<(u32, u32)>, pages: u64) -> Log {
        Log {
            salts,
            pages,
            ..Log::default()
        }
    }

    #[test]
    fn a_count_comes_back_and_damage_to_it_is_detected() {
        for is_copying in [false, true] {
            let count = LogCount { is_copying, ..COUNT };
            let bytes = count.bytes();
            assert_eq!(LogCount::of_bytes(&bytes), Some(count));
            for bit in 0..RECORD * 8 {
                let mut damaged = bytes;
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(LogCount::of_bytes(&damaged), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn committed_pages_that_are_not_in_the_log_are_missing() {
        let same = COUNT.boot;
        for (log, missing) in [
            (log(Some((1, 2)), 100), 0),
            (log(Some((1, 2)), 120), 0),
            (log(Some((1, 2)), 99), 1),
            (log(Some((1, 2)), 10), 70),
            (log(None, 0), 70),
            (log(Some((3, 4)), 100), 70),
        ] {
            assert_eq!(COUNT.loss_of(&log, same).pages, missing, "{log:?}");
        }
        let other = [8; 16];
        for (log, missing) in [
            (log(Some((1, 2)), 80), 0),
            (log(Some((1, 2)), 79), 1),
            (log(None, 0), 50),
            (log(Some((3, 4)), 5), 0),
        ] {
            assert_eq!(COUNT.loss_of(&log, other).pages, missing, "{log:?}");
        }
        let copied = LogCount { copied: 100, ..COUNT };
        assert_eq!(copied.loss_of(&log(None, 0), same), LogLoss::default());
    }

    /// Issue 15: all of the log was in the database, and SQLite applied an older rest of it over
    /// that.
    #[test]
    fn a_log_with_less_than_was_copied_of_it_is_stale() {
        for boot in [COUNT.boot, [8; 16]] {
            for copied in [30, 80, 100] {
                let count = LogCount { copied, ..COUNT };
                let stale = |salts, pages| count.loss_of(&log(salts, pages), boot).is_stale;
                assert!(stale(Some((1, 2)), 0) && stale(Some((1, 2)), copied - 1), "{copied}");
                assert!(!stale(Some((1, 2)), copied), "{copied}");
                // Another log, or none: SQLite reads nothing that is older.
                assert!(!stale(Some((3, 4)), 1) && !stale(None, 0), "{copied}");
            }
        }
    }

    #[test]
    fn rows_in_the_database_do_not_prove_a_log_that_was_not_copied() {
        let copying = LogCount {
            is_copying: true,
            ..COUNT
        };
        let same = COUNT.boot;
        assert!(COUNT.loss_of(&log(Some((1, 2)), 50), same).is_sure);
        for gone in [log(None, 0), log(Some((3, 4)), 100)] {
            assert!(!COUNT.loss_of(&gone, same).is_sure);
            assert!(copying.loss_of(&gone, same).is_sure);
        }
    }

    #[test]
    fn the_next_store_knows_how_much_was_copied() {
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(File::create_new(folder.path().join("lock")).unwrap());
        let next = |salts, pages, is_copying| {
            let before = LogCount { is_copying, ..COUNT };
            let wal = folder.path().join("wal");
            let count = CountWriter::new(wal, &file, &log(Some(salts), pages), Some(before)).count;
            assert_eq!((count.pages, count.witness), (pages, COUNT.witness));
            (count.copied, count.is_copying)
        };
        assert_eq!(next((1, 2), 100, true), (30, true));
        assert_eq!(next((1, 2), 20, false), (20, false));
        assert_eq!(next((3, 4), 100, true), (0, false));
    }
}
