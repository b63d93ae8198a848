//! Creates RRD files.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::error::{Error, Result};
use crate::layout::{Layout, UNKNOWN};
use crate::live_header::LiveHeader;

/// Bytes per write of a new file: exactly one page.
///
/// The kernel caches the bytes of one write as one folio if the file system supports it (ext4 from
/// Linux 6.16 on), and each later write into a folio checks all its blocks. An update writes a few
/// bytes to three pages; with folios of 64 KiB it costs nearly twice as much
/// (docs/adr/073-rrd-pages.md).
const CHUNK: usize = 4_096;

/// The header of a new file that accepts updates after `start_s` (seconds since the epoch).
///
/// `seed` selects which row of each archive is written first. librrd picks it at random, so that
/// files do not all wrap around at the same time.
pub fn new_header(layout: &Layout, start_s: i64, seed: u64) -> Vec<u8> {
    let rows = layout.archives.iter().enumerate();
    let rows = rows.map(|(index, archive)| pseudo_random(seed, index as u64) % archive.rows);
    let live = LiveHeader::new(layout, start_s, rows);
    let mut header = layout.statics.clone();
    header.extend_from_slice(live.bytes());
    header
}

/// Creates a file that accepts updates after `start_s`; all its rows are unknown.
///
/// The file appears complete under its name, or not at all.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`], and [`Error::Layout`] for a start before 1970.
pub fn create(path: &Path, layout: &Layout, start_s: i64, seed: u64) -> Result<()> {
    put(path, layout, start_s, seed, rename_new)
}

/// The same, but replaces an existing file of this name atomically.
///
/// # Errors
/// As [`create`], without [`Error::Exists`].
pub fn replace(path: &Path, layout: &Layout, start_s: i64, seed: u64) -> Result<()> {
    put(path, layout, start_s, seed, |temporary, path| {
        std::fs::rename(temporary, path).map_err(Error::io("name the new file"))
    })
}

fn put(
    path: &Path,
    layout: &Layout,
    start_s: i64,
    seed: u64,
    finish: impl FnOnce(&Path, &Path) -> Result<()>,
) -> Result<()> {
    if start_s < 0 {
        return Err(Error::Layout(format!("the start {start_s} is before 1970")).at(path));
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    let result = write(&temporary, layout, &new_header(layout, start_s, seed)).and_then(|()| finish(&temporary, path));
    result.map_err(|error| {
        // Removes the temporary file of a failed creation; an error here changes nothing.
        let _ = std::fs::remove_file(&temporary);
        error.at(path)
    })
}

fn write(path: &Path, layout: &Layout, header: &[u8]) -> Result<()> {
    let options = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    let mut file = options.map_err(Error::io("create the file"))?;
    fill(&mut file, layout, header).map_err(Error::io("write the new file"))
}

fn fill(file: &mut File, layout: &Layout, header: &[u8]) -> std::io::Result<()> {
    let unknown = UNKNOWN.to_bits().to_le_bytes();
    let mut left = layout.file_len() as usize;
    // The header and the rows up to the end of a page. The header's length is a multiple of eight.
    let to_end = header.len().next_multiple_of(CHUNK).min(left) - header.len();
    let mut start = header.to_vec();
    start.extend(unknown.repeat(to_end / unknown.len()));
    for page in start.chunks(CHUNK) {
        file.write_all(page)?;
    }
    left -= start.len();
    let rows = unknown.repeat(CHUNK / unknown.len());
    while left > 0 {
        let length = left.min(CHUNK);
        file.write_all(&rows[..length])?;
        left -= length;
    }
    Ok(())
}

/// Renames the finished file to its name, unless that exists.
fn rename_new(temporary: &Path, path: &Path) -> Result<()> {
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => Err(Error::Exists),
        Err(error) => Err(Error::Io {
            action: "name the new file",
            source: error.into(),
        }),
    }
}

/// A pseudo-random number, as a function of both arguments.
fn pseudo_random(seed: u64, index: u64) -> u64 {
    let mut bits = seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
