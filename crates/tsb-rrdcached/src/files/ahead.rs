//! Writes several files in turn, while the system reads ahead the pages of the next ones.
//!
//! A file that is opened ahead belongs to its entry, not to the thread that opened it: an earlier
//! flush can use it, and no thread waits for another.

use tsb_rrd::{ReadAhead, Residency, RrdFile, Session, Stage, update_time_s};

use super::error::FileResult;
use super::page_writeback::PageWritebackQueue;
use super::shared::Shared;

impl Shared {
    /// Writes the queued updates of some files in turn, and starts their writeback if there is a
    /// queue for it. Calls `each` with the result of every file.
    pub(super) fn write_files(
        &self,
        names: &[Box<str>],
        (session, ahead): (&mut Session, &mut ReadAhead),
        page_writeback: Option<&PageWritebackQueue>,
        mut each: impl FnMut(&str, FileResult<bool>),
    ) {
        let _ = ahead.for_each(names.len(), |stage, index| {
            let name = &names[index];
            Ok::<_, std::convert::Infallible>(match stage {
                Stage::Header => self.prefetch_header(name),
                Stage::Rows => self.prefetch_rows(name, session),
                Stage::Update => {
                    each(name, self.write_file(name, session, page_writeback));
                    Residency::NotProbed
                }
            })
        });
    }

    /// Opens a file that no other thread has open, and starts reading its header.
    fn prefetch_header(&self, name: &str) -> Residency {
        let shard_mutex = self.shard_of(name);
        let (claim, layout) = {
            let mut guard = shard_mutex.lock();
            let shard = &mut *guard;
            let entry = shard.entries.get(name).filter(|entry| entry.is_written_next());
            let Some(entry) = entry.filter(|_| !shard.busy.contains(name)) else {
                return Residency::NotProbed;
            };
            let layout = entry.layout.clone();
            // IMPORTANT: claim the file. Closing a descriptor releases the lock that another
            // thread of this process may hold.
            (shard_mutex.claim(shard, name), layout)
        };
        // An error is found again, and reported, by the thread that writes the file.
        let Ok(file) = RrdFile::open_as(&self.base.path(name), &layout) else {
            return Residency::NotProbed;
        };
        let seen = file.prefetch_header();
        if let Some(entry) = shard_mutex.lock().entries.get_mut(name) {
            entry.prefetched = Some(file);
        }
        drop(claim);
        seen
    }

    /// Starts reading the pages of an opened file to which the queued updates will be written.
    fn prefetch_rows(&self, name: &str, session: &mut Session) -> Residency {
        let shard_mutex = self.shard_of(name);
        let (claim, file, until) = {
            let mut guard = shard_mutex.lock();
            let shard = &mut *guard;
            let Some(entry) = shard.entries.get_mut(name).filter(|_| !shard.busy.contains(name)) else {
                return Residency::NotProbed;
            };
            let until = entry.last_line().and_then(update_time_s);
            let (Some(file), Some(until)) = (entry.prefetched.take(), until) else {
                return Residency::NotProbed;
            };
            (shard_mutex.claim(shard, name), file, until)
        };
        let seen = file.prefetch_rows(session, until).unwrap_or_else(Residency::from);
        if let Some(entry) = shard_mutex.lock().entries.get_mut(name) {
            entry.prefetched = Some(file);
        }
        drop(claim);
        seen
    }
}
