//! What an ingest thread waits for: new connections, readiness, the end.
//!
//! Bounded by what it holds: a connection is in it once when it is new, and once more for
//! each time it asked to be woken, which it does only when it was served.

use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use tokio::net::TcpStream;

/// The tasks of one ingest thread.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    mail: Mail,
    is_waited_for: bool,
}

/// What has come since the last look.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// New connections.
    pub(super) opened: Vec<(TcpStream, SocketAddr)>,
    /// Connections (by number) that have something to read.
    pub(super) ready: Vec<u64>,
    /// Nothing will be opened any more: drain and end.
    pub(super) is_last: bool,
}

impl Mail {
    fn is_empty(&self) -> bool {
        self.opened.is_empty() && self.ready.is_empty() && !self.is_last
    }
}

impl Inbox {
    /// A new connection.
    pub(super) fn open(&self, stream: TcpStream, peer: SocketAddr) {
        self.post(|mail| mail.opened.push((stream, peer)));
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
    pub(super) fn fetch(&self, mail: &mut Mail, limit: Option<Duration>) {
        mail.opened.clear();
        mail.ready.clear();
        let mut state = self.lock();
        if state.mail.is_empty() && limit != Some(Duration::ZERO) {
            state.is_waited_for = true;
            state = match limit {
                None => {
                    let waited = self.changed.wait_while(state, |state| state.mail.is_empty());
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(limit) => {
                    let waited = self.changed.wait_timeout(state, limit);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.is_waited_for = false;
        }
        mem::swap(mail, &mut state.mail);
        // The end is the end: it stays to be seen by every later look.
        state.mail.is_last = mail.is_last;
    }

    fn post(&self, change: impl FnOnce(&mut Mail)) {
        let mut state = self.lock();
        change(&mut state.mail);
        let is_waited_for = mem::take(&mut state.is_waited_for);
        drop(state);
        // A notification is a system call even when nobody listens.
        if is_waited_for {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rings for one connection; tokio's I/O driver holds it while the connection waits.
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
        let inbox = Arc::new(Inbox::default());
        let mut mail = Mail::default();
        inbox.fetch(&mut mail, Some(Duration::ZERO));
        assert!(mail.is_empty());
        let waker = inbox.waker(7);
        let ringer = std::thread::spawn(move || waker.wake());
        inbox.fetch(&mut mail, None);
        assert_eq!(mail.ready, [7]);
        ringer.join().unwrap();
        inbox.stop();
        inbox.fetch(&mut mail, None);
        assert!(mail.is_last && mail.ready.is_empty());
        inbox.fetch(&mut mail, None);
        assert!(mail.is_last);
    }
}
