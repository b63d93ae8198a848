//! Measures one target: each step with a server, or files, of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::bounded::{Ended, Running};
use super::page_cache;
use super::plan::{self, Lengths, SIZES};
use super::row;
use super::targets::Target;
use super::tree::Tree;
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
        let (mut delay_ms, mut is_met) = (0, false);
        let fleets = self.lengths.fleets.into_iter().zip(self.lengths.fixed_s);
        for (size, (series, seconds)) in SIZES.into_iter().zip(fleets) {
            step(&format!("fixed-{size}"), &mut || {
                is_met = false;
                let figure = self.fixed(target, series, seconds)?;
                delay_ms = figure["visibility_delay_ms"].as_u64().unwrap_or(delay_ms);
                is_met = plan::is_objective_met(&figure, delay_ms);
                Ok(figure)
            });
            if target.no_queries.is_empty() {
                step(&format!("queries-{size}"), &mut || self.queried(target, series));
            }
        }
        // The search begins where the larger fleet was, if that is below the capacity.
        let first = self.lengths.fleets[usize::from(is_met)];
        step("capacity", &mut || self.capacity(target, delay_ms, first));
        step("kill", &mut || {
            if target.is_server() {
                self.killed_server(target)
            } else {
                self.killed_store(target)
            }
        });
        (figures, errors)
    }

    fn fixed(&self, target: &Target, series: u64, seconds: u64) -> Result<Value> {
        self.at_place(target, |place| {
            let report = self.tsb(&plan::fixed(target, &place.store, series, seconds))?;
            let page_cache_bytes = page_cache::bytes(&place.files);
            let mut figures = row::fixed(&report, target.is_server(), page_cache_bytes);
            if target.is_server() {
                let pids = servers::pids_of(target.name)?;
                if Tree::of(&pids).has_others(&row::watched(&report)) {
                    self.cost_of_tree(target, place, series, &pids, &mut figures)?;
                }
            }
            Ok(figures)
        })
    }

    /// Takes CPU time and memory of a server that works in processes of which the report has not all, from a
    /// run that reads nothing back.
    fn cost_of_tree(
        &self,
        target: &Target,
        place: &Whereabouts,
        series: u64,
        pids: &[u32],
        figures: &mut Value,
    ) -> Result<()> {
        let before = Tree::of(pids);
        let report = self.tsb(&plan::unread(target, &place.store, series, self.lengths.queries_s))?;
        row::put_cost(figures, &report, &before, &Tree::of(pids));
        Ok(())
    }

    fn queried(&self, target: &Target, series: u64) -> Result<Value> {
        self.at_place(target, |place| {
            let report = self.tsb(&plan::queried(&place.store, series, self.lengths.queries_s))?;
            Ok(row::queried(&report))
        })
    }

    fn capacity(&self, target: &Target, delay_ms: u64, first: u64) -> Result<Value> {
        self.at_place(target, |place| {
            let words = plan::capacity(target, &place.store, &self.lengths, (delay_ms, first));
            let report = self.tsb(&words)?;
            Ok(row::capacity(&report, delay_ms))
        })
    }

    /// Kills the server while `tsb` writes to it, starts it again with its files, and lets the run read back.
    fn killed_server(&self, target: &Target) -> Result<Value> {
        self.at_place(target, |place| {
            let running = self.start(&plan::killed(target, &place.store, &self.lengths))?;
            pause(&self.lengths.kill_after_s.to_string())?;
            let restarted = servers::kill_and_restart(target.name, plan::PAUSE_S);
            let ended = running.wait(self.lengths.read_back_s)?;
            restarted?;
            Ok(row::killed_server(&report_of(&ended)?))
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
            let mut words = plan::killed(target, &place.store, &self.lengths);
            words.extend(["--journal".to_owned(), journal.display().to_string()]);
            let running = self.start(&words)?;
            pause(&self.lengths.kill_after_s.to_string())?;
            running.kill()?;
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
            let acted = act(&Whereabouts { store, files })?;
            // What was measured of a server that died is no figure of it.
            if !servers::is_up(name) {
                bail!("{name} ended by itself meanwhile");
            }
            Ok(acted)
        });
        let stopped = servers::down(&[name]).and_then(|()| remove_folder(&servers::folder_of(name)?));
        let acted = acted?;
        stopped?;
        Ok(acted)
    }

    /// Runs `tsb`, and reads the JSON that it prints, whatever its exit code is. A run that reads back for too long is
    /// stopped, and reports what it has read by then.
    fn tsb(&self, arguments: &[String]) -> Result<Value> {
        let longest = self.lengths.capacity_s.max(self.lengths.fixed_s[0]);
        report_of(&self.start(arguments)?.wait(longest + self.lengths.read_back_s)?)
    }

    fn start(&self, arguments: &[String]) -> Result<Running> {
        Running::start(Command::new(self.program).args(arguments), self.folder)
    }
}

/// The document that `tsb` printed; an error with what it said where there is none.
fn report_of(ended: &Ended) -> Result<Value> {
    let Ok(mut report) = serde_json::from_str::<Value>(&ended.output) else {
        let lines = ended.errors.lines().filter(|line| !line.trim().is_empty());
        let said: Vec<&str> = lines.take(3).map(str::trim).collect();
        bail!("exit code {:?}, and no report: {}", ended.code, said.join("; "));
    };
    if ended.is_stopped {
        report["is_stopped"] = true.into();
    }
    Ok(report)
}

/// Writes the figures of a target, as one file.
pub(super) fn save(folder: &Path, name: &str, row: &Value) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, format!("{row:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}
