//! Prometheus: samples by remote write, read back by remote read; a place is the label
//! [`PLACE_LABEL`].
//!
//! An ack is `Buffered`: Prometheus answers a write when its samples are in the write-ahead log,
//! which it writes with each request and syncs when a segment is full.
//! <https://prometheus.io/docs/prometheus/2.42/storage/> So what is acknowledged outlives the
//! death of the server's process, and nothing makes it outlive a power cut.
//!
//! Prometheus refuses samples older than the newest of their series, and those older than an hour
//! before the newest sample of the whole server, unless its configuration has an
//! `out_of_order_time_window`. It then stores nothing of the request. In one request with two
//! samples of a series in the wrong order it may drop one and acknowledge both. So the client
//! admits samples itself: of each series only later ones are sent, whatever the window.
//!
//! It is *not* a client of remote write 2.0, and of queries in PromQL beyond what opening
//! a place needs.

mod client;
mod cursor;
mod files;
mod message;
mod options;
mod read;
mod server;
mod xor;

pub use client::PrometheusClient;
pub use cursor::PrometheusCursor;
pub use options::PrometheusOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The label whose value is the place.
pub const PLACE_LABEL: &str = "tsb_place";

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 9090;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers, and
/// [`Error::Backend`](tsb_stores::Error::Backend) if it takes no remote write.
pub fn open(address: &Address, options: &PrometheusOptions) -> Result<Bridge<PrometheusClient>> {
    Bridge::connect(|| PrometheusClient::connect(address, options))
}

/// The series of a place. Changes nothing.
///
/// # Errors
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &PrometheusOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| async { server::PrometheusServer::new(address, options)?.series().await })
}

/// Removes the samples of a place. Without anything there, it does nothing.
///
/// # Errors
/// [`Error::Backend`](tsb_stores::Error::Backend) if the server was started without
/// `--web.enable-admin-api`, or keeps some: version 2.42 does not delete out-of-order samples that
/// are not in a block yet.
pub fn remove(address: &Address, options: &PrometheusOptions) -> Result<()> {
    crate::bridge::once(|| async { server::PrometheusServer::new(address, options)?.remove().await })
}
