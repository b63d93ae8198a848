//! Measures one target: each step with a server, or files, of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::page_cache;
use super::plan::{self, Lengths, SIZES};
use super::row;
use super::targets::Target;
use crate::servers;
use crate::shell::{Stopwatch, empty_folder, remove_folder};
use crate::terminal::pause;

/// The program, and where stores of ours have their files.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) program: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) lengths: Lengths,
}

/// Where a step finds its store.
struct Whereabouts {
    /// The spec.
    store: String,
    /// The files of the store or server.
    files: PathBuf,
}

impl Trial<'_> {
    /// Carries out every step; a step that fails is in the errors, and the next one is tried.
    pub(super) fn measure(&self, target: &Target) -> (Map<String, Value>, Vec<String>) {
        let (mut figures, mut errors) = (Map::new(), Vec::new());
        let mut step = |name: &str, act: &mut dyn FnMut() -> Result<Value>| {
            let watch = Stopwatch::start();
            match act() {
                Ok(figure) => {
                    println!(
                        "  {name}: {:.0} s: {}",
                        watch.elapsed().as_secs_f64(),
                        row::in_short(&figure)
                    );
                    figures.insert(name.to_owned(), figure);
                }
                Err(error) => {
                    println!("  {name}: {:.0} s: failed: {error:#}", watch.elapsed().as_secs_f64());
                    errors.push(format!("{name}: {error:#}"));
                }
            }
        };
        let mut delay_ms = 0;
        let fleets = self.lengths.fleets.into_iter().zip(self.lengths.fixed_s);
        for (size, (series, seconds)) in SIZES.into_iter().zip(fleets) {
            step(&format!("fixed-{size}"), &mut || {
                let figure = self.fixed(target, series, seconds)?;
                delay_ms = figure["visibility_delay_ms"].as_u64().unwrap_or(delay_ms);
                Ok(figure)
            });
            if target.no_queries.is_empty() {
                step(&format!("queries-{size}"), &mut || self.queried(target, series));
            }
        }
        step("capacity", &mut || self.capacity(target, delay_ms));
        step("kill", &mut || {
            if target.is_server() {
                self.killed_server(target)
            } else {
                self.killed_store(target)
            }
        });
        (figures, errors.iter().map(|error| self.without_paths(error)).collect())
    }

    fn fixed(&self, target: &Target, series: u64, seconds: u64) -> Result<Value> {
        self.at_place(target, |place| {
            let report = self.tsb(&plan::fixed(target, &place.store, series, seconds))?;
            Ok(row::fixed(&report, target.is_server(), page_cache::bytes(&place.files)))
        })
    }

    fn queried(&self, target: &Target, series: u64) -> Result<Value> {
        self.at_place(target, |place| {
            let report = self.tsb(&plan::queried(&place.store, series, self.lengths.queries_s))?;
            Ok(row::queried(&report))
        })
    }

    fn capacity(&self, target: &Target, delay_ms: u64) -> Result<Value> {
        self.at_place(target, |place| {
            let report = self.tsb(&plan::capacity(target, &place.store, &self.lengths, delay_ms))?;
            Ok(row::capacity(&report, delay_ms))
        })
    }

    /// Kills the server while `tsb` writes to it, starts it again with its files, and lets the run read back.
    fn killed_server(&self, target: &Target) -> Result<Value> {
        self.at_place(target, |place| {
            let mut command = Command::new(self.program);
            command.args(plan::killed(target, &place.store, &self.lengths));
            let child = command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            pause(&self.lengths.kill_after_s.to_string())?;
            let restarted = servers::kill_and_restart(target.name, plan::PAUSE_S);
            let output = child.wait_with_output()?;
            restarted?;
            Ok(row::killed_server(&report_of(&output)?))
        })
    }

    /// Kills `tsb` while it writes to a store of ours in its own process, and reads the store by the journal of
    /// that run.
    fn killed_store(&self, target: &Target) -> Result<Value> {
        if row::keeps_nothing(target.spec) {
            return Ok(row::nothing_kept());
        }
        self.at_place(target, |place| {
            let journal = place.files.join("run.journal");
            let mut command = Command::new(self.program);
            command.args(plan::killed(target, &place.store, &self.lengths));
            command.arg("--journal").arg(&journal);
            let mut child = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            pause(&self.lengths.kill_after_s.to_string())?;
            child.kill()?;
            child.wait()?;
            let verify = [
                "verify".to_owned(),
                journal.display().to_string(),
                "--format".to_owned(),
                "json".to_owned(),
            ];
            Ok(row::killed_store(&self.tsb(&verify)?))
        })
    }

    /// Starts the server of a target, or makes a folder for its files, and leaves nothing of either.
    fn at_place<T>(&self, target: &Target, act: impl FnOnce(&Whereabouts) -> Result<T>) -> Result<T> {
        if !target.is_server() {
            let files = empty_folder(self.folder.join(target.name))?;
            let store = target.store(&files.display().to_string());
            let acted = act(&Whereabouts {
                store,
                files: files.clone(),
            });
            remove_folder(&files)?;
            return acted;
        }
        let name = target.name;
        let acted = servers::up(&[name]).and_then(|()| {
            let (store, files) = (target.store(&servers::store_of(name)?), servers::folder_of(name)?);
            act(&Whereabouts { store, files })
        });
        let stopped = servers::down(&[name]).and_then(|()| remove_folder(&servers::folder_of(name)?));
        let acted = acted?;
        stopped?;
        Ok(acted)
    }

    /// Runs `tsb`, and reads the JSON that it prints, whatever its exit code is.
    fn tsb(&self, arguments: &[String]) -> Result<Value> {
        let mut command = Command::new(self.program);
        let output = command.args(arguments).stdin(Stdio::null()).output();
        report_of(&output.context("cannot start tsb")?)
    }

    /// A message without the folders of this machine.
    fn without_paths(&self, message: &str) -> String {
        let target = self.folder.ancestors().nth(2).unwrap_or(self.folder);
        let line = message.replace(&target.display().to_string(), "TARGET");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The document that `tsb` printed; an error with what it said where there is none.
fn report_of(output: &std::process::Output) -> Result<Value> {
    let Ok(report) = serde_json::from_slice(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
        bail!(
            "exit code {:?}, and no report: {}",
            output.status.code(),
            lines.join("; ")
        );
    };
    Ok(report)
}

/// Writes the figures of a target, as one file.
pub(super) fn save(folder: &Path, name: &str, row: &Value) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, format!("{row:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}
