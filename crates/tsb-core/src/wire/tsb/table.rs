//! A receiver's table: maps announced ids to the sink's ids, and decodes rows.

use super::announce::{self, read_key};
use super::frame::{IDS, PREFIX, TIMES};
use super::{MAX_SERIES, is_range};
use crate::batch::{Batch, Ids, Times};
use crate::bytes::{u32_at, u64_at};
use crate::series::SeriesId;
use crate::time::Timestamp;
use crate::wire::names::budget_share::{BudgetShare, grown};
use crate::wire::{NotAdmitted, Room, Sink};

/// Marks an id that is not announced. Larger values mark series that the sink refused.
const HOLE: u32 = NotAdmitted::FIRST - 1;

/// The error for samples of a series that is not in the table.
pub(super) const NOT_ANNOUNCED: &str = "a series is not announced";

/// Memory per id, in bytes.
const ENTRY: usize = 8;

/// The ids of one sender.
#[derive(Default)]
pub(super) struct Table {
    /// The sink's id of each id on the wire.
    ids: Vec<u32>,
    /// A checksum of each announced key, to distinguish a repetition from a contradiction.
    sums: Vec<u32>,
    // Room for one frame.
    values: Vec<f64>,
    columns: Vec<SeriesId>,
    times: Vec<Timestamp>,
    /// Memory taken from the budget that all senders of a listener share.
    share: BudgetShare,
}

/// An id on the wire that is not announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAnnounced(pub(super) u32);

/// The body of a sample frame, with its length verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) count: usize,
    first: usize,
    at: Timestamp,
    /// Empty if the ids are consecutive.
    ids: &'a [u8],
    /// Empty if all samples have the same timestamp.
    times: &'a [u8],
    values: &'a [u8],
}

impl<'a> Rows<'a> {
    /// Parses a body.
    #[inline]
    pub(super) fn read(shape: u8, body: &'a [u8]) -> Result<Self, &'static str> {
        if shape & !(IDS | TIMES) != 0 {
            return Err("a frame's shape is unknown");
        }
        let (Some(count), Some(first), Some(at)) = (u32_at(body, 0), u32_at(body, 4), u64_at(body, 8)) else {
            return Err("a frame of samples is cut short");
        };
        let count = count as usize;
        let id_bytes = if shape & IDS != 0 { 4 } else { 0 };
        let time_bytes = if shape & TIMES != 0 { 8 } else { 0 };
        if count == 0 || (body.len() - PREFIX) as u64 != count as u64 * (id_bytes + time_bytes + 8) {
            return Err("a frame of samples is not as long as it says");
        }
        let (ids, rest) = body[PREFIX..].split_at(count * id_bytes as usize);
        let (times, values) = rest.split_at(count * time_bytes as usize);
        Ok(Self {
            count,
            first: first as usize,
            at: Timestamp(at as i64),
            ids,
            times,
            values,
        })
    }
}

impl Table {
    /// Charges the memory of ids to the budget that all senders of a listener share. The table
    /// must be empty.
    pub(super) fn within(&mut self, room: &Room) {
        self.share = BudgetShare::new(&room.names, ENTRY);
    }

    /// The highest id plus one.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether an id is announced.
    pub(super) fn knows(&self, id: u32) -> bool {
        self.ids.get(id as usize).is_some_and(|known| *known != HOLE)
    }

    /// Removes all announcements.
    pub(super) fn clear(&mut self) {
        self.ids = Vec::new();
        self.sums = Vec::new();
        self.share.give_back();
    }

    /// Makes room for an id. Returns false if there is no memory for it.
    fn reach(&mut self, id: usize) -> bool {
        if id < self.ids.len() {
            return true;
        }
        let capacity = grown(self.ids.capacity(), id + 1);
        if !self.share.reach(capacity, 0) {
            return false;
        }
        self.ids.reserve_exact(capacity - self.ids.len());
        self.sums.reserve_exact(capacity - self.sums.len());
        self.ids.resize(id + 1, HOLE);
        self.sums.resize(id + 1, 0);
        true
    }

    /// Adds the keys of an announcement, which may skip up to `gap` ids. Returns whether a series
    /// became known.
    ///
    /// # Errors
    /// What is wrong with it; the keys before the error are added.
    pub(super) fn announce(&mut self, body: &[u8], gap: usize, sink: &mut dyn Sink) -> Result<bool, &'static str> {
        let (Some(first), Some(count)) = (u32_at(body, 0), u32_at(body, 4)) else {
            return Err("an announcement is cut short");
        };
        let (first, count) = (first as usize, count as usize);
        if first > self.ids.len() + gap {
            return Err("an announcement leaves out series");
        }
        let mut rest = &body[announce::PREFIX..];
        let mut is_news = false;
        for id in first..first.saturating_add(count) {
            let (key, behind) = read_key(rest).ok_or("an announced key is damaged")?;
            let sum = crc32fast::hash(&rest[..rest.len() - behind.len()]);
            rest = behind;
            if self.knows(id as u32) {
                if self.sums[id] != sum {
                    return Err("an id is announced again with another key");
                }
                continue;
            }
            if id >= MAX_SERIES {
                return Err("more than 2^24 series are announced");
            }
            if !self.reach(id) {
                return Err("there is no memory for more announced series");
            }
            self.ids[id] = sink.series(&key).map_or_else(NotAdmitted::stand_in, |id| id.0);
            self.sums[id] = sum;
            is_news = true;
        }
        if rest.is_empty() {
            Ok(is_news)
        } else {
            Err("an announcement is too long")
        }
    }

    /// Passes rows to the sink.
    ///
    /// # Errors
    /// The first series that is not announced; nothing is passed on then.
    #[inline]
    pub(super) fn apply(&mut self, rows: &Rows<'_>, sink: &mut dyn Sink) -> Result<(), NotAnnounced> {
        fill(&mut self.values, rows.values, |bytes| f64::from_le_bytes(*bytes));
        fill(&mut self.times, rows.times, |bytes| {
            Timestamp(i64::from_le_bytes(*bytes))
        });
        let is_one = rows.times.is_empty();
        let range = if rows.ids.is_empty() {
            self.range(rows.first, rows.count)?
        } else {
            self.each(rows.ids)?;
            None
        };
        if range.is_none() {
            self.drop_refused(sink);
        }
        if self.values.is_empty() {
            return Ok(());
        }
        let ids = range.map_or(Ids::Each(&self.columns), Ids::Range);
        let times = if is_one {
            Times::One(rows.at)
        } else {
            Times::Each(&self.times)
        };
        sink.batch(&Batch::new(ids, times, &self.values));
        Ok(())
    }

    /// Maps consecutive ids to the sink's ids: returns the first if these are consecutive too,
    /// else stores them in the column.
    #[inline]
    fn range(&mut self, first: usize, count: usize) -> Result<Option<SeriesId>, NotAnnounced> {
        let end = first + count;
        let Some(known) = self.ids.get(first..end) else {
            return Err(NotAnnounced(first.max(self.ids.len()) as u32));
        };
        if is_range(known) && known[count - 1] < HOLE {
            return Ok(Some(SeriesId(known[0])));
        }
        if let Some(hole) = known.iter().position(|id| *id == HOLE) {
            return Err(NotAnnounced((first + hole) as u32));
        }
        self.columns.clear();
        self.columns.extend(known.iter().map(|id| SeriesId(*id)));
        Ok(None)
    }

    /// Maps a column of ids to the sink's ids, stored in the column.
    fn each(&mut self, ids: &[u8]) -> Result<(), NotAnnounced> {
        fill(&mut self.columns, ids, |bytes| SeriesId(u32::from_le_bytes(*bytes)));
        for id in &mut self.columns {
            let known = self.ids.get(id.index()).copied().filter(|known| *known != HOLE);
            *id = SeriesId(known.ok_or(NotAnnounced(id.0))?);
        }
        Ok(())
    }

    /// Removes the samples of refused series from the columns.
    fn drop_refused(&mut self, sink: &mut dyn Sink) {
        let refused = self.columns.iter().filter(|id| id.0 > HOLE).count();
        if refused == 0 {
            return;
        }
        for why in NotAdmitted::ALL {
            let samples = self.columns.iter().filter(|id| id.0 == why.stand_in()).count();
            if samples > 0 {
                sink.refused(why, samples);
            }
        }
        let ids = &self.columns;
        keep_admitted(&mut self.values, ids);
        keep_admitted(&mut self.times, ids);
        self.columns.retain(|id| id.0 < HOLE);
    }
}

/// Replaces a column by what `bytes` hold.
#[inline(always)]
fn fill<T, const N: usize>(column: &mut Vec<T>, bytes: &[u8], read: impl Fn(&[u8; N]) -> T) {
    column.clear();
    let (items, _) = bytes.as_chunks::<N>();
    column.extend(items.iter().map(read));
}

fn keep_admitted<T>(column: &mut Vec<T>, ids: &[SeriesId]) {
    let mut ids = ids.iter();
    column.retain(|_| ids.next().is_some_and(|id| id.0 < HOLE));
}
