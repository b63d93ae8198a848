//! One file of a cache: its queued updates and its state.
//!
//! It is *not* concurrent: the holder of its shard's lock has exclusive access.

use std::sync::Arc;

use tsb_core::{SeriesId, SeriesKey};
use tsb_rrd::{CachedPages, Layout, Moment, RrdFile};

use super::entries::hash_of;

/// No journal record.
pub(super) const NO_RECORD: u64 = u64::MAX;

/// Smallest allocation, in bytes, for queued text: a few updates.
const ROOM_MIN: usize = 64;

/// A file that has queued updates or was used recently.
#[derive(Debug)]
pub(super) struct Entry {
    /// The hash of its name.
    pub(super) hash: u64,
    pub(super) name: Box<str>,
    pub(super) id: SeriesId,
    /// The file's name, in the form of the journal.
    pub(super) key: Arc<SeriesKey>,
    pub(super) layout: Arc<Layout>,
    /// The time of the newest update accepted now or in an earlier run.
    pub(super) newest: Moment,
    /// Queued updates, each ended by a line feed.
    text: String,
    count: u64,
    /// Number of updates that are being written.
    in_flight: u64,
    /// The time from which on the next update makes the file due.
    pub(super) due_ns: u64,
    /// When it was last written, or its entry was created.
    pub(super) written_ns: u64,
    // The journal records of the oldest and the newest queued update, and of the oldest that is
    // being written.
    first_record: u64,
    last_record: u64,
    in_flight_record: u64,
    /// The last journal segment that holds the name of this file.
    pub(super) name_segment: u32,
    pub(super) is_queued: bool,
    pub(super) is_suspended: bool,
    /// The file is damaged or missing: it is checked again before the next update is accepted.
    pub(super) is_damaged: bool,
    /// Whether some updates could not be written and wait for a retry.
    needs_retry: bool,
    // The fields below are rarely used and mostly boxed, so that an update touches fewer cache
    // lines.
    /// The file's head, if it is kept in memory.
    pub(super) known: Option<Box<CachedPages>>,
    /// The file, opened ahead of its next write; the thread that writes it closes it.
    pub(super) prefetched: Option<RrdFile>,
    /// Failures that no flush has reported yet.
    pub(super) failures: Option<Box<FileFailures>>,
    /// Only librrd can handle the file; `layout` then holds just what updates are checked
    /// against.
    pub(super) is_for_librrd: bool,
}

/// The failures of a file since the last report.
#[derive(Debug, Default)]
pub(super) struct FileFailures {
    /// Number of values that the file refused for good.
    pub(super) lost: u64,
    /// The most recent error.
    pub(super) why: String,
}

/// The updates taken out of an entry to be written.
#[derive(Debug)]
pub(super) struct TakenUpdates {
    pub(super) text: String,
    pub(super) count: u64,
    pub(super) last_record: u64,
}

impl Entry {
    pub(super) fn new(id: SeriesId, name: &str, layout: Arc<Layout>, newest: Moment, now_ns: u64) -> Self {
        Self {
            hash: hash_of(name),
            name: name.into(),
            id,
            key: Arc::new(SeriesKey::new(name)),
            layout,
            newest,
            text: String::new(),
            count: 0,
            in_flight: 0,
            due_ns: now_ns,
            written_ns: now_ns,
            first_record: NO_RECORD,
            last_record: 0,
            in_flight_record: NO_RECORD,
            name_segment: 0,
            is_queued: false,
            is_suspended: false,
            is_damaged: false,
            needs_retry: false,
            known: None,
            prefetched: None,
            failures: None,
            is_for_librrd: false,
        }
    }

    /// Number of queued values, those being written included.
    pub(super) fn pending(&self) -> u64 {
        self.count + self.in_flight
    }

    /// Whether the next pass has to open and read the file: there are queued updates that may be
    /// written, and neither an open file nor a kept head.
    pub(super) fn is_written_next(&self) -> bool {
        let is_open_or_known = self.prefetched.is_some() || self.known.is_some();
        self.count > 0 && !self.is_suspended && !is_open_or_known && !self.is_for_librrd
    }

    /// Number of queued values, without those being written.
    pub(super) fn queued(&self) -> u64 {
        self.count
    }

    /// The queued updates, one per line.
    pub(super) fn lines(&self) -> std::str::Lines<'_> {
        self.text.lines()
    }

    /// The newest queued update.
    pub(super) fn last_line(&self) -> Option<&str> {
        self.text.lines().next_back()
    }

    /// Bytes allocated for the queue.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity()
    }

    /// Bytes that appending `more` bytes would allocate: a full text doubles its capacity.
    pub(super) fn growth(&self, more: usize) -> usize {
        let spare = self.text.capacity() - self.text.len();
        if more <= spare {
            0
        } else {
            self.text.capacity().max(more).max(ROOM_MIN)
        }
    }

    /// The length of the queued text; see [`Entry::lines_from`] and [`Entry::truncate_text`].
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The text appended since the length was `end`.
    pub(super) fn lines_from(&self, end: usize) -> &str {
        self.text.get(end..).unwrap_or_default()
    }

    /// Reads the memory that finding the entry and appending an update need, to bring it into the
    /// processor's cache.
    pub(super) fn touch(&self) -> usize {
        let last = self.text.as_bytes().last();
        let first = self.name.as_bytes().first();
        let bytes = [first, last].map(|byte| usize::from(byte.copied().unwrap_or_default()));
        bytes[0] + bytes[1] + self.count as usize + self.newest.micros as usize
    }

    /// Appends an update; it counts as queued after [`Entry::count_queued`].
    pub(super) fn push(&mut self, update: &str) {
        let growth = self.growth(update.len() + 1);
        if growth > 0 {
            let spare = self.text.capacity() - self.text.len();
            self.text.reserve_exact(spare + growth);
        }
        self.text.push_str(update);
        self.text.push('\n');
    }

    /// Removes the text appended since the length was `end`.
    pub(super) fn truncate_text(&mut self, end: usize) {
        self.text.truncate(end);
    }

    /// Counts `count` appended updates as queued; the journal holds them in `record`.
    pub(super) fn count_queued(&mut self, count: u64, record: u64) {
        self.count += count;
        self.first_record = self.first_record.min(record);
        self.last_record = record;
    }

    /// Takes all queued updates for a write.
    pub(super) fn take(&mut self) -> TakenUpdates {
        self.in_flight = self.count;
        self.in_flight_record = self.first_record;
        self.first_record = NO_RECORD;
        self.needs_retry = false;
        TakenUpdates {
            text: std::mem::take(&mut self.text),
            count: std::mem::take(&mut self.count),
            last_record: self.last_record,
        }
    }

    /// Ends a write: the first `done_bytes` bytes of the taken text are done, and the remaining
    /// `count` updates go back to the front of the queue. With `keeps_room` the allocation is
    /// kept.
    pub(super) fn finish_write(&mut self, mut taken: String, done_bytes: usize, count: u64, keeps_room: bool) {
        self.needs_retry = count > 0;
        if count > 0 {
            taken.drain(..done_bytes);
            taken.push_str(&self.text);
            self.text = taken;
            self.count += count;
            self.first_record = self.in_flight_record;
        } else if keeps_room && self.text.capacity() == 0 {
            taken.clear();
            self.text = taken;
        }
        self.in_flight = 0;
        self.in_flight_record = NO_RECORD;
    }

    /// Whether some updates could not be written and wait for a retry.
    pub(super) fn needs_retry(&self) -> bool {
        self.needs_retry
    }

    /// The oldest journal record that holds queued updates or updates being written; [`NO_RECORD`]
    /// if there is none.
    pub(super) fn oldest_record(&self) -> u64 {
        self.first_record.min(self.in_flight_record)
    }

    /// The newest journal record that held updates of this file.
    pub(super) fn last_record(&self) -> u64 {
        self.last_record
    }

    /// Whether the entry can be forgotten without losing anything.
    pub(super) fn is_idle(&self) -> bool {
        self.pending() == 0 && !self.is_suspended && self.failures.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_rrd::{Archive, Cf, DataSource, DsKind};

    fn entry() -> Entry {
        let sources = vec![DataSource::new("a", DsKind::Gauge, 20)];
        let layout = Layout::new(10, sources, vec![Archive::new(Cf::Average, 0.5, 1, 10)]).unwrap();
        Entry::new(SeriesId(1), "a.rrd", Arc::new(layout), Moment::from_secs(5), 0)
    }

    #[test]
    fn the_remainder_comes_first_and_records_follow() {
        let mut entry = entry();
        entry.push("1:1");
        entry.push("2:2");
        entry.count_queued(2, 7);
        let taken = entry.take();
        assert_eq!((taken.count, taken.last_record, entry.pending()), (2, 7, 2));
        let end = entry.text_len();
        entry.push("9:9");
        entry.truncate_text(end);
        entry.push("3:3");
        assert_eq!(entry.lines_from(end), "3:3\n");
        entry.count_queued(1, 9);
        assert_eq!((entry.oldest_record(), entry.pending(), entry.queued()), (7, 3, 1));
        entry.finish_write("1:1\n2:2\n".to_owned(), 4, 1, true);
        assert_eq!((entry.oldest_record(), entry.pending()), (7, 2));
        assert_eq!(entry.lines().collect::<Vec<_>>(), ["2:2", "3:3"]);
        entry.take();
        entry.finish_write("2:2\n3:3\n".to_owned(), 8, 0, true);
        assert!(entry.is_idle());
        assert_eq!(
            (entry.lines().count(), entry.bytes() >= 8),
            (0, true),
            "its room is kept"
        );
        entry.take();
        entry.finish_write("2:2\n".to_owned(), 4, 0, false);
        assert_eq!(entry.bytes(), 0);
        assert_eq!(entry.oldest_record(), NO_RECORD);
    }
}
