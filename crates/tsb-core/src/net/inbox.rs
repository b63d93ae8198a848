//! The queue that an ingest thread waits on: new connections, connections that are ready, and the
//! order to stop.
//!
//! Its size is bounded by the number of connections: each is in it once when it is new, and once
//! more each time that its waker runs, which is armed only after the connection was served.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::address::Address;
use super::stream::UnregisteredStream;

/// The queue of one ingest thread.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    messages: Messages,
    /// Wakes the thread if it is waiting.
    waker: Option<Waker>,
}

/// The messages since the last fetch.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// New connections.
    pub(super) opened: Vec<(UnregisteredStream, Address)>,
    /// Connections, by number, that may have bytes to read, room for answers, or finished background work.
    pub(super) ready: Vec<u64>,
    /// Close the connections that have been idle for this long.
    pub(super) close_idle_after: Option<Duration>,
    /// Whether no further connection will be opened: drain the open ones, and end.
    pub(super) is_last: bool,
}

impl Messages {
    fn is_empty(&self) -> bool {
        self.opened.is_empty() && self.ready.is_empty() && self.close_idle_after.is_none() && !self.is_last
    }
}

impl Inbox {
    /// Adds a new connection.
    pub(super) fn open(&self, stream: UnregisteredStream, peer: Address) {
        self.post(|messages| messages.opened.push((stream, peer)));
    }

    /// Asks the thread to close the connections that have been idle for this long.
    pub(super) fn close_idle(&self, after: Duration) {
        self.post(|messages| messages.close_idle_after = Some(after));
    }

    /// Asks the thread to drain its connections and end.
    pub(super) fn stop(&self) {
        self.post(|messages| messages.is_last = true);
    }

    /// A waker that marks connection `id` as ready.
    pub(super) fn waker(self: &Arc<Self>, id: u64) -> Waker {
        Waker::from(Arc::new(ReadyWaker {
            inbox: Arc::clone(self),
            id,
        }))
    }

    /// Moves the waiting messages into `messages`, whose buffers are reused. Without `limit` it waits
    /// until there is a message. With one it returns empty after that time; a limit of zero only
    /// polls.
    ///
    /// `reactor` is the thread's own: it runs, and calls the connections' wakers, only during this
    /// call. It must have timers if `limit` is ever other than `None` or zero.
    pub(super) fn fetch(&self, reactor: &Runtime, messages: &mut Messages, limit: Option<Duration>) {
        messages.opened.clear();
        messages.ready.clear();
        messages.close_idle_after = None;
        match limit {
            None => reactor.block_on(self.filled()),
            // Polls the sockets once.
            Some(Duration::ZERO) => reactor.block_on(tokio::task::yield_now()),
            Some(limit) => reactor.block_on(async {
                // A time-out leaves `messages` empty, which is a valid result.
                let _ = tokio::time::timeout(limit, self.filled()).await;
            }),
        }
        let mut state = self.lock();
        mem::swap(messages, &mut state.messages);
        // The order to stop is kept, so that every later fetch sees it.
        state.messages.is_last = messages.is_last;
    }

    /// Waits until there is a message.
    async fn filled(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if !state.messages.is_empty() {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn post(&self, change: impl FnOnce(&mut Messages)) {
        let mut state = self.lock();
        change(&mut state.messages);
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

/// The waker of one connection: it marks the connection as ready and wakes its thread. The reactor
/// holds it while the connection waits.
#[derive(Debug)]
struct ReadyWaker {
    inbox: Arc<Inbox>,
    id: u64,
}

impl Wake for ReadyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.inbox.post(|messages| messages.ready.push(self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bells_ring_across_threads_and_the_last_mail_is_seen() {
        let reactor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let inbox = Arc::new(Inbox::default());
        let mut messages = Messages::default();
        inbox.fetch(&reactor, &mut messages, Some(Duration::ZERO));
        assert!(messages.is_empty());
        let waker = inbox.waker(7);
        let ringer = std::thread::spawn(move || waker.wake());
        inbox.fetch(&reactor, &mut messages, None);
        assert_eq!(messages.ready, [7]);
        ringer.join().unwrap();
        inbox.stop();
        inbox.fetch(&reactor, &mut messages, None);
        assert!(messages.is_last && messages.ready.is_empty());
        inbox.fetch(&reactor, &mut messages, None);
        assert!(messages.is_last);
    }
}
