//! Disturbance: what others took from a run, told apart from what its own threads took from
//! each other.
//!
//! ```text
//!   CPU used by processes        =  ours  +  the target's  +  foreign     (/proc/stat)
//!   wait of our threads for a CPU =  for each other  +  for foreign ones  (schedstat)
//!
//!   taken = the smaller of foreign use and our wait, window by window
//! ```
//! Foreign use that nobody of ours waited for costs the run nothing, and waiting while no
//! foreign process ran is our own doing. What stops the whole process (SIGSTOP, a paused
//! machine, swapping) shows in none of these counters: the watching thread wakes up late
//! without having waited for a CPU.
//!
//! [`Disturbance`] is pure; a [`Reading`] holds the kernel's counters at one moment.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::parse::{CpuTimes, Stat, cpu_list, described, schedstat};
use crate::time::{SECOND_NS, process_cpu_ns};

/// A thread that wakes up later than it asked by less than this is on time: timers have
/// slack, and a page has to come from somewhere.
pub const LATE_NS_MIN: u64 = 2_000_000;

/// How much a run was disturbed. Shares are in [0, 1]; what the kernel does not tell is
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// CPU time that the hypervisor gave to other machines, of all CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_share: Option<f64>,
    /// CPU time that processes used that are neither ours nor the target's, while threads of
    /// ours or of the target waited for a CPU: of the CPU time that there was for us, and at
    /// least of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_share: Option<f64>,
    /// Time in which our threads and the target's waited for each other, of all the time in
    /// which they wanted a CPU. It is no disturbance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_wait_share: Option<f64>,
    /// Time in which the process stood still: stopped, paused, or swapped out.
    pub late_share: f64,
    /// The longest such time, in milliseconds.
    pub late_max_ms: f64,
}

/// Whose CPU time is no disturbance: this process, and those that it drives.
#[derive(Clone, Debug)]
pub struct Parties {
    /// This process first.
    pids: Vec<u32>,
    /// The CPUs that any of them may use.
    cpus: Option<BTreeSet<u32>>,
}

impl Parties {
    /// This process and `targets`, as far as they exist.
    pub fn with_targets(targets: &[u32]) -> Self {
        let mut pids = vec![std::process::id()];
        pids.extend(targets.iter().filter(|pid| **pid != std::process::id()));
        let mut cpus = Some(BTreeSet::new());
        for pid in &pids {
            let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
                continue;
            };
            let allowed = described(&status, "Cpus_allowed_list").and_then(cpu_list);
            cpus = cpus.zip(allowed).map(|(cpus, allowed)| &cpus | &allowed);
        }
        Self { pids, cpus }
    }

    /// The kernel's counters now, which is `at_ns` on the clock of the run.
    pub fn read(&self, at_ns: u64) -> Reading {
        let text = |path: String| std::fs::read_to_string(path).ok();
        let (mut targets, mut threads) = (Vec::new(), Vec::new());
        for (index, pid) in self.pids.iter().enumerate() {
            if index > 0 {
                targets.extend(text(format!("/proc/{pid}/stat")).map(|stat| (*pid, stat)));
            }
            let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
                continue;
            };
            for task in tasks.flatten() {
                let tid = task.file_name().to_str().and_then(|name| name.parse().ok());
                let stat = std::fs::read_to_string(task.path().join("schedstat")).ok();
                threads.extend(tid.zip(stat));
            }
        }
        let stat = text("/proc/stat".to_owned()).unwrap_or_default();
        Reading {
            cpu: CpuTimes::parse(&stat, self.cpus.as_ref()),
            ..Reading::parse(at_ns, process_cpu_ns(), &targets, &threads)
        }
    }
}

/// The kernel's counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    at_ns: u64,
    cpu: Option<CpuTimes>,
    own_cpu_ns: u64,
    /// CPU time of each process of the target, in clock ticks.
    targets: BTreeMap<u32, u64>,
    /// How long each thread of ours and of the target waited for a CPU, in nanoseconds.
    waits: BTreeMap<u32, u64>,
}

impl Reading {
    /// From `/proc/PID/stat` of the target's processes, and `schedstat` of all threads.
    fn parse(at_ns: u64, own_cpu_ns: u64, targets: &[(u32, String)], threads: &[(u32, String)]) -> Self {
        let ticks = |(pid, text): &(u32, String)| Stat::parse(text).map(|stat| (*pid, stat.user + stat.system));
        let waits = |(tid, text): &(u32, String)| schedstat(text).map(|(_, waited_ns)| (*tid, waited_ns));
        Self {
            at_ns,
            cpu: None,
            own_cpu_ns,
            targets: targets.iter().filter_map(ticks).collect(),
            waits: threads.iter().filter_map(waits).collect(),
        }
    }
}

/// How much the counts that are there have grown; what was not there before began at 0.
fn grown(now: &BTreeMap<u32, u64>, before: &BTreeMap<u32, u64>) -> u64 {
    let since = |(id, count): (&u32, &u64)| count.saturating_sub(before.get(id).copied().unwrap_or(0));
    now.iter().map(since).sum()
}

/// Adds up readings and late wake-ups.
#[derive(Clone, Debug)]
pub struct Disturbance {
    first: Reading,
    last: Reading,
    /// Length of a clock tick, the unit of `/proc/stat`.
    tick_ns: u64,
    /// Foreign use that has not been found to be above the error of the counters yet.
    owed_ns: i64,
    taken_ns: u64,
    waited_ns: u64,
    target_cpu_ns: u64,
    late_ns: u64,
    late_max_ns: u64,
}

impl Disturbance {
    /// Watches from `first` on.
    pub fn since(first: Reading) -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self::with_tick(first, SECOND_NS / ticks)
    }

    fn with_tick(first: Reading, tick_ns: u64) -> Self {
        Self {
            last: first.clone(),
            // Each of two counters is known to a tick.
            owed_ns: -2 * tick_ns as i64,
            first,
            tick_ns,
            taken_ns: 0,
            waited_ns: 0,
            target_cpu_ns: 0,
            late_ns: 0,
            late_max_ns: 0,
        }
    }

    /// Ends a window.
    pub fn add(&mut self, reading: Reading) {
        let target_cpu_ns = grown(&reading.targets, &self.last.targets) * self.tick_ns;
        let waited_ns = grown(&reading.waits, &self.last.waits);
        self.target_cpu_ns += target_cpu_ns;
        self.waited_ns += waited_ns;
        if let (Some(now), Some(before)) = (reading.cpu, self.last.cpu) {
            let busy_ns = now.busy.saturating_sub(before.busy) * self.tick_ns;
            let own_ns = reading.own_cpu_ns.saturating_sub(self.last.own_cpu_ns) + target_cpu_ns;
            // What was counted too little in one window is in the next one: a deficit stays.
            self.owed_ns += busy_ns as i64 - own_ns as i64;
            let foreign_ns = self.owed_ns.max(0) as u64;
            self.owed_ns = self.owed_ns.min(0);
            self.taken_ns += foreign_ns.min(waited_ns);
        }
        self.last = reading;
    }

    /// The watching thread woke up `late_ns` after it should have, and for `waited_ns` of
    /// that it waited for a CPU.
    pub fn woke(&mut self, late_ns: u64, waited_ns: u64) {
        let late_ns = late_ns.saturating_sub(waited_ns);
        if late_ns > LATE_NS_MIN {
            self.late_ns += late_ns;
            self.late_max_ns = self.late_max_ns.max(late_ns);
        }
    }

    /// What it came to.
    pub fn noise(&self) -> Noise {
        let elapsed_ns = self.last.at_ns.saturating_sub(self.first.at_ns).max(1);
        let used_ns = self.last.own_cpu_ns.saturating_sub(self.first.own_cpu_ns) + self.target_cpu_ns;
        let are_known = !self.last.waits.is_empty();
        let counters = self.last.cpu.zip(self.first.cpu);
        Noise {
            stolen_share: counters.map(|(last, first)| last.stolen_since(first)),
            foreign_share: counters
                .filter(|_| are_known)
                .map(|_| self.taken_ns as f64 / (used_ns + self.taken_ns).max(elapsed_ns) as f64),
            own_wait_share: are_known.then(|| {
                let waited_ns = self.waited_ns.saturating_sub(self.taken_ns);
                waited_ns as f64 / (used_ns + self.waited_ns).max(1) as f64
            }),
            late_share: self.late_ns as f64 / elapsed_ns as f64,
            late_max_ms: self.late_max_ns as f64 / 1e6,
        }
    }
}

/// How long the calling thread has waited for a CPU so far, in nanoseconds; 0 where the
/// kernel does not say.
pub fn own_thread_waited_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    stat.as_deref()
        .and_then(schedstat)
        .map_or(0, |(_, waited_ns)| waited_ns)
}

#[cfg(test)]
mod tests;
