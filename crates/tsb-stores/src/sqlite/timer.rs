//! A timer that commits pending samples: a store that gets no more writes must not keep its last
//! samples uncommitted.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::locks::lock;
use crate::own_threads::OwnThreads;

/// A store with a commit interval.
pub(super) trait CommitsOnTimer: Send + Sync + 'static {
    /// The committed position, and whether more was accepted.
    fn progress(&self) -> (u64, bool);

    /// Commits. A failure poisons the store, so that the next write reports it.
    fn commit_waiting(&self) -> Result<()>;
}

/// A thread that checks once per interval whether samples have waited since the last check.
#[derive(Debug)]
pub(super) struct Timer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
    threads: OwnThreads,
}

impl Timer {
    pub(super) fn start<W: CommitsOnTimer>(shared: &Arc<W>, interval_ns: i64) -> Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (shared, stopped) = (Arc::downgrade(shared), Arc::clone(&stop));
        let interval = Duration::from_nanos(interval_ns.unsigned_abs());
        let threads = OwnThreads::new();
        let thread = threads
            .spawn("tsb-sqlite", move || watch(&shared, &stopped, interval))
            .map_err(|error| Error::Backend {
                action: "start the thread that commits".to_owned(),
                source: error.into(),
            })?;
        Ok(Self {
            stop,
            thread: Mutex::new(Some(thread)),
            threads,
        })
    }

    /// The thread, so that its CPU time can be counted.
    pub(super) fn threads(&self) -> &OwnThreads {
        &self.threads
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        *lock(&self.stop.0) = true;
        self.stop.1.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // If the thread panicked the writer is poisoned, which the next call reports.
            let _ = thread.join();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn watch<W: CommitsOnTimer>(shared: &Weak<W>, stop: &(Mutex<bool>, Condvar), interval: Duration) {
    let mut seen = 0;
    let mut stopped = lock(&stop.0);
    while !*stopped {
        let waited = stop.1.wait_timeout(stopped, interval);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stopped = guard;
        let Some(shared) = shared.upgrade() else { return };
        let (committed, waits) = shared.progress();
        // Commit only if nothing was committed since the last check: otherwise those samples are
        // committed already.
        if committed == seen && waits {
            let _ = shared.commit_waiting();
        }
        seen = shared.progress().0;
    }
}
