//! Read-ahead: requests the pages that the next files need before they are updated.
//!
//! An update reads the header, and then the pages that hold its rows. If these are not in memory,
//! a thread that updates many files waits for one page after the other. With read-ahead it
//! requests the headers of files up to 128 ahead, and the row pages of files up to 64 ahead, so
//! that the storage device always has many requests.
//!
//! A request costs as much as a read when the page is in memory already. So requests are only made
//! while some pages are found not to be in memory; otherwise only one file in 32 is probed.

use std::io::IoSliceMut;

use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, preadv2};

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session};
use crate::layout::Layout;
use crate::live_header::LiveHeader;

/// Number of files ahead for which headers are requested.
const HEADERS: usize = 128;
/// Number of files ahead for which row pages are requested; the header must be known for that.
const ROWS: usize = 64;
/// One file in this many is probed while everything is in memory.
const SAMPLE: u64 = 32;
/// Number of consecutive probes that must find everything in memory before requests stop.
const WARM_PROBES: u32 = 64;

/// Whether the probed pages are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// In memory.
    Warm,
    /// Not in memory, or the system does not say; a read was requested.
    Cold,
    /// Not probed.
    NotProbed,
}

/// The stages of a file, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Request its header: [`RrdFile::prefetch_header`].
    Header,
    /// Request the pages of its rows: [`RrdFile::prefetch_rows`].
    Rows,
    /// Update it.
    Update,
}

/// Schedules requests and updates over files, and tracks whether the last probed files were in
/// memory.
#[derive(Clone, Debug, Default)]
pub struct ReadAhead {
    is_cold: bool,
    // Number of consecutive probes that found everything in memory.
    warm: u32,
    updates: u64,
}

impl ReadAhead {
    /// Calls `act` for each of `count` files with [`Stage::Update`], in order, and for some of
    /// them with the earlier stages before that.
    ///
    /// # Errors
    /// The first error of `act`; read-ahead for later files may have been requested by then.
    pub fn for_each<E>(
        &mut self,
        count: usize,
        mut act: impl FnMut(Stage, usize) -> std::result::Result<Residency, E>,
    ) -> std::result::Result<(), E> {
        let (mut headers, mut rows) = (0, 0);
        for index in 0..count {
            // The last file has none after it to read ahead of.
            let is_sample = !self.is_cold && self.updates.is_multiple_of(SAMPLE) && index + 1 < count;
            let (to_headers, to_rows) = match (self.is_cold, is_sample) {
                (true, _) => (index + HEADERS, index + ROWS),
                (false, true) => (index + 1, index + 1),
                (false, false) => (0, 0),
            };
            self.prefetch(Stage::Header, &mut headers, index..to_headers.min(count), &mut act)?;
            self.prefetch(Stage::Rows, &mut rows, index..to_rows.min(count), &mut act)?;
            act(Stage::Update, index)?;
            self.updates = self.updates.wrapping_add(1);
        }
        Ok(())
    }

    fn prefetch<E>(
        &mut self,
        stage: Stage,
        done: &mut usize,
        range: std::ops::Range<usize>,
        act: &mut impl FnMut(Stage, usize) -> std::result::Result<Residency, E>,
    ) -> std::result::Result<(), E> {
        *done = (*done).max(range.start);
        while *done < range.end {
            match act(stage, *done)? {
                Residency::NotProbed => {}
                Residency::Cold => (self.is_cold, self.warm) = (true, 0),
                Residency::Warm => {
                    self.warm = self.warm.saturating_add(1);
                    self.is_cold &= self.warm < WARM_PROBES;
                }
            }
            *done += 1;
        }
        Ok(())
    }
}

impl RrdFile {
    /// Asks the system to read the header unless it is in memory; does not wait.
    pub fn prefetch_header(&self) -> Residency {
        self.prefetch(0, self.layout().header_len() as u64)
    }

    /// Asks the system to read the pages to which updates up to `until_s` (seconds since the
    /// epoch) will write rows; does not wait for them, but does wait for the header.
    ///
    /// It takes no lock: if another program writes at the same time, only the advice is wrong.
    ///
    /// # Errors
    /// The errors of reading the header.
    pub fn prefetch_rows(&self, session: &mut Session, until_s: i64) -> Result<Residency> {
        let layout = self.layout();
        self.read_live(session)?;
        let mut residency = Residency::Warm;
        for offset in row_offsets(layout, &session.live, until_s) {
            // Two archives may share a page, which is requested only once.
            if self.prefetch(offset, layout.row_len() as u64) == Residency::Cold {
                residency = Residency::Cold;
            }
        }
        Ok(residency)
    }

    fn prefetch(&self, offset: u64, length: u64) -> Residency {
        let mut byte = [0];
        let probed = preadv2(
            self.file(),
            &mut [IoSliceMut::new(&mut byte)],
            offset,
            ReadWriteFlags::NOWAIT,
        );
        if probed == Ok(1) {
            return Residency::Warm;
        }
        let length = std::num::NonZero::new(length);
        // An error is ignored: it only means that the read-ahead has no effect.
        let _ = fadvise(self.file(), offset, length, Advice::WillNeed);
        Residency::Cold
    }
}

/// An offset in each page in which the rows up to a time begin or end. The pages between are
/// overwritten entirely and need not be read.
fn row_offsets(layout: &Layout, live: &LiveHeader, until_s: i64) -> impl Iterator<Item = u64> {
    let newest_s = live.newest().seconds;
    let of_archive = move |(index, archive): (usize, &crate::layout::Archive)| {
        let span_s = (archive.steps * layout.step_s) as i64;
        let ended = until_s.div_euclid(span_s).saturating_sub(newest_s.div_euclid(span_s));
        let count = ended.clamp(0, archive.rows as i64) as u64;
        let place = |row: u64| layout.row_offset(index, row % archive.rows);
        let first = (count > 0).then(|| place(live.row(index) + 1));
        let last = (count > 1).then(|| place(live.row(index) + count));
        first.into_iter().chain(last)
    };
    layout.archives.iter().enumerate().flat_map(of_archive)
}

/// The second up to which an update, `time:value...`, advances a file, if it has a valid time.
pub fn update_time_s(update: &str) -> Option<i64> {
    let digits = update.split([':', '.']).next()?;
    digits.parse().ok()
}

impl From<Error> for Residency {
    /// The error itself is ignored: the update of the file will meet and report it.
    fn from(_: Error) -> Self {
        Self::NotProbed
    }
}

#[cfg(test)]
mod tests;
