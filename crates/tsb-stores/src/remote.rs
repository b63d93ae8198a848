//! Clients of real servers: the contract with many requests in flight, and the bridge that
//! makes a blocking [`Store`](crate::Store) of one, so that conformance and the run see no difference.
//!
//! It knows no protocol and no server; each of them has a module of its own.

use std::fmt::{Debug, Display};
use std::future::Future;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::error::Result;
use crate::store::{Ack, Capabilities, Position, Query, Refusals, Scope, Stats};

#[cfg(any(feature = "mongo", feature = "etcd"))]
pub(crate) mod acks;
mod address;
mod bridge;
#[cfg(any(feature = "mongo", feature = "etcd"))]
pub(crate) mod names;

pub use address::Address;
pub use bridge::Bridge;
#[cfg(any(feature = "mongo", feature = "etcd"))]
pub(crate) use bridge::once;

/// [`Store`](crate::Store) without blocking: the same clauses, word for word, and each method that asks the
/// server gives a future. Any number of them may be in flight at a time.
///
/// A future that is dropped before its end leaves the outcome of its request unknown.
/// Every request ends within a deadline of the client's own: [`Error::Unknown`](crate::Error::Unknown) where it
/// may have been applied, [`Error::Unreachable`](crate::Error::Unreachable) where nothing was sent.
pub trait Client: Debug + Display + Send + Sync + 'static {
    /// What a query gives.
    type Answer: Answer;

    /// See [`Store::capabilities`](crate::Store::capabilities).
    fn capabilities(&self) -> Capabilities;

    /// See [`Store::define`](crate::Store::define).
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> impl Future<Output = Result<()>> + Send;

    /// See [`Store::write`](crate::Store::write). Refusals are of no use where the outcome is an error.
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> impl Future<Output = Result<Ack>> + Send;

    /// See [`Store::durable`](crate::Store::durable): what is known without asking.
    fn durable(&self, level: Durability) -> Position;

    /// See [`Store::flush`](crate::Store::flush).
    fn flush(&self, scope: Scope<'_>, level: Durability) -> impl Future<Output = Result<()>> + Send;

    /// Begins a query; its answer is asked for chunk by chunk.
    fn query(&self, query: &Query<'_>) -> impl Future<Output = Result<Self::Answer>> + Send;

    /// See [`Store::newest`](crate::Store::newest): one request for many series.
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> impl Future<Output = Result<()>> + Send;

    /// See [`Store::newest_accepted`](crate::Store::newest_accepted).
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()>;

    /// See [`Store::stats`](crate::Store::stats); what the server does not answer is 0.
    fn stats(&self) -> impl Future<Output = Stats> + Send;

    /// See [`Store::close`](crate::Store::close).
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
