//! One file of a cache: what waits for it, and what is known of it.
//!
//! It is *not* concurrent: whoever has the lock of its shelf has it to themselves.

use std::sync::Arc;

use tsb_core::{SeriesId, SeriesKey};
use tsb_rrd::{Known, Layout, Moment, RrdFile};

use super::entries::hash_of;

/// No record of the journal.
pub(super) const NONE: u64 = u64::MAX;

/// Bytes of the smallest text that is not empty: a few readings.
const ROOM_MIN: usize = 64;

/// A file for which something waits, or has waited not long ago.
#[derive(Debug)]
pub(super) struct Entry {
    /// Of its name.
    pub(super) hash: u64,
    pub(super) name: Box<str>,
    pub(super) id: SeriesId,
    /// The file's name, as the journal says it.
    pub(super) key: Arc<SeriesKey>,
    pub(super) layout: Arc<Layout>,
    /// When the newest reading is from that was accepted, here or before.
    pub(super) newest: Moment,
    /// Readings, each ended by a line feed.
    text: String,
    count: u64,
    /// Readings that are being written.
    in_flight: u64,
    /// From when on a reading makes it due.
    pub(super) due_ns: u64,
    /// When it was last written, or made.
    pub(super) written_ns: u64,
    // The journal's records of the oldest and the newest reading that waits, and of the
    // oldest that is being written.
    first_record: u64,
    last_record: u64,
    flying_record: u64,
    /// The segment of the journal that last named this file.
    pub(super) named_in: u32,
    pub(super) is_queued: bool,
    pub(super) is_suspended: bool,
    /// The file is damaged or gone: it is looked at again before it takes anything.
    pub(super) is_damaged: bool,
    /// Whether something of it could not be written, and is to be tried again.
    has_left: bool,
    // What follows is rare, and elsewhere: an update has less of an entry to wait for.
    /// What is known of the file without reading it.
    pub(super) known: Option<Box<Known>>,
    /// The file, opened ahead of being written: whoever writes it next closes it.
    pub(super) ready: Option<RrdFile>,
    /// What no flush has reported yet.
    pub(super) trouble: Option<Box<Trouble>>,
    /// Only librrd handles the file; its layout here has only what updates are checked against.
    pub(super) is_for_librrd: bool,
}

/// What went wrong with a file since the last flush.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Values that the file will never take.
    pub(super) lost: u64,
    /// The last reason.
    pub(super) why: String,
}

/// What is taken out of an entry to be written.
#[derive(Debug)]
pub(super) struct Load {
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
            first_record: NONE,
            last_record: 0,
            flying_record: NONE,
            named_in: 0,
            is_queued: false,
            is_suspended: false,
            is_damaged: false,
            has_left: false,
            known: None,
            ready: None,
            trouble: None,
            is_for_librrd: false,
        }
    }

    /// Values that wait, those that are being written included.
    pub(super) fn pending(&self) -> u64 {
        self.count + self.in_flight
    }

    /// Whether something waits that may be written, and the file is not open yet and has to be
    /// read.
    pub(super) fn is_written_next(&self) -> bool {
        let is_open_or_known = self.ready.is_some() || self.known.is_some();
        self.count > 0 && !self.is_suspended && !is_open_or_known && !self.is_for_librrd
    }

    /// Values that wait to be taken.
    pub(super) fn waiting(&self) -> u64 {
        self.count
    }

    /// What waits, a reading a line.
    pub(super) fn lines(&self) -> std::str::Lines<'_> {
        self.text.lines()
    }

    /// The newest reading that waits.
    pub(super) fn last_line(&self) -> Option<&str> {
        self.text.lines().next_back()
    }

    /// Bytes of memory for what waits.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity()
    }

    /// Bytes of memory that so many more would take: a text doubles its room when it has none.
    pub(super) fn growth(&self, more: usize) -> usize {
        let spare = self.text.capacity() - self.text.len();
        if more <= spare {
            0
        } else {
            self.text.capacity().max(more).max(ROOM_MIN)
        }
    }

    /// Where the text of what waits ends.
    pub(super) fn end(&self) -> usize {
        self.text.len()
    }

    /// What was appended since the text ended there.
    pub(super) fn lines_from(&self, end: usize) -> &str {
        self.text.get(end..).unwrap_or_default()
    }

    /// Looks at what finding it and appending a reading need, for nothing but having it at hand.
    pub(super) fn touch(&self) -> usize {
        let last = self.text.as_bytes().last();
        let first = self.name.as_bytes().first();
        let bytes = [first, last].map(|byte| usize::from(byte.copied().unwrap_or_default()));
        bytes[0] + bytes[1] + self.count as usize + self.newest.micros as usize
    }

    /// Appends a reading; it waits when [`Entry::wait_for`] is told.
    pub(super) fn push(&mut self, reading: &str) {
        let growth = self.growth(reading.len() + 1);
        if growth > 0 {
            let spare = self.text.capacity() - self.text.len();
            self.text.reserve_exact(spare + growth);
        }
        self.text.push_str(reading);
        self.text.push('\n');
    }

    /// Takes away what was appended since the text ended there.
    pub(super) fn cut(&mut self, end: usize) {
        self.text.truncate(end);
    }

    /// So many readings that were appended wait now; a record of the journal holds them.
    pub(super) fn wait_for(&mut self, count: u64, record: u64) {
        self.count += count;
        self.first_record = self.first_record.min(record);
        self.last_record = record;
    }

    /// Takes all that waits.
    pub(super) fn take(&mut self) -> Load {
        self.in_flight = self.count;
        self.flying_record = self.first_record;
        self.first_record = NONE;
        self.has_left = false;
        Load {
            text: std::mem::take(&mut self.text),
            count: std::mem::take(&mut self.count),
            last_record: self.last_record,
        }
    }

    /// What was taken is settled up to a byte of its text. What is left, `count` readings,
    /// stands before all others again. Its room may be kept for the next ones.
    pub(super) fn settle(&mut self, mut taken: String, settled: usize, count: u64, keeps_room: bool) {
        self.has_left = count > 0;
        if count > 0 {
            taken.drain(..settled);
            taken.push_str(&self.text);
            self.text = taken;
            self.count += count;
            self.first_record = self.flying_record;
        } else if keeps_room && self.text.capacity() == 0 {
            taken.clear();
            self.text = taken;
        }
        self.in_flight = 0;
        self.flying_record = NONE;
    }

    /// Whether something of it could not be written, and is to be tried again.
    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }

    /// The journal's oldest record that holds something of it; [`NONE`]: no record does.
    pub(super) fn oldest_record(&self) -> u64 {
        self.first_record.min(self.flying_record)
    }

    /// The journal's newest record that holds something of it.
    pub(super) fn last_record(&self) -> u64 {
        self.last_record
    }

    /// Whether it may be forgotten without anybody noticing.
    pub(super) fn is_idle(&self) -> bool {
        self.pending() == 0 && !self.is_suspended && self.trouble.is_none()
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
    fn what_is_left_stands_first_and_records_follow_it() {
        let mut entry = entry();
        entry.push("1:1");
        entry.push("2:2");
        entry.wait_for(2, 7);
        let load = entry.take();
        assert_eq!((load.count, load.last_record, entry.pending()), (2, 7, 2));
        let end = entry.end();
        entry.push("9:9");
        entry.cut(end);
        entry.push("3:3");
        assert_eq!(entry.lines_from(end), "3:3\n");
        entry.wait_for(1, 9);
        assert_eq!((entry.oldest_record(), entry.pending(), entry.waiting()), (7, 3, 1));
        entry.settle("1:1\n2:2\n".to_owned(), 4, 1, true);
        assert_eq!((entry.oldest_record(), entry.pending()), (7, 2));
        assert_eq!(entry.lines().collect::<Vec<_>>(), ["2:2", "3:3"]);
        entry.take();
        entry.settle("2:2\n3:3\n".to_owned(), 8, 0, true);
        assert!(entry.is_idle());
        assert_eq!(
            (entry.lines().count(), entry.bytes() >= 8),
            (0, true),
            "its room is kept"
        );
        entry.take();
        entry.settle("2:2\n".to_owned(), 4, 0, false);
        assert_eq!(entry.bytes(), 0);
        assert_eq!(entry.oldest_record(), NONE);
    }
}
