//! The file of a journal while it is written.
//!
//! Each record is one write of a line at the end. The file is synced by its own thread, now
//! and then: what a power cut takes of it only makes the journal say less.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::Record;
use crate::error::Error;

/// Records that were replaced by later ones may take this many bytes; then the file is
/// written anew without them.
const STALE_MAX: u64 = 4 << 20;

/// The journal of a run beside its report.
pub fn beside(report: &Path) -> PathBuf {
    let mut name = report.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

/// The journal of a run, or of several one after the other. The file is made when the first
/// begins.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// The user named it: it stays when the report is whole.
    is_named: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    nonce: u64,
    sequence: u64,
    /// The lines that no later one replaces.
    lasting: Vec<u8>,
    /// The last of the others.
    latest: String,
    bytes: u64,
    is_dirty: bool,
    failure: Option<String>,
    /// The run that is being written, as a number.
    section: u64,
    /// It says more than the report: it stays.
    is_kept: bool,
}

impl Journal {
    /// The journal at a path that somebody chose: it stays when the report is whole.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self::new(path.into(), true)
    }

    /// The journal beside a report: it is removed when the report is whole.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it is not whole, in words for the report.
    pub fn failure(&self) -> Option<String> {
        let state = self.state();
        let why = state.failure.as_ref()?;
        Some(format!(
            "the journal {} ends early: {why}; had the run been killed, tsb verify could not have told what is lost",
            self.path.display()
        ))
    }

    /// Begins a run, and the file where it is not begun, with a number that tells it from
    /// others. Returns the number of the run.
    pub(super) fn begin(&self, nonce: u64) -> u64 {
        let mut state = self.state();
        state.section += 1;
        if state.file.is_none() && state.failure.is_none() {
            state.nonce = nonce;
            let opened = File::create(&self.path);
            state.keep(opened, |state, file| state.file = Some(file));
        }
        state.section
    }

    /// The report will not be whole: the journal is not removed, and does not say that it is
    /// over.
    pub fn keep(&self) {
        self.state().is_kept = true;
    }

    /// Writes records of a run, unless another has begun since. A failure ends the journal, and
    /// not the run.
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

    /// Brings what was written to the medium.
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

    /// The report is whole: a journal that nobody asked for is removed, another ends.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn finish(&self) -> Result<(), Error> {
        let (sequence, section, is_kept) = {
            let state = self.state();
            (state.sequence, state.section, state.is_kept)
        };
        if sequence == 0 || is_kept {
            return Ok(());
        }
        if self.is_named {
            self.append(section, &[Record::Over {}]);
            self.sync();
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(|error| Error::unwritten(self.path.display(), &error))
    }
}

impl State {
    /// Goes on with what came of a call, or remembers why there is nothing more to write.
    fn keep<T>(&mut self, result: io::Result<T>, then: impl FnOnce(&mut Self, T)) {
        match result {
            Ok(value) => then(self, value),
            Err(error) => {
                self.file = None;
                self.failure.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Writes the lines that still say something into a new file, and puts it in place.
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
