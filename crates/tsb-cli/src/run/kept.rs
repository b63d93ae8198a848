//! The runs that are over, kept in the file of the report as they come: what ends the process
//! before the last store is done leaves the others.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::report::{Report, Run, SCHEMA_VERSION};

use crate::output::{Target, json};

/// The runs so far, and the file that they are kept in.
#[derive(Debug)]
pub struct Kept {
    file: Option<Target>,
    runs: Mutex<Vec<Run>>,
}

impl Kept {
    /// No runs yet.
    pub const fn new(file: Option<Target>) -> Self {
        Self {
            file,
            runs: Mutex::new(Vec::new()),
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The report of the runs so far.
    pub fn report(&self) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
            runs: self.runs().clone(),
        }
    }

    /// Adds a run that is over.
    pub fn add(&self, run: Run) {
        self.runs().push(run);
    }

    /// Says something at the last run that is over.
    pub fn note(&self, note: String) {
        if let Some(last) = self.runs().last_mut() {
            last.notes.push(note);
        }
    }

    /// Keeps a run that is not over yet, beside the others.
    pub fn keep_with(&self, run: &Run) {
        let mut report = self.report();
        report.runs.push(run.clone());
        self.write(&report);
    }

    /// Writes the runs so far to the file.
    pub fn save(&self) {
        self.write(&self.report());
    }

    fn write(&self, report: &Report) {
        if let Some(file) = &self.file {
            // The file is written once more at the end, and a failure there is reported.
            let _ = json(report).and_then(|bytes| file.write(&bytes));
        }
    }
}
