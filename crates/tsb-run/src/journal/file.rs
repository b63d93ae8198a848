//! The journal file of a run while it is being written.
//!
//! Every record is one line, appended with one write. The journal's thread syncs the file once
//! per second; a power cut that loses the end of the file only makes the journal claim less.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::Record;
use crate::error::Error;

/// Bytes of superseded records that the file may hold; beyond this it is rewritten without them.
const STALE_MAX: u64 = 4 << 20;

/// The path of the journal that belongs to a report: the report's name with `.journal` appended.
pub fn beside(report: &Path) -> PathBuf {
    let mut name = report.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

/// The journal of one run, or of several in sequence. The file is created when the first run
/// begins.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Whether the user named it: then it is kept after the report is complete.
    is_named: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    /// Whether the file is of this journal: one that could not be created may be another's.
    is_created: bool,
    nonce: u64,
    sequence: u64,
    /// The lines that later lines do not supersede.
    lasting: Vec<u8>,
    /// The last line that the next one of its kind supersedes.
    latest: String,
    bytes: u64,
    is_dirty: bool,
    failure: Option<String>,
    /// Number of the run that is being written.
    section: u64,
    /// Whether it must be kept because the report will be incomplete.
    is_kept: bool,
}

impl Journal {
    /// A journal at a path chosen by the user: it is kept after the report is complete.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self::new(path.into(), true)
    }

    /// A journal next to a report: it is removed when the report is complete.
    pub fn beside(report: &Path) -> Self {
        Self::new(beside(report), false)
    }

    fn new(path: PathBuf, is_named: bool) -> Self {
        Self {
            path,
            is_named,
            state: Mutex::default(),
        }
    }

    /// Whether the user named it.
    pub const fn is_named(&self) -> bool {
        self.is_named
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the journal is incomplete, as a sentence for the report; `None` if it is complete.
    pub fn failure(&self) -> Option<String> {
        let state = self.state();
        let why = state.failure.as_ref()?;
        Some(format!(
            "the journal {} ends early: {why}; had the run been killed, tsb verify could not have told what is lost",
            self.path.display()
        ))
    }

    /// Begins a run; creates the file if this is the first. `nonce` distinguishes this journal
    /// from others. Returns the number of the run.
    pub(super) fn begin(&self, nonce: u64) -> u64 {
        let mut state = self.state();
        state.section += 1;
        if state.file.is_none() && state.failure.is_none() {
            state.nonce = nonce;
            let opened = File::create(&self.path);
            state.keep(opened, |state, file| {
                state.file = Some(file);
                state.is_created = true;
            });
        }
        state.section
    }

    /// Keeps the journal because the report will be incomplete: it is neither removed nor marked
    /// as finished.
    pub fn keep(&self) {
        self.state().is_kept = true;
    }

    /// Removes all records so far, because the samples that they are about are removed from the
    /// store. A failed write ends the journal, not the run.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        if state.file.is_none() {
            return;
        }
        state.lasting.clear();
        state.latest.clear();
        let renewed = state.renew(&self.path);
        state.keep(renewed, |_, ()| {});
    }

    /// Appends records of a run, unless another run has begun since. A failed write ends the
    /// journal, not the run.
    pub(super) fn append(&self, section: u64, records: &[Record]) {
        let mut state = self.state();
        if state.section != section {
            return;
        }
        let mut text = String::new();
        for record in records {
            state.sequence += 1;
            let Ok(line) = record.line(state.nonce, state.sequence) else {
                continue;
            };
            text.push_str(&line);
            match record {
                Record::Reached(_) => state.latest = line,
                Record::Run(_) => {
                    // This run's claims do not supersede the last ones of the run before.
                    let before = std::mem::take(&mut state.latest);
                    state.lasting.extend_from_slice(before.as_bytes());
                    state.lasting.extend_from_slice(line.as_bytes());
                }
                _ => state.lasting.extend_from_slice(line.as_bytes()),
            }
        }
        let Some(mut file) = state.file.take() else { return };
        state.bytes += text.len() as u64;
        state.is_dirty = true;
        let written = file.write_all(text.as_bytes()).map(|()| file);
        state.keep(written, |state, file| state.file = Some(file));
        let needed = (state.lasting.len() + state.latest.len()) as u64;
        if state.bytes > needed + STALE_MAX {
            let renewed = state.renew(&self.path);
            state.keep(renewed, |_, ()| {});
        }
    }

    /// Syncs the file if anything was written since the last sync.
    pub(super) fn sync(&self) {
        let mut state = self.state();
        if !std::mem::take(&mut state.is_dirty) {
            return;
        }
        if let Some(file) = &state.file {
            let synced = file.sync_data();
            state.keep(synced, |_, ()| {});
        }
    }

    /// Ends the journal when the report is complete: a journal that the user did not ask for is
    /// removed, a named one gets its final record.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn finish(&self) -> Result<(), Error> {
        let (is_created, section, is_kept) = {
            let state = self.state();
            (state.is_created, state.section, state.is_kept)
        };
        if !is_created || is_kept {
            return Ok(());
        }
        if self.is_named {
            self.append(section, &[Record::Complete {}]);
            self.sync();
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(|error| Error::unwritten(self.path.display(), &error))
    }
}

impl State {
    /// Calls `then` with the value; on an error, closes the file and remembers the reason.
    fn keep<T>(&mut self, result: io::Result<T>, then: impl FnOnce(&mut Self, T)) {
        match result {
            Ok(value) => then(self, value),
            Err(error) => {
                self.file = None;
                self.failure.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Writes the lines that are not superseded into a new file, syncs it, and renames it into
    /// place.
    fn renew(&mut self, path: &Path) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let mut file = File::create(&part)?;
        file.write_all(&self.lasting)?;
        file.write_all(self.latest.as_bytes())?;
        file.sync_data()?;
        fs::rename(&part, path)?;
        self.bytes = (self.lasting.len() + self.latest.len()) as u64;
        self.file = Some(OpenOptions::new().append(true).open(path)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::header;
    use super::super::record::Reached;
    use super::*;

    #[test]
    fn a_journal_that_forgot_holds_only_what_came_after() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let journal = Journal::named(&path);
        journal.forget();
        assert!(!path.exists());
        let records = [Record::Reached(Reached::default()), Record::Complete {}];
        let section = journal.begin(1);
        journal.append(section, &records);
        journal.forget();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        let section = journal.begin(2);
        journal.append(section, &records[1..]);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(journal.failure(), None);
    }

    #[test]
    fn a_rewritten_journal_keeps_the_last_claims_of_each_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let journal = Journal::named(&path);
        let reached = |sent| Reached {
            sent,
            ..Reached::default()
        };
        let section = journal.begin(1);
        journal.append(section, &[header(), Record::Reached(reached(7))]);
        let section = journal.begin(2);
        journal.append(section, &[header()]);
        // As many records as make the file be written anew.
        let mut written = 0;
        for sent in 0.. {
            let before = fs::metadata(&path).unwrap().len();
            journal.append(section, &[Record::Reached(reached(sent))]);
            written = sent;
            if fs::metadata(&path).unwrap().len() < before {
                break;
            }
        }
        let contents = crate::journal::read(&path).unwrap();
        let claims: Vec<&Reached> = contents.sections.iter().map(|section| &section.reached).collect();
        assert_eq!(claims, [&reached(7), &reached(written)]);
    }

    #[test]
    fn a_journal_does_not_remove_a_file_that_it_did_not_create() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.json");
        // A folder stands where the file would be.
        fs::create_dir(beside(&report)).unwrap();
        let journal = Journal::beside(&report);
        let section = journal.begin(1);
        journal.append(section, &[Record::Complete {}]);
        assert!(journal.failure().is_some());
        journal.finish().unwrap();
        assert!(beside(&report).is_dir());

        fs::remove_dir(beside(&report)).unwrap();
        let journal = Journal::beside(&report);
        let section = journal.begin(2);
        journal.append(section, &[Record::Complete {}]);
        assert!(beside(&report).is_file());
        journal.finish().unwrap();
        assert!(!beside(&report).exists());
    }
}
