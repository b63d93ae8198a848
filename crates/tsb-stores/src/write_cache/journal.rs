//! The journal of a write cache: what is accepted is on record before the ack.
//!
//! Segments of records with length, checksum and number. A record of samples is settled by
//! a mark, and a segment goes when all its records are: a mark is only written when the
//! store has *synced* what it took, so that a power cut loses nothing that an ack promised.
//! It knows neither queues nor stores.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tsb_core::{SeriesId, SeriesKey};

use super::checkpoint::Settled;
use super::options::{JournalOptions, Sync};
use crate::damage::{Damage, DamageKind, DamageLog};
use crate::disk;
use crate::error::{Error, Result, chain};
use crate::locks::{Bell, lock};

mod begin;
mod count;
mod findings;
mod head;
mod medium;
mod order;
mod record;
mod replay;
mod scan;

use begin::{begin, keep_aside, mark, mark_before_first};
use count::{HandedCount, SyncedCount};
use head::{HEAD_LEN, Head};
use medium::{Folder, MARKER, name_of};
pub use medium::{Medium, Note, Segment};
pub(super) use record::Admitted;
use record::Mark;
pub(super) use replay::Held;
pub use replay::HeldReadings;
use replay::Sealed;

/// Records that wait for somebody who confirms them have so many bytes at the most, about.
const BUFFER_MAX: usize = 256 << 10;

/// Up to where the store's samples are safe, as positions of the store.
#[derive(Debug, Default)]
struct Reached {
    buffered: AtomicU64,
    synced: AtomicU64,
}

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    medium: Box<dyn Medium>,
    sync: Sync,
    segment_bytes: u64,
    book: Mutex<Book>,
    turn: Mutex<Turn>,
    turned: Bell,
    reached: Reached,
    journaled_bytes: AtomicU64,
    /// Says beside the segments how far this journal was synced.
    synced_count: SyncedCount,
    damage: DamageLog,
}

/// The segment that is written, and those before it.
#[derive(Debug)]
pub struct Book {
    segment: Arc<dyn Segment>,
    head: Head,
    // The oldest segment that has to be there and its first record, as the marker says.
    oldest: (u32, u64),
    bytes: u64,
    // A number for each sample, so that a gap says how many are missing.
    next_record: u64,
    // The position of the store after the last record.
    position: u64,
    sealed: VecDeque<Sealed>,
    /// Whole records that were not handed to the system yet: nobody was told that they are.
    buffer: Vec<u8>,
    /// Says beside the segments how far they were handed to the system.
    handed_count: HandedCount,
    /// Why nothing is written any more: the segment may end in a part of a record.
    failure: Option<String>,
    /// For the samples of one write.
    pub(super) admitted: Admitted,
    /// Series that the segment has to name before them.
    pub(super) unnamed: Vec<SeriesId>,
}

/// Whose turn it is to sync, where one sync is for all.
#[derive(Debug, Default)]
struct Turn {
    synced_record: u64,
    is_syncing: bool,
    failure: Option<String>,
}

/// What opening a journal found.
#[derive(Debug)]
pub struct Opened {
    /// The journal, with a new segment begun.
    pub journal: Journal,
    pub(super) held: Held,
    /// Lines of text for files that it holds from an earlier life, by file.
    pub readings: HeldReadings,
    /// Bytes at its end that a crash left unfinished.
    pub torn_bytes: u64,
}

impl Opened {
    /// Whether it holds samples of series.
    pub fn has_samples(&self) -> bool {
        !self.held.is_empty()
    }
}

impl Journal {
    /// Opens or makes the journal in a folder, replays it, and begins a new segment.
    ///
    /// # Errors
    /// [`Error::Backend`] where files cannot be used, [`Error::LaterFormat`] for a journal of a
    /// later version. Damage is no error: see [`Journal::damage`].
    pub fn open(options: &JournalOptions) -> Result<Opened> {
        let folder = Folder::open(&options.folder).map_err(|source| Error::Backend {
            action: format!("open the journal folder {}", options.folder.display()),
            source: source.into(),
        })?;
        Self::on(Box::new(folder), options.sync, options.segment_bytes)
    }

    /// The same on a medium of the caller's, for tests that cut the power.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn on(medium: Box<dyn Medium>, sync: Sync, segment_bytes: u64) -> Result<Opened> {
        let found = replay::replay(&*medium)?;
        let damage = DamageLog::new();
        found.damage.iter().cloned().for_each(|found| damage.note(found));
        mark_before_first(&*medium, &found)?;
        let head = Head {
            number: found.next_number,
            first_record: found.next_record,
            life: found.next_number,
        };
        let oldest = if found.segments.is_empty() && found.damage.is_empty() {
            (head.number, head.first_record)
        } else {
            (found.oldest, found.oldest_record)
        };
        let segment = begin(&*medium, oldest, head)?;
        // IMPORTANT: after the head, which says from now on what the older count had said.
        let (handed_count, synced_count) = count::begin(&*medium, head.first_record)?;
        let book = Book {
            segment,
            head,
            oldest,
            bytes: HEAD_LEN as u64,
            next_record: found.next_record,
            position: 0,
            sealed: found.segments,
            buffer: Vec::new(),
            handed_count,
            failure: None,
            admitted: Admitted::default(),
            unnamed: Vec::new(),
        };
        Ok(Opened {
            journal: Self {
                medium,
                sync,
                segment_bytes,
                book: Mutex::new(book),
                turn: Mutex::default(),
                turned: Bell::default(),
                reached: Reached::default(),
                journaled_bytes: AtomicU64::new(0),
                synced_count,
                damage,
            },
            held: found.held,
            readings: found.readings,
            torn_bytes: found.torn_bytes,
        })
    }

    /// What was found damaged of it.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.list()
    }

    /// When it is synced.
    pub fn policy(&self) -> Sync {
        self.sync
    }

    /// Takes the book: whoever has it decides the order of records.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Returns when all that was admitted so far is on record: the book is held from a write's
    /// admission until its record was handed to the system.
    pub fn await_record(&self) {
        drop(self.book());
    }

    /// Up to where the samples are in the system's buffers, and on the medium.
    pub fn reached(&self) -> (u64, u64) {
        let synced = self.reached.synced.load(Ordering::Acquire);
        (self.reached.buffered.load(Ordering::Acquire), synced)
    }

    /// Bytes that were handed to the system since it was opened.
    pub fn journaled_bytes(&self) -> u64 {
        self.journaled_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        let book = self.book();
        book.bytes + book.sealed.iter().map(|sealed| sealed.bytes).sum::<u64>()
    }

    /// Blocks of the file system that its segments occupy, in bytes; `None` where there are
    /// no such files.
    pub fn disk_bytes(&self) -> Option<u64> {
        let names = self.medium.names().ok()?;
        let paths: Vec<_> = names.iter().map(|name| self.medium.path_of(name)).collect();
        disk::of_files(paths.iter().map(|path| &**path))
    }

    /// Appends the samples that the book was given, after which the store is at `position`,
    /// and keeps the policy. The record's number.
    pub fn append<'a>(
        &self,
        mut book: MutexGuard<'_, Book>,
        key_of: impl Fn(SeriesId) -> Option<&'a SeriesKey>,
        position: u64,
    ) -> Result<()> {
        let number = book.next_record;
        let Book {
            admitted,
            unnamed,
            buffer,
            ..
        } = &mut *book;
        let names: Vec<_> = unnamed.iter().filter_map(|&id| Some((id, key_of(id)?))).collect();
        if !names.is_empty() {
            record::write_names(buffer, number, &names);
        }
        record::write_samples(buffer, number, admitted);
        book.next_record += admitted.len() as u64;
        book.position = position;
        self.put(&mut book)?;
        match self.sync {
            Sync::Each => self.sync_book(&mut book)?,
            Sync::Group => {
                drop(book);
                return self.sync_together(number);
            }
            Sync::None | Sync::Interval(_) => {}
        }
        Ok(())
    }

    /// Appends a count of readings of one file, each ended by a line feed, after which the cache is at
    /// `position`; with its name, if the segment has to be told. The record's number.
    ///
    /// Nothing is promised before [`Journal::confirm`]: one write, and with the policy `group`
    /// one sync, is for all who wait. With one sync for each record, that is done here.
    pub fn append_readings(
        &self,
        mut book: MutexGuard<'_, Book>,
        id: SeriesId,
        name: Option<&SeriesKey>,
        (count, lines): (u64, &str),
        position: u64,
    ) -> Result<u64> {
        let number = book.next_record;
        if let Some(name) = name {
            record::write_names(&mut book.buffer, number, &[(id, name)]);
        }
        record::write_readings(&mut book.buffer, number, id, lines);
        book.next_record += count;
        book.position = position;
        if self.sync == Sync::Each {
            self.put(&mut book)?;
            self.sync_book(&mut book)?;
        } else if book.buffer.len() >= BUFFER_MAX {
            self.put(&mut book)?;
        }
        Ok(number)
    }

    /// Returns when every record so far is in the system's buffers.
    pub fn hand_over_all(&self) -> Result<()> {
        self.put(&mut self.book())
    }

    /// Returns when a record may be acknowledged.
    pub fn confirm(&self, record: u64) -> Result<()> {
        match self.sync {
            Sync::Group => self.sync_together(record),
            Sync::None | Sync::Interval(_) => self.hand_over_all(),
            Sync::Each => Ok(()),
        }
    }

    /// Says that of each series all that is up to a record is on the medium.
    pub fn wrote<'a, K>(
        &self,
        settled: &'a [Settled<K>],
        key_of: impl Fn(&'a Settled<K>) -> Option<&'a SeriesKey>,
    ) -> Result<()> {
        // Marks are few and rare: each names its series again.
        for settled in settled.chunks(4_096) {
            let names: Vec<_> = settled.iter().filter_map(|one| Some((one.0, key_of(one)?))).collect();
            let upto: Vec<_> = settled.iter().map(|&(id, record, _)| (id, record)).collect();
            self.mark(Mark::Wrote, &names, &upto)?;
        }
        Ok(())
    }

    /// Says that nothing of a series up to a record is wanted any more.
    pub fn forgot(&self, id: SeriesId, record: u64, key: &SeriesKey) -> Result<()> {
        self.mark(Mark::Forgot, &[(id, key)], &[(id, record)])
    }

    fn mark(&self, mark: Mark, names: &[(SeriesId, &SeriesKey)], upto: &[(SeriesId, u64)]) -> Result<()> {
        let mut book = self.book();
        let number = book.next_record;
        record::write_names(&mut book.buffer, number, names);
        record::write_marks(&mut book.buffer, number, mark, upto);
        book.next_record += 1;
        self.put(&mut book)
    }

    /// Lets somebody else open the folder.
    pub fn release(&self) {
        self.medium.release();
    }

    /// Syncs all that was appended.
    pub fn sync(&self) -> Result<()> {
        self.sync_book(&mut self.book())
    }

    /// Ends the segment that is written, if there is something in it.
    pub fn rotate(&self) -> Result<()> {
        let mut book = self.book();
        if book.bytes > HEAD_LEN as u64 || !book.buffer.is_empty() {
            self.turn_page(&mut book)?;
        }
        Ok(())
    }

    /// The number of segments that are not written any more, and the last record of all but
    /// the newest of them.
    pub fn backlog(&self) -> (usize, u64) {
        let book = self.book();
        let second = book.sealed.iter().rev().nth(1);
        (book.sealed.len(), second.map_or(0, |sealed| sealed.last_record))
    }

    /// The next record's number: whatever is accepted from now on is in it or after it.
    pub fn next_record(&self) -> u64 {
        self.book().next_record
    }

    /// Removes segments of which all records are before `record`, and keeps damaged ones aside.
    pub fn retire(&self, record: u64) -> Result<()> {
        let mut book = self.book();
        let is_settled = |sealed: &&Sealed| sealed.last_record < record;
        let settled = book.sealed.iter().take_while(is_settled).count();
        if settled == 0 {
            return Ok(());
        }
        let (left, head) = (book.sealed.get(settled), book.head);
        book.oldest = left.map_or((head.number, head.first_record), |left| {
            (left.number, left.first_record)
        });
        // IMPORTANT: before they go, or their absence would be damage after a crash.
        let marked = mark(&*self.medium, book.oldest, head);
        marked.map_err(|source| self.failed("write", MARKER, source))?;
        for sealed in book.sealed.drain(..settled) {
            self.put_away(&sealed)?;
        }
        Ok(())
    }

    fn put_away(&self, sealed: &Sealed) -> Result<()> {
        if !sealed.is_damaged {
            let removed = self.medium.remove(&sealed.name);
            return removed.map_err(|source| self.failed("remove", &sealed.name, source));
        }
        let aside = keep_aside(&*self.medium, &sealed.name);
        let aside = aside.map_err(|source| self.failed("rename", &sealed.name, source))?;
        let what = "what could be read of it is in the store; remove it when nobody needs it";
        let path = self.medium.path_of(&aside);
        self.damage.note(Damage::new(DamageKind::KeptAside, path, what));
        Ok(())
    }

    /// Hands the records that wait to the system, and begins a segment if this one is full.
    fn put(&self, book: &mut Book) -> Result<()> {
        self.hand_over(book)?;
        if book.bytes >= self.segment_bytes {
            self.turn_page(book)?;
        }
        Ok(())
    }

    fn hand_over(&self, book: &mut Book) -> Result<()> {
        if let Some(cause) = &book.failure {
            return Err(Error::Poisoned { cause: cause.clone() });
        }
        if book.buffer.is_empty() {
            return Ok(());
        }
        let appended = book.segment.append(&book.buffer);
        appended.map_err(|source| self.broken("append to", book, source))?;
        let len = book.buffer.len() as u64;
        book.buffer.clear();
        book.bytes += len;
        self.journaled_bytes.fetch_add(len, Ordering::Relaxed);
        // Otherwise no ack stands for them before they are synced.
        if !self.sync.is_before_ack() {
            book.handed_count.raise(book.next_record);
        }
        self.reached.buffered.fetch_max(book.position, Ordering::AcqRel);
        Ok(())
    }

    fn turn_page(&self, book: &mut Book) -> Result<()> {
        // IMPORTANT: before the next segment begins. Replay takes what is missing at the end of
        // any but the last segment for damage.
        self.sync_book(book)?;
        let sealed = Sealed {
            name: name_of(book.head.number),
            number: book.head.number,
            first_record: book.head.first_record,
            last_record: book.next_record - 1,
            bytes: book.bytes,
            is_damaged: false,
        };
        let head = Head {
            number: book.head.number + 1,
            first_record: book.next_record,
            life: book.head.life,
        };
        book.segment = begin(&*self.medium, book.oldest, head)?;
        book.sealed.push_back(sealed);
        book.head = head;
        book.bytes = HEAD_LEN as u64;
        Ok(())
    }

    fn sync_book(&self, book: &mut Book) -> Result<()> {
        self.hand_over(book)?;
        let synced = book.segment.sync();
        synced.map_err(|source| self.broken("sync", book, source))?;
        self.synced_count.raise(book.next_record);
        self.reached.synced.fetch_max(book.position, Ordering::AcqRel);
        Ok(())
    }

    /// Returns when a record is synced: by this thread for all who wait, or by another.
    fn sync_together(&self, record: u64) -> Result<()> {
        let mut turn = lock(&self.turn);
        loop {
            if let Some(cause) = &turn.failure {
                return Err(Error::Poisoned { cause: cause.clone() });
            }
            if turn.synced_record >= record {
                return Ok(());
            }
            if turn.is_syncing {
                turn = self.turned.wait(turn);
                continue;
            }
            turn.is_syncing = true;
            drop(turn);
            let result = self.sync_now();
            turn = lock(&self.turn);
            turn.is_syncing = false;
            match &result {
                Ok(synced) => turn.synced_record = turn.synced_record.max(*synced),
                Err(error) => turn.failure = Some(error.to_string()),
            }
            self.turned.ring_all();
            result?;
        }
    }

    /// Syncs without holding up those who append; the last record that it covers.
    fn sync_now(&self) -> Result<u64> {
        let (segment, number, last, position) = {
            let mut book = self.book();
            self.put(&mut book)?;
            // What is in earlier segments was synced when they ended.
            (
                Arc::clone(&book.segment),
                book.head.number,
                book.next_record - 1,
                book.position,
            )
        };
        segment
            .sync()
            .map_err(|source| self.failed("sync", &name_of(number), source))?;
        self.synced_count.raise(last + 1);
        self.reached.synced.fetch_max(position, Ordering::AcqRel);
        Ok(last)
    }

    /// After this nothing more is written.
    fn broken(&self, verb: &str, book: &mut Book, source: std::io::Error) -> Error {
        let error = self.failed(verb, &name_of(book.head.number), source);
        book.failure = Some(chain(&error));
        error
    }

    fn failed(&self, verb: &str, name: &str, source: std::io::Error) -> Error {
        Error::Backend {
            action: format!("{verb} {}", self.medium.path_of(name).display()),
            source: source.into(),
        }
    }
}

impl Book {
    /// The number that the next record will have.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// The segment that it will be in.
    pub fn segment(&self) -> u32 {
        self.head.number
    }
}
