//! The files of a folder: where blocks of points are written and read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};

use super::chunk::{Chunk, Found, each_piece, has_points};
use super::geometry::{Geometry, POINT_BYTES};
use super::list::{List, Listed, Listing, corrupt, failed, sync_folder};
use super::names::Names;
use crate::damage::{Damage, DamageKind, DamageLog};
use crate::disk;
use crate::error::Result;
use crate::locks::{lock, read, write};

/// Files of points that are kept open, as in DalmatinerDB.
const OPEN_MAX: usize = 2;

/// All files of one store.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    geometry: Geometry,
    // How many files of points there may be.
    bound: usize,
    state: Mutex<ListState>,
    pub(super) names: RwLock<Names>,
    chunks: RwLock<BTreeMap<i64, Arc<Chunk>>>,
    // The files that there are, and those that waiting points need.
    promised: Mutex<BTreeSet<i64>>,
    // The one opened last is last.
    open: Mutex<Vec<(i64, Arc<File>)>>,
    pub(super) damage: DamageLog,
}

/// The list, and the state of each pair of files as it says; `None` once closed.
#[derive(Debug)]
struct ListState {
    list: Option<List>,
    listed: BTreeMap<i64, Listed>,
}

/// What opening has found in the files.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Files,
    pub(super) points: u64,
    /// The newest point of each name, by its number.
    pub(super) newest: Vec<Option<i64>>,
}

impl Files {
    /// Opens the files of a folder, which is created if it does not exist, and reads them all.
    pub(super) fn open(folder: &Path, geometry: Geometry, max_files: usize) -> Result<Opened> {
        std::fs::create_dir_all(folder).map_err(|source| failed("make folder", folder, source))?;
        let (mut list, listing) = List::open(folder, geometry)?;
        let damage = DamageLog::new();
        if listing.torn_bytes > 0 {
            let torn = Damage::new(DamageKind::Torn, list.path(), "its last line is not whole");
            damage.note(torn.with_bytes(listing.torn_bytes));
        }
        remove_leftovers(folder, &listing)?;
        let (mut names, mut found) = (Names::default(), Found::default());
        let mut chunks = BTreeMap::new();
        for (&offset, &listed) in &listing.files {
            let chunk = Chunk::new(folder, offset);
            chunk.load(geometry, listed, &mut names, &mut found)?;
            for (at, number, what) in found.invalid.drain(..) {
                damage.note(invalid_point(&chunk.data_path, at, &names.text(number), what));
            }
            chunks.insert(offset, Arc::new(chunk));
        }
        list.begin(&listing, geometry)?;
        let files = Self {
            folder: folder.to_owned(),
            geometry,
            bound: max_files,
            promised: Mutex::new(chunks.keys().copied().collect()),
            state: Mutex::new(ListState {
                list: Some(list),
                listed: listing.files,
            }),
            names: RwLock::new(names),
            chunks: RwLock::new(chunks),
            open: Mutex::default(),
            damage,
        };
        Ok(Opened {
            files,
            points: found.points,
            newest: found.newest,
        })
    }

    /// Promises the file of a point, unless there would be too many.
    pub(super) fn promise(&self, offset: i64) -> bool {
        let mut promised = lock(&self.promised);
        if !promised.contains(&offset) && promised.len() >= self.bound {
            return false;
        }
        promised.insert(offset);
        true
    }

    /// Writes a block of consecutive points of one name. `scratch` is any buffer.
    pub(super) fn write(&self, number: u32, mut first: i64, mut points: &[u64], scratch: &mut Vec<u8>) -> Result<()> {
        while !points.is_empty() {
            let offset = self.geometry.offset(first);
            let room = (offset + self.geometry.points_per_file - first) as usize;
            let (part, rest) = points.split_at(room.min(points.len()));
            let (chunk, local) = self.place(offset, number)?;
            scratch.clear();
            scratch.extend(part.iter().flat_map(|word| word.to_be_bytes()));
            let at = self.geometry.position(local, first, offset);
            let written = self.data(&chunk)?.write_all_at(scratch, at);
            written.map_err(|source| failed("write", &chunk.data_path, source))?;
            chunk.is_dirty.store(true, Ordering::Release);
            first += part.len() as i64;
            points = rest;
        }
        Ok(())
    }

    /// Whether a point is set in its file.
    pub(super) fn has(&self, number: u32, point: i64) -> Result<bool> {
        let mut is_set = false;
        self.read(number, point..point + 1, &mut |_, _| {
            is_set = true;
            true
        })?;
        Ok(is_set)
    }

    /// Visits the points of a name in a range in pieces of ascending time: each point's number
    /// with its value. It ends early where `visit` returns false. Points of no valid form are
    /// noted as damage.
    pub(super) fn read(
        &self,
        number: u32,
        range: Range<i64>,
        visit: &mut dyn FnMut(&[i64], &[f64]) -> bool,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let chunks: Vec<_> = {
            let chunks = read(&self.chunks);
            let near = chunks.range(self.geometry.offset(range.start)..range.end);
            near.map(|(_, chunk)| Arc::clone(chunk)).collect()
        };
        let (mut points, mut values) = (Vec::new(), Vec::new());
        let mut goes_on = true;
        for chunk in chunks {
            let Some(local) = chunk.local(number) else { continue };
            let start = range.start.max(chunk.offset);
            let end = range.end.min(chunk.offset + self.geometry.points_per_file);
            let from = self.geometry.position(local, start, chunk.offset);
            let to = from + (end - start) as u64 * POINT_BYTES;
            let data = self.data(&chunk)?;
            each_piece(&data, &chunk.data_path, from, to, &mut |at, words| {
                points.clear();
                values.clear();
                for (index, &word) in (0_u64..).zip(words).filter(|(_, word)| **word != 0) {
                    let at = at + index * POINT_BYTES;
                    match tsb_core::wire::dalmatiner::value_of(word) {
                        None => {}
                        Some(Ok(value)) => {
                            points.push(start + ((at - from) / POINT_BYTES) as i64);
                            values.push(value);
                        }
                        Some(Err(what)) => {
                            let name = read(&self.names).text(number);
                            self.damage.note(invalid_point(&chunk.data_path, at, &name, what));
                        }
                    }
                }
                goes_on = points.is_empty() || visit(&points, &values);
                goes_on
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Syncs what was written so far.
    pub(super) fn sync(&self) -> Result<()> {
        let chunks: Vec<_> = read(&self.chunks).values().cloned().collect();
        chunks.iter().try_for_each(|chunk| chunk.sync())
    }

    /// Bytes of the file system's blocks of all files, and of the indexes as they were written.
    pub(super) fn bytes(&self) -> (Option<u64>, u64) {
        let index: u64 = lock(&self.state).listed.values().map(|listed| listed.index_bytes).sum();
        let blocks = |extension| disk::of_folder(&self.folder, extension);
        let all = [blocks("mstore"), blocks("idx"), blocks("list")];
        (all.into_iter().flatten().reduce(|sum, bytes| sum + bytes), index)
    }

    /// Closes every file and unlocks the folder.
    pub(super) fn close(&self) {
        lock(&self.open).clear();
        lock(&self.state).list = None;
    }

    /// The file of points from `offset` on, and the number of a name in it; both are made where
    /// they are not there.
    fn place(&self, offset: i64, number: u32) -> Result<(Arc<Chunk>, u32)> {
        let known = read(&self.chunks).get(&offset).cloned();
        if let Some(chunk) = known
            && let Some(local) = chunk.local(number)
        {
            return Ok((chunk, local));
        }
        let mut state = lock(&self.state);
        let ListState { list, listed } = &mut *state;
        let list = list.as_mut().ok_or(crate::Error::Closed)?;
        let known = read(&self.chunks).get(&offset).cloned();
        let chunk = if let Some(chunk) = known {
            chunk
        } else {
            let chunk = Arc::new(Chunk::new(&self.folder, offset));
            chunk.create(self.geometry)?;
            sync_folder(&self.folder)?;
            listed.insert(offset, Listed::empty(offset, self.geometry));
            write(&self.chunks).insert(offset, Arc::clone(&chunk));
            chunk
        };
        if chunk.local(number).is_none() {
            let listed = listed.entry(offset).or_insert(Listed::empty(offset, self.geometry));
            chunk.admit(self.geometry, listed, &read(&self.names), list)?;
        }
        let local = chunk.local(number);
        local
            .map(|local| (chunk, local))
            .ok_or_else(|| failed("write", &self.folder, std::io::Error::other("a metric has no name")))
    }

    /// The open file of points of a chunk.
    fn data(&self, chunk: &Chunk) -> Result<Arc<File>> {
        let mut open = lock(&self.open);
        if let Some((_, file)) = open.iter().find(|(offset, _)| *offset == chunk.offset) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(chunk.open()?);
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push((chunk.offset, Arc::clone(&file)));
        Ok(file)
    }
}

fn invalid_point(path: &Path, at: u64, name: &str, what: &str) -> Damage {
    let what = format!("{what}: 8 bytes at byte {at}, of {name}");
    Damage::new(DamageKind::Unreadable, path, what)
        .with_bytes(POINT_BYTES)
        .with_samples_at_most(1)
}

/// Removes pairs of files that a crash has left before they were listed. They have no points.
fn remove_leftovers(folder: &Path, listing: &Listing) -> Result<()> {
    let unreadable = |source| failed("read folder", folder, source);
    let mut leftovers = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let offset = path.file_stem().and_then(|stem| stem.to_str()?.parse::<i64>().ok());
        let extension = path.extension().and_then(|end| end.to_str());
        let (Some(offset), Some(extension @ ("mstore" | "idx"))) = (offset, extension) else {
            continue;
        };
        if listing.files.contains_key(&offset) {
            continue;
        }
        if listing.is_new || (extension == "mstore" && has_points(&path)?) {
            let list = folder.join(super::list::LIST);
            return Err(corrupt(&list, 0, format!("it does not list {}", path.display())));
        }
        leftovers.push(path);
    }
    // Only when all are known to be empty.
    leftovers
        .iter()
        .try_for_each(|path| std::fs::remove_file(path).map_err(|source| failed("remove", path, source)))
}
