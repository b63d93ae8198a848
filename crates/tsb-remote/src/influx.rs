//! InfluxDB 1.x over HTTP: lines to `/write`, InfluxQL to `/query`; a database is the place.
//!
//! An ack is `Synced`: InfluxDB answers 204 when the points are in its write-ahead log, and that
//! log is synced. `wal-fsync-delay` above 0 makes several writes wait for one sync; it does not
//! answer them earlier.
//!
//! A series keeps its name: the name is the measurement, or a tag in one measurement for all; labels
//! are tags, and the label `_field` is the field, as docs/formats/influx.md says. Of two samples of one series and timestamp the
//! later wins. The client never repeats a write without an answer: it is `Unknown`, and reading
//! back settles it. A write that the server took in part is divided and sent again, which changes
//! no sample that was taken, until each refused sample is known.
//!
//! It is *not* a client of InfluxDB 2 or 3, which have buckets and other query languages.

mod client;
mod connection;
mod cursor;
mod lines;
mod names;
mod options;
mod reply;

pub use client::InfluxClient;
pub use cursor::InfluxCursor;
pub use options::InfluxOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 8086;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database or a server that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &InfluxOptions) -> Result<Bridge<InfluxClient>> {
    Bridge::connect(|| InfluxClient::connect(address, options))
}

/// The series that earlier runs left in a database, in the order of their numbers. Changes
/// nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &InfluxOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes a database that runs have filled. Without one, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database with measurements of another program,
/// and [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &InfluxOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
