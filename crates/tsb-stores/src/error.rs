//! What can go wrong in a store, by the decision that the caller makes.

use std::path::PathBuf;

use tsb_core::SeriesId;

/// The result of every store call.
pub type Result<T> = std::result::Result<T, Error>;

/// What a store call could not do. `Display` is a fragment that names the object;
/// causes are in the source chain, hints are the renderer's job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An id was written or queried that no `define` has bound. Nothing was applied.
    #[error("series {id} is not defined")]
    UnknownSeries {
        /// The id.
        id: SeriesId,
    },
    /// An id or key is already bound to something else.
    #[error("series {id} is already defined as {existing}")]
    Conflict {
        /// The id.
        id: SeriesId,
        /// What it is bound to.
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
    /// The store can take no more now; later it may.
    #[error("{store} is overloaded: {what}")]
    Overloaded {
        /// The store, as it displays itself.
        store: String,
        /// What is full.
        what: String,
    },
    /// More series than the store was told to allow.
    #[error("series limit reached: {limit} series are defined")]
    TooManySeries {
        /// The limit.
        limit: usize,
    },
    /// The keys of the series would take more memory than the store was told to allow.
    #[error("name limit reached: the keys of {defined} series take the {limit} bytes that the store may use")]
    TooManyNameBytes {
        /// The limit.
        limit: u64,
        /// How many series are defined.
        defined: usize,
    },
    /// An earlier failure made the state unsure: nothing but closing works.
    #[error("store is poisoned by an earlier failure: {cause}")]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// `close` was called before.
    #[error("store is closed")]
    Closed,
    /// Data at rest is not what was written, so that the store cannot be opened, or a call
    /// cannot be answered. Every store has this one error for damage; what it can go on
    /// without is in [`Stats::damage`](crate::Stats::damage).
    #[error("{path} is corrupt at byte {offset}: {what}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file is of a format that a later version of this program writes. It is not damaged,
    /// and was not touched.
    #[error("{path} is of format {found}, and this version reads formats up to {reads}", path = path.display())]
    LaterFormat {
        /// The file.
        path: PathBuf,
        /// The version of its format, as the file states it.
        found: String,
        /// The latest version that is read here.
        reads: String,
    },
    /// A store description that cannot be understood.
    #[error("invalid store {spec:?}: {what}")]
    Spec {
        /// As the user wrote it.
        spec: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A server was asked, and nobody knows what became of it: it may be applied, in part, or
    /// not at all. Reading back settles it.
    #[error("cannot tell whether it was done: {action}")]
    Unknown {
        /// What was being done, at which server.
        action: String,
        /// Why no answer came.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server was asked for something that changes nothing, and did not answer in time or
    /// not in its protocol. It says nothing of what the server has.
    #[error("a server does not answer: {action}")]
    Unanswered {
        /// What was being asked, of which server.
        action: String,
        /// Why no answer came.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No server could be reached: nothing was sent.
    #[error("cannot reach a server, so nothing was sent: {action}")]
    Unreachable {
        /// What was being done, at which server.
        action: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The library or operating system under the store failed.
    #[error("{}", could_not(action))]
    Backend {
        /// What could not be done, to which object: a verb first, as it stands behind
        /// "cannot" in the message (`open /var/lib/x.db`).
        action: String,
        /// Its own words.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether the same call may succeed later without anything else being done.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Overloaded { .. } | Self::Unreachable { .. } | Self::Unanswered { .. }
        )
    }

    /// Whether a server was silent or not there: this says nothing of what it has.
    pub fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::Unreachable { .. } | Self::Unanswered { .. }
        )
    }
}

/// What could not be done, as a fragment: `cannot open x`. Stores of others may name what they
/// were doing instead: `failed opening x`.
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
    const VERBS: [&str; 37] = [
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
