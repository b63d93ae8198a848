//! Blocks a pacing thread until its own socket is ready, without a tokio task and without a detour
//! over another thread.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::error::NetError;

/// Ends all waits of a pacing thread from any other thread, permanently: a peer that reads nothing
/// must not keep a run from ending.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Interruption>);

impl Interrupter {
    pub(super) fn new(interruption: Arc<Interruption>) -> Self {
        Self(interruption)
    }

    /// Ends the current wait and every later one at once.
    pub fn interrupt(&self) {
        self.0.is_wanted.store(true, Ordering::SeqCst);
        if let Some(waker) = self.0.lock().take() {
            waker.wake();
        }
    }
}

/// The state that an [`Interrupter`] shares with the pacing thread.
#[derive(Debug, Default)]
pub(super) struct Interruption {
    is_wanted: AtomicBool,
    /// Wakes the pacing thread while it waits.
    waker: Mutex<Option<Waker>>,
}

impl Interruption {
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Waits for an [`Interrupter`]; for one task at a time.
    pub(super) async fn wait(&self) {
        poll_fn(|context| {
            *self.lock() = Some(context.waker().clone());
            // Checked after the waker is registered, so no interruption is missed.
            if self.is_wanted() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a wait ended.
#[derive(Debug)]
pub(super) enum Waited<T> {
    /// The awaited event, with its result.
    Ready(T),
    /// The time limit passed.
    TimedOut,
    /// An [`Interrupter`] ended it.
    Interrupted,
}

/// Blocks one pacing thread. It owns a reactor that runs only while the thread waits, so the
/// kernel wakes the blocked thread itself.
pub(super) struct Parker {
    reactor: Runtime,
    interruption: Arc<Interruption>,
}

impl fmt::Debug for Parker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parker").finish_non_exhaustive()
    }
}

impl Parker {
    pub(super) fn new() -> Result<Self, NetError> {
        let reactor = Builder::new_current_thread().enable_all().build();
        let reactor = reactor.map_err(|source| NetError::Start {
            what: "the reactor of a target",
            source,
        })?;
        Ok(Self {
            reactor,
            interruption: Arc::default(),
        })
    }

    pub(super) fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.interruption))
    }

    /// Whether an [`Interrupter`] has ended all waits.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interruption.is_wanted()
    }

    /// Runs a future to completion; an [`Interrupter`] does not end it.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.reactor.block_on(future)
    }

    /// Polls until ready, blocked between polls, for at most `limit`.
    pub(super) fn wait<T>(
        &self,
        limit: Option<Duration>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Waited<T> {
        // In the common case the operation is ready at once and no reactor runs.
        if let Poll::Ready(value) = poll(&mut Context::from_waker(Waker::noop())) {
            return Waited::Ready(value);
        }
        let until_ready = poll_fn(|context| {
            if let Poll::Ready(value) = poll(context) {
                return Poll::Ready(Waited::Ready(value));
            }
            *self.interruption.lock() = Some(context.waker().clone());
            // Checked after the waker is registered, so no interruption is missed.
            if self.interruption.is_wanted.load(Ordering::SeqCst) {
                return Poll::Ready(Waited::Interrupted);
            }
            Poll::Pending
        });
        match limit {
            None => self.reactor.block_on(until_ready),
            Some(limit) => {
                let limited = async { tokio::time::timeout(limit, until_ready).await };
                self.reactor.block_on(limited).unwrap_or(Waited::TimedOut)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_wait_ends_by_waking_by_time_or_by_interruption() {
        let parker = Parker::new().unwrap();
        let mut polls = 0;
        let woken = parker.wait(None, |context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls < 5 { Poll::Pending } else { Poll::Ready(polls) }
        });
        assert!(matches!(woken, Waited::Ready(5)));
        let limit = Some(Duration::from_millis(1));
        let late: Waited<()> = parker.wait(limit, |_| Poll::Pending);
        assert!(matches!(late, Waited::TimedOut));
        let interrupter = parker.interrupter();
        let from_elsewhere = thread::spawn(move || interrupter.interrupt());
        let ended: Waited<()> = parker.wait(None, |_| Poll::Pending);
        assert!(matches!(ended, Waited::Interrupted));
        from_elsewhere.join().unwrap();
    }
}
