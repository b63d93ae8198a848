//! The count file: how many records a journal holds. Without it, a segment that is cut off
//! between two records would look complete.
//!
//! The count is overwritten by a store into a mapped page, after each sync or, if acks do not
//! wait for a sync, after each append. It is never synced itself. So it is exact after a kill,
//! and may be outdated after a power cut. Byte format: `docs/formats/journal.md`.

use std::io;
use std::sync::{Arc, Mutex};

use tsb_core::bytes::u64_at;
use tsb_core::proc::boot;

use super::medium::{COUNT, CounterFile, Medium, later_format, with_path};
use super::record::NUMBER_MAX;
use crate::damage::{Damage, DamageKind};
use crate::error::{Error, Result};
use crate::locks::lock;
use crate::machine::PAGE;

/// The first bytes of a count file of any version; a digit for the version follows.
const MAGIC: &[u8; 7] = b"tsbcoun";
/// The version that is written.
const VERSION: u8 = b'2';
/// The bytes before the checksum of the head.
const HEAD: usize = 24;
/// Indexes of the words that are overwritten, in words of eight bytes.
const HANDED: usize = 4;
const SYNCED: usize = 5;
/// The bytes in use; the rest of the page is zeros.
const LEN: usize = 48;
/// A word holds a number of this many bits, and its check value in the remaining bits.
const NUMBER_BITS: u32 = 48;

/// How far a journal was written. Each field is the number after the last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordCount {
    /// The boot id of the machine.
    boot: [u8; 16],
    /// After the last record that was written to the system and that an ack may depend on. If
    /// acks wait for a sync, only `synced` is updated.
    handed: u64,
    /// After the last record that was synced.
    synced: u64,
}

/// Why a count cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountError {
    /// Its version is unknown to this build.
    Later(char),
    /// It is damaged.
    Damaged,
}

/// A number and its check value in one word, so that a single store writes both. A number that
/// does not fit is replaced by the largest that does, which is a weaker but true statement.
fn word(number: u64) -> u64 {
    let number = number.min((1 << NUMBER_BITS) - 1);
    number | u64::from(check(number)) << NUMBER_BITS
}

fn number(word: u64) -> Option<u64> {
    let number = word & ((1 << NUMBER_BITS) - 1);
    (u64::from(check(number)) == word >> NUMBER_BITS).then_some(number)
}

/// The low half of the CRC-32 of a number. CRCs are linear: if every flipped bit is detected in
/// one number, every flipped bit is detected in all numbers.
fn check(number: u64) -> u16 {
    crc32fast::hash(&number.to_le_bytes()) as u16
}

impl RecordCount {
    fn to_bytes(self) -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        bytes[..7].copy_from_slice(MAGIC);
        bytes[7] = VERSION;
        bytes[8..HEAD].copy_from_slice(&self.boot);
        let sum = crc32fast::hash(&bytes[..HEAD]);
        bytes[HEAD..HEAD + 4].copy_from_slice(&sum.to_le_bytes());
        for (index, number) in [(HANDED, self.handed), (SYNCED, self.synced)] {
            bytes[index * 8..][..8].copy_from_slice(&word(number).to_le_bytes());
        }
        bytes
    }

    fn of(bytes: &[u8]) -> std::result::Result<Self, CountError> {
        if !bytes.starts_with(MAGIC) {
            return Err(CountError::Damaged);
        }
        let count = match bytes.get(7) {
            Some(b'1') => Self::of_version_1(bytes),
            Some(&VERSION) => Self::of_page(bytes),
            // A later version whose head has the same layout, and a correct checksum.
            Some(later) if bytes.get(HEAD..HEAD + 4) == Some(&crc32fast::hash(&bytes[..HEAD]).to_le_bytes()) => {
                return Err(CountError::Later(char::from(*later)));
            }
            _ => None,
        };
        let count = count.filter(|count| count.handed.max(count.synced) <= NUMBER_MAX);
        count.ok_or(CountError::Damaged)
    }

    fn of_page(bytes: &[u8]) -> Option<Self> {
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let is_padded = bytes.len() == PAGE && is_zero(&bytes[HEAD + 4..HANDED * 8]) && is_zero(&bytes[LEN..]);
        if !is_padded || crc32fast::hash(&bytes[..HEAD]).to_le_bytes() != bytes[HEAD..HEAD + 4] {
            return None;
        }
        Some(Self {
            boot: bytes[8..HEAD].try_into().ok()?,
            handed: number(u64_at(bytes, HANDED * 8)?)?,
            synced: number(u64_at(bytes, SYNCED * 8)?)?,
        })
    }

    /// Version 1: 44 bytes, overwritten as a whole.
    fn of_version_1(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != 44 || crc32fast::hash(&bytes[..40]).to_le_bytes() != bytes[40..] {
            return None;
        }
        Some(Self {
            boot: bytes[8..24].try_into().ok()?,
            handed: u64_at(bytes, 24)?,
            synced: u64_at(bytes, 32)?,
        })
    }
}

/// What the count file tells a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountState {
    /// Nothing: there is no count, or a power cut left none.
    Nothing,
    /// All records before this number were promised by acks.
    Upto(u64),
    Damaged,
}

impl CountState {
    /// Reads the count file.
    ///
    /// # Errors
    /// [`Error::LaterFormat`] if a later version wrote it; [`Error::Backend`] if it cannot be
    /// read.
    pub(super) fn read(medium: &dyn Medium, names: &[String]) -> Result<Self> {
        if !names.iter().any(|name| name == COUNT) {
            return Ok(Self::Nothing);
        }
        let bytes = with_path(medium, COUNT, "read", |name| medium.read(name))?;
        // A power cut may keep the file's length and lose its contents.
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Self::Nothing);
        }
        match RecordCount::of(&bytes) {
            // After a reboot, records that were not synced may be gone, so `handed` counts only
            // within the same boot.
            Ok(count) if count.boot == boot() => Ok(Self::Upto(count.handed.max(count.synced))),
            Ok(count) => Ok(Self::Upto(count.synced)),
            Err(CountError::Damaged) => Ok(Self::Damaged),
            Err(CountError::Later(version)) => Err(later_format(medium, COUNT, version, char::from(VERSION))),
        }
    }

    /// The finding for a damaged count file.
    pub(super) fn finding(self, medium: &dyn Medium) -> Option<Damage> {
        let what = "it is not a count of records, so a loss at the end of the newest segment would not be noticed";
        let damage = Damage::new(DamageKind::Unreadable, medium.path_of(COUNT), what);
        (self == Self::Damaged).then(|| damage.with_samples_at_most(0))
    }
}

/// The word that counts records written to the system. It belongs to the journal's writer, so an
/// append takes no lock for it.
#[derive(Debug)]
pub(super) struct HandedCount(CountWord);

/// The word that counts synced records. Any thread may sync, so it has a lock.
#[derive(Debug)]
pub(super) struct SyncedCount(Mutex<CountWord>);

/// One number of a count file; it only grows.
#[derive(Debug)]
struct CountWord {
    /// `None` if the disk had no room for the file: the journal works, but a lost tail would go
    /// unnoticed.
    file: Option<Arc<dyn CounterFile>>,
    index: usize,
    number: u64,
}

/// Begins a count file: all records before `next` are synced, or known to be lost.
///
/// # Errors
/// [`Error::Backend`] if it cannot be written. A full disk is no error.
pub(super) fn begin(medium: &dyn Medium, next: u64) -> Result<(HandedCount, SyncedCount)> {
    let count = RecordCount {
        boot: boot(),
        handed: next,
        synced: next,
    };
    let file = match medium.counter_file(COUNT, &count.to_bytes()) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => None,
        Err(source) => {
            return Err(Error::Backend {
                action: format!("write {}", medium.path_of(COUNT).display()),
                source: source.into(),
            });
        }
    };
    let word = |index| CountWord {
        file: file.clone(),
        index,
        number: next,
    };
    Ok((HandedCount(word(HANDED)), SyncedCount(Mutex::new(word(SYNCED)))))
}

impl HandedCount {
    /// Notes that all records before `next` are written to the system.
    pub(super) fn raise(&mut self, next: u64) {
        self.0.raise(next);
    }
}

impl SyncedCount {
    /// Notes that all records before `next` are synced.
    pub(super) fn raise(&self, next: u64) {
        lock(&self.0).raise(next);
    }
}

impl CountWord {
    fn raise(&mut self, number: u64) {
        if number > self.number {
            self.number = number;
            if let Some(file) = &self.file {
                file.set(self.index, word(number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::write_cache::journal::medium::create_page;

    const COUNT: RecordCount = RecordCount {
        boot: [7; 16],
        handed: 1 << 40,
        synced: 99,
    };

    #[test]
    fn a_count_comes_back_and_no_bit_of_it_can_flip_unseen() {
        let bytes = COUNT.to_bytes();
        assert_eq!(RecordCount::of(&bytes), Ok(COUNT));
        for bit in 0..PAGE * 8 {
            let mut altered = bytes;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordCount::of(&altered), Err(CountError::Damaged), "{bit}");
        }
        for length in [0, 7, 8, HEAD, LEN - 1, LEN, PAGE - 1] {
            assert_eq!(RecordCount::of(&bytes[..length]), Err(CountError::Damaged), "{length}");
        }
        assert_eq!(RecordCount::of(&[&bytes[..], &[0]].concat()), Err(CountError::Damaged));
    }

    #[test]
    fn a_later_version_is_no_damage_and_a_number_too_high_is_capped() {
        let mut bytes = COUNT.to_bytes();
        bytes[7] = b'3';
        let sum = crc32fast::hash(&bytes[..HEAD]);
        bytes[HEAD..HEAD + 4].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(RecordCount::of(&bytes), Err(CountError::Later('3')));
        let high = RecordCount {
            synced: NUMBER_MAX,
            ..COUNT
        };
        let read = RecordCount::of(&high.to_bytes()).unwrap();
        assert_eq!(read.synced, (1 << NUMBER_BITS) - 1);
    }

    #[test]
    fn a_count_of_version_1_is_read() {
        let mut bytes = [0; 44];
        bytes[..8].copy_from_slice(b"tsbcoun1");
        bytes[8..24].copy_from_slice(&COUNT.boot);
        bytes[24..32].copy_from_slice(&COUNT.handed.to_le_bytes());
        bytes[32..40].copy_from_slice(&COUNT.synced.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(RecordCount::of(&bytes), Ok(COUNT));
        bytes[30] ^= 1;
        assert_eq!(RecordCount::of(&bytes), Err(CountError::Damaged));
    }

    #[test]
    fn a_new_count_file_is_not_changed_through_the_old_mapping() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("count");
        let before = create_page(&path, &COUNT.to_bytes()).unwrap();
        let now = create_page(&path, &COUNT.to_bytes()).unwrap();
        before.set(HANDED, word(1 << 41));
        assert_eq!(RecordCount::of(&fs::read(&path).unwrap()), Ok(COUNT));
        now.set(HANDED, word(7));
        assert_eq!(RecordCount::of(&fs::read(&path).unwrap()).unwrap().handed, 7);
    }
}
