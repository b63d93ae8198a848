//! How far a journal had got, said beside it: a segment that is cut off between two records
//! looks like one that ends there.
//!
//! The count is written over after each sync, or, where an ack does not wait for one, after each
//! append, and is never synced itself. So it is right after a kill, and may be older after a power
//! cut. Bytes: `docs/formats/journal.md`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::medium::{COUNT, Medium, Note};
use super::order;
use super::record::NUMBER_MAX;
use super::replay::read;
use crate::boot::boot;
use crate::damage::{Damage, DamageKind};
use crate::error::{Error, Result};
use crate::locks::lock;

/// The first bytes of a count of any version; a digit for the version follows.
const MAGIC: &[u8; 7] = b"tsbcoun";
/// The version that is written.
const VERSION: u8 = b'1';
/// Bytes of a count.
const LEN: usize = 44;

/// How far a journal had got, as the numbers behind its last records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// The boot of the machine.
    boot: [u8; 16],
    /// Behind the last record that the system had and that an ack may stand for.
    handed: u64,
    /// Behind the last record that was synced.
    synced: u64,
}

/// Why a count says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoCount {
    /// It is of a version that this one does not know.
    Later(char),
    /// It is damaged.
    Damaged,
}

impl Count {
    fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..7].copy_from_slice(MAGIC);
        bytes[7] = VERSION;
        bytes[8..24].copy_from_slice(&self.boot);
        bytes[24..32].copy_from_slice(&self.handed.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.synced.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> std::result::Result<Self, NoCount> {
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| NoCount::Damaged)?;
        let number = |at: usize| {
            let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
            u64::from_le_bytes(eight.unwrap_or_default())
        };
        if !bytes.starts_with(MAGIC) || crc32fast::hash(&bytes[..40]).to_le_bytes() != bytes[40..] {
            return Err(NoCount::Damaged);
        }
        if bytes[7] != VERSION {
            return Err(NoCount::Later(char::from(bytes[7])));
        }
        let (handed, synced) = (number(24), number(32));
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[8..24]);
        let count = Self { boot, handed, synced };
        if handed.max(synced) > NUMBER_MAX {
            return Err(NoCount::Damaged);
        }
        Ok(count)
    }
}

/// What the count of a journal says to those who read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Nothing: there is none, or a power cut left none.
    Nothing,
    /// All records before this number had been promised.
    Upto(u64),
    Damaged,
}

impl Counted {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::LaterFormat`] where a later version wrote it; [`Error::Backend`] where it cannot
    /// be read.
    pub(super) fn read(medium: &dyn Medium, names: &[String]) -> Result<Self> {
        if !names.iter().any(|name| name == COUNT) {
            return Ok(Self::Nothing);
        }
        let bytes = read(medium, COUNT, "read", |name| medium.read(name))?;
        // A power cut may leave the room and not what was in it.
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Self::Nothing);
        }
        match Count::of(&bytes) {
            // After a power cut, what was not synced may be gone.
            Ok(count) if count.boot == boot() => Ok(Self::Upto(count.handed.max(count.synced))),
            Ok(count) => Ok(Self::Upto(count.synced)),
            Err(NoCount::Damaged) => Ok(Self::Damaged),
            Err(NoCount::Later(version)) => Err(order::later(medium, COUNT, version, char::from(VERSION))),
        }
    }

    /// What is wrong with it.
    pub(super) fn finding(self, medium: &dyn Medium) -> Option<Damage> {
        let what = "it is not a count of records, so a loss at the end of the newest segment would not be noticed";
        let damage = Damage::new(DamageKind::Unreadable, medium.path_of(COUNT), what);
        (self == Self::Damaged).then(|| damage.with_samples_at_most(0))
    }
}

/// The count of a journal that is written.
#[derive(Debug)]
pub(super) struct Counter {
    note: Arc<dyn Note>,
    count: Mutex<Count>,
}

impl Counter {
    /// Begins a count: all records before `next` are synced, or known to be lost.
    pub(super) fn begin(medium: &dyn Medium, next: u64) -> Result<Self> {
        let note = medium.note(COUNT).map_err(|source| Error::Backend {
            action: format!("write {}", medium.path_of(COUNT).display()),
            source: source.into(),
        })?;
        let count = Count {
            boot: boot(),
            handed: next,
            synced: next,
        };
        // Where it cannot be written, a loss is not seen; the journal works.
        let _ = note.overwrite(&count.to_bytes());
        Ok(Self {
            note,
            count: Mutex::new(count),
        })
    }

    /// All records before `next` were handed to the system.
    pub(super) fn handed(&self, next: u64) {
        self.reached(next, 0);
    }

    /// All records before `next` were synced.
    pub(super) fn synced(&self, next: u64) {
        self.reached(next, next);
    }

    fn reached(&self, handed: u64, synced: u64) {
        let mut count = lock(&self.count);
        let now = Count {
            handed: count.handed.max(handed),
            synced: count.synced.max(synced),
            ..*count
        };
        if now != *count {
            *count = now;
            let _ = self.note.overwrite(&now.to_bytes());
        }
    }
}

/// A file of this size and nothing before, so that nothing of an older one is left behind it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

impl Note for File {
    fn overwrite(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Count = Count {
        boot: [7; 16],
        handed: 1 << 40,
        synced: 99,
    };

    #[test]
    fn a_count_comes_back_and_no_bit_of_it_can_flip_unseen() {
        let bytes = COUNT.to_bytes();
        assert_eq!(Count::of(&bytes), Ok(COUNT));
        for bit in 0..LEN * 8 {
            let mut altered = bytes;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Count::of(&altered), Err(NoCount::Damaged), "{bit}");
        }
        assert_eq!(Count::of(&bytes[..LEN - 1]), Err(NoCount::Damaged));
    }

    #[test]
    fn a_later_version_is_told_from_damage_and_no_number_is_too_high() {
        let mut bytes = COUNT.to_bytes();
        bytes[7] = b'2';
        let sum = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Count::of(&bytes), Err(NoCount::Later('2')));
        let high = Count {
            synced: NUMBER_MAX + 1,
            ..COUNT
        };
        assert_eq!(Count::of(&high.to_bytes()), Err(NoCount::Damaged));
    }
}
