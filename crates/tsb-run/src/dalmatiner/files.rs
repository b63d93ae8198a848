//! What the files of a target occupy: without their holes, in blocks, compressed as ZFS would, and
//! in the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;
use snap::raw::{Encoder, max_compress_len};

/// The record size of ZFS, which compresses each record by itself.
const RECORD: u64 = 128 << 10;
/// `st_blocks` counts in units of this many bytes, whatever the file system's own blocks are.
const BLOCK_UNIT: u64 = 512;

/// Bytes that files occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Occupied {
    /// Their lengths without their holes.
    pub(super) apparent: u64,
    /// Their blocks.
    pub(super) blocks: u64,
    /// Each record by Snappy; one of zeros takes nothing.
    pub(super) compressed: u64,
}

/// Measures all files below a folder.
///
/// # Errors
/// If one cannot be read.
pub(super) fn measure(folder: &Path) -> io::Result<Occupied> {
    let mut occupied = Occupied::default();
    let mut records = Records::new();
    for path in all_files(folder)? {
        let file = File::open(&path)?;
        occupied.blocks += file.metadata()?.blocks() * BLOCK_UNIT;
        records.add(&file, &mut occupied)?;
    }
    Ok(occupied)
}

/// All files below a folder.
fn all_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(all_files(&entry.path())?);
        } else if entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Buffers for a record.
struct Records {
    encoder: Encoder,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Records {
    fn new() -> Self {
        Self {
            encoder: Encoder::new(),
            plain: vec![0; RECORD as usize],
            packed: vec![0; max_compress_len(RECORD as usize)],
        }
    }

    /// Adds the records of a file that have data.
    fn add(&mut self, file: &File, occupied: &mut Occupied) -> io::Result<()> {
        let length = file.metadata()?.len();
        let mut at = 0;
        while let Some(data) = next(file, SeekFrom::Data(at))?.filter(|data| *data < length) {
            let hole = next(file, SeekFrom::Hole(data))?.unwrap_or(length).min(length);
            occupied.apparent += hole - data;
            // Data that begins within a record that is counted already is counted with it.
            let mut record = (data / RECORD * RECORD).max(at.next_multiple_of(RECORD));
            while record < hole {
                let end = (record + RECORD).min(length);
                occupied.compressed += self.compressed(file, record, end)?;
                record += RECORD;
            }
            at = hole;
        }
        Ok(())
    }

    fn compressed(&mut self, file: &File, start: u64, end: u64) -> io::Result<u64> {
        let plain = &mut self.plain[..(end - start) as usize];
        file.read_exact_at(plain, start)?;
        if plain.iter().all(|byte| *byte == 0) {
            return Ok(0);
        }
        let packed = self.encoder.compress(plain, &mut self.packed);
        let packed = packed.map_err(|error| io::Error::other(error.to_string()))?;
        // What does not shrink is stored as it is.
        Ok(packed.min(plain.len()) as u64)
    }
}

/// The next data or hole; `None` behind the last data.
fn next(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes all files below a folder to the disk and has them leave the page cache, as far as the
/// kernel obeys.
///
/// # Errors
/// If one cannot be synced.
pub(super) fn evict(folder: &Path) -> io::Result<()> {
    for path in all_files(folder)? {
        let file = File::open(path)?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// Bytes of all files below a folder that are in the page cache, as `fincore` of util-linux counts
/// them; `None` where it does not run.
pub(super) fn cached_bytes(folder: &Path) -> Option<u64> {
    let files = all_files(folder).ok()?;
    if files.is_empty() {
        return Some(0);
    }
    let output = Command::new("fincore")
        .args(["--bytes", "--noheadings", "--raw", "--output", "RES", "--"])
        .args(&files)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().map(|line| line.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_take_nothing_and_what_repeats_is_compressed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deeper")).unwrap();
        let file = File::create(folder.path().join("deeper/sparse")).unwrap();
        file.set_len(100 * RECORD).unwrap();
        file.write_all_at(&[7; 4_096], 50 * RECORD).unwrap();
        file.write_all_at(&[7; 4_096], 50 * RECORD + 16_384).unwrap();
        file.sync_all().unwrap();
        let occupied = measure(folder.path()).unwrap();
        assert!((8_192..RECORD).contains(&occupied.apparent), "{occupied:?}");
        assert!((8_192..RECORD).contains(&occupied.blocks), "{occupied:?}");
        assert!(
            (1..8_192).contains(&occupied.compressed),
            "one record, and not two: {occupied:?}"
        );
        std::fs::write(folder.path().join("zeros"), vec![0; 1 << 20]).unwrap();
        let with_zeros = measure(folder.path()).unwrap();
        assert_eq!(with_zeros.compressed, occupied.compressed);
        assert_eq!(with_zeros.apparent, occupied.apparent + (1 << 20));
        evict(folder.path()).unwrap();
        assert!(measure(&folder.path().join("absent")).is_err());
        assert_eq!(cached_bytes(&folder.path().join("absent")), None);
    }
}
