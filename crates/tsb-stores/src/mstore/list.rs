//! The list of files: what DalmatinerDB keeps elsewhere, and what its files cannot show.
//!
//! A text file of lines, each ended by its checksum; lines are only appended. It also is the lock
//! of the folder. Byte format: docs/formats/mstore.md.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::geometry::Geometry;
use super::index;
use crate::error::{Error, Result};

/// The name of the list in its folder.
pub(super) const LIST: &str = "mstore.list";

/// The version of the format.
const VERSION: &str = "1";

/// What is certain about one pair of files: the state after the newest line about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Number of metrics in the index.
    pub(super) metrics: u32,
    /// Bytes of the index, its head included.
    pub(super) index_bytes: u64,
    /// CRC-32 of these bytes.
    pub(super) index_crc: u32,
}

impl Listed {
    /// That of an index without metrics.
    pub(super) fn empty(offset: i64, geometry: Geometry) -> Self {
        Self {
            metrics: 0,
            index_bytes: index::HEAD_BYTES,
            index_crc: crc32fast::hash(&index::head(offset, geometry.points_per_file)),
        }
    }
}

/// The open list, which this store alone may append to.
#[derive(Debug)]
pub(super) struct List {
    path: PathBuf,
    file: File,
    len: u64,
}

/// What a list says.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: BTreeMap<i64, Listed>,
    /// Bytes of a line at the end that is not whole.
    pub(super) torn_bytes: u64,
    /// Whether there was no list.
    pub(super) is_new: bool,
}

impl List {
    /// Opens, locks and reads the list of a folder, or creates it with `geometry`.
    pub(super) fn open(folder: &Path, geometry: Geometry) -> Result<(Self, Listing)> {
        let path = folder.join(LIST);
        let failed = |action: &str, source: io::Error| failed(action, &path, source);
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path);
        let file = file.map_err(|source| failed("open", source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(source)) => return Err(failed("lock", source)),
            Err(TryLockError::WouldBlock) => {
                let what = "another process, or this one, has it open as a store";
                return Err(failed("open", io::Error::other(what)));
            }
        }
        let text = std::fs::read(&path).map_err(|source| failed("read", source))?;
        let mut listing = parse(&path, &text, geometry)?;
        listing.is_new = text.is_empty();
        let len = text.len() as u64 - listing.torn_bytes;
        Ok((Self { path, file, len }, listing))
    }

    /// The file of the list.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes a torn line, or begins a new list.
    pub(super) fn begin(&mut self, listing: &Listing, geometry: Geometry) -> Result<()> {
        if listing.torn_bytes > 0 {
            let cut = self.file.set_len(self.len).and_then(|()| self.file.sync_all());
            cut.map_err(|source| failed("truncate", &self.path, source))?;
        }
        if !listing.is_new {
            return Ok(());
        }
        self.append(&head(geometry))?;
        sync_folder(self.path.parent().unwrap_or(Path::new(".")))
    }

    /// Appends the state of one pair of files, and syncs it.
    pub(super) fn add(&mut self, offset: i64, listed: Listed) -> Result<()> {
        self.append(&line(offset, listed))
    }

    fn append(&mut self, record: &str) -> Result<()> {
        let line = format!("{record} {:08x}\n", crc32fast::hash(record.as_bytes()));
        let written = self.file.write_all_at(line.as_bytes(), self.len);
        let synced = written.and_then(|()| self.file.sync_data());
        synced.map_err(|source| failed("write", &self.path, source))?;
        self.len += line.len() as u64;
        Ok(())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // A child that another thread has just forked keeps the lock until it executes its program.
        let _ = self.file.unlock();
    }
}

/// Reads what a list says, without opening it as a store.
pub(super) fn read(folder: &Path) -> Result<(Geometry, Listing)> {
    let path = folder.join(LIST);
    let text = std::fs::read(&path).map_err(|source| failed("read", &path, source))?;
    let geometry = text
        .split(|byte| *byte == b'\n')
        .next()
        .and_then(record_of)
        .and_then(geometry_of)
        .ok_or_else(|| corrupt(&path, 0, NO_HEAD))?;
    Ok((geometry, parse(&path, &text, geometry)?))
}

const NO_HEAD: &str = "it does not begin as a list of mstore files";

fn head(geometry: Geometry) -> String {
    format!(
        "mstore {VERSION} step_ns={} points_per_file={}",
        geometry.step_ns, geometry.points_per_file
    )
}

fn geometry_of(record: &str) -> Option<Geometry> {
    let mut words = record.strip_prefix("mstore 1 ")?.split(' ');
    let step_ns: i64 = words.next()?.strip_prefix("step_ns=")?.parse().ok()?;
    let points_per_file: i64 = words.next()?.strip_prefix("points_per_file=")?.parse().ok()?;
    let is_valid = step_ns >= 1_000 && (1..=1 << 31).contains(&points_per_file) && words.next().is_none();
    is_valid.then_some(Geometry {
        step_ns,
        points_per_file,
    })
}

fn line(offset: i64, listed: Listed) -> String {
    format!(
        "file {offset} metrics={} index_bytes={} index_crc={:08x}",
        listed.metrics, listed.index_bytes, listed.index_crc
    )
}

fn listed_of(record: &str) -> Option<(i64, Listed)> {
    let mut words = record.strip_prefix("file ")?.split(' ');
    let offset = words.next()?.parse().ok()?;
    let metrics = words.next()?.strip_prefix("metrics=")?.parse().ok()?;
    let index_bytes = words.next()?.strip_prefix("index_bytes=")?.parse().ok()?;
    let index_crc = u32::from_str_radix(words.next()?.strip_prefix("index_crc=")?, 16).ok()?;
    let listed = Listed {
        metrics,
        index_bytes,
        index_crc,
    };
    words.next().is_none().then_some((offset, listed))
}

/// The text of a line before its checksum; `None` if that does not match.
fn record_of(line: &[u8]) -> Option<&str> {
    let (record, crc) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    (crc == crc32fast::hash(record.as_bytes())).then_some(record)
}

fn parse(path: &Path, text: &[u8], geometry: Geometry) -> Result<Listing> {
    let mut listing = Listing::default();
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let record = line.strip_suffix(b"\n").and_then(record_of);
        match record {
            Some(record) if at == 0 => check_head(path, record, geometry)?,
            Some(record) => {
                let (offset, listed) = listed_of(record)
                    .filter(|(offset, _)| geometry.offset(*offset) == *offset)
                    .ok_or_else(|| corrupt(path, at, "a line is not one of this format"))?;
                listing.files.insert(offset, listed);
            }
            None if at == 0 => return Err(corrupt(path, 0, NO_HEAD)),
            // The last line: a crash leaves it so, and what it named was not yet used.
            None if at + line.len() as u64 == text.len() as u64 => listing.torn_bytes = line.len() as u64,
            None => return Err(corrupt(path, at, "the checksum of a line does not match")),
        }
        at += line.len() as u64;
    }
    Ok(listing)
}

/// Refuses another format, and options that are not those of the files.
fn check_head(path: &Path, record: &str, geometry: Geometry) -> Result<()> {
    if let Some(found) = geometry_of(record) {
        return if found == geometry {
            Ok(())
        } else {
            Err(Error::Spec {
                spec: format!("mstore:{}", path.parent().unwrap_or(path).display()),
                what: format!(
                    "its files were made with step={}ns and points_per_file={}, and this asks for {}ns and {}",
                    found.step_ns, found.points_per_file, geometry.step_ns, geometry.points_per_file
                ),
            })
        };
    }
    match record.strip_prefix("mstore ").and_then(|rest| rest.split(' ').next()) {
        Some(version) if version != VERSION => Err(Error::LaterFormat {
            path: path.to_owned(),
            found: version.to_owned(),
            reads: VERSION.to_owned(),
        }),
        _ => Err(corrupt(path, 0, NO_HEAD)),
    }
}

pub(super) fn failed(action: &str, path: &Path, source: io::Error) -> Error {
    Error::Backend {
        action: format!("{action} {}", path.display()),
        source: source.into(),
    }
}

pub(super) fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        offset,
        what: what.into(),
    }
}

/// Syncs a folder, so that new files in it survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| failed("sync", folder, source))
}
