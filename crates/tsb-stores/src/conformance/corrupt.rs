//! Damage to the files of a store: bits, pages, ends and names, chosen by a seed.
//!
//! A store that is closed, or whose process was killed, leaves files; [`corrupt`] damages one of
//! them as a medium, a careless administrator or a half-restored backup does. What the store
//! then says when it is opened is the test: what is missing or changed has to be said.
//!
//! ```
//! use tsb_stores::conformance::corrupt;
//!
//! # fn main() -> std::io::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("log"), [7; 5000])?;
//! let corruption = corrupt(folder.path(), 3)?.expect("there is a file");
//! println!("{corruption}");
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::rng::Rng;

/// Bytes of a page, on most media and in most stores.
const PAGE: usize = 4096;
/// Maximum number of bytes appended to a file.
const GARBAGE_MAX: u64 = 600;

/// Attempts per file.
const TRIES: usize = 8;

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorruptionKind {
    /// One bit is flipped.
    FlippedBit,
    /// Up to sixteen bytes are changed.
    Garbled,
    /// A page of 4,096 bytes is zero.
    ZeroedPage,
    /// The end is missing.
    Truncated,
    /// Random bytes follow the end.
    Extended,
    /// It was swapped with another file.
    Swapped,
    /// It is removed.
    Removed,
}

impl CorruptionKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::FlippedBit,
        Self::Garbled,
        Self::ZeroedPage,
        Self::Truncated,
        Self::Extended,
        Self::Swapped,
        Self::Removed,
    ];
}

/// One damage: its kind and place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Corruption {
    /// The kind.
    pub kind: CorruptionKind,
    /// The damaged file.
    pub file: PathBuf,
    /// The offset of the first changed byte, or the new length; 0 for a whole file.
    pub at: u64,
    /// The file that it was swapped with.
    pub with: Option<PathBuf>,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} at {}", self.kind, self.file.display(), self.at)
    }
}

/// Damages one file below `folder`; the same `seed` damages equal files equally. `None` if no
/// file can be damaged in a way that changes it.
///
/// # Errors
/// If a file cannot be read or written.
pub fn corrupt(folder: &Path, seed: u64) -> io::Result<Option<Corruption>> {
    let mut rng = Rng::new(seed);
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort_unstable();
    rng.shuffle(&mut files);
    // If a kind changes nothing in a file, another kind is tried.
    for file in files.iter().cycle().take(files.len() * TRIES) {
        let kind = rng.pick(&CorruptionKind::ALL);
        let other = &files[rng.below(files.len() as u64) as usize];
        if let Some(at) = damage(kind, file, other, &mut rng)? {
            return Ok(Some(Corruption {
                kind,
                file: file.clone(),
                at,
                with: (kind == CorruptionKind::Swapped).then(|| other.clone()),
            }));
        }
    }
    Ok(None)
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), into)?;
        } else if kind.is_file() {
            into.push(entry.path());
        }
    }
    Ok(())
}

/// The position of the damage; `None` if this kind would change nothing.
fn damage(kind: CorruptionKind, file: &Path, other: &Path, rng: &mut Rng) -> io::Result<Option<u64>> {
    let before = fs::read(file)?;
    let len = before.len() as u64;
    let mut bytes = before.clone();
    let at = match kind {
        CorruptionKind::Removed => {
            fs::remove_file(file)?;
            return Ok(Some(0));
        }
        CorruptionKind::Swapped => return swap(file, &before, other),
        CorruptionKind::Extended => {
            let more = 1 + rng.below(GARBAGE_MAX);
            bytes.extend((0..more).map(|_| rng.next() as u8));
            len
        }
        _ if bytes.is_empty() => return Ok(None),
        CorruptionKind::FlippedBit => {
            let at = rng.below(len);
            bytes[at as usize] ^= 1 << rng.below(8);
            at
        }
        CorruptionKind::Garbled => {
            let at = rng.below(len);
            let end = (at + 1 + rng.below(16)).min(len);
            bytes[at as usize..end as usize].fill_with(|| rng.next() as u8);
            at
        }
        CorruptionKind::ZeroedPage => {
            let at = rng.below(len) as usize / PAGE * PAGE;
            let end = (at + PAGE).min(bytes.len());
            bytes[at..end].fill(0);
            at as u64
        }
        CorruptionKind::Truncated => {
            let at = rng.below(len);
            bytes.truncate(at as usize);
            at
        }
    };
    if bytes == before {
        return Ok(None);
    }
    fs::write(file, bytes)?;
    Ok(Some(at))
}

fn swap(file: &Path, before: &[u8], other: &Path) -> io::Result<Option<u64>> {
    let theirs = fs::read(other)?;
    if theirs == before {
        return Ok(None);
    }
    fs::write(file, &theirs)?;
    fs::write(other, before)?;
    Ok(Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        collect(folder, &mut files).unwrap();
        files.sort_unstable();
        let read = |file: PathBuf| {
            let bytes = fs::read(&file).unwrap();
            (file, bytes)
        };
        files.into_iter().map(read).collect()
    }

    fn fill(folder: &Path) {
        fs::create_dir_all(folder.join("deeper")).unwrap();
        fs::write(folder.join("a"), vec![1; 10_000]).unwrap();
        fs::write(folder.join("deeper/b"), vec![2; 300]).unwrap();
        fs::write(folder.join("lock"), []).unwrap();
    }

    #[test]
    fn every_damage_changes_something_and_every_kind_comes_up() {
        let mut seen = Vec::new();
        for seed in 0..100 {
            let folder = tempfile::tempdir().unwrap();
            fill(folder.path());
            let before = contents(folder.path());
            let corruption = corrupt(folder.path(), seed).unwrap().unwrap();
            assert_ne!(contents(folder.path()), before, "{corruption}");
            assert!(corruption.file.starts_with(folder.path()));
            seen.push(corruption.kind);
        }
        assert!(CorruptionKind::ALL.iter().all(|kind| seen.contains(kind)), "{seen:?}");
    }

    #[test]
    fn the_same_seed_damages_equal_files_equally() {
        let corruption = |seed| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("place");
            fill(&place);
            let corruption = corrupt(&place, seed).unwrap().unwrap();
            let name = |file: &Path| file.strip_prefix(&place).unwrap().to_owned();
            let bytes: Vec<_> = contents(&place)
                .into_iter()
                .map(|(file, bytes)| (name(&file), bytes))
                .collect();
            (corruption.kind, name(&corruption.file), corruption.at, bytes)
        };
        // The order in which a folder lists its files must not matter.
        assert!((0..20).all(|seed| corruption(seed) == corruption(seed)));
    }

    #[test]
    fn nothing_can_be_damaged_where_there_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(corrupt(folder.path(), 1).unwrap(), None);
    }
}
