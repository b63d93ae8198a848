//! The page-writeback thread: starts the system's writeback of drained files, while the next files
//! are drained.
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
const FILES_MAX: usize = 64;

/// A file and its name.
type QueuedFile = (Box<str>, RrdFile);

/// The queue of the page-writeback thread.
#[derive(Debug, Default)]
pub(super) struct PageWritebackQueue {
    state: Mutex<State>,
    file_added: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<QueuedFile>,
    is_stopped: bool,
}

impl PageWritebackQueue {
    /// Takes a claimed file if there is room. Otherwise closes the file and returns false; the
    /// claim stays with the caller.
    pub(super) fn push(&self, name: &str, file: RrdFile) -> bool {
        let mut state = lock(&self.state);
        let has_room = !state.is_stopped && state.files.len() < FILES_MAX;
        if has_room {
            // The thread sleeps only while the queue is empty.
            if state.files.is_empty() {
                self.file_added.notify_one();
            }
            state.files.push((name.into(), file));
        }
        has_room
    }

    /// Starts the writeback of files until [`PageWritebackQueue::stop`] was called and the queue
    /// is empty; `release` gives up the claim of each file.
    pub(super) fn run(&self, release: impl Fn(&str)) {
        let mut files = Vec::with_capacity(FILES_MAX);
        while self.next(&mut files) {
            for (name, file) in files.drain(..) {
                file.begin_writeback();
                drop(file);
                release(&name);
            }
        }
    }

    /// Swaps the queue with an empty list. Returns false once it is stopped and empty.
    fn next(&self, files: &mut Vec<QueuedFile>) -> bool {
        let state = lock(&self.state);
        let mut state = self
            .file_added
            .wait_while(state, |state| state.files.is_empty() && !state.is_stopped)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.files, files);
        !files.is_empty()
    }

    /// Makes `push` refuse further files, and ends the thread once the queue is empty.
    pub(super) fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.file_added.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout};

    #[test]
    fn each_pushed_file_is_released_once_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        let sources = vec![DataSource::new("a", DsKind::Gauge, 20)];
        let layout = Layout::new(10, sources, vec![Archive::new(Cf::Average, 0.5, 1, 10)]).unwrap();
        tsb_rrd::create(&path, &layout, 0, 0).unwrap();
        let push =
            |queue: &PageWritebackQueue, index: usize| queue.push(&index.to_string(), RrdFile::open(&path).unwrap());
        let queue = PageWritebackQueue::default();
        let taken = (0..FILES_MAX + 3).filter(|&index| push(&queue, index)).count();
        assert_eq!(taken, FILES_MAX);
        let released = Mutex::new(Vec::new());
        let more = std::thread::scope(|scope| {
            scope.spawn(|| queue.run(|name| lock(&released).push(name.to_owned())));
            // The thread frees places again after a while.
            while !push(&queue, FILES_MAX) {}
            let more = (100..1_100).filter(|&index| push(&queue, index)).count();
            queue.stop();
            assert!(!push(&queue, 9_999));
            more + 1
        });
        let mut released = released.into_inner().unwrap();
        assert_eq!(released.len(), taken + more);
        released.sort();
        released.dedup();
        assert_eq!(released.len(), taken + more);
    }
}
