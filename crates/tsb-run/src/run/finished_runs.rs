//! The finished runs of a command, saved one by one: if the process ends before the last store
//! is done, the others are on disk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::report::{Report, Run};

/// Saves a report.
type Save = Box<dyn Fn(&Report) + Send + Sync>;

/// The finished runs, and how to save them.
pub struct FinishedRuns {
    save: Option<Save>,
    runs: Mutex<Vec<Run>>,
}

impl std::fmt::Debug for FinishedRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FinishedRuns")
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}

impl FinishedRuns {
    /// No runs yet. `save` receives the whole report each time [`Self::save`] or
    /// [`Self::keep_with`] is called; it must remember a failure for the caller to report at the
    /// end.
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
        Report::new(self.runs().clone())
    }

    /// Adds a finished run.
    pub fn add(&self, run: Run) {
        self.runs().push(run);
    }

    /// Adds a note to the last finished run; does nothing if there is none.
    pub fn note(&self, note: String) {
        if let Some(last) = self.runs().last_mut() {
            last.notes.push(note);
        }
    }

    /// Saves the finished runs together with a provisional one, which is not added.
    pub fn keep_with(&self, run: &Run) {
        let mut report = self.report();
        report.runs.push(run.clone());
        self.write(&report);
    }

    /// Saves the finished runs.
    pub fn save(&self) {
        self.write(&self.report());
    }

    fn write(&self, report: &Report) {
        if let Some(save) = &self.save {
            save(report);
        }
    }
}
