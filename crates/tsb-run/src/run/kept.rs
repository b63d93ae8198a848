//! The runs that are over, saved as they come: what ends the process before the last store is
//! done leaves the others.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::report::{Report, Run, SCHEMA_VERSION};

/// Writes a report down.
type Save = Box<dyn Fn(&Report) + Send + Sync>;

/// The report of some runs: what `tsb run --out` writes, and `tsb report` reads.
pub fn report_of(runs: Vec<Run>) -> Report {
    Report {
        schema_version: SCHEMA_VERSION,
        tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
        runs,
    }
}

/// The runs so far, and how they are saved.
pub struct Kept {
    save: Option<Save>,
    runs: Mutex<Vec<Run>>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept")
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}

impl Kept {
    /// No runs yet. `save` writes what there is, and is called again with more: a failure of it
    /// is the caller's to report at the end.
    pub fn new(save: Option<Save>) -> Self {
        Self {
            save,
            runs: Mutex::new(Vec::new()),
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The report of the runs so far.
    pub fn report(&self) -> Report {
        report_of(self.runs().clone())
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

    /// Saves the runs so far.
    pub fn save(&self) {
        self.write(&self.report());
    }

    fn write(&self, report: &Report) {
        if let Some(save) = &self.save {
            save(report);
        }
    }
}
