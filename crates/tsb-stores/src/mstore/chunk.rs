//! One pair of files: an index, and the points of its metrics.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::geometry::{Geometry, POINT_BYTES};
use super::index;
use super::list::{List, Listed, corrupt, failed};
use super::names::Names;
use crate::error::Result;
use crate::locks::{read, write};

/// In `locals`: the metric is not in the index.
const ABSENT: u32 = u32::MAX;

/// Bytes that are read at once.
const PIECE: usize = 1 << 18;

/// One file of points with its index.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The number of its first point.
    pub(super) offset: i64,
    index_path: PathBuf,
    pub(super) data_path: PathBuf,
    // By the number of a name: its number in this file.
    locals: RwLock<Vec<u32>>,
    /// Whether points were written since the last sync.
    pub(super) is_dirty: AtomicBool,
}

impl Chunk {
    pub(super) fn new(folder: &Path, offset: i64) -> Self {
        Self {
            offset,
            index_path: folder.join(format!("{offset}.idx")),
            data_path: folder.join(format!("{offset}.mstore")),
            locals: RwLock::default(),
            is_dirty: AtomicBool::new(false),
        }
    }

    /// Creates both files, without any metric. Files that a crash has left are emptied.
    pub(super) fn create(&self, geometry: Geometry) -> Result<()> {
        let create = |path: &Path| File::create(path).map_err(|source| failed("create", path, source));
        create(&self.data_path)?;
        let head = index::head(self.offset, geometry.points_per_file);
        let index = create(&self.index_path)?;
        let written = index.write_all_at(&head, 0).and_then(|()| index.sync_all());
        written.map_err(|source| failed("write", &self.index_path, source))
    }

    /// Reads the index and all points. `found` gets the number of points, the newest point of each
    /// name, and the points of no valid form.
    pub(super) fn load(&self, geometry: Geometry, listed: Listed, names: &mut Names, found: &mut Found) -> Result<()> {
        let bytes = std::fs::read(&self.index_path).map_err(|source| failed("read", &self.index_path, source))?;
        let numbers: Vec<u32> = index::names(&self.index_path, &bytes, listed)?
            .into_iter()
            .map(|name| names.number(name))
            .collect();
        found.newest.resize(names.len(), None);
        let data = self.open()?;
        let len = data
            .metadata()
            .map_err(|source| failed("read", &self.data_path, source))?
            .len();
        let named = u64::from(listed.metrics) * geometry.stride();
        if len < named {
            let what = format!("it is cut short: its metrics occupy {named} bytes");
            return Err(corrupt(&self.data_path, len, what));
        }
        if let Some(at) = first_point(&data, &self.data_path, named, len)? {
            return Err(corrupt(
                &self.data_path,
                at,
                "there are points behind those of the metrics that its index names",
            ));
        }
        {
            let mut locals = write(&self.locals);
            for (local, &number) in (0..).zip(&numbers) {
                set(&mut locals, number, local);
            }
        }
        self.count(geometry, &data, named, &numbers, found)
    }

    fn count(&self, geometry: Geometry, data: &File, len: u64, numbers: &[u32], found: &mut Found) -> Result<()> {
        let stride = geometry.stride();
        each_piece(data, &self.data_path, 0, len, &mut |at, words| {
            for (index, &word) in (0_u64..).zip(words).filter(|(_, word)| **word != 0) {
                let at = at + index * POINT_BYTES;
                let number = numbers[(at / stride) as usize];
                match tsb_core::wire::dalmatiner::value_of(word) {
                    None => {}
                    Some(Err(what)) => found.invalid.push((at, number, what)),
                    Some(Ok(_)) => {
                        found.points += 1;
                        let point = self.offset + (at % stride / POINT_BYTES) as i64;
                        let newest = &mut found.newest[number as usize];
                        *newest = (*newest).max(Some(point));
                    }
                }
            }
            found.invalid.truncate(INVALID_MAX);
            true
        })
    }

    /// The number of a name in this file.
    pub(super) fn local(&self, number: u32) -> Option<u32> {
        let local = read(&self.locals).get(number as usize).copied();
        local.filter(|local| *local != ABSENT)
    }

    /// Gives the defined series that the index does not have a number in it; `listed` is its state.
    ///
    /// IMPORTANT: the file of points is made long enough first, and the list learns of the
    /// metrics last. So after any crash, a file that is shorter than its listed metrics is damaged,
    /// and points behind the listed metrics mean that the index or the list is damaged.
    pub(super) fn admit(&self, geometry: Geometry, listed: &mut Listed, names: &Names, list: &mut List) -> Result<()> {
        let (mut entries, mut added) = (Vec::new(), Vec::new());
        for (number, name) in names.defined().filter(|(number, _)| self.local(*number).is_none()) {
            index::push(&mut entries, name);
            added.push(number);
        }
        let metrics = listed.metrics + added.len() as u32;
        let data = File::options().write(true).open(&self.data_path);
        let extended = data.and_then(|data| {
            data.set_len(u64::from(metrics) * geometry.stride())?;
            data.sync_all()
        });
        extended.map_err(|source| failed("write", &self.data_path, source))?;
        let index = File::options().write(true).open(&self.index_path);
        let appended = index.and_then(|index| {
            index.write_all_at(&entries, listed.index_bytes)?;
            index.sync_all()
        });
        appended.map_err(|source| failed("write", &self.index_path, source))?;
        let mut crc = crc32fast::Hasher::new_with_initial(listed.index_crc);
        crc.update(&entries);
        let now = Listed {
            metrics,
            index_bytes: listed.index_bytes + entries.len() as u64,
            index_crc: crc.finalize(),
        };
        list.add(self.offset, now)?;
        let mut locals = write(&self.locals);
        for (local, number) in (listed.metrics..).zip(added) {
            set(&mut locals, number, local);
        }
        *listed = now;
        Ok(())
    }

    /// Opens the file of points.
    pub(super) fn open(&self) -> Result<File> {
        let opened = File::options().read(true).write(true).open(&self.data_path);
        opened.map_err(|source| failed("open", &self.data_path, source))
    }

    /// Syncs the points written so far.
    pub(super) fn sync(&self) -> Result<()> {
        if !self.is_dirty.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.open()?.sync_data();
        synced.map_err(|source| failed("sync", &self.data_path, source))
    }
}

/// Number of invalid points that are named, for each file.
const INVALID_MAX: usize = 100;

/// What loading has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) points: u64,
    /// By the number of a name.
    pub(super) newest: Vec<Option<i64>>,
    /// Where points are that have no valid form, and of which name.
    pub(super) invalid: Vec<(u64, u32, &'static str)>,
}

fn set(locals: &mut Vec<u32>, number: u32, local: u32) {
    let index = number as usize;
    if locals.len() <= index {
        locals.resize(index + 1, ABSENT);
    }
    locals[index] = local;
}

/// Where the first byte that is not 0 is between two positions.
fn first_point(data: &File, path: &Path, from: u64, to: u64) -> Result<Option<u64>> {
    let mut first = None;
    each_piece(data, path, from, to, &mut |at, words| {
        let index = words.iter().position(|word| *word != 0);
        first = index.map(|index| at + index as u64 * POINT_BYTES);
        first.is_none()
    })?;
    Ok(first)
}

/// Whether a file has a byte that is not 0.
pub(super) fn has_points(path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(|source| failed("open", path, source))?;
    let len = file.metadata().map_err(|source| failed("read", path, source))?.len();
    Ok(first_point(&file, path, 0, len)?.is_some())
}

/// Visits the words between two positions, piece by piece, without the holes of the file. Bytes
/// behind its end are 0. It ends early where `visit` returns false.
pub(super) fn each_piece(
    data: &File,
    path: &Path,
    from: u64,
    to: u64,
    visit: &mut dyn FnMut(u64, &[u64]) -> bool,
) -> Result<()> {
    let (mut bytes, mut words) = (Vec::new(), Vec::new());
    let mut at = from;
    loop {
        at = at.max(next_data(data, at) / POINT_BYTES * POINT_BYTES);
        if at >= to {
            return Ok(());
        }
        let len = (to - at).min(PIECE as u64).next_multiple_of(POINT_BYTES) as usize;
        bytes.clear();
        bytes.resize(len, 0);
        read_all_at(data, &mut bytes, at).map_err(|source| failed("read", path, source))?;
        words.clear();
        words.extend(bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_be_bytes(*bytes)));
        if !visit(at, &words) {
            return Ok(());
        }
        at += len as u64;
    }
}

/// Reads up to the end of the file; bytes behind it stay as they are.
fn read_all_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The next position with data, at or behind `at`; the end of all positions if there is none, and
/// `at` where the file system cannot tell.
fn next_data(file: &File, at: u64) -> u64 {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(next) => next,
        Err(Errno::NXIO) => u64::MAX,
        Err(_) => at,
    }
}
