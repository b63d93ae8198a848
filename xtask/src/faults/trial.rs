//! What every trial needs: the program, the store, and a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::judge::Outcome;
use super::stores::StoreUnderTest;

/// A program and a store to try it with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial<'a> {
    pub(super) program: &'a Path,
    pub(super) subject: &'a StoreUnderTest,
    /// Where places are made.
    pub(super) folder: &'a Path,
}

/// A folder for the files of one trial, removed with its value.
#[derive(Debug)]
pub(super) struct TrialFolder {
    pub(super) root: PathBuf,
    is_kept: bool,
}

impl TrialFolder {
    /// An empty folder.
    pub(super) fn new(trial: &Trial<'_>, fault: &str, seed: u64) -> Result<Self> {
        let root = trial.folder.join(format!("{}-{fault}-{seed}", trial.subject.name));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root, is_kept: false })
    }

    /// The files stay where the outcome is one that must not happen.
    pub(super) fn keep_if_wrong(mut self, outcome: &Outcome) {
        self.is_kept = matches!(outcome, Outcome::Silent(_) | Outcome::Panicked(_) | Outcome::Hung(_));
    }

    /// Takes the content of another place.
    pub(super) fn fill(&self, from: &Path) -> Result<()> {
        copy(from, &self.root)
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
