//! CPU time and memory of processes with all that they have started: `tsb` watches the processes that listen, and
//! a server such as PostgreSQL works in others.

use std::collections::HashMap;
use std::fs;

use crate::proc_files::{kib, stat_number};

/// Clock ticks per second in proc_pid_stat(5), on every machine that Linux runs on today.
const TICKS_PER_S: f64 = 100.0;

/// Processes and those below them, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tree {
    pub(super) pids: Vec<u32>,
    /// Used by all of them since they began, and by those that they have waited for.
    pub(super) cpu_s: f64,
    /// Memory, of which each process has its share where several share it.
    pub(super) pss_bytes: u64,
}

/// What one process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    parent: u32,
    ticks: u64,
}

impl Tree {
    /// Of these processes.
    pub(super) fn of(roots: &[u32]) -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = entries.filter_map(|entry| parsed(&fs::read_to_string(entry.path().join("stat")).ok()?));
        let stats: HashMap<u32, Stat> = stats.map(|stat| (stat.pid, stat)).collect();
        let mut tree = Self::default();
        for stat in stats.values().filter(|stat| is_below(**stat, roots, &stats)) {
            tree.pids.push(stat.pid);
            tree.cpu_s += stat.ticks as f64 / TICKS_PER_S;
            let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", stat.pid));
            tree.pss_bytes += memory.map_or(0, |text| pss_bytes(&text));
        }
        tree
    }

    /// Whether a process is in it that is not among these.
    pub(super) fn has_others(&self, watched: &[u64]) -> bool {
        self.pids.iter().any(|&pid| !watched.contains(&u64::from(pid)))
    }
}

fn is_below(stat: Stat, roots: &[u32], stats: &HashMap<u32, Stat>) -> bool {
    // Longer chains of parents do not happen; a circle could, between two looks.
    let chain = std::iter::successors(Some(stat), |stat| stats.get(&stat.parent).copied());
    chain.take(64).any(|stat| roots.contains(&stat.pid))
}

fn parsed(text: &str) -> Option<Stat> {
    let (pid, _) = text.split_once(' ')?;
    // User and system time, its own and that of its children.
    let ticks = (14..=17).map(|number| stat_number(text, number));
    Some(Stat {
        pid: pid.parse().ok()?,
        parent: stat_number(text, 4)?.try_into().ok()?,
        ticks: ticks.sum::<Option<u64>>()?,
    })
}

fn pss_bytes(text: &str) -> u64 {
    kib(text, "Pss:").unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_has_the_time_of_children_that_were_waited_for() {
        let text = "42 (a) b) S 7 42 42 0 -1 4194560 1 0 0 0 10 20 30 40 20 0 1 0 123456 1 1";
        let expected = Stat {
            pid: 42,
            parent: 7,
            ticks: 100,
        };
        assert_eq!(parsed(text), Some(expected));
        assert_eq!(parsed("42 (a"), None);
        assert_eq!(pss_bytes("Rss: 9 kB\nPss:       3 kB\n"), 3072);
    }

    #[test]
    fn a_child_is_part_of_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep is everywhere");
        let (own, other) = (Tree::of(&[std::process::id()]), child.id());
        assert!(own.pids.contains(&other) && own.pss_bytes > 0);
        assert!(own.has_others(&[u64::from(std::process::id())]));
        assert_eq!(Tree::of(&[other]).pids, [other]);
        child.kill().and_then(|()| child.wait().map(drop)).expect("it ends");
    }
}
