//! The options of a PostgreSQL client.

use std::path::PathBuf;
use std::time::Duration;

/// The statement that writes a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteMethod {
    /// `COPY ... FROM STDIN (FORMAT binary)`.
    Copy,
    /// A prepared `INSERT` of three arrays.
    Insert,
}

/// The server's setting of this name, for the sessions of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SynchronousCommit {
    /// A commit does not wait for the write-ahead log.
    Off,
    /// It waits until this server has synced its log.
    Local,
    /// It also waits until a synchronous standby has written the log.
    RemoteWrite,
    /// It also waits until a synchronous standby has synced the log.
    On,
    /// It also waits until a synchronous standby has applied the log.
    RemoteApply,
}

impl SynchronousCommit {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Off, Self::Local, Self::RemoteWrite, Self::On, Self::RemoteApply];

    /// PostgreSQL's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Local => "local",
            Self::RemoteWrite => "remote_write",
            Self::On => "on",
            Self::RemoteApply => "remote_apply",
        }
    }

    /// From PostgreSQL's name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.name() == name)
    }
}

/// All options except the address, whose place is a database.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The schema of that database which holds the samples.
    pub schema: String,
    /// The statement that writes a batch.
    pub write: WriteMethod,
    /// The setting for this client's sessions; `None`: the server's own.
    pub synchronous_commit: Option<SynchronousCommit>,
    /// Span of a chunk in nanoseconds, if the samples are a hypertable of TimescaleDB.
    pub hypertable_chunk_ns: Option<i64>,
    /// Deadline of a request, and of connecting before it.
    pub timeout: Duration,
    /// Maximum number of connections, at least 1, opened as they are needed. Each has one request
    /// at a time, and requests beyond that wait in the client.
    pub connections: usize,
    /// Whether to require TLS.
    pub tls: bool,
    /// File with the trusted certificates; `None`: those of Mozilla's list.
    pub tls_ca: Option<PathBuf>,
    /// Whether to remove what an earlier run left in the schema.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "tsb".to_owned(),
            write: WriteMethod::Copy,
            synchronous_commit: None,
            hypertable_chunk_ns: None,
            timeout: Duration::from_secs(10),
            connections: 64,
            tls: false,
            tls_ca: None,
            drop: false,
            max_series: 1_000_000,
        }
    }
}
