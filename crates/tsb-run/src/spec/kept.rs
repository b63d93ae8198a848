//! What a store keeps beyond its process: files of this machine, by their names, or a part of a
//! server. Pure but for [`KeptFiles::real_path`].

use std::path::{Path, PathBuf};

/// What a store keeps, as one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Files of this machine.
    Files(KeptFiles),
    /// A part of a server.
    AtServer(KeptAtServer),
}

/// The files that a store makes: files of some names in one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    /// `file` or `folder`.
    pub(crate) kind: &'static str,
    /// The file or folder as the spec names it.
    pub(crate) path: PathBuf,
    /// The names of the files.
    pub(crate) names: &'static [FileName],
}

/// The name of a file that a store makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    /// Beside the file of the spec: its name followed by this.
    Beside(&'static str),
    /// Beside the file of the spec: its name, followed by this and anything.
    BesideFrom(&'static str),
    /// In the folder of the spec: this name.
    In(&'static str),
    /// In the folder of the spec: a name that begins with this.
    InFrom(&'static str),
    /// In the folder of the spec or below it: a name that ends with this.
    Below(&'static str),
}

/// A part of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptAtServer {
    /// The server's word: `database`, `prefix`.
    pub(crate) kind: &'static str,
    /// Its name and the server's address, without credentials.
    pub(crate) name: String,
    /// A command for a shell that removes it, without credentials; `None` if there is none.
    pub(crate) remove: Option<String>,
}

/// The text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The name of the file by which a run marks its place, for a store of one file and for a folder.
pub(crate) const RUN_FILE: (&str, &str) = ("-run", "tsb.run");

/// The files of a folder of RRD files: also those that are being created.
pub(super) const RRD_FILES: &[FileName] = &[
    FileName::Below(".rrd"),
    FileName::Below(".rrd.new"),
    FileName::In(RUN_FILE.1),
];
/// The files of a folder of mstore.
pub(super) const MSTORE_FILES: &[FileName] = &[
    FileName::Below(".mstore"),
    FileName::Below(".idx"),
    FileName::In("mstore.list"),
    FileName::In(RUN_FILE.1),
];
/// The files of a journal of a write cache.
pub(super) const JOURNAL_FILES: &[FileName] = &[FileName::InFrom("tsb.journal."), FileName::In("tsb.marker.new")];
/// The files of a database of SQLite: also logs that were kept because they were damaged.
pub(super) const SQLITE_FILES: &[FileName] = &[
    FileName::Beside(""),
    FileName::Beside("-wal"),
    FileName::Beside("-shm"),
    FileName::Beside("-journal"),
    FileName::Beside("-lock"),
    FileName::Beside(RUN_FILE.0),
    FileName::BesideFrom("-wal.damaged-"),
];

/// The files of a program: everything in the folder that it was given.
pub(super) const EXEC_FILES: &[FileName] = &[FileName::Below(""), FileName::In(RUN_FILE.1)];

impl KeptFiles {
    /// Files in and below a folder.
    pub(super) fn folder(path: &str, names: &'static [FileName]) -> Self {
        Self {
            kind: "folder",
            path: PathBuf::from(path),
            names,
        }
    }

    /// A file, with others beside it.
    pub(super) fn file(path: &str, names: &'static [FileName]) -> Self {
        Self {
            kind: "file",
            path: PathBuf::from(path),
            names,
        }
    }

    /// The path by which other commands find the same files from any folder, also through a
    /// symbolic link.
    pub(crate) fn real_path(&self) -> PathBuf {
        let real = std::fs::canonicalize(&self.path).or_else(|_| std::path::absolute(&self.path));
        real.unwrap_or_else(|_| self.path.clone())
    }

    /// The file by which a run marks its place, if these files have room for one.
    pub(crate) fn run_mark(&self) -> Option<PathBuf> {
        let path = self.real_path();
        let is_named = |wanted: FileName| self.names.contains(&wanted);
        if is_named(FileName::Beside(RUN_FILE.0)) {
            Some(beside(&path, RUN_FILE.0))
        } else {
            is_named(FileName::In(RUN_FILE.1)).then(|| path.join(RUN_FILE.1))
        }
    }
}

/// The path with `ending` added to its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
