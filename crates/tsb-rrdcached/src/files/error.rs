//! The errors of a cache of files, in rrdcached's words where it has them.

/// The result of an operation on a file.
pub(super) type FileResult<T> = std::result::Result<T, FileError>;

/// An error, with the file. Its text is a whole sentence of the protocol.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not exist.
    #[error("No such file: {0}")]
    Missing(String),
    /// The cache does not know the file.
    #[error("No such file or directory")]
    Unknown,
    /// The name is not below the base folder, or behind a symbolic link.
    #[error("{0}: Permission denied")]
    Outside(String),
    /// A folder, a device, or the like.
    #[error("Not a regular file: {0}")]
    NotRegular(String),
    /// An update without a time.
    #[error("Cannot find timestamp in '{0}'!")]
    NoTime(String),
    /// An update that is not later than the previous one.
    #[error("illegal attempt to update using time {at} when last update time is {last} (minimum one second step)")]
    NotLater {
        /// The time of the update, in seconds.
        at: String,
        /// The time of the previous one.
        last: String,
    },
    /// An error of the RRD engine about a file, or about an update of it.
    #[error("{file}: {}", tsb_stores::error::chain(source))]
    Rrd {
        /// The file.
        file: String,
        /// The engine's error.
        source: tsb_rrd::Error,
    },
    /// An invalid definition of a new file, or a file that cannot be read.
    #[error("RRD Error: {0}")]
    Create(String),
    /// The start of a new file is before 1980.
    #[error("The first entry must be after 1980.")]
    TooEarly,
    /// The memory bound is reached; all queues are due now.
    #[error("{file}: the cache is full, {bytes} bytes wait")]
    Full {
        /// The file.
        file: String,
        /// Bytes queued for all files together.
        bytes: u64,
    },
    /// The cache holds as many files as it is allowed to.
    #[error("{file}: the cache holds {limit} files already")]
    TooMany {
        /// The file.
        file: String,
        /// The limit.
        limit: usize,
    },
    /// The file is suspended, so its queue is not written.
    #[error("{file} is suspended, {pending} value(s) wait")]
    Suspended {
        /// The file.
        file: String,
        /// Number of queued values.
        pending: u64,
    },
    /// A flush that did not write everything.
    #[error("{file}: {lost} value(s) lost, {pending} still wait: {why}")]
    NotWritten {
        /// The file.
        file: String,
        /// Values that the file refused for good.
        lost: u64,
        /// Values that will be retried.
        pending: u64,
        /// The most recent error.
        why: String,
    },
    /// An error of the operating system.
    #[error("Cannot read/write {file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The journal failed earlier: nothing more is accepted.
    #[error("the cache is poisoned: {0}")]
    Poisoned(String),
    /// The cache is closed.
    #[error("the cache is closed")]
    Closed,
}
