//! A client whose server is a store in memory that answers as a test says.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_remote::{Bridge, Chunk, Client, QueryCursor};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{
    Ack, AsyncStore, Capabilities, Error, OnConflict, Position, Query, Refusals, Result, Scope, Stats, Store,
};

/// How a server answers a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// With an ack, this much later.
    After(Duration),
    /// Applies the write, and never answers.
    Never,
    /// Nothing within the deadline, which is over after this long; whether the write was applied.
    TimesOut(Duration, bool),
    /// Cannot be reached.
    Unreachable,
    /// Fails for good.
    Breaks,
    /// The client panics.
    Panics,
}

/// The client.
pub(crate) struct Server {
    inner: MemoryStore,
    answer: Box<dyn Fn(u64) -> Answer + Send + Sync>,
    keeps_order: bool,
    writes: AtomicU64,
    under_way: AtomicU64,
    /// The most writes that were under way at a time.
    pub(crate) most: AtomicU64,
}

/// Connects to a server that answers the write of each number so.
pub(crate) fn connect(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Arc<Bridge<Server>> {
    connected(false, answer)
}

/// The same with a server that refuses late samples.
pub(crate) fn connect_in_order(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Arc<Bridge<Server>> {
    connected(true, answer)
}

fn connected(keeps_order: bool, answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Arc<Bridge<Server>> {
    let server = Server {
        inner: MemoryStore::new(MemoryOptions::default()),
        answer: Box::new(answer),
        keeps_order,
        writes: AtomicU64::new(0),
        under_way: AtomicU64::new(0),
        most: AtomicU64::new(0),
    };
    Arc::new(Bridge::connect(|| async { Ok(server) }).unwrap())
}

/// The client as a run takes it.
pub(crate) fn for_run(client: &Arc<Bridge<Server>>) -> Arc<dyn AsyncStore> {
    Arc::clone(client) as Arc<dyn AsyncStore>
}

/// Counts a write as under way until it is dropped.
struct UnderWay<'a>(&'a AtomicU64);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    fn enter(&self) -> UnderWay<'_> {
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        UnderWay(&self.under_way)
    }

    fn apply(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        if self.keeps_order {
            let ids: Vec<SeriesId> = batch.iter().map(|(id, ..)| id).collect();
            let mut newest = vec![None; ids.len()];
            self.inner.newest(&ids, &mut newest)?;
            let is_late = batch.iter().zip(newest).any(|((_, at, _), newest)| newest >= Some(at));
            assert!(!is_late, "a write has overtaken an earlier one");
        }
        self.inner.write(batch, refused)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("server")
    }
}

fn unknown() -> Error {
    Error::Unknown {
        action: "write".to_owned(),
        source: "no answer in time".into(),
    }
}

/// The time that the server takes for its answer.
async fn answer_time(length: Duration) {
    let _ = timeout(length, std::future::pending::<()>()).await;
}

impl Client for Server {
    type Cursor = Rows;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Volatile, Durability::Volatile);
        if self.keeps_order {
            capabilities.late = OnConflict::Rejected;
        }
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.inner.define(series)
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let _under_way = self.enter();
        match (self.answer)(self.writes.fetch_add(1, Ordering::Relaxed)) {
            Answer::After(delay) if delay.is_zero() => self.apply(batch, refused),
            Answer::After(delay) => {
                answer_time(delay).await;
                self.apply(batch, refused)
            }
            Answer::Never => {
                let _ = self.apply(batch, refused)?;
                std::future::pending().await
            }
            Answer::TimesOut(deadline, is_applied) => {
                if is_applied {
                    let _ = self.apply(batch, refused)?;
                }
                answer_time(deadline).await;
                Err(unknown())
            }
            Answer::Unreachable => Err(Error::Unreachable {
                action: "write".to_owned(),
                source: "nobody listens".into(),
            }),
            Answer::Breaks => Err(Error::Backend {
                action: "write".to_owned(),
                source: "the disk is gone".into(),
            }),
            Answer::Panics => panic!("a defect of the client"),
        }
    }

    fn durable(&self, level: Durability) -> Position {
        self.inner.durable(level)
    }

    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.inner.flush(scope, level)
    }

    async fn query(&self, query: &Query<'_>) -> Result<Rows> {
        let mut chunks = VecDeque::new();
        self.inner.query(query, &mut |series, times, values| {
            chunks.push_back(Chunk {
                series,
                times: times.to_vec(),
                values: values.to_vec(),
            });
            ControlFlow::Continue(())
        })?;
        Ok(Rows(chunks))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }

    async fn stats(&self) -> Stats {
        self.inner.stats()
    }

    async fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

/// The answer to a query.
pub(crate) struct Rows(VecDeque<Chunk>);

impl QueryCursor for Rows {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        Ok(self.0.pop_front())
    }
}
