//! What an ingest thread waits for: new connections, readiness, the end.
//!
//! Bounded by what it holds: a connection is in it once when it is new, and once more for
//! each time it asked to be woken, which it does only when it was served.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::address::Address;
use super::stream::Plain;

/// The tasks of one ingest thread.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    mail: Mail,
    /// Wakes the thread, if it waits.
    waker: Option<Waker>,
}

/// What has come since the last look.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// New connections.
    pub(super) opened: Vec<(Plain, Address)>,
    /// Connections (by number) that have something to read.
    pub(super) ready: Vec<u64>,
    /// It is time to look for connections that bring nothing.
    pub(super) looks: bool,
    /// Nothing will be opened any more: drain and end.
    pub(super) is_last: bool,
}

impl Mail {
    fn is_empty(&self) -> bool {
        self.opened.is_empty() && self.ready.is_empty() && !self.looks && !self.is_last
    }
}

impl Inbox {
    /// A new connection.
    pub(super) fn open(&self, stream: Plain, peer: Address) {
        self.post(|mail| mail.opened.push((stream, peer)));
    }

    /// It is time to look for connections that bring nothing.
    pub(super) fn look(&self) {
        self.post(|mail| mail.looks = true);
    }

    /// The last mail.
    pub(super) fn stop(&self) {
        self.post(|mail| mail.is_last = true);
    }

    /// What wakes connection `id`.
    pub(super) fn waker(self: &Arc<Self>, id: u64) -> Waker {
        Waker::from(Arc::new(Bell {
            inbox: Arc::clone(self),
            id,
        }))
    }

    /// Fetches the mail into `mail`, whose room is used again. With `limit` it comes back
    /// empty after that time, without it waits; a limit of zero only looks.
    ///
    /// `reactor` is the thread's own: it runs, and rings the bells, only in here. It must
    /// have timers if the limit is ever other than none and zero.
    pub(super) fn fetch(&self, reactor: &Runtime, mail: &mut Mail, limit: Option<Duration>) {
        mail.opened.clear();
        mail.ready.clear();
        mail.looks = false;
        match limit {
            None => reactor.block_on(self.filled()),
            // One look at the sockets.
            Some(Duration::ZERO) => reactor.block_on(tokio::task::yield_now()),
            Some(limit) => reactor.block_on(async {
                // Empty is an answer, too.
                let _ = tokio::time::timeout(limit, self.filled()).await;
            }),
        }
        let mut state = self.lock();
        mem::swap(mail, &mut state.mail);
        // The end is the end: it stays to be seen by every later look.
        state.mail.is_last = mail.is_last;
    }

    /// Until there is mail.
    async fn filled(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if !state.mail.is_empty() {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn post(&self, change: impl FnOnce(&mut Mail)) {
        let mut state = self.lock();
        change(&mut state.mail);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rings for one connection; the reactor holds it while the connection waits.
#[derive(Debug)]
struct Bell {
    inbox: Arc<Inbox>,
    id: u64,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.inbox.post(|mail| mail.ready.push(self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bells_ring_across_threads_and_the_last_mail_is_seen() {
        let reactor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let inbox = Arc::new(Inbox::default());
        let mut mail = Mail::default();
        inbox.fetch(&reactor, &mut mail, Some(Duration::ZERO));
        assert!(mail.is_empty());
        let waker = inbox.waker(7);
        let ringer = std::thread::spawn(move || waker.wake());
        inbox.fetch(&reactor, &mut mail, None);
        assert_eq!(mail.ready, [7]);
        ringer.join().unwrap();
        inbox.stop();
        inbox.fetch(&reactor, &mut mail, None);
        assert!(mail.is_last && mail.ready.is_empty());
        inbox.fetch(&reactor, &mut mail, None);
        assert!(mail.is_last);
    }
}
