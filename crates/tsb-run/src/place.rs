//! The place of a store: the files, database or keys that outlive the process which wrote them.
//!
//! A place is named by the spec of its store. It can say how large it is, name the shell command
//! that removes it, and be removed; [`RoundPlace`] is one made for a single round. A run marks
//! its place with a locked file while it goes on, so that the next run knows of one that was
//! killed. Which samples a place holds is *not* known here: only the open store counts
//! them.

mod files;
mod round;
mod run_mark;

use std::fmt;
use std::path::PathBuf;

use tsb_core::report::PlaceReport;
use tsb_stores::Stats;

pub use round::RoundPlace;
pub use run_mark::{EarlierRun, EarlierRunState};
pub(crate) use run_mark::{RunMark, goes_on};

use crate::error::Error;
use crate::spec::{Kept, KeptFiles, Spec};

/// What a store keeps beyond its process.
#[derive(Clone, Debug)]
pub struct Place {
    spec: Spec,
    // What the innermost store keeps, then what its wrappers keep; at least one.
    first: Kept,
    others: Vec<Kept>,
}

impl Place {
    /// The place of a store; `None` if it keeps nothing beyond its process.
    ///
    /// # Errors
    /// [`Error::Plan`] for a spec that names none although it has to.
    pub fn of(spec: &Spec) -> Result<Option<Self>, Error> {
        let mut kept = spec.kept().map_err(|error| Error::opening(spec, &error))?;
        if kept.is_empty() {
            return Ok(None);
        }
        let first = kept.remove(0);
        Ok(Some(Self {
            spec: spec.clone(),
            first,
            others: kept,
        }))
    }

    /// One word: `file`, `folder`, `files` of a daemon, or the part of a server, as the server calls it:
    /// `database`, `schema`, `keyspace`, `prefix`, `label`.
    pub fn kind(&self) -> &'static str {
        match &self.first {
            Kept::Files(files) => files.kind,
            Kept::AtServer(part) => part.kind,
        }
    }

    /// The path as the spec has it, or the name and address of a part of a server. Without
    /// credentials.
    pub fn name(&self) -> String {
        match &self.first {
            Kept::Files(files) => files.path.display().to_string(),
            Kept::AtServer(part) => part.name.clone(),
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Kept> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn files(&self) -> impl Iterator<Item = &KeptFiles> {
        self.parts().filter_map(|kept| match kept {
            Kept::Files(files) => Some(files),
            Kept::AtServer(_) => None,
        })
    }

    /// The shell command that removes everything at this place, of earlier runs too; `None` if
    /// there is none. It contains no credentials.
    pub fn remove_command(&self) -> Option<String> {
        let commands: Option<Vec<String>> = self
            .parts()
            .map(|kept| match kept {
                Kept::Files(files) => Some(files::remove_command(files)),
                Kept::AtServer(part) => part.remove.clone(),
            })
            .collect();
        Some(commands?.join(" && "))
    }

    /// Bytes of the file-system blocks of its files; `None` if it has no files on this machine.
    pub fn disk_bytes(&self) -> Option<u64> {
        self.files().map(files::disk_bytes).reduce(|sum, bytes| sum + bytes)
    }

    /// Whether there are none of its files, and no series at a server. True as well of a server that
    /// cannot list its series: what it holds is not known.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if a server does not answer.
    pub fn is_empty(&self) -> Result<bool, Error> {
        if self.files().any(|files| !files::find(files).is_empty()) {
            return Ok(false);
        }
        if matches!(self.first, Kept::Files(_)) {
            return Ok(true);
        }
        match self.spec.series() {
            Ok(series) => Ok(series.is_none_or(|series| series.is_empty())),
            // Nothing of a run; or a server that is too old to list what it holds.
            Err(tsb_stores::Error::Spec { .. } | tsb_stores::Error::Unsupported { .. }) => Ok(true),
            Err(error) => Err(self.failed("look at", &error)),
        }
    }

    /// The error of a call to a server.
    fn failed(&self, verb: &str, error: &tsb_stores::Error) -> Error {
        let what = format!("cannot {verb} {self}");
        match error {
            tsb_stores::Error::Unsupported { .. } => Error::plan(what)
                .because_of("the protocol of the server has no command for that")
                .hint("remove it by hand, in the folder of the server"),
            tsb_stores::Error::Spec { .. } => Error::plan(what).because(error),
            _ => Error::unreachable(what).because(error),
        }
    }

    /// Removes everything at this place, of earlier runs too. Files of other programs in its
    /// folders stay, and so do those folders.
    ///
    /// # Errors
    /// [`Error::Plan`] if a run goes on there, or if no client can remove it;
    /// [`Error::Unreachable`] if a server does not answer; [`Error::Unwritten`] if a file cannot
    /// be removed.
    pub fn remove(&self) -> Result<(), Error> {
        if let Some(run) = self.earlier_run()?.filter(|run| run.state == EarlierRunState::GoesOn) {
            return Err(Error::plan(format!("cannot remove {self}"))
                .because_of(run.to_string())
                .hint("wait for its end, or stop it"));
        }
        for kept in self.parts() {
            match kept {
                Kept::Files(files) => files::remove(files)?,
                Kept::AtServer(_) => {
                    let removed = self.spec.remove_at_server();
                    removed.map_err(|error| self.failed("remove", &error))?;
                }
            }
        }
        Ok(())
    }

    /// The file by which a run marks this place; `None` at a server.
    fn run_mark(&self) -> Option<PathBuf> {
        match &self.first {
            Kept::Files(files) => files.run_mark(),
            Kept::AtServer(_) => None,
        }
    }

    /// The run that goes on at this place, or that ended there without closing it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if its mark cannot be read.
    pub fn earlier_run(&self) -> Result<Option<EarlierRun>, Error> {
        self.run_mark().map_or(Ok(None), |path| run_mark::find(&path))
    }

    /// What a report says of it. `stats` of the open store have the size of a part of a server.
    pub(crate) fn report(&self, stats: Option<&Stats>) -> PlaceReport {
        let mut report = PlaceReport::new(self.kind(), self.name());
        report.bytes = match &self.first {
            Kept::Files(_) => self.disk_bytes(),
            Kept::AtServer(_) => stats.map(|stats| stats.footprint.total_bytes()),
        };
        report.bytes = report.bytes.filter(|bytes| *bytes > 0);
        report.remove = self.remove_command();
        report
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.name())
    }
}

#[cfg(test)]
mod tests;
