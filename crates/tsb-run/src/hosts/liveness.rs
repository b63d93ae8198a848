//! A thread that says that its process is alive, and hears what the others say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tsb_core::time::{Clock, SECOND_NS};

use super::board::Board;
use super::documents::{self, ALIVE_NS, HostProgress, STOP};

/// How often a process says that it is alive, in nanoseconds.
const RENEW_NS: u64 = ALIVE_NS / 5;
/// Longest single wait: the end of a run waits at most this long for the thread.
const SLICE_NS: u64 = SECOND_NS / 50;

/// How often a host reads or writes one document while it waits, in nanoseconds: with 1,000 hosts
/// they make 500 requests per second of a kind together.
pub(super) const fn poll_ns(hosts: usize) -> u64 {
    let each = hosts as u64 * SECOND_NS / 500;
    if each < SECOND_NS / 20 { SECOND_NS / 20 } else { each }
}

/// What a host tells the others, and what it heard of them.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// How far it is.
    pub progress: Mutex<HostProgress>,
    /// Set when the run ends everywhere.
    pub is_stopped: AtomicBool,
    /// Set when the run went on without this host.
    pub is_lost: AtomicBool,
    /// Ends the thread.
    pub is_over: AtomicBool,
}

impl Exchange {
    /// Says that the host is alive and how far it is, publishes its journal by `publish`, and hears
    /// whether the run ends, until it is over. A failed request is made again the next time.
    pub(super) fn keep_up(
        &self,
        (board, clock, host): (&Board, &dyn Clock, &str),
        hosts: usize,
        mut publish: impl FnMut(),
        stop: &AtomicBool,
    ) {
        // What a host says of itself may be old by a second or more.
        let period_ns = poll_ns(hosts).max(SECOND_NS / 2);
        let (mut renew_at, mut next_at) = (0, 0);
        let mut said = None;
        while !self.is_over.load(Ordering::Acquire) {
            let now = clock.now();
            if now >= renew_at {
                renew_at = now + RENEW_NS;
                let _ = board.put_expiring(&documents::of(documents::ALIVE, host), &std::process::id(), ALIVE_NS);
            }
            if now >= next_at {
                next_at = now + period_ns;
                self.hear(board, host, stop);
                let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if said.as_ref() != Some(&progress)
                    && board.put(&documents::of(documents::PROGRESS, host), &progress).is_ok()
                {
                    said = Some(progress);
                }
                publish();
            }
            clock.wait_until(now + SLICE_NS);
        }
    }

    fn hear(&self, board: &Board, host: &str, stop: &AtomicBool) {
        let lost = board.get::<String>(&documents::of(documents::LOST, host));
        if matches!(lost, Ok(Some(_))) {
            self.is_lost.store(true, Ordering::Release);
            stop.store(true, Ordering::SeqCst);
        }
        if stop.load(Ordering::SeqCst) {
            // Ctrl-C at one host ends the run everywhere.
            if !self.is_stopped.swap(true, Ordering::AcqRel) && !self.is_lost.load(Ordering::Acquire) {
                let _ = board.put(STOP, &host);
            }
        } else if matches!(board.get::<String>(STOP), Ok(Some(_))) {
            self.is_stopped.store(true, Ordering::Release);
            stop.store(true, Ordering::SeqCst);
        }
    }
}
