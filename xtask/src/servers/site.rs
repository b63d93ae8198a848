//! The folder of one server, and the record of the processes started there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::process::Process;
use crate::shell::{empty_folder, target_folder};

/// What the record says of a server, held against the processes that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Every process runs, and it has answered.
    Up,
    /// There is a record, and not everything in it runs.
    Broken,
    /// Nothing was started, or everything was stopped.
    Down,
}

/// The folder of a server.
#[derive(Debug)]
pub(super) struct Site {
    name: String,
    folder: PathBuf,
    /// Empty until it has answered.
    store: String,
    processes: Vec<Process>,
}

impl Site {
    /// The place of a server, as it was recorded.
    pub(super) fn open(name: &str) -> Result<Self> {
        Ok(Self::within(&servers_folder()?, name))
    }

    pub(super) fn within(folder: &Path, name: &str) -> Self {
        let mut site = Self {
            name: name.to_owned(),
            folder: folder.join(name),
            store: String::new(),
            processes: Vec::new(),
        };
        let record = fs::read(site.record()).ok();
        let record: Value = record
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let processes = record["processes"].as_array().into_iter().flatten();
        site.processes = processes.filter_map(Process::from_json).collect();
        record["store"].as_str().unwrap_or_default().clone_into(&mut site.store);
        site
    }

    fn record(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    /// How it stands.
    pub(super) fn condition(&self) -> Condition {
        if self.processes.is_empty() {
            Condition::Down
        } else if self.first_dead().is_none() && !self.store.is_empty() {
            Condition::Up
        } else {
            Condition::Broken
        }
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder within, made if it is not there.
    pub(super) fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Writes a file within; its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// The spec with which `tsb` opens it.
    pub(super) fn store(&self) -> &str {
        &self.store
    }

    /// What was started, in order.
    pub(super) fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The first port of each process.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.processes
            .iter()
            .filter_map(|process| process.ports.first().copied())
            .collect()
    }

    /// All ports of all processes.
    pub(super) fn all_ports(&self) -> Vec<u16> {
        let ports = self.processes.iter().flat_map(|process| &process.ports);
        ports.copied().collect()
    }

    /// Empties the folder: what an earlier life left is no part of this one.
    pub(super) fn clear(&mut self) -> Result<()> {
        empty_folder(self.folder.clone()).map(drop)
    }

    /// Starts a process and records it.
    pub(super) fn spawn(&mut self, name: &str, command: &mut Command, ports: &[u16]) -> Result<()> {
        let log = self.folder.join(format!("{name}.log"));
        self.processes.push(Process::spawn(name, command, ports, &log)?);
        self.save()
    }

    /// Sends SIGKILL to every process, and waits until all have ended.
    pub(super) fn kill(&self) -> Result<()> {
        for process in &self.processes {
            process.kill();
        }
        self.processes.iter().try_for_each(Process::await_end)
    }

    /// Starts each process that has ended again, with the files and ports that it had.
    pub(super) fn spawn_dead(&mut self) -> Result<()> {
        for place in 0..self.processes.len() {
            if !self.processes[place].is_alive() {
                self.processes[place] = self.processes[place].spawn_again()?;
                self.save()?;
            }
        }
        Ok(())
    }

    /// It has answered, and this is how it is opened.
    pub(super) fn name_store(&mut self, store: &str) -> Result<()> {
        store.clone_into(&mut self.store);
        self.save()
    }

    /// The name of a process that has ended.
    pub(super) fn first_dead(&self) -> Option<&str> {
        let dead = self.processes.iter().find(|process| !process.is_alive());
        dead.map(|process| process.name.as_str())
    }

    /// A port on which the process that it was given to does not listen.
    pub(super) fn first_foreign_port(&self) -> Option<(&str, u16)> {
        self.processes.iter().find_map(|process| {
            let foreign = process.ports.iter().find(|&&port| !process.listens_on(port));
            foreign.map(|&port| (process.name.as_str(), port))
        })
    }

    /// The end of each log, for an error.
    pub(super) fn last_words(&self) -> String {
        let said = self.processes.iter().map(|process| {
            let words = process.last_words();
            format!("\n--- {} ends with ---\n{words}\n---", process.log.display())
        });
        said.collect()
    }

    /// Stops what is recorded, last started first; returns how many processes were there.
    pub(super) fn stop(&mut self) -> Result<usize> {
        let mut stopped = 0;
        while let Some(process) = self.processes.last() {
            stopped += usize::from(process.stop()?);
            self.processes.pop();
            self.save()?;
        }
        self.store.clear();
        if self.folder.exists() {
            self.save()?;
        }
        Ok(stopped)
    }

    /// As it is recorded and shown.
    pub(super) fn state(&self) -> Value {
        let processes: Vec<Value> = self.processes.iter().map(Process::to_json).collect();
        let state = match self.condition() {
            Condition::Up => "up",
            Condition::Broken => "broken",
            Condition::Down => "down",
        };
        json!({ "name": self.name, "state": state, "store": self.store, "folder": self.folder, "processes": processes })
    }

    /// Never half a record: the old one stays until the new one is whole.
    fn save(&self) -> Result<()> {
        let (record, new) = (self.record(), self.folder.join("state.json.new"));
        fs::write(&new, format!("{:#}\n", self.state()))
            .and_then(|()| fs::rename(&new, &record))
            .with_context(|| format!("cannot write {}", record.display()))
    }
}

/// Held while servers are started or stopped: two programs that do so at once wait.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "its end is what unlocks")] File);

impl Lock {
    /// Waits until no other program starts or stops servers.
    pub(super) fn take() -> Result<Self> {
        let folder = servers_folder()?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let file = File::create(folder.join("lock"))?;
        file.lock().context("cannot lock the folder of the servers")?;
        Ok(Self(file))
    }
}

/// The folder of all servers, if it is not below `target`.
static ELSEWHERE: OnceLock<PathBuf> = OnceLock::new();

/// From now on this program keeps the files of servers in `folder`, and knows of no others.
pub(super) fn keep_in(folder: &Path) {
    // The first call decides: a program has one such folder.
    let _ = ELSEWHERE.set(folder.to_owned());
}

fn servers_folder() -> Result<PathBuf> {
    match ELSEWHERE.get() {
        Some(folder) => Ok(folder.clone()),
        None => Ok(target_folder()?.join("servers")),
    }
}
