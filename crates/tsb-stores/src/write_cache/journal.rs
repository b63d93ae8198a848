//! The journal of a write cache: every accepted sample is recorded before its ack.
//!
//! The journal consists of segments of records; each record has a length, a checksum and a
//! number. A mark settles the samples of earlier records, and a segment is removed when all its
//! records are settled. A mark is written only when the store has *synced* the samples, or when the
//! caller has dropped them, so a power cut loses nothing that an ack promised. The journal knows neither queues nor stores.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tsb_core::{SeriesId, SeriesKey};

use super::checkpoint::WrittenUpTo;
use super::options::{JournalOptions, SyncPolicy};
use crate::activity::{Activity, ActivityKind};
use crate::damage::{Damage, DamageKind, DamageLog};
use crate::disk;
use crate::error::{Error, Result, chain};
use crate::locks::{CountedCondvar, lock};

mod count;
mod files;
mod findings;
mod head;
mod medium;
mod order;
mod record;
mod replay;
mod scan;

use count::{HandedCount, SyncedCount};
use files::{begin_segment, ensure_marker, keep_aside, write_marker};
use head::{HEAD_LEN, SegmentHead};
pub use medium::{CounterFile, Medium, Segment};
use medium::{JournalFolder, MARKER, name_of};
pub(super) use record::AdmittedSamples;
use record::Mark;
pub(super) use replay::ReplayedSamples;
pub use replay::ReplayedUpdates;
use replay::SealedSegment;

/// Upper bound, in bytes, of records that are buffered for a later [`Journal::confirm`].
/// Approximate.
const BUFFER_MAX: usize = 256 << 10;

/// The store positions up to which samples are buffered or synced by the journal.
#[derive(Debug, Default)]
struct Reached {
    buffered: AtomicU64,
    synced: AtomicU64,
}

/// A journal that is open for writing.
#[derive(Debug)]
pub struct Journal {
    medium: Box<dyn Medium>,
    sync: SyncPolicy,
    segment_bytes: u64,
    writer: Mutex<JournalWriter>,
    group_commit: Mutex<GroupCommit>,
    group_synced: CountedCondvar,
    reached: Reached,
    journaled_bytes: AtomicU64,
    /// The file beside the segments that holds how far the journal was synced.
    synced_count: SyncedCount,
    damage: DamageLog,
    activity: Activity,
}

/// The state of the journal's writer: the current segment, and the sealed segments before it.
#[derive(Debug)]
pub struct JournalWriter {
    segment: Arc<dyn Segment>,
    head: SegmentHead,
    // Number and first record of the oldest segment that must exist, as the marker states.
    oldest: (u32, u64),
    bytes: u64,
    // Every sample takes one number, so a gap in the numbers tells how many samples are missing.
    next_record: u64,
    // The store's position after the last record.
    position: u64,
    sealed: VecDeque<SealedSegment>,
    /// Whole records that have not been written to the system yet. No ack covers them.
    buffer: Vec<u8>,
    /// The word of the count file that holds how far records were written to the system.
    handed_count: HandedCount,
    /// Set after a failed write: nothing more is written, since the segment may end in a partial
    /// record.
    failure: Option<String>,
    /// Scratch space for the samples of one write.
    pub(super) admitted: AdmittedSamples,
    /// Series whose names must be written to the segment before these samples.
    pub(super) unnamed: Vec<SeriesId>,
}

/// Group commit: one thread syncs for all that wait.
#[derive(Debug, Default)]
struct GroupCommit {
    synced_record: u64,
    is_syncing: bool,
    failure: Option<String>,
}

/// The result of opening a journal.
#[derive(Debug)]
pub struct OpenedJournal {
    /// The journal, with a new segment begun.
    pub journal: Journal,
    pub(super) samples: ReplayedSamples,
    /// Lines of text for files that an earlier run left in it, by file.
    pub updates: ReplayedUpdates,
    /// Bytes at its end that a crash left unfinished.
    pub torn_bytes: u64,
}

impl OpenedJournal {
    /// Whether it holds samples of series.
    pub fn has_samples(&self) -> bool {
        !self.samples.is_empty()
    }
}

impl Journal {
    /// Opens or creates the journal in a folder, replays it, and begins a new segment.
    ///
    /// # Errors
    /// [`Error::Backend`] if a file cannot be used, [`Error::LaterFormat`] for a journal of a
    /// later version. Damage is no error: see [`Journal::damage`].
    pub fn open(options: &JournalOptions) -> Result<OpenedJournal> {
        let folder = JournalFolder::open(&options.folder).map_err(|source| Error::Backend {
            action: format!("open the journal folder {}", options.folder.display()),
            source: source.into(),
        })?;
        Self::on(Box::new(folder), options.sync, options.segment_bytes)
    }

    /// Like [`Journal::open`], on a medium of the caller's, for tests that simulate a power cut.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn on(medium: Box<dyn Medium>, sync: SyncPolicy, segment_bytes: u64) -> Result<OpenedJournal> {
        let found = replay::replay(&*medium)?;
        let damage = DamageLog::new();
        found.damage.iter().cloned().for_each(|found| damage.note(found));
        ensure_marker(&*medium, &found)?;
        let head = SegmentHead {
            number: found.next_number,
            first_record: found.next_record,
            opening: found.next_number,
        };
        let oldest = if found.segments.is_empty() && found.damage.is_empty() {
            (head.number, head.first_record)
        } else {
            (found.oldest, found.oldest_record)
        };
        let segment = begin_segment(&*medium, oldest, head)?;
        // IMPORTANT: only after the head is written. The head now carries the record number that
        // the older count file carried.
        let (handed_count, synced_count) = count::begin(&*medium, head.first_record)?;
        let writer = JournalWriter {
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
            admitted: AdmittedSamples::default(),
            unnamed: Vec::new(),
        };
        Ok(OpenedJournal {
            journal: Self {
                medium,
                sync,
                segment_bytes,
                writer: Mutex::new(writer),
                group_commit: Mutex::default(),
                group_synced: CountedCondvar::default(),
                reached: Reached::default(),
                journaled_bytes: AtomicU64::new(0),
                synced_count,
                damage,
                activity: Activity::new(),
            },
            samples: found.samples,
            updates: found.updates,
            torn_bytes: found.torn_bytes,
        })
    }

    /// The damage found in the journal.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.list()
    }

    /// Counts syncs as commits, and checkpoints.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The sync policy.
    pub fn policy(&self) -> SyncPolicy {
        self.sync
    }

    /// Locks the journal's writer. The holder decides the order of records.
    pub fn lock_writer(&self) -> MutexGuard<'_, JournalWriter> {
        lock(&self.writer)
    }

    /// Returns when everything admitted so far is recorded. A writer holds this lock from the
    /// admission of its samples until their record is written to the system, so taking the lock
    /// once is enough.
    pub fn await_record(&self) {
        drop(self.lock_writer());
    }

    /// The store positions up to which samples are in the system's buffers, and synced.
    pub fn reached(&self) -> (u64, u64) {
        let synced = self.reached.synced.load(Ordering::Acquire);
        (self.reached.buffered.load(Ordering::Acquire), synced)
    }

    /// Bytes written to the system since the journal was opened.
    pub fn journaled_bytes(&self) -> u64 {
        self.journaled_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        let writer = self.lock_writer();
        writer.bytes + writer.sealed.iter().map(|sealed| sealed.bytes).sum::<u64>()
    }

    /// Bytes of the file-system blocks that the segments occupy; `None` if the medium has no
    /// files.
    pub fn disk_bytes(&self) -> Option<u64> {
        let names = self.medium.names().ok()?;
        let paths: Vec<_> = names.iter().map(|name| self.medium.path_of(name)).collect();
        disk::of_files(paths.iter().map(|path| &**path))
    }

    /// Appends the admitted samples as a record, and syncs as the policy demands. `position` is
    /// the store's position after these samples.
    pub fn append<'a>(
        &self,
        mut writer: MutexGuard<'_, JournalWriter>,
        key_of: impl Fn(SeriesId) -> Option<&'a SeriesKey>,
        position: u64,
    ) -> Result<()> {
        let number = writer.next_record;
        let JournalWriter {
            admitted,
            unnamed,
            buffer,
            ..
        } = &mut *writer;
        let names: Vec<_> = unnamed.iter().filter_map(|&id| Some((id, key_of(id)?))).collect();
        if !names.is_empty() {
            record::write_names(buffer, number, &names);
        }
        record::write_samples(buffer, number, admitted);
        writer.next_record += admitted.len() as u64;
        writer.position = position;
        self.write_and_rotate(&mut writer)?;
        match self.sync {
            SyncPolicy::Each => self.sync_segment(&mut writer)?,
            SyncPolicy::Group => {
                drop(writer);
                return self.sync_together(number);
            }
            SyncPolicy::None | SyncPolicy::Interval(_) => {}
        }
        Ok(())
    }

    /// Appends `count` updates of one file as a record; each ends in a line feed. `name` is
    /// written first if the segment does not have it yet, and `position` is the cache's position
    /// afterwards. Returns the number of the record.
    ///
    /// The record may be acknowledged only after [`Journal::confirm`], which writes, and under
    /// the policy `group` syncs, once for all pending records. Under `Each` this function has
    /// synced already.
    pub fn append_updates(
        &self,
        mut writer: MutexGuard<'_, JournalWriter>,
        id: SeriesId,
        name: Option<&SeriesKey>,
        (count, lines): (u64, &str),
        position: u64,
    ) -> Result<u64> {
        let number = writer.next_record;
        if let Some(name) = name {
            record::write_names(&mut writer.buffer, number, &[(id, name)]);
        }
        record::write_updates(&mut writer.buffer, number, id, lines);
        writer.next_record += count;
        writer.position = position;
        if self.sync == SyncPolicy::Each {
            self.write_and_rotate(&mut writer)?;
            self.sync_segment(&mut writer)?;
        } else if writer.buffer.len() >= BUFFER_MAX {
            self.write_and_rotate(&mut writer)?;
        }
        Ok(number)
    }

    /// Writes all buffered records to the system.
    pub fn write_buffered_records(&self) -> Result<()> {
        self.write_and_rotate(&mut self.lock_writer())
    }

    /// Returns when a record may be acknowledged, as the policy demands.
    pub fn confirm(&self, record: u64) -> Result<()> {
        match self.sync {
            SyncPolicy::Group => self.sync_together(record),
            SyncPolicy::None | SyncPolicy::Interval(_) => self.write_buffered_records(),
            SyncPolicy::Each => Ok(()),
        }
    }

    /// Writes marks: for each series, the store has synced everything up to the given record.
    pub fn mark_written<'a, K>(
        &self,
        settled: &'a [WrittenUpTo<K>],
        key_of: impl Fn(&'a WrittenUpTo<K>) -> Option<&'a SeriesKey>,
    ) -> Result<()> {
        // Marks are rare and need not be small, so each names its series again.
        for settled in settled.chunks(4_096) {
            let names: Vec<_> = settled.iter().filter_map(|one| Some((one.0, key_of(one)?))).collect();
            let upto: Vec<_> = settled.iter().map(|&(id, record, _)| (id, record)).collect();
            self.mark(Mark::Wrote, &names, &upto)?;
        }
        Ok(())
    }

    /// Writes a mark: the samples of a series up to a record are no longer needed.
    pub fn mark_forgotten(&self, id: SeriesId, record: u64, key: &SeriesKey) -> Result<()> {
        self.mark(Mark::Forgot, &[(id, key)], &[(id, record)])
    }

    fn mark(&self, mark: Mark, names: &[(SeriesId, &SeriesKey)], upto: &[(SeriesId, u64)]) -> Result<()> {
        let mut writer = self.lock_writer();
        let number = writer.next_record;
        record::write_names(&mut writer.buffer, number, names);
        record::write_marks(&mut writer.buffer, number, mark, upto);
        writer.next_record += 1;
        self.write_and_rotate(&mut writer)
    }

    /// Unlocks the folder, so that another journal can be opened there.
    pub fn release(&self) {
        self.medium.release();
    }

    /// Syncs everything appended so far.
    pub fn sync(&self) -> Result<()> {
        self.sync_segment(&mut self.lock_writer())
    }

    /// Ends the current segment, unless it is empty.
    pub fn rotate(&self) -> Result<()> {
        let mut writer = self.lock_writer();
        if writer.bytes > HEAD_LEN as u64 || !writer.buffer.is_empty() {
            self.rotate_segment(&mut writer)?;
        }
        Ok(())
    }

    /// The number of sealed segments, and the last record of all of them but the newest (0 if
    /// there are fewer than two).
    pub fn backlog(&self) -> (usize, u64) {
        let writer = self.lock_writer();
        let second = writer.sealed.iter().rev().nth(1);
        (writer.sealed.len(), second.map_or(0, |sealed| sealed.last_record))
    }

    /// The number of the next record: samples accepted from now on are in it or in a later one.
    pub fn next_record(&self) -> u64 {
        self.lock_writer().next_record
    }

    /// Removes sealed segments whose records are all before `record`. Damaged ones are renamed
    /// and kept.
    pub fn retire(&self, record: u64) -> Result<()> {
        let mut writer = self.lock_writer();
        let is_settled = |sealed: &&SealedSegment| sealed.last_record < record;
        let settled = writer.sealed.iter().take_while(is_settled).count();
        if settled == 0 {
            return Ok(());
        }
        let (left, head) = (writer.sealed.get(settled), writer.head);
        writer.oldest = left.map_or((head.number, head.first_record), |left| {
            (left.number, left.first_record)
        });
        // IMPORTANT: update the marker before the segments go. Otherwise, after a crash, their
        // absence would count as damage.
        let marked = write_marker(&*self.medium, writer.oldest, head);
        marked.map_err(|source| self.failed("write", MARKER, source))?;
        for sealed in writer.sealed.drain(..settled) {
            self.put_away(&sealed)?;
        }
        Ok(())
    }

    fn put_away(&self, sealed: &SealedSegment) -> Result<()> {
        if !sealed.is_damaged {
            let removed = self.medium.remove(&sealed.name);
            return removed.map_err(|source| self.failed("remove", &sealed.name, source));
        }
        let aside = keep_aside(&*self.medium, &sealed.name);
        let aside = aside.map_err(|source| self.failed("rename", &sealed.name, source))?;
        let what = "what could be read of it is in the store; remove it when it is no longer needed";
        let path = self.medium.path_of(&aside);
        self.damage.note(Damage::new(DamageKind::KeptAside, path, what));
        Ok(())
    }

    /// Writes the buffered records to the system, and begins a new segment if this one is full.
    fn write_and_rotate(&self, writer: &mut JournalWriter) -> Result<()> {
        self.write_buffer(writer)?;
        if writer.bytes >= self.segment_bytes {
            self.rotate_segment(writer)?;
        }
        Ok(())
    }

    fn write_buffer(&self, writer: &mut JournalWriter) -> Result<()> {
        if let Some(cause) = &writer.failure {
            return Err(Error::Poisoned { cause: cause.clone() });
        }
        if writer.buffer.is_empty() {
            return Ok(());
        }
        let appended = writer.segment.append(&writer.buffer);
        appended.map_err(|source| self.note_failed_write("append to", writer, source))?;
        let len = writer.buffer.len() as u64;
        writer.buffer.clear();
        writer.bytes += len;
        self.journaled_bytes.fetch_add(len, Ordering::Relaxed);
        // If an ack waits for a sync, no ack depends on records that are written but not synced.
        if !self.sync.is_before_ack() {
            writer.handed_count.raise(writer.next_record);
        }
        self.reached.buffered.fetch_max(writer.position, Ordering::AcqRel);
        Ok(())
    }

    fn rotate_segment(&self, writer: &mut JournalWriter) -> Result<()> {
        // IMPORTANT: sync before the next segment begins. Replay takes missing records at the end
        // of any segment but the last for damage.
        self.sync_segment(writer)?;
        let sealed = SealedSegment {
            name: name_of(writer.head.number),
            number: writer.head.number,
            first_record: writer.head.first_record,
            last_record: writer.next_record - 1,
            bytes: writer.bytes,
            is_damaged: false,
        };
        let head = SegmentHead {
            number: writer.head.number + 1,
            first_record: writer.next_record,
            opening: writer.head.opening,
        };
        writer.segment = begin_segment(&*self.medium, writer.oldest, head)?;
        writer.sealed.push_back(sealed);
        writer.head = head;
        writer.bytes = HEAD_LEN as u64;
        Ok(())
    }

    fn sync_segment(&self, writer: &mut JournalWriter) -> Result<()> {
        let _under_way = self.activity.begin(ActivityKind::Commit);
        self.write_buffer(writer)?;
        let synced = writer.segment.sync();
        synced.map_err(|source| self.note_failed_write("sync", writer, source))?;
        self.synced_count.raise(writer.next_record);
        self.reached.synced.fetch_max(writer.position, Ordering::AcqRel);
        Ok(())
    }

    /// Returns when a record is synced: by this thread for all waiting threads, or by another
    /// one.
    fn sync_together(&self, record: u64) -> Result<()> {
        let mut group = lock(&self.group_commit);
        loop {
            if let Some(cause) = &group.failure {
                return Err(Error::Poisoned { cause: cause.clone() });
            }
            if group.synced_record >= record {
                return Ok(());
            }
            if group.is_syncing {
                group = self.group_synced.wait(group);
                continue;
            }
            group.is_syncing = true;
            drop(group);
            let result = self.sync_now();
            group = lock(&self.group_commit);
            group.is_syncing = false;
            match &result {
                Ok(synced) => group.synced_record = group.synced_record.max(*synced),
                Err(error) => group.failure = Some(error.to_string()),
            }
            self.group_synced.notify_all();
            result?;
        }
    }

    /// Syncs without holding the writer's lock during the sync. Returns the last record that is
    /// covered.
    fn sync_now(&self) -> Result<u64> {
        let _under_way = self.activity.begin(ActivityKind::Commit);
        let (segment, number, last, position) = {
            let mut writer = self.lock_writer();
            self.write_and_rotate(&mut writer)?;
            // Earlier segments were synced when they ended.
            (
                Arc::clone(&writer.segment),
                writer.head.number,
                writer.next_record - 1,
                writer.position,
            )
        };
        segment
            .sync()
            .map_err(|source| self.failed("sync", &name_of(number), source))?;
        self.synced_count.raise(last + 1);
        self.reached.synced.fetch_max(position, Ordering::AcqRel);
        Ok(last)
    }

    /// Records a failed write: after this nothing more is written.
    fn note_failed_write(&self, verb: &str, writer: &mut JournalWriter, source: std::io::Error) -> Error {
        let error = self.failed(verb, &name_of(writer.head.number), source);
        writer.failure = Some(chain(&error));
        error
    }

    fn failed(&self, verb: &str, name: &str, source: std::io::Error) -> Error {
        Error::Backend {
            action: format!("{verb} {}", self.medium.path_of(name).display()),
            source: source.into(),
        }
    }
}

impl JournalWriter {
    /// The number of the next record.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// The number of the segment that the next record is written to.
    pub fn segment(&self) -> u32 {
        self.head.number
    }
}
