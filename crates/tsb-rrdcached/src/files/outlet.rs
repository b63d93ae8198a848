//! Files that were drained, on their way out: the system begins to write them to their medium
//! while the next ones are drained.
//!
//! Whoever begins that waits where the medium's queue is full, so a thread of its own does it,
//! and drains wait for nothing: a file for which there is no place is closed as it is, and the
//! system writes it when it does. A file is claimed until it is closed here, as closing gives
//! up the lock that others of this process may hold.

use std::sync::{Condvar, Mutex, PoisonError};

use tsb_rrd::RrdFile;

use tsb_stores::parts::lock;

/// Files that wait at once: so long a flush of one of them may wait, a few milliseconds.
const WAITING: usize = 64;

/// A file by its name.
type Leaving = (Box<str>, RrdFile);

/// Files that wait to be written out.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    queue: Mutex<Queue>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    files: Vec<Leaving>,
    is_stopped: bool,
}

impl Outlet {
    /// Takes a claimed file, if there is a place for it; else it is closed, and still claimed
    /// by the caller.
    pub(super) fn take(&self, name: &str, file: RrdFile) -> bool {
        let mut queue = lock(&self.queue);
        let has_place = !queue.is_stopped && queue.files.len() < WAITING;
        if has_place {
            // It sleeps only where none waits.
            if queue.files.is_empty() {
                self.bell.notify_one();
            }
            queue.files.push((name.into(), file));
        }
        has_place
    }

    /// Writes files out until it is stopped and none waits; `release` gives up the claim of
    /// each.
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

    /// Gives all that wait for an empty list; `false`: there will be none any more.
    fn next(&self, files: &mut Vec<Leaving>) -> bool {
        let queue = lock(&self.queue);
        let mut queue = self
            .bell
            .wait_while(queue, |queue| queue.files.is_empty() && !queue.is_stopped)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.files, files);
        !files.is_empty()
    }

    /// Takes no file any more.
    pub(super) fn stop(&self) {
        lock(&self.queue).is_stopped = true;
        self.bell.notify_all();
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
            // There are places again after a while.
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
