//! Parks a pacing thread until its socket is ready: a waker without a task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::time::Clock;

/// Ends a wait of the pacing thread from any other thread, for good: a peer that reads
/// nothing must not keep a run from ending.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Parked>);

impl Interrupter {
    /// Every wait from now on ends at once.
    pub fn interrupt(&self) {
        self.0.interrupted.store(true, Ordering::Release);
        self.0.unpark();
    }
}

#[derive(Debug)]
struct Parked {
    thread: Mutex<Thread>,
    interrupted: AtomicBool,
}

impl Parked {
    fn unpark(&self) {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).unpark();
    }
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

/// How a wait ended.
#[derive(Debug)]
pub(super) enum Waited<T> {
    /// With what was waited for.
    Ready(T),
    /// The time was up.
    TimedOut,
    /// Somebody interrupted it.
    Interrupted,
}

/// The parking place of one pacing thread.
#[derive(Debug)]
pub(super) struct Parker {
    parked: Arc<Parked>,
    waker: Waker,
}

impl Parker {
    pub(super) fn new() -> Self {
        let parked = Arc::new(Parked {
            thread: Mutex::new(thread::current()),
            interrupted: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&parked));
        Self { parked, waker }
    }

    pub(super) fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.parked))
    }

    /// Polls until ready, parked in between, for at most `limit`.
    pub(super) fn wait<T>(
        &self,
        clock: &dyn Clock,
        limit: Option<Duration>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Waited<T> {
        let mut context = Context::from_waker(&self.waker);
        // The common case costs no clock reading and no lock.
        if let Poll::Ready(value) = poll(&mut context) {
            return Waited::Ready(value);
        }
        *self.parked.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread::current();
        let until = limit.map(|limit| clock.now().saturating_add(limit.as_nanos() as u64));
        loop {
            // Polled again after the thread's name is up: a wake before it went elsewhere.
            if let Poll::Ready(value) = poll(&mut context) {
                return Waited::Ready(value);
            }
            if self.parked.interrupted.load(Ordering::Acquire) {
                return Waited::Interrupted;
            }
            match until {
                None => thread::park(),
                Some(until) => {
                    let left = until.saturating_sub(clock.now());
                    if left == 0 {
                        return Waited::TimedOut;
                    }
                    thread::park_timeout(Duration::from_nanos(left));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MonotonicClock;

    #[test]
    fn a_wait_ends_by_waking_by_time_or_by_interruption() {
        let clock = MonotonicClock::new();
        let parker = Parker::new();
        let mut polls = 0;
        let woken = parker.wait(&clock, None, |context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls < 5 { Poll::Pending } else { Poll::Ready(polls) }
        });
        assert!(matches!(woken, Waited::Ready(5)));
        let limit = Some(Duration::from_millis(1));
        let late: Waited<()> = parker.wait(&clock, limit, |_| Poll::Pending);
        assert!(matches!(late, Waited::TimedOut));
        let interrupter = parker.interrupter();
        let from_elsewhere = thread::spawn(move || interrupter.interrupt());
        let ended: Waited<()> = parker.wait(&clock, None, |_| Poll::Pending);
        assert!(matches!(ended, Waited::Interrupted));
        from_elsewhere.join().unwrap();
    }
}
