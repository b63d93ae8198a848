//! Writes queued updates into the files.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_rrd::{CachedPages, Error as RrdError, Layout, Moment, RrdFile, Session, Updated};

use super::entry::Load;
use super::error::FileError;
use super::librrd;
use super::outlet::Outlet;
use super::shared::Shared;
use super::shelf::Shelf;
use tsb_stores::error::chain;
use tsb_stores::write_cache::writeback::RETRY_NS;

/// Number of times that a file is reopened after it was replaced during a write.
const REOPENS: usize = 3;

/// The state and options for writing one file.
#[derive(Debug)]
struct Way {
    /// The file, if it was opened ahead.
    ready: Option<RrdFile>,
    known: Option<CachedPages>,
    /// Whether the file's head is kept in memory after the write.
    keeps: bool,
    /// Whether the file stays open after the last pass.
    leaves_open: bool,
    /// Our own engine cannot handle the file.
    is_for_librrd: bool,
    /// It was damaged or missing at the last attempt.
    was_damaged: bool,
}

impl Way {
    /// Runs one pass of updates. Closes the file afterwards unless `leaves_open`.
    fn update(&mut self, file: RrdFile, session: &mut Session, readings: &[&str]) -> tsb_rrd::Result<Updated> {
        let updated = match (self.keeps, self.leaves_open) {
            (true, _) => file.update_cached(session, &mut self.known, readings)?,
            (false, true) => file.update(session, readings)?,
            (false, false) => return file.update_and_close(session, readings),
        };
        self.ready = self.leaves_open.then_some(file);
        Ok(updated)
    }
}

/// The outcome of writing one file.
#[derive(Debug, Default)]
struct Passed {
    written: u64,
    failed: u64,
    /// Bytes of the text that are settled: the rest is retried.
    settled: usize,
    why: Option<RrdError>,
    /// The file is damaged or missing. The queue is tried once more, in case another process is
    /// just replacing the file, and is then lost.
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
    pub(super) fn write_out(
        &self,
        name: &str,
        session: &mut Session,
        outlet: Option<&Outlet>,
    ) -> std::result::Result<bool, FileError> {
        let shelved = self.shelf_of(name);
        let (claim, mut way, layout, load) = {
            let mut guard = shelved.lock_idle(name);
            let shelf = &mut *guard;
            let Some(entry) = shelf.entries.get_mut(name) else {
                return Ok(false);
            };
            entry.is_queued = false;
            let ready = entry.ready.take();
            if entry.waiting() == 0 {
                return Ok(true);
            }
            if entry.is_suspended {
                return Err(FileError::Suspended {
                    file: self.base.shown(name),
                    pending: entry.pending(),
                });
            }
            // IMPORTANT: write the journal's records first. Otherwise a kill in the middle of a
            // pass could leave a partly written row whose updates are lost.
            self.hand_over_records()?;
            let (layout, load) = (Arc::clone(&entry.layout), entry.take());
            let way = Way {
                ready,
                known: entry.known.take().map(|known| *known),
                keeps: self.memory.is_some(),
                leaves_open: outlet.is_some(),
                is_for_librrd: entry.is_for_librrd,
                was_damaged: entry.is_damaged,
            };
            (shelved.claim(shelf, name), way, layout, load)
        };
        if let Some(memory) = &self.memory {
            way.known = memory.take(way.known);
        }
        let path = self.base.path(name);
        let mut passed = if way.is_for_librrd {
            pass_of_librrd(&path, &layout, &load)
        } else {
            pass(&path, way, layout, &load, session)
        };
        let open = passed.open.take();
        self.settle(&mut shelved.lock(), name, load, passed);
        if let (Some(outlet), Some(file)) = (outlet, open)
            && outlet.take(name, file)
        {
            claim.hand_over();
        }
        Ok(true)
    }

    fn settle(&self, shelf: &mut Shelf, name: &str, load: Load, passed: Passed) {
        let Shelf { entries, account, .. } = shelf;
        account.pending -= passed.written + passed.failed;
        account.written += passed.written;
        account.failed += passed.failed;
        let counters = &self.counters;
        if passed.written > 0 {
            counters.updates_written.fetch_add(1, Ordering::Relaxed);
        }
        self.release(load.text.capacity());
        // A claimed entry is never removed.
        let Some(entry) = entries.get_mut(name) else { return };
        let left = load.count - passed.written - passed.failed;
        let last_record = load.last_record;
        self.release(entry.bytes());
        entry.settle(load.text, passed.settled, left, self.has_room_to_keep());
        self.hold(entry.bytes());
        entry.written_ns = self.clock.now();
        entry.due_ns = match left {
            0 => self.next_due(entry),
            _ => entry.written_ns.saturating_add(RETRY_NS),
        };
        let known = self.memory.as_ref().and_then(|memory| memory.hold(passed.known));
        entry.known = known.map(Box::new);
        entry.newest = entry.newest.max(passed.newest.unwrap_or_default());
        if let Some(layout) = passed.layout {
            entry.layout = self.interned(layout);
        }
        if let Some(why) = passed.why {
            counters.write_failures.fetch_add(1, Ordering::Relaxed);
            let trouble = entry.trouble.get_or_insert_default();
            trouble.lost += passed.failed;
            trouble.why = chain(&why);
            if passed.is_damaged && passed.failed > 0 {
                self.note_loss(name, &trouble.why, passed.failed);
            }
        }
        entry.is_damaged = passed.is_damaged;
        entry.is_for_librrd |= passed.is_for_librrd;
        if left > 0 {
            self.has_trouble.store(true, Ordering::Release);
        } else if self.journal.is_some() {
            let settled = (entry.id, last_record, Arc::clone(&entry.key));
            self.unsynced.remember([settled]);
        }
    }

    /// Writes the queue of a file and reports every failure since the last report. `Ok(false)` if
    /// the cache does not know the file, but it exists.
    pub(super) fn flush(&self, name: &str, session: &mut Session) -> std::result::Result<bool, FileError> {
        self.counters.flushes_received.fetch_add(1, Ordering::Relaxed);
        if !self.write_out(name, session, None)? {
            self.base.check_file(name)?;
            return Ok(false);
        }
        self.report(name).map(|()| true)
    }

    /// Returns the failures of a file since the last report as an error.
    pub(super) fn report(&self, name: &str) -> std::result::Result<(), FileError> {
        let mut shelf = self.shelf_of(name).lock();
        let trouble = shelf.entries.get_mut(name).and_then(|entry| {
            let trouble = entry.trouble.take()?;
            Some((trouble, entry.pending()))
        });
        match trouble {
            // Whatever had to be retried is written by now.
            Some((trouble, pending)) if trouble.lost > 0 || pending > 0 => Err(FileError::NotWritten {
                file: self.base.shown(name),
                lost: trouble.lost,
                pending,
                why: trouble.why,
            }),
            _ => Ok(()),
        }
    }
}

/// As [`pass`], for a file that only librrd can handle.
fn pass_of_librrd(path: &std::path::Path, layout: &Layout, load: &Load) -> Passed {
    let mut passed = Passed::default();
    for reading in load.text.lines() {
        match librrd::update(path, reading) {
            Ok(()) => {
                passed.written += 1;
                passed.newest = tsb_rrd::check(layout, reading).ok();
            }
            Err(error @ RrdError::Locked) => {
                passed.why = Some(error);
                break;
            }
            Err(error) => {
                passed.failed += 1;
                passed.why = Some(error);
            }
        }
        passed.settled += reading.len() + 1;
    }
    passed
}

/// Writes updates to a file until each is either applied or refused for good, or until an error
/// that a retry may cure.
fn pass(path: &std::path::Path, mut way: Way, mut layout: Arc<Layout>, load: &Load, session: &mut Session) -> Passed {
    let readings: Vec<&str> = load.text.lines().collect();
    let mut passed = Passed::default();
    let (mut done, mut reopens) = (0, 0);
    while done < readings.len() {
        let rest = &readings[done..];
        let opened = way.ready.take().map_or_else(|| RrdFile::open_as(path, &layout), Ok);
        match opened.and_then(|file| way.update(file, session, rest)) {
            Ok(updated) => {
                passed.written += updated.applied as u64;
                passed.newest = Some(updated.newest);
                done += updated.applied;
                if let Some(why) = updated.stopped {
                    // Another process has written a later one, or the layout has changed.
                    passed.failed += 1;
                    passed.why = Some(why);
                    done += 1;
                }
            }
            Err(error) => {
                let error = match error.cause() {
                    RrdError::Changed if reopens < REOPENS => match RrdFile::open(path) {
                        Ok(file) => {
                            reopens += 1;
                            layout = Arc::clone(file.layout());
                            passed.layout = Some(Arc::clone(&layout));
                            continue;
                        }
                        Err(error) => error,
                    },
                    _ => error,
                };
                passed.is_damaged = is_damage(&error);
                passed.is_for_librrd = librrd::is_for_librrd(&error);
                if passed.is_damaged && (way.was_damaged || is_gone(&error)) {
                    passed.failed += rest.len() as u64;
                    done = readings.len();
                }
                passed.why = Some(error);
                break;
            }
        }
    }
    (passed.known, passed.open) = (way.known, way.ready);
    passed.settled = readings[..done].iter().map(|reading| reading.len() + 1).sum();
    passed
}

/// Whether the file cannot be written in its present state, so that a retry is pointless.
fn is_damage(error: &RrdError) -> bool {
    is_gone(error) || matches!(error.cause(), RrdError::Damaged { .. })
}

fn is_gone(error: &RrdError) -> bool {
    matches!(error.cause(), RrdError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
