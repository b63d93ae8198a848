//! What a user may choose.

use std::path::PathBuf;
use std::time::Duration;

use super::concern::Acknowledge;

/// How samples become documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// A document a sample in a time-series collection; the server packs them into buckets
    /// by series and time.
    Series,
    /// A document a sample in a plain collection, in the order of series and time.
    Rows,
    /// A document a series and span, to which samples are appended.
    Bucket,
    /// A document a write and group of series: whole ticks as binary columns.
    Ticks,
    /// Mohawk's: a collection a metric, a document a sample, a look-up before each.
    Mohawk,
}

impl LayoutKind {
    /// The word in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::Rows => "rows",
            Self::Bucket => "bucket",
            Self::Ticks => "ticks",
            Self::Mohawk => "mohawk",
        }
    }
}

/// How much time a bucket of a time-series collection holds: an hour, a day, or a month at
/// the most, and a thousand samples. MongoDB's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// An hour.
    Seconds,
    /// A day.
    Minutes,
    /// Thirty days.
    Hours,
}

impl Granularity {
    /// MongoDB's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        }
    }
}

/// Everything but where the server is.
#[derive(Clone, Debug)]
pub struct MongoOptions {
    /// How samples become documents.
    pub layout: LayoutKind,
    /// Of the time-series collection.
    pub granularity: Granularity,
    /// Nanoseconds that one document of the bucket layout spans. in [1, ..)
    pub span_ns: i64,
    /// Series in one document of the ticks layout, at the most. in [1, ..)
    pub group: u32,
    /// What an ack waits for.
    pub acknowledge: Acknowledge,
    /// How long a request may take, and how long a server is looked for.
    pub timeout: Duration,
    /// Connections to each server, at the most: one for each request in flight. in [1, ..)
    pub pool: u32,
    /// The replica set's name; without it the first host is asked alone.
    pub replica_set: Option<String>,
    /// The database that knows the user; `None`: `admin`.
    pub auth_database: Option<String>,
    /// Whether to speak TLS.
    pub tls: bool,
    /// File with the certificates to trust; `None`: the system's.
    pub tls_ca: Option<PathBuf>,
    /// Remove what an earlier run has left in the database.
    pub drop: bool,
    /// Series that can be defined, at the most.
    pub max_series: usize,
}

impl Default for MongoOptions {
    fn default() -> Self {
        Self {
            layout: LayoutKind::Series,
            granularity: Granularity::Seconds,
            span_ns: 60_000_000_000,
            group: 256,
            acknowledge: Acknowledge::default(),
            timeout: Duration::from_secs(10),
            pool: 64,
            replica_set: None,
            auth_database: None,
            tls: false,
            tls_ca: None,
            drop: false,
            max_series: 1_000_000,
        }
    }
}
