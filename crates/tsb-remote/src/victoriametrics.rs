//! VictoriaMetrics, one node, over HTTP: the text format to `/api/v1/import/prometheus`, and
//! `/api/v1/export` to read back; a label is the place.
//!
//! An ack is `Volatile`: VictoriaMetrics has no log, keeps what it accepted in memory, and writes
//! it to disk some seconds later. A flush to `Synced` makes a snapshot, for which the server
//! writes and syncs everything, and deletes it again. What was accepted becomes visible to
//! queries within some seconds, too ([`Capabilities::visibility_delay_ms`]). With the option `put`,
//! samples go as OpenTSDB's lines, which nothing answers: an ack is `Unconfirmed`, no flush makes more of
//! it, and times are cut to whole seconds.
//!
//! Timestamps are whole milliseconds from 1970 on; the server drops what is older than its
//! retention or more than two days ahead without saying so, so the client refuses it. Values are
//! decimals with one exponent for a block of samples, which keeps about twelve digits of the
//! largest ([`Exactness::Significant`]). Both of two samples with one timestamp are kept.
//!
//! Every series has the label `tsb` with the name of the place. The client never repeats a write
//! without an answer: it is `Unknown`, and reading back settles it. It is *not* a client
//! of a cluster, whose paths are others.
//!
//! [`Capabilities::visibility_delay_ms`]: tsb_stores::Capabilities::visibility_delay_ms
//! [`Exactness::Significant`]: tsb_stores::Exactness::Significant

mod client;
mod connection;
mod cursor;
mod exposition;
mod names;
mod options;
mod times;

pub use client::VictoriaClient;
pub use cursor::VictoriaCursor;
pub use options::VictoriaOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 8428;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a server that is none, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &VictoriaOptions) -> Result<Bridge<VictoriaClient>> {
    Bridge::connect(|| VictoriaClient::connect(address, options))
}

/// The series with samples under a label. Changes nothing.
///
/// # Errors
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &VictoriaOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Deletes all series under a label; their bytes stay until the server merges its files.
///
/// # Errors
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &VictoriaOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
