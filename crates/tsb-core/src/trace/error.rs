//! Errors of traces: fatal defects, and rows that were left out.
//!
//! A defect ends the reading or writing. A problem concerns one row, which is counted and named,
//! and the reading continues.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a trace file could not be read or written: the file, and the defect with its position.
#[derive(Debug)]
#[non_exhaustive]
pub struct TraceError {
    /// `read` or `write`.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and where.
    pub defect: TraceDefect,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} trace {}: {}",
            self.action,
            self.path.display(),
            self.defect
        )
    }
}

impl std::error::Error for TraceError {
    // `Display` includes the defect already, so the chain continues with its source.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.defect)
    }
}

/// What is wrong, without the name of the file. The pure parsers return this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceDefect {
    /// The operating system returned an error, which is the source.
    #[error("cannot {action}")]
    Io {
        /// The attempted action: a verb with its object.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// Not a trace file, or not of the requested format.
    #[error("{what}")]
    Foreign {
        /// The evidence for that.
        what: &'static str,
    },
    /// The columns of a CSV file cannot be determined.
    #[error("line {line}: {what}; found {found:?}; {HEADERS}")]
    Header {
        /// The line of the header, or of the first row.
        line: u64,
        /// What is missing.
        what: String,
        /// The text of the line.
        found: String,
    },
    /// The file has two possible readings, and nothing in it decides.
    #[error("{what}")]
    Ambiguous {
        /// What is ambiguous, and which option decides it.
        what: &'static str,
    },
    /// One file of a folder.
    #[error("in {}: {}", file.display(), with_causes(defect))]
    InFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it; `Display` includes its causes.
        defect: Box<TraceDefect>,
    },
    /// Written by a later version of the format.
    #[error("format version {found} is newer than {supported}, the newest that this build reads")]
    Newer {
        /// The version in the file.
        found: u16,
        /// The latest version that this build reads.
        supported: u16,
    },
    /// The bytes are not valid.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Offset in the file.
        offset: u64,
        /// The condition that does not hold there.
        what: &'static str,
    },
    /// More than the limits allow; they prevent a hostile file from filling memory.
    #[error("more than {limit} {what} at byte {offset}")]
    TooMuch {
        /// Offset in the file.
        offset: u64,
        /// What exceeds the limit.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Readable, but without samples: there is nothing to replay.
    #[error("there is no sample in it{}", left_out(problems))]
    Empty {
        /// What was left out.
        problems: TraceProblems,
    },
    /// An invalid argument of the caller.
    #[error("{what}")]
    Invalid {
        /// What the argument must be.
        what: &'static str,
    },
}

impl TraceDefect {
    /// Adds the file name to an error of reading.
    #[must_use]
    pub fn reading(self, path: &Path) -> TraceError {
        TraceError {
            action: "read",
            path: path.to_owned(),
            defect: self,
        }
    }

    /// Adds the file name to an error of writing.
    #[must_use]
    pub fn writing(self, path: &Path) -> TraceError {
        TraceError {
            action: "write",
            path: path.to_owned(),
            defect: self,
        }
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

/// The supported headers of a CSV file.
const HEADERS: &str = "a header is timestamp,series,value (a row names its series), timestamp,value (the series is \
    called as the file) or timestamp,NAME,NAME,... (a series for each column)";

/// Maximum number of problems that are stored; further ones are only counted.
pub const NAMED_PROBLEMS: usize = 20;

/// Maximum length of an excerpt of an invalid row, in bytes.
const EXCERPT_BYTES: usize = 80;

/// Rows that were left out: all are counted by kind, and the first few stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceProblems {
    /// Number of problems.
    pub count: u64,
    /// Number of problems by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// The first [`NAMED_PROBLEMS`], in the order found.
    pub named: Vec<TraceProblem>,
}

/// One row that was left out, or another irregularity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceProblem {
    /// The file, where a folder was read.
    pub file: Option<String>,
    /// Its position.
    pub place: Place,
    /// What is wrong: a fixed sentence, so that counts can be kept by kind.
    pub what: &'static str,
    /// The offending text, shortened, printable.
    pub excerpt: String,
}

/// The position of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text file, counted from 1.
    Line(u64),
    /// A byte of a file, counted from 0.
    Byte(u64),
    /// A tick of a recording, counted from 0.
    Tick(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Byte(number) => write!(f, "byte {number}"),
            Self::Tick(number) => write!(f, "tick {number}"),
        }
    }
}

impl fmt::Display for TraceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        write!(f, "{}: {}", self.place, self.what)?;
        if self.excerpt.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.excerpt)
        }
    }
}

impl TraceProblems {
    /// No problems.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem; `bytes` is the invalid text, of any length and content.
    pub fn add(&mut self, place: Place, what: &'static str, bytes: &[u8]) {
        self.count += 1;
        *self.kinds.entry(what).or_default() += 1;
        if self.named.len() < NAMED_PROBLEMS {
            self.named.push(TraceProblem {
                file: None,
                place,
                what,
                excerpt: excerpt(bytes),
            });
        }
    }

    /// Adds the problems of one file of a folder.
    pub fn merge(&mut self, other: Self, file: &str) {
        self.count += other.count;
        for (what, count) in other.kinds {
            *self.kinds.entry(what).or_default() += count;
        }
        let room = NAMED_PROBLEMS.saturating_sub(self.named.len());
        self.named
            .extend(other.named.into_iter().take(room).map(|problem| TraceProblem {
                file: Some(file.to_owned()),
                ..problem
            }));
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for TraceProblems {
    /// One line per problem; the last line states the number of further ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.named.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        let more = self.count - self.named.len() as u64;
        if more > 0 {
            write!(f, "\nand {more} more")?;
        }
        Ok(())
    }
}

/// An error with its causes, on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn left_out(problems: &TraceProblems) -> String {
    match problems.named.first() {
        None => String::new(),
        Some(first) => format!("; {} rows were left out, the first at {first}", problems.count),
    }
}

fn excerpt(bytes: &[u8]) -> String {
    let kept = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    let mut text: String = kept.escape_ascii().to_string();
    if bytes.len() > EXCERPT_BYTES {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_place_and_cause() {
        let defect = TraceDefect::Damaged {
            offset: 40,
            what: "checksum does not match",
        };
        let error = defect.reading(Path::new("a.tsbtrace"));
        assert_eq!(
            error.to_string(),
            "cannot read trace a.tsbtrace: damaged at byte 40: checksum does not match"
        );
    }

    #[test]
    fn all_problems_are_counted_and_the_first_are_named() {
        let mut problems = TraceProblems::new();
        for line in 1..=50 {
            problems.add(Place::Line(line), "no value", &[b'x'; 200]);
        }
        assert_eq!(problems.count, 50);
        assert_eq!(problems.kinds["no value"], 50);
        assert_eq!(problems.named.len(), NAMED_PROBLEMS);
        assert!(problems.named[0].excerpt.len() <= EXCERPT_BYTES + 3);
        let text = problems.to_string();
        assert!(text.starts_with("line 1: no value: xxx"), "{text}");
        assert!(text.ends_with("and 30 more"), "{text}");
    }
}
