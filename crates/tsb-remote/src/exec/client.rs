//! The client: checks ids and keys, so that programs need not, and turns calls into requests.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use tsb_core::{Batch, BatchBuf, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{KeyTable, lock, read, write};
use tsb_stores::store::{Ack, Capabilities, Footprint, Position, Query, Reason, Refusals, Scope, Stats};

use super::connection::{Connection, Effect};
use super::cursor::ExecCursor;
use super::message::{Body, REQUEST_MAX, Request};
use super::options::ExecOptions;
use crate::Client;
use crate::acks::Acks;
use crate::partly_sent::of_write;

/// Series that are defined with one request.
const DEFINE_MAX: usize = 4_096;

/// A client of a program.
pub struct ExecClient {
    connection: Arc<Connection>,
    keys: RwLock<KeyTable>,
    acks: Acks,
    /// The position that a flush to each level has covered.
    flushed: [AtomicU64; 4],
    /// Held while a call is under way; `close` waits for those, and not for cursors that are still read.
    requests: tokio::sync::RwLock<()>,
    /// Number of samples that were there when the program was started.
    initial_samples: u64,
    /// Number of samples and of bytes, as the program said last.
    sizes: Mutex<(u64, u64)>,
}

impl ExecClient {
    /// Starts the program.
    ///
    /// # Errors
    /// [`Error::Backend`] if it cannot be started, [`Error::Unanswered`] if it does not greet.
    pub(super) async fn start(options: &ExecOptions) -> Result<Self> {
        let connection = Connection::start(options).await?;
        let mut client = Self {
            connection: Arc::new(connection),
            keys: RwLock::new(KeyTable::new(options.max_series)),
            acks: Acks::default(),
            flushed: Default::default(),
            requests: tokio::sync::RwLock::default(),
            initial_samples: 0,
            sizes: Mutex::default(),
        };
        client.ask_sizes().await?;
        client.initial_samples = lock(&client.sizes).0;
        Ok(client)
    }

    async fn ask_sizes(&self) -> Result<()> {
        const ACTION: &str = "ask for sizes";
        match self.connection.ask(ACTION, Effect::Reads, &Request::Stats).await? {
            Body::Stats { samples, bytes } => *lock(&self.sizes) = (samples, bytes),
            other => return Err(self.misfit(ACTION, Effect::Reads, "stats", &other)),
        }
        Ok(())
    }

    /// Makes a request that is answered with `ok`.
    async fn demand(&self, action: &str, request: &Request<'_>) -> Result<()> {
        match self.connection.ask(action, Effect::Changes, request).await? {
            Body::Ok => Ok(()),
            other => Err(self.misfit(action, Effect::Changes, "ok", &other)),
        }
    }

    fn misfit(&self, action: &str, effect: Effect, wanted: &str, got: &Body) -> Error {
        let what = format!("it answered a request with {} and not with {wanted}", got.verb());
        self.connection.reject(action, effect, &what)
    }

    /// Writes samples with one request. Returns the refused ones, by index.
    async fn write_part(&self, part: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        const ACTION: &str = "write samples";
        let refused = match self
            .connection
            .ask(ACTION, Effect::Changes, &Request::Write(*part))
            .await?
        {
            Body::Ok => Vec::new(),
            Body::Refused(refused) => refused,
            other => return Err(self.misfit(ACTION, Effect::Changes, "ok or refused", &other)),
        };
        let mut indices: Vec<u32> = refused.iter().map(|(index, _)| *index).collect();
        indices.sort_unstable();
        let is_twice = indices.windows(2).any(|pair| pair[0] == pair[1]);
        if is_twice || indices.last().is_some_and(|last| *last as usize >= part.len()) {
            let what = format!(
                "it refused a sample twice, or one beyond the {} that were written, counted from 0",
                part.len()
            );
            return Err(self.connection.reject(ACTION, Effect::Changes, &what));
        }
        Ok(refused)
    }

    /// Writes samples of any number, one request after the other.
    async fn write_all(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let mut refused = Vec::new();
        for start in (0..batch.len()).step_by(REQUEST_MAX) {
            let end = batch.len().min(start + REQUEST_MAX);
            let part = self.write_part(&batch.slice(start..end)).await;
            let part = part.map_err(|error| of_write(start > 0, error))?;
            refused.extend(part.into_iter().map(|(index, reason)| (index + start as u32, reason)));
        }
        Ok(refused)
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }

    fn check_reads(&self, series: &[SeriesId]) -> Result<()> {
        self.acks.check_open()?;
        if !self.capabilities().query {
            return Err(self.unsupported("queries"));
        }
        read(&self.keys).check_each(series.iter().copied())
    }
}

/// The samples that a program without special values can take, and the others.
struct Admitted {
    samples: BatchBuf,
    /// The index of each sample in the caller's batch.
    indices: Vec<u32>,
    refused: Vec<(u32, Reason)>,
}

/// Divides a batch; `None` if all of it can be stored.
fn admitted(batch: &Batch<'_>, capabilities: &Capabilities) -> Option<Admitted> {
    if capabilities.special_values || batch.values().iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut admitted = Admitted {
        samples: BatchBuf::with_capacity(batch.len()),
        indices: Vec::new(),
        refused: Vec::new(),
    };
    for (index, (id, at, value)) in batch.iter().enumerate() {
        if value.is_finite() {
            admitted.samples.push(id, at, value);
            admitted.indices.push(index as u32);
        } else {
            admitted.refused.push((index as u32, Reason::Unrepresentable));
        }
    }
    Some(admitted)
}

impl Client for ExecClient {
    type Cursor = ExecCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.connection.greeting().capabilities;
        // The client resamples rows.
        capabilities.resample = capabilities.query;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        const ACTION: &str = "name series";
        let _open = self.requests.read().await;
        self.acks.check_open()?;
        write(&self.keys).define(series)?;
        for part in series.chunks(DEFINE_MAX) {
            let defined = self.demand(ACTION, &Request::Define(part)).await;
            if let Err(error) = defined {
                // The ids are bound here and not there: nothing can be written any more.
                self.connection
                    .reject(ACTION, Effect::Changes, "it did not define series");
                return Err(error);
            }
        }
        Ok(())
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let _open = self.requests.read().await;
        self.acks.check_open()?;
        read(&self.keys).check_batch(batch)?;
        let capabilities = self.capabilities();
        let rejected = match admitted(batch, &capabilities) {
            None => self.write_all(batch).await?,
            Some(admitted) => {
                let mut rejected = admitted.refused;
                let at_program = self.write_all(&admitted.samples.as_batch()).await?;
                let indexed = |(index, reason): (u32, Reason)| Some((*admitted.indices.get(index as usize)?, reason));
                rejected.extend(at_program.into_iter().filter_map(indexed));
                rejected
            }
        };
        Ok(self
            .acks
            .ack(batch.len(), &rejected, refused, capabilities.acknowledges))
    }

    fn durable(&self, level: Durability) -> Position {
        let flushed = self.flushed[level as usize].load(Ordering::Acquire);
        self.acks.durable(level, self.capabilities().acknowledges, flushed)
    }

    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        let _open = self.requests.read().await;
        self.acks.check_open()?;
        if let Scope::Series(series) = scope {
            read(&self.keys).check_each(series.iter().copied())?;
        }
        let capabilities = self.capabilities();
        if level > capabilities.reaches {
            return Err(self.unsupported("a flush to that level"));
        }
        if level <= capabilities.acknowledges {
            return Ok(());
        }
        let covered = self.acks.accepted();
        self.demand("flush", &Request::Flush(level)).await?;
        self.cover(level, covered);
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<ExecCursor> {
        let _open = self.requests.read().await;
        self.check_reads(query.series)?;
        Ok(ExecCursor::new(&self.connection, query))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        const ACTION: &str = "ask for the newest timestamps";
        let _open = self.requests.read().await;
        self.check_reads(series)?;
        for (series, into) in series.chunks(REQUEST_MAX).zip(into.chunks_mut(REQUEST_MAX)) {
            let request = Request::Newest(series);
            match self.connection.ask(ACTION, Effect::Reads, &request).await? {
                Body::Newest(newest) if newest.len() == into.len() => into.copy_from_slice(&newest),
                Body::Newest(newest) => {
                    let what = format!("it answered with {} times for {} series", newest.len(), series.len());
                    return Err(self.connection.reject(ACTION, Effect::Reads, &what));
                }
                other => return Err(self.misfit(ACTION, Effect::Reads, "newest", &other)),
            }
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).check_each(series.iter().copied())?;
        into.fill(None);
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let open = self.requests.read().await;
        let accepted = self.acks.accepted();
        if self.acks.check_open().is_ok() {
            // A program that does not answer leaves the sizes that it said last.
            let _ = self.ask_sizes().await;
        }
        drop(open);
        let (samples, bytes) = *lock(&self.sizes);
        let mut stats = Stats::new(read(&self.keys).count() as u64, samples, accepted);
        let gone = (self.initial_samples + accepted).saturating_sub(samples);
        match self.capabilities().retention_ns {
            Some(_) => stats.expired = gone,
            None => stats.superseded = gone,
        }
        stats.footprint = Footprint::of_sealed(bytes, samples);
        stats.processes = vec![self.connection.process_id()];
        stats.messages = self.connection.messages();
        stats
    }

    async fn close(&self) -> Result<()> {
        let _all = self.requests.write().await;
        if !self.acks.close() {
            return Ok(());
        }
        let _ = self.ask_sizes().await;
        let covered = self.acks.accepted();
        let closed = self.demand("close", &Request::Close).await;
        if closed.is_ok() {
            self.cover(self.capabilities().reaches, covered);
        }
        closed.and(self.connection.finish().await)
    }
}

impl ExecClient {
    /// Everything up to a position has reached this level.
    fn cover(&self, level: Durability, position: u64) {
        for covered in &self.flushed[..=level as usize] {
            covered.fetch_max(position, Ordering::AcqRel);
        }
    }
}

impl Drop for ExecClient {
    fn drop(&mut self) {
        self.connection.abandon();
    }
}

impl fmt::Debug for ExecClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecClient")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ExecClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exec({})", self.connection.greeting().name)
    }
}
