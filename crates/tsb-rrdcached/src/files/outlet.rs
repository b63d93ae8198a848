//! The writeback thread: starts the system's writeback of drained files, while the next files are
//! drained.
//!
//! Starting writeback blocks while the disk's queue is full. So a thread of its own does it, and
//! drains never wait: if the queue here is full, the file is just closed, and the system writes
//! it later. A file stays claimed until it is closed here, since closing releases the lock that
//! another thread of this process may hold.

use std::sync::{Condvar, Mutex, PoisonError};

use tsb_rrd::RrdFile;

use tsb_stores::parts::lock;

/// Upper bound of the number of files in the queue. It bounds how long a flush of such a file may
/// wait: a few milliseconds.
const WAITING: usize = 64;

/// A file and its name.
type Leaving = (Box<str>, RrdFile);

/// The queue of the writeback thread.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    queue: Mutex<Queue>,
    file_added: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    files: Vec<Leaving>,
    is_stopped: bool,
}

impl Outlet {
    /// Takes a claimed file if there is room. Otherwise closes the file and returns false; the
    /// claim stays with the caller.
    pub(super) fn take(&self, name: &str, file: RrdFile) -> bool {
        let mut queue = lock(&self.queue);
        let has_place = !queue.is_stopped && queue.files.len() < WAITING;
        if has_place {
            // The thread sleeps only while the queue is empty.
            if queue.files.is_empty() {
                self.file_added.notify_one();
            }
            queue.files.push((name.into(), file));
        }
        has_place
    }

    /// Starts the writeback of files until [`Outlet::stop`] was called and the queue is empty;
    /// `release` gives up the claim of each file.
    pub(super) fn work(&self, release: impl Fn(&str)) {
        let mut files = Vec::with_capacity(WAITING);
        while self.next(&mut files) {
            for (name, file) in files.drain(..) {
                file.begin_writeback();
                drop(file);
                release(&name);
            }
        }
    }

    /// Swaps the queue with an empty list. Returns false once it is stopped and empty.
    fn next(&self, files: &mut Vec<Leaving>) -> bool {
        let queue = lock(&self.queue);
        let mut queue = self
            .file_added
            .wait_while(queue, |queue| queue.files.is_empty() && !queue.is_stopped)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.files, files);
        !files.is_empty()
    }

    /// Makes `take` refuse further files, and ends the thread once the queue is empty.
    pub(super) fn stop(&self) {
        lock(&self.queue).is_stopped = true;
        self.file_added.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout};

    #[test]
    fn what_was_taken_is_released_once_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        let sources = vec![DataSource::new("a", DsKind::Gauge, 20)];
        let layout = Layout::new(10, sources, vec![Archive::new(Cf::Average, 0.5, 1, 10)]).unwrap();
        tsb_rrd::create(&path, &layout, 0, 0).unwrap();
        let take = |outlet: &Outlet, index: usize| outlet.take(&index.to_string(), RrdFile::open(&path).unwrap());
        let outlet = Outlet::default();
        let taken = (0..WAITING + 3).filter(|&index| take(&outlet, index)).count();
        assert_eq!(taken, WAITING);
        let released = Mutex::new(Vec::new());
        let more = std::thread::scope(|scope| {
            scope.spawn(|| outlet.work(|name| lock(&released).push(name.to_owned())));
            // The thread frees places again after a while.
            while !take(&outlet, WAITING) {}
            let more = (100..1_100).filter(|&index| take(&outlet, index)).count();
            outlet.stop();
            assert!(!take(&outlet, 9_999));
            more + 1
        });
        let mut released = released.into_inner().unwrap();
        assert_eq!(released.len(), taken + more);
        released.sort();
        released.dedup();
        assert_eq!(released.len(), taken + more);
    }
}
