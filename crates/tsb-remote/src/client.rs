//! The contract of a client: [`Store`](tsb_stores::Store) with many requests in flight.
//!
//! It knows no protocol and no server.

use std::fmt::{Debug, Display};
use std::future::Future;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::error::Result;
use tsb_stores::store::{Ack, Capabilities, Position, Query, Refusals, Scope, Stats};

/// [`Store`](tsb_stores::Store) without blocking: the same clauses, word for word, and each method that asks the
/// server gives a future. Any number of them may be in flight at a time.
///
/// A future that is dropped before its end leaves the outcome of its request unknown.
/// Every request ends within a deadline of the client's own: [`Error::Unknown`](tsb_stores::Error::Unknown) where it
/// may have been applied, [`Error::Unreachable`](tsb_stores::Error::Unreachable) where nothing was sent.
pub trait Client: Debug + Display + Send + Sync + 'static {
    /// What a query gives.
    type Answer: Answer;

    /// See [`Store::capabilities`](tsb_stores::Store::capabilities).
    fn capabilities(&self) -> Capabilities;

    /// See [`Store::define`](tsb_stores::Store::define).
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> impl Future<Output = Result<()>> + Send;

    /// See [`Store::write`](tsb_stores::Store::write). Refusals are of no use where the outcome is an error.
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> impl Future<Output = Result<Ack>> + Send;

    /// See [`Store::durable`](tsb_stores::Store::durable): what is known without asking.
    fn durable(&self, level: Durability) -> Position;

    /// See [`Store::flush`](tsb_stores::Store::flush).
    fn flush(&self, scope: Scope<'_>, level: Durability) -> impl Future<Output = Result<()>> + Send;

    /// Begins a query; its answer is asked for chunk by chunk.
    fn query(&self, query: &Query<'_>) -> impl Future<Output = Result<Self::Answer>> + Send;

    /// See [`Store::newest`](tsb_stores::Store::newest): one request for many series.
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> impl Future<Output = Result<()>> + Send;

    /// See [`Store::newest_accepted`](tsb_stores::Store::newest_accepted).
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()>;

    /// See [`Store::stats`](tsb_stores::Store::stats); what the server does not answer is 0.
    fn stats(&self) -> impl Future<Output = Stats> + Send;

    /// See [`Store::close`](tsb_stores::Store::close).
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// The rest of a query.
pub trait Answer: Send {
    /// The next chunk: series in the order asked, each in ascending time, never an empty one.
    fn next(&mut self) -> impl Future<Output = Result<Option<Chunk>>> + Send;
}

/// Rows of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Whose.
    pub series: SeriesId,
    /// Ascending.
    pub times: Vec<Timestamp>,
    /// One for each timestamp.
    pub values: Vec<f64>,
}
