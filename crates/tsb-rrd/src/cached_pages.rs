//! Cached pages of a file: those that the next updates will change.
//!
//! An update changes a few bytes in a few pages. If such a page is not in memory, the system reads
//! it before changing it; with a cached copy the update writes the whole page, and nothing is
//! read. Cached pages are trusted only while the file's times match the stamp taken with them: any
//! other writer, or a replacement of the file, changes its times. Then the cache is dropped and
//! the file is read.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FlockOperation, fstat};

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session, Updated};
use crate::header::{get, put};
use crate::layout::{Layout, STAT_HEAD};
use crate::live_header::LiveHeader;
use crate::parse::Moment;
use crate::stamp::{Stamp, WORDS};

/// Size of a page in bytes: the smallest unit that the system reads and writes.
const PAGE: u64 = 4_096;
/// Memory for one page, including its entry in the tree.
const PAGE_BYTES: usize = PAGE as usize + 48;
/// Maximum number of pages that an update may touch to be cached: more means a gap of many rows.
const TOUCHED_MAX: usize = 64;
/// Bytes before the pages in [`CachedPages::to_bytes`]: the stamp and the length of the file.
const HEAD: usize = 8 * (WORDS + 1);

/// Pages of a file by number, and the file's stamp when they were cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPages {
    stamp: Stamp,
    file_len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl CachedPages {
    /// Whether the file is unchanged since the pages were cached. Reads no byte of it.
    ///
    /// Another program may write to it a moment later: an update checks again, under the lock.
    pub fn is_current(&self, file: &Metadata) -> bool {
        Stamp::of_metadata(file) == self.stamp
    }

    /// Time of the newest update, if the cached pages match this layout.
    pub fn newest_for(&self, layout: &Layout, session: &mut Session) -> Option<Moment> {
        let Session { header, live, .. } = session;
        header.resize(layout.header_len(), 0);
        let is_of_layout =
            layout.file_len() <= self.file_len && self.copy(header) && header.starts_with(&layout.statics);
        if !is_of_layout {
            return None;
        }
        live.load(layout, header).ok()?;
        Some(live.newest())
    }

    /// The layout and the time of the newest update, from the cached header.
    ///
    /// # Errors
    /// As [`Layout::decode`]; [`Error::Damaged`] if the cached pages do not contain the header.
    pub fn header(&self) -> Result<(Layout, Moment)> {
        let bytes = |length: usize| {
            let mut header = vec![0; length];
            let missing = || Error::damaged(0, "a header that is not all there");
            self.copy(&mut header).then_some(header).ok_or_else(missing)
        };
        let length = Layout::header_len_of(&bytes(STAT_HEAD)?)?;
        if length as u64 > self.file_len {
            return Err(Error::damaged(0, "a header longer than the file"));
        }
        let header = bytes(length)?;
        let layout = Layout::decode(&header)?;
        let mut live = LiveHeader::default();
        live.load(&layout, &header)?;
        Ok((layout, live.newest()))
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.pages.len() * PAGE_BYTES
    }

    /// Fills `header` from the first pages; false if one of them is not cached.
    fn copy(&self, header: &mut [u8]) -> bool {
        let mut parts = header.chunks_mut(PAGE as usize).zip(0..);
        parts.all(|(part, number)| {
            let page = self.pages.get(&number).and_then(|page| page.get(..part.len()));
            page.map(|page| part.copy_from_slice(page)).is_some()
        })
    }

    /// Serializes everything, for storing in a file. It adds no checksum.
    pub fn to_bytes(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + HEAD, 0);
        for (index, word) in self.stamp.words().into_iter().chain([self.file_len]).enumerate() {
            put(&mut into[start..], index * 8, word);
        }
        for (number, page) in &self.pages {
            into.extend_from_slice(&number.to_le_bytes());
            into.extend_from_slice(page);
        }
    }

    /// Parses the output of [`CachedPages::to_bytes`]; `None` if the bytes are not valid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, mut rest) = bytes.split_at_checked(HEAD)?;
        let word = |index: usize| get(head, index * 8);
        let file_len = word(WORDS);
        let mut pages = BTreeMap::new();
        while !rest.is_empty() {
            let (number, after) = rest.split_first_chunk::<8>()?;
            let number = u64::from_le_bytes(*number);
            let length = usize::try_from(page_len(number, file_len)?).ok()?;
            let (page, after) = after.split_at_checked(length)?;
            if pages.insert(number, Box::from(page)).is_some() {
                return None;
            }
            rest = after;
        }
        Some(Self {
            stamp: Stamp::from_words(std::array::from_fn(word)),
            file_len,
            pages,
        })
    }
}

/// Length of a page; the last page of a file may be shorter.
fn page_len(number: u64, file_len: u64) -> Option<u64> {
    let start = number.checked_mul(PAGE)?;
    file_len
        .checked_sub(start)
        .filter(|&left| left > 0)
        .map(|left| left.min(PAGE))
}

/// The pages of one pass: cached ones, and those that it had to read.
struct PageSet<'a> {
    file: &'a File,
    file_len: u64,
    cached: BTreeMap<u64, Box<[u8]>>,
    /// Numbers of the changed pages.
    changed: Vec<u64>,
}

impl PageSet<'_> {
    /// A page, which is read if it is not cached.
    fn page(&mut self, number: u64) -> std::io::Result<&mut [u8]> {
        use std::collections::btree_map::Entry;
        match self.cached.entry(number) {
            Entry::Occupied(cached) => Ok(cached.into_mut()),
            Entry::Vacant(vacant) => {
                let length = page_len(number, self.file_len).ok_or(std::io::ErrorKind::UnexpectedEof)?;
                let mut page = vec![0; length as usize].into_boxed_slice();
                self.file.read_exact_at(&mut page, number * PAGE)?;
                Ok(vacant.insert(page))
            }
        }
    }

    /// Changes bytes, in memory only.
    fn put(&mut self, mut offset: u64, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let (number, at) = (offset / PAGE, (offset % PAGE) as usize);
            let page = self.page(number)?;
            let length = bytes.len().min(PAGE as usize - at);
            let place = page.get_mut(at..at + length).ok_or(std::io::ErrorKind::UnexpectedEof)?;
            place.copy_from_slice(&bytes[..length]);
            if !self.changed.contains(&number) {
                self.changed.push(number);
            }
            offset += length as u64;
            bytes = &bytes[length..];
        }
        Ok(())
    }

    /// Writes the changed pages, with the header last and in one call: a crash before that leaves
    /// the old state, and a crash within it is as unlikely as possible.
    fn write(&self, header_pages: u64) -> std::io::Result<()> {
        for number in self.changed.iter().filter(|&&number| number >= header_pages) {
            if let Some(page) = self.cached.get(number) {
                self.file.write_all_at(page, number * PAGE)?;
            }
        }
        let mut header = self.cached.range(..header_pages).map(|(_, page)| &**page);
        match (header_pages, header.next()) {
            (1, Some(page)) => self.file.write_all_at(page, 0),
            (_, first) => {
                let all: Vec<&[u8]> = first.into_iter().chain(header).collect();
                self.file.write_all_at(&all.concat(), 0)
            }
        }
    }

    /// Keeps the header pages and those that the next row of each archive is written to.
    fn trim(&mut self, layout: &Layout, live: &LiveHeader, header_pages: u64) {
        let next = layout.archives.iter().enumerate().flat_map(|(index, archive)| {
            let start = layout.row_offset(index, (live.row(index) + 1) % archive.rows);
            [start / PAGE, (start + layout.row_len() as u64 - 1) / PAGE]
        });
        let next: Vec<u64> = next.collect();
        self.cached
            .retain(|number, _| *number < header_pages || next.contains(number));
    }
}

impl RrdFile {
    /// Applies updates as [`RrdFile::update`] does, using the cached pages: if these are still
    /// valid, only pages that are not cached are read. Afterwards `cache` describes the file's new
    /// state; it is `None` if that cannot be cached.
    ///
    /// # Errors
    /// As [`RrdFile::update`].
    pub fn update_cached<T: AsRef<str>>(
        &self,
        session: &mut Session,
        cache: &mut Option<CachedPages>,
        updates: &[T],
    ) -> Result<Updated> {
        self.locked(FlockOperation::NonBlockingLockExclusive, || {
            self.cached_pass(session, cache, updates)
        })
    }

    fn cached_pass<T: AsRef<str>>(
        &self,
        session: &mut Session,
        cache: &mut Option<CachedPages>,
        updates: &[T],
    ) -> Result<Updated> {
        // Dropped first, so that after any error the file is read again.
        let before = cache.take();
        let layout = Arc::clone(self.layout());
        let state = fstat(self.file()).map_err(|error| Error::Io {
            action: "look at the file",
            source: error.into(),
        })?;
        if state.st_nlink == 0 || (state.st_size as u64) < layout.file_len() {
            return Err(Error::Changed);
        }
        let before = before.filter(|cache| cache.stamp == Stamp::of(&state));
        let mut pages = PageSet {
            file: self.file(),
            file_len: layout.file_len(),
            cached: before.map(|cache| cache.pages).unwrap_or_default(),
            changed: Vec::new(),
        };
        let header_pages = (layout.header_len() as u64).div_ceil(PAGE);
        let header = &mut session.header;
        header.resize(layout.header_len(), 0);
        for (part, number) in header.chunks_mut(PAGE as usize).zip(0..) {
            let page = pages.page(number).map_err(Error::io("read the header"))?;
            let page = page.get(..part.len()).ok_or(Error::Changed)?;
            part.copy_from_slice(page);
        }
        if header.get(..layout.statics.len()) != Some(layout.statics.as_slice()) {
            return Err(Error::Changed);
        }
        session.live.load(&layout, header)?;
        let (live, pass) = (&mut session.live, &mut session.pass);
        let updated = pass.run(&layout, live, updates);
        let mut touched = 0;
        let _ = pass.rows.write(|_, bytes| {
            touched += 1 + bytes.len() / PAGE as usize;
            Ok::<_, ()>(())
        });
        if touched > TOUCHED_MAX {
            self.write(pass, live)?;
            return Ok(updated);
        }
        let rows = pass.rows.write(|offset, bytes| pages.put(offset, bytes));
        rows.and_then(|()| pages.put(layout.live_offset() as u64, pass.changed(live)))
            .and_then(|()| pages.write(header_pages))
            .map_err(Error::io("write pages"))?;
        pages.trim(&layout, live, header_pages);
        let PageSet { cached, file_len, .. } = pages;
        *cache = Stamp::mark(self.file()).map(|stamp| CachedPages {
            stamp,
            file_len,
            pages: cached,
        });
        Ok(updated)
    }
}

#[cfg(test)]
mod tests;
