//! What a cache of files says no to, in rrdcached's words where it has them.

/// What could not be done, and with which file; a whole sentence of the protocol.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is no such file.
    #[error("No such file: {0}")]
    Missing(String),
    /// Nothing waits for it and nothing has.
    #[error("No such file or directory")]
    Unknown,
    /// It is not below the base folder, or behind a symbolic link.
    #[error("{0}: Permission denied")]
    Outside(String),
    /// A folder, a device, or the like.
    #[error("Not a regular file: {0}")]
    NotRegular(String),
    /// A reading without a time.
    #[error("Cannot find timestamp in '{0}'!")]
    NoTime(String),
    /// A reading that is not later than the one before it.
    #[error("illegal attempt to update using time {at} when last update time is {last} (minimum one second step)")]
    NotLater {
        /// The moment of the reading, in seconds.
        at: String,
        /// That of the last one.
        last: String,
    },
    /// What the engine says of a file, or of a reading for it.
    #[error("{file}: {}", tsb_stores::error::chain(source))]
    Rrd {
        /// The file.
        file: String,
        /// Its words.
        source: tsb_rrd::Error,
    },
    /// A definition of a new file, or a file that cannot be read.
    #[error("RRD Error: {0}")]
    Create(String),
    /// The start of a new file is before all that a file can say.
    #[error("The first entry must be after 1980.")]
    TooEarly,
    /// Too much waits already; everything is due now.
    #[error("{file}: the cache is full, {bytes} bytes wait")]
    Full {
        /// The file.
        file: String,
        /// What waits in all.
        bytes: u64,
    },
    /// More files than the cache was told to allow.
    #[error("{file}: the cache holds {limit} files already")]
    TooMany {
        /// The file.
        file: String,
        /// The limit.
        limit: usize,
    },
    /// It is suspended, so what waits is not written.
    #[error("{file} is suspended, {pending} value(s) wait")]
    Suspended {
        /// The file.
        file: String,
        /// How many values wait.
        pending: u64,
    },
    /// A flush that did not write everything.
    #[error("{file}: {lost} value(s) lost, {pending} still wait: {why}")]
    NotWritten {
        /// The file.
        file: String,
        /// Values that the file will never take.
        lost: u64,
        /// Values that are tried again.
        pending: u64,
        /// The last reason.
        why: String,
    },
    /// The operating system said no.
    #[error("Cannot read/write {file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Its words.
        source: std::io::Error,
    },
    /// An earlier failure of the journal: nothing is accepted any more.
    #[error("the cache is poisoned: {0}")]
    Poisoned(String),
    /// It is closed.
    #[error("the cache is closed")]
    Closed,
}
