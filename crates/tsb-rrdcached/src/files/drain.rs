//! Writes queued updates into the files.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_rrd::{CachedPages, Error as RrdError, Layout, Moment, RrdFile, Session, Updated};

use super::entry::TakenUpdates;
use super::error::{FileError, FileResult};
use super::librrd;
use super::page_writeback::PageWritebackQueue;
use super::shard::Shard;
use super::shared::Shared;
use tsb_stores::error::chain;
use tsb_stores::write_cache::writeback::RETRY_NS;

/// Number of times that a file is reopened after it was replaced during a write.
const REOPENS: usize = 3;

/// The state and options for writing one file.
#[derive(Debug)]
struct FileWrite {
    /// The file, if it was opened ahead.
    prefetched: Option<RrdFile>,
    known: Option<CachedPages>,
    /// Whether the file's head is kept in memory after the write.
    keeps_head: bool,
    /// Whether the file stays open after the last pass.
    leaves_open: bool,
    /// Our own engine cannot handle the file.
    is_for_librrd: bool,
    /// It was damaged or missing at the last attempt.
    was_damaged: bool,
}

impl FileWrite {
    /// Runs one pass of updates. Closes the file afterwards unless `leaves_open`.
    fn update(&mut self, file: RrdFile, session: &mut Session, updates: &[&str]) -> tsb_rrd::Result<Updated> {
        let updated = match (self.keeps_head, self.leaves_open) {
            (true, _) => file.update_cached(session, &mut self.known, updates)?,
            (false, true) => file.update(session, updates)?,
            (false, false) => return file.update_and_close(session, updates),
        };
        self.prefetched = self.leaves_open.then_some(file);
        Ok(updated)
    }
}

/// The outcome of writing one file.
#[derive(Debug, Default)]
struct WriteOutcome {
    written: u64,
    failed: u64,
    /// Bytes of the text that are written or refused for good: the rest is retried.
    done_bytes: usize,
    why: Option<RrdError>,
    /// The file is damaged or missing. The queue of a missing file is lost at once. That of a
    /// damaged file is tried once more, in case another process is just replacing the file, and is
    /// then lost.
    is_damaged: bool,
    /// The file was replaced by one that our own engine cannot handle.
    is_for_librrd: bool,
    newest: Option<Moment>,
    layout: Option<Arc<Layout>>,
    known: Option<CachedPages>,
    open: Option<RrdFile>,
}

impl Shared {
    /// Writes the queue of a file. `Ok(false)` if the cache does not know the file.
    ///
    /// # Errors
    /// [`FileError::Suspended`]; [`FileError::Poisoned`] by the journal. Failures of the file
    /// itself are noted in its entry.
    pub(super) fn write_file(
        &self,
        name: &str,
        session: &mut Session,
        page_writeback: Option<&PageWritebackQueue>,
    ) -> FileResult<bool> {
        let shard_mutex = self.shard_of(name);
        let (claim, mut file_write, layout, taken) = {
            let mut guard = shard_mutex.lock_idle(name);
            let shard = &mut *guard;
            let Some(entry) = shard.entries.get_mut(name) else {
                return Ok(false);
            };
            entry.is_queued = false;
            let prefetched = entry.prefetched.take();
            if entry.queued() == 0 {
                return Ok(true);
            }
            if entry.is_suspended {
                return Err(FileError::Suspended {
                    file: self.base.display_path(name),
                    pending: entry.pending(),
                });
            }
            // IMPORTANT: write the journal's records first. Otherwise a kill in the middle of a
            // pass could leave a partly written row whose updates are lost.
            self.write_buffered_records()?;
            let (layout, taken) = (Arc::clone(&entry.layout), entry.take());
            let file_write = FileWrite {
                prefetched,
                known: entry.known.take().map(|known| *known),
                keeps_head: self.head_cache.is_some(),
                leaves_open: page_writeback.is_some(),
                is_for_librrd: entry.is_for_librrd,
                was_damaged: entry.is_damaged,
            };
            (shard_mutex.claim(shard, name), file_write, layout, taken)
        };
        if let Some(head_cache) = &self.head_cache {
            file_write.known = head_cache.take(file_write.known);
        }
        let path = self.base.path(name);
        let mut outcome = if file_write.is_for_librrd {
            write_with_librrd(&path, &layout, &taken)
        } else {
            write_updates(&path, file_write, layout, &taken, session)
        };
        let open = outcome.open.take();
        self.apply_outcome(&mut shard_mutex.lock(), name, taken, outcome);
        if let (Some(page_writeback), Some(file)) = (page_writeback, open)
            && page_writeback.push(name, file)
        {
            claim.hand_over();
        }
        Ok(true)
    }

    fn apply_outcome(&self, shard: &mut Shard, name: &str, taken: TakenUpdates, outcome: WriteOutcome) {
        let Shard { entries, account, .. } = shard;
        account.pending -= outcome.written + outcome.failed;
        account.written += outcome.written;
        account.failed += outcome.failed;
        let counters = &self.counters;
        if outcome.written > 0 {
            counters.updates_written.fetch_add(1, Ordering::Relaxed);
        }
        self.release(taken.text.capacity());
        // A claimed entry is never removed.
        let Some(entry) = entries.get_mut(name) else { return };
        let left = taken.count - outcome.written - outcome.failed;
        let last_record = taken.last_record;
        self.release(entry.bytes());
        entry.finish_write(taken.text, outcome.done_bytes, left, self.has_room_to_keep());
        self.hold(entry.bytes());
        entry.written_ns = self.clock.now();
        entry.due_ns = match left {
            0 => self.next_due(entry),
            _ => entry.written_ns.saturating_add(RETRY_NS),
        };
        let known = self
            .head_cache
            .as_ref()
            .and_then(|head_cache| head_cache.hold(outcome.known));
        entry.known = known.map(Box::new);
        entry.newest = entry.newest.max(outcome.newest.unwrap_or_default());
        if let Some(layout) = outcome.layout {
            entry.layout = self.interned(layout);
        }
        if let Some(why) = outcome.why {
            counters.write_failures.fetch_add(1, Ordering::Relaxed);
            let failures = entry.failures.get_or_insert_default();
            failures.lost += outcome.failed;
            failures.why = chain(&why);
            if outcome.is_damaged && outcome.failed > 0 {
                self.note_loss(name, &failures.why, outcome.failed);
            }
        }
        entry.is_damaged = outcome.is_damaged;
        entry.is_for_librrd |= outcome.is_for_librrd;
        if left > 0 {
            self.has_failed_writes.store(true, Ordering::Release);
        } else if self.journal.is_some() {
            let written = (entry.id, last_record, Arc::clone(&entry.key));
            self.unsynced.add([written]);
        }
    }

    /// Writes the queue of a file and reports every failure since the last report. `Ok(false)` if
    /// the cache does not know the file, but it exists.
    pub(super) fn flush(&self, name: &str, session: &mut Session) -> FileResult<bool> {
        self.counters.flushes_received.fetch_add(1, Ordering::Relaxed);
        if !self.write_file(name, session, None)? {
            self.base.check_file(name)?;
            return Ok(false);
        }
        self.report(name).map(|()| true)
    }

    /// Returns the failures of a file since the last report as an error.
    pub(super) fn report(&self, name: &str) -> FileResult<()> {
        let mut shard = self.shard_of(name).lock();
        let failures = shard.entries.get_mut(name).and_then(|entry| {
            let failures = entry.failures.take()?;
            Some((failures, entry.pending()))
        });
        match failures {
            // Whatever had to be retried is written by now.
            Some((failures, pending)) if failures.lost > 0 || pending > 0 => Err(FileError::NotWritten {
                file: self.base.display_path(name),
                lost: failures.lost,
                pending,
                why: failures.why,
            }),
            _ => Ok(()),
        }
    }
}

/// As [`write_updates`], for a file that only librrd can handle.
fn write_with_librrd(path: &std::path::Path, layout: &Layout, taken: &TakenUpdates) -> WriteOutcome {
    let mut outcome = WriteOutcome::default();
    for update in taken.text.lines() {
        match librrd::update(path, update) {
            Ok(()) => {
                outcome.written += 1;
                outcome.newest = tsb_rrd::check(layout, update).ok();
            }
            Err(error @ RrdError::Locked) => {
                outcome.why = Some(error);
                break;
            }
            Err(error) => {
                outcome.failed += 1;
                outcome.why = Some(error);
            }
        }
        outcome.done_bytes += update.len() + 1;
    }
    outcome
}

/// Writes updates to a file until each is either applied or refused for good, or until an error
/// that a retry may cure.
fn write_updates(
    path: &std::path::Path,
    mut file_write: FileWrite,
    mut layout: Arc<Layout>,
    taken: &TakenUpdates,
    session: &mut Session,
) -> WriteOutcome {
    let updates: Vec<&str> = taken.text.lines().collect();
    let mut outcome = WriteOutcome::default();
    let (mut done, mut reopens) = (0, 0);
    while done < updates.len() {
        let rest = &updates[done..];
        let opened = file_write
            .prefetched
            .take()
            .map_or_else(|| RrdFile::open_as(path, &layout), Ok);
        match opened.and_then(|file| file_write.update(file, session, rest)) {
            Ok(updated) => {
                outcome.written += updated.applied as u64;
                outcome.newest = Some(updated.newest);
                done += updated.applied;
                if let Some(why) = updated.stopped {
                    // Another process has written a later one, or the layout has changed.
                    outcome.failed += 1;
                    outcome.why = Some(why);
                    done += 1;
                }
            }
            Err(error) => {
                let error = match error.cause() {
                    RrdError::Changed if reopens < REOPENS => match RrdFile::open(path) {
                        Ok(file) => {
                            reopens += 1;
                            layout = Arc::clone(file.layout());
                            outcome.layout = Some(Arc::clone(&layout));
                            continue;
                        }
                        Err(error) => error,
                    },
                    _ => error,
                };
                outcome.is_damaged = is_damage(&error);
                outcome.is_for_librrd = librrd::is_for_librrd(&error);
                if outcome.is_damaged && (file_write.was_damaged || is_gone(&error)) {
                    outcome.failed += rest.len() as u64;
                    done = updates.len();
                }
                outcome.why = Some(error);
                break;
            }
        }
    }
    (outcome.known, outcome.open) = (file_write.known, file_write.prefetched);
    outcome.done_bytes = updates[..done].iter().map(|update| update.len() + 1).sum();
    outcome
}

/// Whether the file cannot be written in its present state, so that a retry is pointless.
fn is_damage(error: &RrdError) -> bool {
    is_gone(error) || matches!(error.cause(), RrdError::Damaged { .. })
}

fn is_gone(error: &RrdError) -> bool {
    matches!(error.cause(), RrdError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
