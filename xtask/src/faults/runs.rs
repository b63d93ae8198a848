//! Killed runs: `tsb run` is killed and `tsb verify` checks the store against the run's journal;
//! then files that the run left are damaged, and `tsb verify` must notice.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::Value;

use super::corrupt::corrupt;
use super::judge::Outcome;
use super::rng::Rng;
use super::service::{ProcessEnd, ProcessHandle, finish, micros};
use super::stores::Guarantee;
use super::trial::{Trial, TrialFolder};

/// The longest life of a run that is killed, in microseconds; its journal is written each 250 ms.
pub(super) const LIFE_US: u64 = 900_000;
/// The longest life of a run that has to leave something, also on a busy machine.
pub(super) const LONG_LIFE_US: u64 = 6_000_000;

/// A run that was killed.
#[derive(Debug)]
pub(super) struct KilledRun {
    place: TrialFolder,
    after_us: u64,
    found: u64,
}

impl KilledRun {
    /// Starts a run and kills it at any moment of a life of at most this many microseconds.
    pub(super) fn new(trial: &Trial<'_>, seed: u64, longest_us: u64) -> Result<Self> {
        let mut rng = Rng::new(seed);
        let place = TrialFolder::new(trial, "run", seed)?;
        let mut command = Command::new(trial.program);
        command.args([
            "run",
            "--quiet",
            "--transport",
            "inproc",
            "--series",
            "54",
            "--rate",
            "2000",
        ]);
        command.args([
            "--duration",
            "20s",
            "--no-calibrate",
            "--store",
            &trial.subject.spec(&place.root),
        ]);
        command.arg("--journal").arg(journal(&place.root));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start tsb run")?;
        let handle = ProcessHandle::of(child.id())?;
        let after_us = rng.below(longest_us);
        handle.wait(micros(after_us));
        handle.signal(Signal::KILL);
        child.wait()?;
        Ok(Self {
            place,
            after_us,
            found: 0,
        })
    }

    /// Reads back what must be there.
    pub(super) fn verified(mut self, trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String, Self)> {
        let how = format!("seed {seed}, a run killed after {} us", self.after_us);
        // It was killed before it had a journal, or a store.
        if !journal(&self.place.root).exists() {
            return Ok((Outcome::Whole, how, self));
        }
        let (said, ended) = verify(trial, &self.place.root, &journal(&self.place.root))?;
        self.found = found(&said);
        let outcome = match code(&ended) {
            Some(0) => Outcome::Whole,
            Some(2 | 4) => Outcome::Refused(ended.complaint()),
            Some(3) => Outcome::Silent(reasons(&said)),
            _ => Outcome::Panicked(ended.complaint()),
        };
        Ok((outcome, how, self))
    }

    /// Damages a copy of what the run left, and reads it back.
    pub(super) fn damaged(&self, trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String)> {
        let place = TrialFolder::new(trial, "verify", seed)?;
        place.fill(&self.place.root)?;
        std::fs::remove_file(journal(&place.root))?;
        let Some(corruption) = corrupt(&place.root, seed)? else {
            return Ok((Outcome::Whole, format!("seed {seed}, no file")));
        };
        let name = corruption
            .file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (said, ended) = verify(trial, &place.root, &journal(&self.place.root))?;
        let outcome = match code(&ended) {
            // Nothing of it had been acknowledged at a level that a kill leaves.
            Some(0) if found(&said) < self.found && trial.subject.after_kill != Guarantee::All => Outcome::Within,
            Some(0) if found(&said) < self.found => {
                Outcome::Silent(format!("found {} of {}: {}", found(&said), self.found, reasons(&said)))
            }
            Some(0) if ended.complaint().is_empty() => Outcome::Whole,
            Some(0) => Outcome::WholeAndSaid(ended.complaint()),
            Some(3) => Outcome::Said(reasons(&said) + &ended.complaint()),
            Some(2 | 4) => Outcome::Refused(ended.complaint()),
            _ => Outcome::Panicked(ended.complaint()),
        };
        place.keep_if_wrong(&outcome);
        Ok((
            outcome,
            format!("seed {seed}, {:?} {name} at {}", corruption.kind, corruption.at),
        ))
    }

    /// Whether there is something to lose.
    pub(super) const fn holds_something(&self) -> bool {
        self.found > 0
    }

    /// The files stay where the outcome is one that must not happen.
    pub(super) fn keep_if_wrong(self, outcome: &Outcome) {
        self.place.keep_if_wrong(outcome);
    }
}

fn journal(root: &Path) -> PathBuf {
    root.join("run.journal")
}

fn verify(trial: &Trial<'_>, root: &Path, journal: &Path) -> Result<(Value, ProcessEnd)> {
    let mut command = Command::new(trial.program);
    command
        .arg("verify")
        .arg(journal)
        .args(["--store", &trial.subject.spec(root)]);
    command.args(["--after", "kill", "--format", "json"]);
    let (text, ended) = finish(&mut command)?;
    Ok((serde_json::from_str(&text).unwrap_or_default(), ended))
}

fn code(ended: &ProcessEnd) -> Option<i32> {
    if ended.has_panicked() {
        return None;
    }
    ended.status?.code()
}

/// Samples that are there of those that must be.
fn found(said: &Value) -> u64 {
    let levels = said["stores"][0]["journal"]["levels"].as_array();
    let found = levels
        .into_iter()
        .flatten()
        .map(|level| level["found"].as_u64().unwrap_or(0));
    found.max().unwrap_or(0)
}

fn reasons(said: &Value) -> String {
    said["stores"][0]["verdict"]["reasons"].to_string()
}
