//! Selects the processes that a recording follows, and reads their values.

use std::collections::HashMap;
use std::path::Path;

use super::machine::{Sampler, read_file};
use super::{Processes, RecordOptions};
use crate::proc::recorded::{PID_FILES, PID_STAT, PID_STAT_FIELDS, PidStat, pid_stat};
use crate::trace::error::TraceDefect;

/// Ticks without CPU time after which a process may be replaced by a busy one.
const IDLE_TICKS: u32 = 30;

/// Maximum number of processes examined in one tick; further ones are counted.
const MAX_SCANNED: usize = 100_000;

#[derive(Debug)]
pub(super) struct ProcessTable {
    which: Processes,
    names: Vec<String>,
    // CPU time at the previous tick, of every process seen then; `None` before the first.
    before: Option<HashMap<Identity, u64>>,
    // The followed processes, with the number of ticks since each last used CPU time.
    followed: HashMap<Identity, u32>,
}

/// A pid alone may be reused; together with its start time it is unique.
type Identity = (u32, u64);

/// One process at one tick.
struct Seen {
    identity: Identity,
    stat: PidStat,
    // CPU time since the previous tick; the total for a new process.
    used: u64,
    // Whether it did not exist at the previous tick.
    is_new: bool,
}

impl ProcessTable {
    pub(super) fn new(options: &RecordOptions) -> Self {
        Self {
            which: options.processes.clone(),
            names: options.names.clone(),
            before: None,
            followed: HashMap::new(),
        }
    }

    pub(super) fn sample(&mut self, root: &Path, sampler: &mut Sampler<'_>) -> Result<(), TraceDefect> {
        let pids = match &self.which {
            Processes::None => return Ok(()),
            Processes::Pids(pids) => pids.clone(),
            Processes::Top(_) => all_pids(root, sampler),
        };
        let mut seen = self.look_at(&pids, root, sampler);
        let used = seen.iter().map(|process| (process.identity, process.stat.cpu_ticks));
        self.before = Some(used.collect());
        if let Processes::Top(limit) = self.which {
            self.follow(&seen, limit);
            seen.retain(|process| self.followed.contains_key(&process.identity));
        }
        // Sorted by pid, so that the order of series does not depend on a hash.
        seen.sort_unstable_by_key(|process| process.identity);
        for process in &seen {
            sample_process(process, root, sampler)?;
        }
        Ok(())
    }

    fn look_at(&self, pids: &[u32], root: &Path, sampler: &mut Sampler<'_>) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut text = Vec::new();
        for &pid in pids {
            let path = root.join(format!("{pid}/{PID_STAT}"));
            if read_file(&path, &mut text).is_err() {
                sampler.problem("a process ended before it was read", pid.to_string().as_bytes());
                continue;
            }
            let Some(stat) = pid_stat(&text) else {
                sampler.problem("a process with an unreadable stat file", &text);
                continue;
            };
            if !self.names.is_empty() && !self.names.iter().any(|name| stat.comm.starts_with(name)) {
                continue;
            }
            let identity = (pid, stat.started_ticks);
            let before = self.before.as_ref().map(|before| before.get(&identity).copied());
            seen.push(Seen {
                identity,
                used: stat.cpu_ticks.saturating_sub(before.flatten().unwrap_or(0)),
                is_new: before == Some(None),
                stat,
            });
        }
        seen
    }

    /// Drops processes that ended, and adds the busiest others.
    fn follow(&mut self, seen: &[Seen], limit: usize) {
        let used: HashMap<Identity, u64> = seen.iter().map(|process| (process.identity, process.used)).collect();
        self.followed.retain(|identity, idle| match used.get(identity) {
            Some(0) => {
                *idle = idle.saturating_add(1);
                true
            }
            Some(_) => {
                *idle = 0;
                true
            }
            None => false,
        });
        let mut others: Vec<&Seen> = seen
            .iter()
            .filter(|process| !process.is_new && !self.followed.contains_key(&process.identity))
            .collect();
        others.sort_unstable_by_key(|process| (std::cmp::Reverse(process.used), process.identity));
        let mut idle: Vec<Identity> = self
            .followed
            .iter()
            .filter(|(_, idle)| **idle >= IDLE_TICKS)
            .map(|(identity, _)| *identity)
            .collect();
        idle.sort_unstable();
        for process in others {
            if self.followed.len() >= limit {
                match idle.pop().filter(|_| process.used > 0) {
                    Some(identity) => self.followed.remove(&identity),
                    None => break,
                };
            }
            self.followed.insert(process.identity, 0);
        }
    }
}

fn all_pids(root: &Path, sampler: &mut Sampler<'_>) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(root) else {
        sampler.problem("a file that cannot be read", root.as_os_str().as_encoded_bytes());
        return Vec::new();
    };
    let mut pids = Vec::new();
    for entry in entries.flatten() {
        let pid: Option<u32> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if pid.is_some() && pids.len() == MAX_SCANNED {
            sampler.problem("more processes than are looked at in one tick", b"");
            break;
        }
        pids.extend(pid);
    }
    pids
}

fn sample_process(process: &Seen, root: &Path, sampler: &mut Sampler<'_>) -> Result<(), TraceDefect> {
    let pid = process.identity.0.to_string();
    let labels = [("comm", process.stat.comm.as_str()), ("pid", pid.as_str())];
    for (&(name, _), digits) in PID_STAT_FIELDS.iter().zip(&process.stat.digits) {
        sampler.field(name, &labels, digits)?;
    }
    let mut text = Vec::new();
    for (file, parse) in PID_FILES {
        if read_file(&root.join(&pid).join(file), &mut text).is_err() {
            sampler.problem(
                "a file of a process that cannot be read",
                format!("{}/{file}", process.stat.comm).as_bytes(),
            );
            continue;
        }
        let mut result = Ok(());
        parse(&text, &mut |name, digits| {
            if result.is_ok() {
                result = sampler.field(name, &labels, digits);
            }
        });
        result?;
    }
    Ok(())
}
