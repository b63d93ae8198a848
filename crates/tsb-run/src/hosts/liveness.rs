//! A thread that says that its process is alive, and hears what the others say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tsb_core::time::{Clock, SECOND_NS};

use super::coordination::Coordination;
use super::documents::{self, ALIVE_NS, HostProgress, STOP};

/// How often a process says that it is alive, in nanoseconds.
pub(super) const RENEW_NS: u64 = ALIVE_NS / 5;

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
        (coordination, clock, host): (&Coordination, &dyn Clock, &str),
        hosts: usize,
        mut side_work: impl FnMut(),
        (stop, over): (&AtomicBool, &Receiver<()>),
    ) {
        // What a host says of itself may be old by half a second or more.
        let period_ns = poll_ns(hosts).max(SECOND_NS / 2);
        let (mut renew_at, mut said) = (0, None);
        loop {
            if clock.now() >= renew_at {
                renew_at = clock.now() + RENEW_NS;
                let _ =
                    coordination.put_expiring(&documents::of(documents::ALIVE, host), &std::process::id(), ALIVE_NS);
            }
            self.hear(coordination, host, stop);
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if said.as_ref() != Some(&progress)
                && coordination
                    .put(&documents::of(documents::PROGRESS, host), &progress)
                    .is_ok()
            {
                said = Some(progress);
            }
            side_work();
            if ends_within(over, period_ns) {
                return;
            }
        }
    }

    fn hear(&self, coordination: &Coordination, host: &str, stop: &AtomicBool) {
        let lost = coordination.get::<String>(&documents::of(documents::LOST, host));
        if matches!(lost, Ok(Some(_))) {
            self.is_lost.store(true, Ordering::Release);
            stop.store(true, Ordering::SeqCst);
        }
        if stop.load(Ordering::SeqCst) {
            self.pass_on_stop(coordination, host);
        } else if matches!(coordination.get::<String>(STOP), Ok(Some(_))) {
            self.is_stopped.store(true, Ordering::Release);
            stop.store(true, Ordering::SeqCst);
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
