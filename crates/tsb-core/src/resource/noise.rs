//! Noise: CPU time that foreign processes took from a run, as opposed to what its own
//! threads took from each other.
//!
//! ```text
//!   CPU used by processes        =  ours  +  the target's  +  foreign     (/proc/stat)
//!   wait of our threads for a CPU =  for each other  +  for foreign ones  (schedstat)
//!
//!   taken = the smaller of foreign use and our wait, window by window
//! ```
//! Foreign use for which no thread of ours waited costs the run nothing, and waiting while no
//! foreign process ran is caused by our own threads. What stops the whole process (SIGSTOP, a
//! paused machine, swapping) shows in none of these counters; it is detected because the watching
//! thread wakes up late without having waited for a CPU.
//!
//! [`NoiseMeter`] is pure; a [`NoiseSnapshot`] is a snapshot of the kernel's counters.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::proc::{CpuTimes, ProcessStatus, Schedstat, Stat, schedstats_of, tick_ns};
use crate::time::process_cpu_ns;

/// A thread that wakes up less than this after the requested time is on time: timers have slack,
/// and a page fault may delay it.
pub const LATE_NS_MIN: u64 = 2_000_000;

/// How much a run was disturbed. Shares are in [0, 1]; what the kernel does not report is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Noise {
    /// Share of all CPU time that the hypervisor gave to other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_share: Option<f64>,
    /// CPU time of processes that are neither ours nor the target's, while threads of ours or of
    /// the target waited for a CPU; divided by the CPU time of ours and the target's plus
    /// this time, or by the elapsed time if that is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_share: Option<f64>,
    /// Time in which our threads and the target's waited for each other, as a share of the time in
    /// which they wanted a CPU. This is not a disturbance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_wait_share: Option<f64>,
    /// Share of time in which the process stood still: stopped, paused, or swapped out.
    pub late_share: f64,
    /// The longest such time, in milliseconds.
    pub late_max_ms: f64,
}

/// The processes whose CPU time is not a disturbance: this one, and those that it drives.
#[derive(Clone, Debug)]
pub struct MeasuredProcesses {
    /// Process ids, this process first.
    pids: Vec<u32>,
    /// The CPUs that at least one of them may use.
    cpus: Option<BTreeSet<u32>>,
}

impl MeasuredProcesses {
    /// This process and `targets`; one that does not exist adds nothing.
    pub fn with_targets(targets: &[u32]) -> Self {
        let mut pids = vec![std::process::id()];
        pids.extend(targets.iter().filter(|pid| **pid != std::process::id()));
        let mut cpus = Some(BTreeSet::new());
        for pid in &pids {
            let Some(status) = ProcessStatus::of(*pid) else {
                continue;
            };
            cpus = cpus.zip(status.cpus).map(|(cpus, allowed)| &cpus | &allowed);
        }
        Self { pids, cpus }
    }

    /// Takes a snapshot of the kernel's counters; `at_ns` is the current time on the run's clock.
    pub fn read(&self, at_ns: u64) -> NoiseSnapshot {
        let targets = self.pids[1..].iter().filter_map(|pid| Some((*pid, Stat::of(*pid)?)));
        let targets: Vec<(u32, Stat)> = targets.collect();
        let threads: Vec<(u32, Schedstat)> = self.pids.iter().flat_map(|pid| schedstats_of(*pid)).collect();
        let cpu = CpuTimes::read(self.cpus.as_ref());
        NoiseSnapshot::new((at_ns, process_cpu_ns()), cpu, &targets, &threads)
    }
}

/// A snapshot of the kernel's counters.
#[derive(Clone, Debug, Default)]
pub struct NoiseSnapshot {
    at_ns: u64,
    cpu: Option<CpuTimes>,
    own_cpu_ns: u64,
    /// CPU time of each of the target's processes, in clock ticks.
    targets: BTreeMap<u32, u64>,
    /// Time that each thread of ours and of the target waited for a CPU, in nanoseconds.
    waits: BTreeMap<u32, u64>,
}

impl NoiseSnapshot {
    /// The CPU times of the machine, of the target's processes, and all threads.
    fn new(
        (at_ns, own_cpu_ns): (u64, u64),
        cpu: Option<CpuTimes>,
        targets: &[(u32, Stat)],
        threads: &[(u32, Schedstat)],
    ) -> Self {
        Self {
            at_ns,
            cpu,
            own_cpu_ns,
            targets: targets
                .iter()
                .map(|(pid, stat)| (*pid, stat.user + stat.system))
                .collect(),
            waits: threads.iter().map(|(tid, stat)| (*tid, stat.waited_ns)).collect(),
        }
    }
}

/// Total growth of the counts that exist now; one that did not exist before started at 0.
fn grown(now: &BTreeMap<u32, u64>, before: &BTreeMap<u32, u64>) -> u64 {
    let since = |(id, count): (&u32, &u64)| count.saturating_sub(before.get(id).copied().unwrap_or(0));
    now.iter().map(since).sum()
}

/// Accumulates snapshots and late wake-ups into a [`Noise`].
#[derive(Clone, Debug)]
pub struct NoiseMeter {
    first: NoiseSnapshot,
    last: NoiseSnapshot,
    /// Length of a clock tick, the unit of `/proc/stat`.
    tick_ns: u64,
    /// Foreign use that does not yet exceed the error of the counters.
    owed_ns: i64,
    taken_ns: u64,
    waited_ns: u64,
    target_cpu_ns: u64,
    late_ns: u64,
    late_max_ns: u64,
}

impl NoiseMeter {
    /// Starts watching at snapshot `first`.
    pub fn since(first: NoiseSnapshot) -> Self {
        Self::with_tick(first, tick_ns())
    }

    fn with_tick(first: NoiseSnapshot, tick_ns: u64) -> Self {
        Self {
            last: first.clone(),
            // The error of each of the two counters is one tick.
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

    /// Ends a window at a snapshot.
    pub fn add(&mut self, snapshot: NoiseSnapshot) {
        let target_cpu_ns = grown(&snapshot.targets, &self.last.targets) * self.tick_ns;
        let waited_ns = grown(&snapshot.waits, &self.last.waits);
        self.target_cpu_ns += target_cpu_ns;
        self.waited_ns += waited_ns;
        if let (Some(now), Some(before)) = (snapshot.cpu, self.last.cpu) {
            let busy_ns = now.busy.saturating_sub(before.busy) * self.tick_ns;
            let own_ns = snapshot.own_cpu_ns.saturating_sub(self.last.own_cpu_ns) + target_cpu_ns;
            // What one window counts too little, the next one counts in addition; so a deficit is
            // carried over.
            self.owed_ns += busy_ns as i64 - own_ns as i64;
            let foreign_ns = self.owed_ns.max(0) as u64;
            self.owed_ns = self.owed_ns.min(0);
            self.taken_ns += foreign_ns.min(waited_ns);
        }
        self.last = snapshot;
    }

    /// Records that the watching thread woke up `late_ns` after the requested time, of which it
    /// waited `waited_ns` for a CPU.
    pub fn woke(&mut self, late_ns: u64, waited_ns: u64) {
        let late_ns = late_ns.saturating_sub(waited_ns);
        if late_ns > LATE_NS_MIN {
            self.late_ns += late_ns;
            self.late_max_ns = self.late_max_ns.max(late_ns);
        }
    }

    /// The shares over the whole time watched.
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

/// Time that the calling thread has waited for a CPU so far, in nanoseconds; 0 if the kernel does
/// not report it.
pub fn own_thread_waited_ns() -> u64 {
    Schedstat::of_calling_thread().map_or(0, |stat| stat.waited_ns)
}

#[cfg(test)]
mod tests;
