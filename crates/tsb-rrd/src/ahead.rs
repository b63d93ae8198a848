//! Reading ahead: what the next files will need is asked for before it is needed.
//!
//! An update reads the header, and then the pages that its rows lie in: where they are not in
//! memory, a thread that goes over many files waits for one page after the other. Here it
//! asks for the headers of files that are up to 128 away, and for the row pages of those that
//! are up to 64 away, so that the medium always has many requests.
//!
//! Asking costs as much as reading where nothing has to be read. So it is only done while
//! files are found that are not in memory, and one of 32 is looked at to find out.

use std::io::IoSliceMut;

use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, preadv2};

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session};
use crate::layout::Layout;
use crate::live::Live;

/// How many files ahead headers are asked for.
const HEADERS: usize = 128;
/// How many files ahead the pages of rows are asked for, whose places the header says.
const ROWS: usize = 64;
/// One file of so many is looked at while all is in memory.
const SAMPLE: u64 = 32;
/// So many looks in turn that found everything in memory, and nothing more is asked for.
const ENOUGH: u32 = 64;

/// Whether what was looked for is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is.
    Warm,
    /// It is not, or the system does not say; it has been asked for.
    Cold,
    /// Nobody looked.
    Nothing,
}

/// What is done with a file, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its header is asked for: [`RrdFile::ask_header`].
    Header,
    /// The pages of its rows are asked for: [`RrdFile::ask_rows`].
    Rows,
    /// It is updated.
    Update,
}

/// Goes over files, and knows whether the last ones were in memory.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    is_cold: bool,
    // Looks in turn that found everything in memory.
    warm: u32,
    updates: u64,
}

impl Ahead {
    /// Does something with each of `count` files: [`Stage::Update`] with every one in turn,
    /// and the stages before that with some of them, earlier.
    ///
    /// # Errors
    /// The first that `act` returns; files further on may have been asked for.
    pub fn each<E>(
        &mut self,
        count: usize,
        mut act: impl FnMut(Stage, usize) -> std::result::Result<Seen, E>,
    ) -> std::result::Result<(), E> {
        let (mut headers, mut rows) = (0, 0);
        for index in 0..count {
            // Of the last one nothing can be asked for ahead.
            let is_sample = !self.is_cold && self.updates.is_multiple_of(SAMPLE) && index + 1 < count;
            let (to_headers, to_rows) = match (self.is_cold, is_sample) {
                (true, _) => (index + HEADERS, index + ROWS),
                (false, true) => (index + 1, index + 1),
                (false, false) => (0, 0),
            };
            self.ask(Stage::Header, &mut headers, index..to_headers.min(count), &mut act)?;
            self.ask(Stage::Rows, &mut rows, index..to_rows.min(count), &mut act)?;
            act(Stage::Update, index)?;
            self.updates = self.updates.wrapping_add(1);
        }
        Ok(())
    }

    fn ask<E>(
        &mut self,
        stage: Stage,
        done: &mut usize,
        range: std::ops::Range<usize>,
        act: &mut impl FnMut(Stage, usize) -> std::result::Result<Seen, E>,
    ) -> std::result::Result<(), E> {
        *done = (*done).max(range.start);
        while *done < range.end {
            match act(stage, *done)? {
                Seen::Nothing => {}
                Seen::Cold => (self.is_cold, self.warm) = (true, 0),
                Seen::Warm => {
                    self.warm = self.warm.saturating_add(1);
                    self.is_cold &= self.warm < ENOUGH;
                }
            }
            *done += 1;
        }
        Ok(())
    }
}

impl RrdFile {
    /// Asks the system to read the header, unless it is in memory, and does not wait.
    pub fn ask_header(&self) -> Seen {
        self.ask(0, self.layout().header_len() as u64)
    }

    /// Asks the system to read the pages that updates up to `until_s` (seconds since the
    /// epoch) will write rows to, and does not wait for them. It waits for the header.
    ///
    /// No lock is taken: what another program writes meanwhile makes the advice bad, and
    /// nothing else.
    ///
    /// # Errors
    /// Those of reading the header.
    pub fn ask_rows(&self, session: &mut Session, until_s: i64) -> Result<Seen> {
        let layout = self.layout();
        self.read_live(session)?;
        let mut seen = Seen::Warm;
        for place in places(layout, &session.live, until_s) {
            // Two archives may share a page, and a page is asked for once only.
            if self.ask(place, layout.row_len() as u64) == Seen::Cold {
                seen = Seen::Cold;
            }
        }
        Ok(seen)
    }

    fn ask(&self, offset: u64, length: u64) -> Seen {
        let mut byte = [0];
        let looked = preadv2(
            self.file(),
            &mut [IoSliceMut::new(&mut byte)],
            offset,
            ReadWriteFlags::NOWAIT,
        );
        if looked == Ok(1) {
            return Seen::Warm;
        }
        let length = std::num::NonZero::new(length);
        // Advice that is not taken costs time and nothing else.
        let _ = fadvise(self.file(), offset, length, Advice::WillNeed);
        Seen::Cold
    }
}

/// A place in each page that rows up to a moment begin or end in: the pages between are
/// written whole, and need not be read.
fn places(layout: &Layout, live: &Live, until_s: i64) -> impl Iterator<Item = u64> {
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

/// The second up to which a reading, `time:value...`, updates a file, if it says one.
pub fn until_s(reading: &str) -> Option<i64> {
    let digits = reading.split([':', '.']).next()?;
    digits.parse().ok()
}

impl From<Error> for Seen {
    /// Whoever updates the file will meet the error, and say it.
    fn from(_: Error) -> Self {
        Self::Nothing
    }
}

#[cfg(test)]
mod tests;
