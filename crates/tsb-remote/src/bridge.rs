//! The blocking interface of a client, of samples here and of keys in `keyed`.
//!
//! A caller waits in its own thread for its own request; one thread of the runtime serves the
//! sockets of all, and makes the writes of lanes, for which nobody waits. The bridge adds nothing
//! else: no queue, no retry, no cache.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::client::{Client, QueryCursor};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::{Ack, Capabilities, Position, Query, Refusals, Scope, Stats, Store, Visitor};
use tsb_stores::{AsyncStore, OwnThreads, WriteLane};

/// Number of threads that serve sockets, and build the requests of lanes. All other requests are
/// built and awaited in the callers' threads.
const THREADS: usize = 1;

/// A client as a [`Store`].
///
/// Like any store, it must not be called from a thread of an async runtime: the call would block
/// everything else on that thread, and tokio turns it into a panic.
pub struct Bridge<C> {
    // Shared with the lanes, which end on the runtime.
    client: Arc<C>,
    // `None` only while it is being dropped.
    runtime: Option<Runtime>,
    threads: OwnThreads,
}

impl<C> Bridge<C> {
    /// Starts a runtime, and connects on it.
    ///
    /// # Errors
    /// The error of `connect`, and [`Error::Backend`] if no thread can be started.
    pub fn connect<F: Future<Output = Result<C>>>(connect: impl FnOnce() -> F) -> Result<Self> {
        let threads = OwnThreads::new();
        let runtime = runtime(&threads)?;
        let client = runtime.block_on(connect())?;
        Ok(Self {
            client: Arc::new(client),
            runtime: Some(runtime),
            threads,
        })
    }

    /// The client itself, for callers that have a runtime.
    pub fn client(&self) -> &C {
        &self.client
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(future),
            None => Err(Error::Closed),
        }
    }

    /// Runs a task on the runtime, with the client.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: impl FnOnce(Arc<C>) -> F) -> Result<()> {
        let runtime = self.runtime.as_ref().ok_or(Error::Closed)?;
        runtime.spawn(task(Arc::clone(&self.client)));
        Ok(())
    }
}

/// A runtime whose threads are counted as a store's own.
fn runtime(threads: &OwnThreads) -> Result<Runtime> {
    let (starting, stopping) = (threads.clone(), threads.clone());
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("tsb-remote")
        .on_thread_start(move || starting.enter())
        .on_thread_stop(move || stopping.leave())
        .enable_all()
        .build();
    runtime.map_err(|source| Error::Backend {
        action: "start the runtime of a client".to_owned(),
        source: source.into(),
    })
}

/// Runs one request on a runtime of its own, and waits for it.
#[cfg(any(feature = "mongo", feature = "etcd", feature = "graphite"))]
pub(crate) fn once<T, F: Future<Output = Result<T>>>(ask: impl FnOnce() -> F) -> Result<T> {
    let runtime = runtime(&OwnThreads::new())?;
    let answer = runtime.block_on(async { ask().await });
    runtime.shutdown_background();
    answer
}

impl<C> Drop for Bridge<C> {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A plain drop blocks, and panics if the last owner is on a runtime.
            runtime.shutdown_background();
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for Bridge<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bridge").field(&self.client).finish()
    }
}

impl<C: fmt::Display> fmt::Display for Bridge<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

impl<C: Client> AsyncStore for Bridge<C> {
    fn serve(&self, mut lane: Box<dyn WriteLane>) -> Result<()> {
        // One task per lane and not per write, so that a write allocates nothing here.
        self.spawn(|client| async move {
            let mut refused = Refusals::new();
            while poll_fn(|context| lane.poll_next(context)).await {
                let outcome = client.write(&lane.batch(), &mut refused).await;
                lane.done(outcome, &refused);
                refused.clear();
            }
        })
    }
}

impl<C: Client> Store for Bridge<C> {
    fn capabilities(&self) -> Capabilities {
        self.client.capabilities()
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.wait(self.client.define(series))
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.wait(self.client.write(batch, refused))
    }

    fn durable(&self, level: Durability) -> Position {
        self.client.durable(level)
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.wait(self.client.flush(scope, level))
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let mut cursor = self.wait(self.client.query(query))?;
        // The visitor runs between requests, so it may be slow.
        while let Some(chunk) = self.wait(cursor.next())? {
            if let ControlFlow::Break(()) = visit(chunk.series, &chunk.times, &chunk.values) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.wait(self.client.newest(series, into))
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.client.newest_accepted(series, into)
    }

    fn stats(&self) -> Stats {
        let stats = self.wait(async { Ok(self.client.stats().await) });
        stats.unwrap_or_default().with_threads(&self.threads)
    }

    fn close(&self) -> Result<()> {
        self.wait(self.client.close())
    }
}
