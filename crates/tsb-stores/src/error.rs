//! The errors of a store, divided by what the caller has to decide.

use std::path::PathBuf;

use tsb_core::SeriesId;

/// The result of every store call.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a store call. `Display` is a fragment that names the object; causes are in the
/// source chain, and hints are added when the error is printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An id was written or queried that no `define` has bound. Nothing was applied.
    #[error("series {id} is not defined")]
    UnknownSeries {
        /// The id.
        id: SeriesId,
    },
    /// An id or key is already bound to another key or id.
    #[error("series {id} is already defined as {existing}")]
    Conflict {
        /// The id.
        id: SeriesId,
        /// The key that it is bound to.
        existing: String,
    },
    /// The store does not claim this capability.
    #[error("{store} does not support {what}")]
    Unsupported {
        /// The store, as it displays itself.
        store: String,
        /// The capability.
        what: &'static str,
    },
    /// The store cannot accept more at the moment.
    #[error("{store} is overloaded: {what}")]
    Overloaded {
        /// The store, as it displays itself.
        store: String,
        /// What is full.
        what: String,
    },
    /// The limit of series is reached.
    #[error("series limit reached: {limit} series are defined")]
    TooManySeries {
        /// The limit.
        limit: usize,
    },
    /// The keys of the series would exceed the memory limit.
    #[error("name limit reached: the keys of {defined} series take the {limit} bytes that the store may use")]
    TooManyNameBytes {
        /// The limit.
        limit: u64,
        /// How many series are defined.
        defined: usize,
    },
    /// An earlier failure left the state uncertain: only closing works.
    #[error("store is poisoned by an earlier failure: {cause}")]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// `close` was called before.
    #[error("store is closed")]
    Closed,
    /// Stored data is not what was written, so the store cannot be opened, or a call cannot be
    /// answered. All stores use this error for damage; damage that a store can work around is in
    /// [`Stats::damage`](crate::Stats::damage).
    #[error("{path} is corrupt at byte {offset}: {what}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The byte offset in it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file has a format of a later version of this program. It is not damaged, and was not
    /// changed.
    #[error("{path} is of format {found}, and this version reads formats up to {reads}", path = path.display())]
    LaterFormat {
        /// The file.
        path: PathBuf,
        /// The version of its format, as the file states it.
        found: String,
        /// The latest version that is read here.
        reads: String,
    },
    /// An invalid store spec.
    #[error("invalid store {spec:?}: {what}")]
    Spec {
        /// As the user wrote it.
        spec: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The outcome of a server request is unknown: it may have been applied, in part, or not at
    /// all. Reading back settles it.
    #[error("cannot tell whether it was done: {action}")]
    Unknown {
        /// The action, and the server.
        action: String,
        /// Why no answer came.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server did not answer a request that changes nothing in time, or answered outside of its
    /// protocol. This says nothing about the server's data.
    #[error("a server does not answer: {action}")]
    Unanswered {
        /// The action, and the server.
        action: String,
        /// Why no answer came.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No server could be reached: nothing was sent.
    #[error("cannot reach a server, so nothing was sent: {action}")]
    Unreachable {
        /// The action, and the server.
        action: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The library or operating system under the store failed.
    #[error("{}", could_not(action))]
    Backend {
        /// The action that failed, and its object: begins with a verb that follows "cannot" in
        /// the message (`open /var/lib/x.db`).
        action: String,
        /// The underlying error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether the same call may succeed later without further action.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Overloaded { .. } | Self::Unreachable { .. } | Self::Unanswered { .. }
        )
    }

    /// Whether a server was silent or unreachable: this says nothing about its data.
    pub fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::Unreachable { .. } | Self::Unanswered { .. }
        )
    }
}

/// The failed action as a fragment: `cannot open x`. Other stores may use another form:
/// `failed opening x`.
fn could_not(action: &str) -> String {
    let verb = action.split(' ').next().unwrap_or_default();
    let is_participle = verb.len() > 5 && verb.ends_with("ing");
    format!("{} {action}", if is_participle { "failed" } else { "cannot" })
}

/// An error with its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn backend(action: &str) -> String {
        let source = "disk full".into();
        let action = action.to_owned();
        Error::Backend { action, source }.to_string()
    }

    #[test]
    fn an_action_reads_well_as_a_verb_and_as_what_was_being_done() {
        assert_eq!(backend("open /x"), "cannot open /x");
        assert_eq!(backend("opening /x"), "failed opening /x");
        assert_eq!(backend("ping the server"), "cannot ping the server");
    }

    /// Verbs that stand behind "cannot" in this crate.
    const VERBS: [&str; 38] = [
        "ask",
        "begin",
        "check",
        "checkpoint",
        "close",
        "compare",
        "connect",
        "count",
        "create",
        "drop",
        "fetch",
        "flush",
        "get",
        "go",
        "hold",
        "list",
        "lock",
        "look",
        "make",
        "mark",
        "name",
        "open",
        "prepare",
        "read",
        "remove",
        "rename",
        "set",
        "start",
        "store",
        "sync",
        "take",
        "talk",
        "truncate",
        "update",
        "use",
        "watch",
        "work",
        "write",
    ];

    /// Where an action is written down, up to its first quote.
    const MARKS: [&str; 9] = [
        "action: ",
        "action: format!(",
        ".done(",
        ".failed(",
        ".unknown(",
        " trouble(",
        " backend(",
        "ACTION: &str = ",
        ".within(",
    ];

    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path != Path::new(file!()) && !path.ends_with("src/error.rs") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }

    /// The text of every literal that stands behind a mark.
    fn actions(source: &str) -> impl Iterator<Item = &str> {
        MARKS.into_iter().flat_map(move |mark| {
            let behind = source.split(mark).skip(1);
            behind.filter_map(|text| text.trim_start().strip_prefix('"')?.split('"').next())
        })
    }

    #[test]
    fn every_action_of_this_crate_is_a_verb_and_its_object() {
        let mut all = Vec::new();
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        sources(&own.join("src"), &mut all);
        // Clients say what they were doing in the same words; a package alone has no neighbours.
        for neighbour in ["tsb-remote", "tsb-rrdcached"] {
            let neighbour = own.with_file_name(neighbour).join("src");
            if neighbour.is_dir() {
                sources(&neighbour, &mut all);
            }
        }
        let mut seen = 0;
        // What begins with a brace is put together from a verb that stands elsewhere.
        for action in all
            .iter()
            .flat_map(|source| actions(source))
            .filter(|text| !text.starts_with('{'))
        {
            let verb = action.split(' ').next().unwrap();
            assert!(VERBS.contains(&verb), "cannot {action}");
            seen += 1;
        }
        assert!(seen > 60, "{seen} actions");
    }
}
