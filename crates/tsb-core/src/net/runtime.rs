//! A tokio runtime on one thread: that of a run accepts connections and sees no payload; that of an
//! [`HttpPool`](super::HttpPool) also encodes and exchanges requests.

use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::error::NetError;
use crate::time::thread_cpu_ns;

/// A current-thread runtime on a thread of its own (`tsb-net`).
///
/// One thread is enough because a listener's payload does not pass through it, and on a machine with two cores
/// every further thread takes CPU time from the working ones. Dropping it ends the thread; sockets
/// still in use then fail. A listener of connections takes a handle, so it works on any other
/// runtime too.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<u64>>,
}

impl Runtime {
    /// Starts the runtime.
    ///
    /// # Errors
    /// [`NetError::Start`] when the machine has no thread or file descriptor to spare.
    pub fn start() -> Result<Self, NetError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| NetError::Start {
            what: "the network runtime",
            source,
        })?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("tsb-net".to_owned());
        let thread = thread.spawn(move || {
            // An error means that the sender was dropped, which also asks the thread to end.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
            thread_cpu_ns()
        });
        let thread = thread.map_err(|source| NetError::Start {
            what: "the network thread",
            source,
        })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The handle from which a [`Listener`](super::Listener) is made.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends the thread; returns the CPU time that it used, in nanoseconds.
    pub fn stop(mut self) -> u64 {
        self.halt()
    }

    fn halt(&mut self) -> u64 {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let ended = self.thread.take().map(thread::JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or(0)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.halt();
    }
}
