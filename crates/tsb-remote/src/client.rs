//! The asynchronous contract of a client: [`Store`](tsb_stores::Store) with many requests in
//! flight.
//!
//! It knows no protocol and no server.

use std::fmt::{Debug, Display};
use std::future::Future;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::error::Result;
use tsb_stores::store::{Ack, Capabilities, Position, Query, Refusals, Scope, Stats};

/// [`Store`](tsb_stores::Store) without blocking. The same requirements apply; each method that
/// contacts the server returns a future. Any number of futures may be in flight at a time.
///
/// Dropping a future before it is done leaves the outcome of its request unknown. Every request
/// ends within the client's own deadline: with [`Error::Unknown`](tsb_stores::Error::Unknown) if
/// it may have been applied, with [`Error::Unreachable`](tsb_stores::Error::Unreachable) if
/// nothing was sent.
pub trait Client: Debug + Display + Send + Sync + 'static {
    /// The result of a query, read chunk by chunk.
    type Cursor: QueryCursor;

    /// See [`Store::capabilities`](tsb_stores::Store::capabilities).
    fn capabilities(&self) -> Capabilities;

    /// See [`Store::define`](tsb_stores::Store::define).
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> impl Future<Output = Result<()>> + Send;

    /// See [`Store::write`](tsb_stores::Store::write). If the outcome is an error, ignore the
    /// refusals.
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> impl Future<Output = Result<Ack>> + Send;

    /// See [`Store::durable`](tsb_stores::Store::durable): answers without asking the server.
    fn durable(&self, level: Durability) -> Position;

    /// See [`Store::flush`](tsb_stores::Store::flush).
    fn flush(&self, scope: Scope<'_>, level: Durability) -> impl Future<Output = Result<()>> + Send;

    /// Begins a query; its rows are then read chunk by chunk.
    fn query(&self, query: &Query<'_>) -> impl Future<Output = Result<Self::Cursor>> + Send;

    /// See [`Store::newest`](tsb_stores::Store::newest): one request for many series.
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> impl Future<Output = Result<()>> + Send;

    /// See [`Store::newest_accepted`](tsb_stores::Store::newest_accepted).
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()>;

    /// See [`Store::stats`](tsb_stores::Store::stats); figures that the server does not answer
    /// are 0.
    fn stats(&self) -> impl Future<Output = Stats> + Send;

    /// See [`Store::close`](tsb_stores::Store::close).
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// The unread part of a query.
pub trait QueryCursor: Send {
    /// The next chunk, never empty; `None` at the end. Series are in the order of the query, and
    /// the samples of each are in time order.
    fn next(&mut self) -> impl Future<Output = Result<Option<Chunk>>> + Send;
}

/// Rows of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The series.
    pub series: SeriesId,
    /// Timestamps, in ascending order.
    pub times: Vec<Timestamp>,
    /// One value per timestamp.
    pub values: Vec<f64>,
}
