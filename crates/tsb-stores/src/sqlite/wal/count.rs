//! How long the write-ahead log is, said outside of it: what SQLite itself does not know when
//! it opens a file whose log was lost or cut.
//!
//! A record in the file of the lock, written over after each commit, without a sync: so it is
//! right after a kill, and may be older after a power cut. Bytes: `docs/formats/sqlite.md`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::scan::Log;

/// "tsbw", and the version in the last byte.
const MAGIC: [u8; 8] = *b"tsbw\0\0\0\x01";
/// Bytes of a record.
const RECORD: usize = 88;
/// Where the kernel says which boot of the machine this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What the database holds if, and only if, it has a commit: a frame of the log and 0, or a
/// series and a time. Both 0: a commit of which nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sqlite) struct Witness(pub(in crate::sqlite) i64, pub(in crate::sqlite) i64);

/// What had been committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// The boot of the machine, as its bytes; all 0 where the kernel does not say.
    pub(super) boot: [u8; 16],
    /// Which log it was.
    pub(super) salts: (u32, u32),
    /// Pages in it.
    pub(super) pages: u64,
    /// Of these, pages that were synced.
    pub(super) synced: u64,
    /// Of these, pages that are in the database as well.
    pub(super) copied: u64,
    /// Commits since the store was opened.
    pub(super) commits: u64,
    /// What the last of them has written.
    pub(super) witness: Witness,
}

/// What the file of a lock says of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing: the store was closed, or had committed nothing.
    Nothing,
    /// Something that cannot be read.
    Damaged,
    /// This.
    Count(Count),
}

/// The boot of this machine; all 0 where the kernel does not say.
pub(super) fn boot() -> [u8; 16] {
    let text = fs::read_to_string(BOOT_ID).unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut boot = [0; 16];
    for (byte, pair) in boot.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    boot
}

impl Count {
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
        let sum = u64::from(crc32fast::hash(&bytes[..at]));
        bytes[at..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let number = |at: usize| {
            let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
            u64::from_le_bytes(eight.unwrap_or_default())
        };
        if bytes[..8] != MAGIC || number(RECORD - 8) != u64::from(crc32fast::hash(&bytes[..RECORD - 8])) {
            return None;
        }
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[8..24]);
        let salts = number(24);
        Some(Self {
            boot,
            salts: (salts as u32, (salts >> 32) as u32),
            pages: number(32),
            synced: number(40),
            copied: number(48),
            commits: number(56),
            witness: Witness(number(64) as i64, number(72) as i64),
        })
    }

    /// How many pages that had been committed are neither in a log nor in the database, where
    /// that can be told.
    pub(super) fn missing_in(&self, log: &Log, boot: [u8; 16]) -> u64 {
        // After a power cut, what was not synced may be gone.
        let committed = if self.boot == boot { self.pages } else { self.synced };
        if self.copied >= committed {
            // All of it is in the database, and the log may have started over.
            return 0;
        }
        match log.salts {
            Some(salts) if salts == self.salts => committed.saturating_sub(log.pages.max(self.copied)),
            // The count of before a power cut may be of an earlier log.
            Some(_) if self.boot != boot => 0,
            _ => committed - self.copied,
        }
    }
}

/// What the file of a lock says.
pub(super) fn read(mut file: &File) -> io::Result<Said> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A power cut may leave the room and not what was in it.
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(Said::Nothing);
    }
    let whole: Option<&[u8; RECORD]> = bytes.as_slice().try_into().ok();
    Ok(whole.and_then(Count::of_bytes).map_or(Said::Damaged, Said::Count))
}

/// The count of one store while it writes.
#[derive(Debug)]
pub(super) struct Counter {
    wal: PathBuf,
    file: Arc<File>,
    count: Count,
}

impl Counter {
    /// Goes on from a log as it was found.
    pub(super) fn new(wal: PathBuf, file: &Arc<File>, log: &Log, witness: Witness) -> Self {
        let counter = Self {
            wal,
            file: Arc::clone(file),
            count: Count {
                boot: boot(),
                salts: log.salts.unwrap_or_default(),
                pages: log.pages,
                synced: log.pages,
                witness,
                ..Count::default()
            },
        };
        // Where it cannot be written, a loss of the log is not seen; the store works.
        let _ = counter.file.set_len(RECORD as u64);
        counter.write();
        counter
    }

    /// The log has this many pages now.
    pub(super) fn committed(&mut self, pages: u64, witness: Witness, is_synced: bool) {
        let count = &mut self.count;
        // Only a log that is wholly in the database starts over.
        if pages < count.pages || count.copied >= count.pages {
            let salts = salts(&self.wal).unwrap_or_default();
            if salts != count.salts {
                (count.salts, count.copied, count.synced) = (salts, 0, 0);
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

    /// So many pages of the log are in the database as well.
    pub(super) fn copied(&mut self, pages: u64) {
        self.count.copied = pages;
        self.write();
    }

    fn write(&self) {
        let _ = self.file.write_all_at(&self.count.bytes(), 0);
    }
}

/// The salts of a log that is there.
fn salts(wal: &Path) -> Option<(u32, u32)> {
    let mut header = [0; 32];
    File::open(wal).ok()?.read_exact(&mut header).ok()?;
    super::scan::scan(&header).salts
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Count = Count {
        boot: [7; 16],
        salts: (1, 2),
        pages: 100,
        synced: 80,
        copied: 30,
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
    fn a_count_comes_back_and_damage_to_it_is_seen() {
        let bytes = COUNT.bytes();
        assert_eq!(Count::of_bytes(&bytes), Some(COUNT));
        for at in 0..RECORD {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            assert_eq!(Count::of_bytes(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn what_was_committed_and_is_not_there_is_missing() {
        let same = COUNT.boot;
        for (log, missing) in [
            (log(Some((1, 2)), 100), 0),
            (log(Some((1, 2)), 120), 0),
            (log(Some((1, 2)), 99), 1),
            (log(Some((1, 2)), 10), 70),
            (log(None, 0), 70),
            (log(Some((3, 4)), 100), 70),
        ] {
            assert_eq!(COUNT.missing_in(&log, same), missing, "{log:?}");
        }
        let other = [8; 16];
        for (log, missing) in [
            (log(Some((1, 2)), 80), 0),
            (log(Some((1, 2)), 79), 1),
            (log(None, 0), 50),
            (log(Some((3, 4)), 5), 0),
        ] {
            assert_eq!(COUNT.missing_in(&log, other), missing, "{log:?}");
        }
        let copied = Count { copied: 100, ..COUNT };
        assert_eq!(copied.missing_in(&log(None, 0), same), 0);
    }
}
