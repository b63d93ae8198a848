//! The options of a MongoDB client.

use std::path::PathBuf;
use std::time::Duration;

use super::concern::WriteConcern;

/// How samples are stored as documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutKind {
    /// One document per sample in a time-series collection; the server packs them into buckets by
    /// series and time.
    Series,
    /// One document per sample in a plain collection, ordered by series and time.
    Rows,
    /// One document per series and span of time, to which samples are appended.
    Bucket,
    /// One document per write and group of series: whole ticks as binary columns.
    Ticks,
    /// That of Mohawk, a published benchmark: one collection per metric, one document per sample, and a lookup before each.
    Mohawk,
}

impl LayoutKind {
    /// The name in a spec.
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

/// Maximum span of a bucket in a time-series collection: an hour, a day or a month, and at most a
/// thousand samples. The names are MongoDB's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Granularity {
    /// An hour.
    Seconds,
    /// A day.
    Minutes,
    /// Thirty days.
    Hours,
}

impl Granularity {
    /// MongoDB's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        }
    }
}

/// All options except the address.
#[derive(Clone, Debug)]
pub struct MongoOptions {
    /// How samples are stored as documents.
    pub layout: LayoutKind,
    /// The granularity of the time-series collection.
    pub granularity: Granularity,
    /// Span of one document in the bucket layout, in nanoseconds; at least 1.
    pub span_ns: i64,
    /// Maximum number of series per document in the ticks layout; at least 1.
    pub group: u32,
    /// What an ack waits for.
    pub write_concern: WriteConcern,
    /// Deadline of a request, and of the search for a server.
    pub timeout: Duration,
    /// Maximum number of connections to each server, at least 1; each request in flight needs
    /// one.
    pub pool: u32,
    /// The replica set's name; without it, only the first host is used.
    pub replica_set: Option<String>,
    /// The database in which the user is defined; `None`: `admin`.
    pub auth_database: Option<String>,
    /// Whether to use TLS.
    pub tls: bool,
    /// File with the trusted certificates; `None`: those of Mozilla's list.
    pub tls_ca: Option<PathBuf>,
    /// Whether to remove what an earlier run left in the database.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for MongoOptions {
    fn default() -> Self {
        Self {
            layout: LayoutKind::Series,
            granularity: Granularity::Seconds,
            span_ns: 60_000_000_000,
            group: 256,
            write_concern: WriteConcern::default(),
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
