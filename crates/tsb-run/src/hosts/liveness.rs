//! A thread that says that its process is alive, and hears what the others say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tsb_core::time::SECOND_NS;

use super::coordination::Coordination;
use super::documents::{self, ALIVE, ALIVE_NS, HostProgress, LEADER, LeaderState, STOP};

/// How often the leader says that it is there, in nanoseconds.
pub(super) const RENEW_NS: u64 = ALIVE_NS / 5;

/// How often a host reads or writes one document, in nanoseconds: together they make at most 400
/// requests per second of a kind. A host makes three of them: it hears of the leader, says how far it
/// is, and publishes its journal.
pub(super) const fn poll_ns(hosts: usize) -> u64 {
    let each = hosts as u64 * SECOND_NS / 400;
    if each < SECOND_NS / 20 { SECOND_NS / 20 } else { each }
}

/// What a host tells the others, and what it heard of them.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// How far it is.
    pub progress: Mutex<HostProgress>,
    /// Set when the run ends everywhere.
    pub is_stopped: AtomicBool,
    /// Set when the run went on without this host, or its leader is gone.
    pub is_lost: AtomicBool,
}

/// Waits until the sender of `over` is dropped, at most this long. Returns whether it was.
pub(super) fn ends_within(over: &Receiver<()>, ns: u64) -> bool {
    over.recv_timeout(Duration::from_nanos(ns)) == Err(RecvTimeoutError::Disconnected)
}

impl Exchange {
    /// Says that the host is alive and how far it is, does `side_work`, and hears whether the run
    /// ends, until the sender of `over` is dropped. A failed request is made again the next time.
    pub(super) fn keep_up(
        &self,
        (coordination, host): (&Coordination, &str),
        hosts: usize,
        mut side_work: impl FnMut(),
        (stop, over): (&AtomicBool, &Receiver<()>),
    ) {
        // What a host says of itself may be old by half a second or more.
        let period_ns = poll_ns(hosts).max(SECOND_NS / 2);
        loop {
            self.hear(coordination, host, stop);
            if self.is_lost.load(Ordering::Acquire) {
                // What it wrote now would be in the way of the next run.
                return;
            }
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let lives_ns = ALIVE_NS.max(4 * period_ns);
            let _ = coordination.put_expiring(&documents::of(ALIVE, host), &progress, lives_ns);
            side_work();
            if ends_within(over, period_ns) {
                return;
            }
        }
    }

    fn hear(&self, coordination: &Coordination, host: &str, stop: &AtomicBool) {
        // A leader that does not answer may still be there.
        let Ok(leader) = coordination.get::<LeaderState>(LEADER) else {
            return;
        };
        match leader {
            Some(leader) if !leader.lost.contains(host) => {
                if stop.load(Ordering::SeqCst) {
                    self.pass_on_stop(coordination, host);
                } else if leader.stopped_by.is_some() {
                    self.is_stopped.store(true, Ordering::Release);
                    stop.store(true, Ordering::SeqCst);
                }
            }
            _ => {
                self.is_lost.store(true, Ordering::Release);
                stop.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Ends the run everywhere, since it was stopped here: by Ctrl-C, say. Does nothing if the
    /// others have ended it.
    pub(super) fn pass_on_stop(&self, coordination: &Coordination, host: &str) {
        if !self.is_stopped.swap(true, Ordering::AcqRel) && !self.is_lost.load(Ordering::Acquire) {
            let _ = coordination.put(STOP, &host);
        }
    }
}
