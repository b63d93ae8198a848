//! KairosDB over HTTP: batches as JSON, and its query API to read back; the
//! beginning of the names of metrics is the place.
//!
//! An ack is `Volatile`: KairosDB answers once samples are in a queue of its own, and writes them to its
//! datastore (H2 or Cassandra) some time later, which is also when queries see them
//! ([`Capabilities::visibility_delay_ms`]). It has no request that waits for that, so no flush makes
//! more of an ack. With the option `put`, samples go as lines that nothing answers: an ack is
//! `Unconfirmed`. The client never repeats a write without an answer: it is `Unknown`, and reading
//! back settles it. A write that KairosDB refuses is `Unknown`, too: it has stored what stands before the
//! bad sample.
//!
//! Timestamps are whole milliseconds from 1970 on. NaN and infinities are refused before they are
//! sent: JSON has neither. Values are sent as doubles and come back to the bit.
//!
//! It is *not* a client of several servers.
//!
//! [`Capabilities::visibility_delay_ms`]: tsb_stores::Capabilities::visibility_delay_ms

mod body;
mod client;
mod connection;
mod cursor;
mod names;
mod options;

pub use client::KairosDbClient;
pub use cursor::KairosDbCursor;
pub use options::KairosDbOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 8080;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a server that is none, or metrics of another program,
/// and [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &KairosDbOptions) -> Result<Bridge<KairosDbClient>> {
    Bridge::connect(|| KairosDbClient::connect(address, options))
}

/// The series that earlier runs left under a prefix, in the order of their numbers. Changes nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &KairosDbOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Deletes the metrics that runs have filled. Without them, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for metrics of another program, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &KairosDbOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
