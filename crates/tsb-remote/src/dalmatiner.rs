//! DalmatinerDB, and what speaks its last version's protocol: samples in stream mode over one
//! connection, read back by requests over another.
//!
//! A write is answered by nothing: an ack of this client is `Unconfirmed` and says that the
//! operating system took the bytes. A flush ends the connection and waits until the server ends it
//! too: by then it has read everything. What was lost shows when it is read back.
//!
//! A series is a metric of one bucket, at one point per second; its labels are the last elements of
//! the metric. The server does not tell where the points of a metric begin: a read without a start
//! looks back from the moment at which the client was opened ([`DalmatinerOptions::back`]), or from
//! the first sample that it wrote. The bytes are in docs/formats/dalmatiner.md.
//!
//! The client is *not* one of the query language, and creates or deletes no bucket.

mod client;
mod connection;
mod metric;
mod points;

use std::time::Duration;

use tsb_core::SeriesKey;
use tsb_stores::error::Result;

use crate::Address;

pub use client::DalmatinerClient;

/// The port at which DalmatinerDB listens by default.
pub const PORT: u16 = 5_555;

/// All options except the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DalmatinerOptions {
    /// How far before the opening of the client a read without a start looks.
    pub back: Duration,
    /// How long a sample that was handed over may stay invisible; beyond it, it counts as lost.
    pub visibility_delay: Duration,
    /// Deadline of a write, and of a request.
    pub timeout: Duration,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for DalmatinerOptions {
    fn default() -> Self {
        Self {
            back: Duration::from_hours(1),
            visibility_delay: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            max_series: 1_000_000,
        }
    }
}

/// Connects, and asks for the resolution of the bucket.
///
/// # Errors
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if nothing answers at the address,
/// [`Error::Unanswered`](tsb_stores::Error::Unanswered) if what answers is another protocol, and
/// [`Error::Spec`](tsb_stores::Error::Spec) for a bucket that has no point per second.
pub fn open(address: &Address, options: &DalmatinerOptions) -> Result<DalmatinerClient> {
    DalmatinerClient::connect(address, options)
}

/// The series of a bucket. Changes nothing.
///
/// # Errors
/// As [`open`].
pub fn series(address: &Address, options: &DalmatinerOptions) -> Result<Vec<SeriesKey>> {
    DalmatinerClient::connect(address, options)?.series()
}
