//! Resources of processes per reporting interval, computed from cumulative counters.

use tsb_core::report::{Interval, WatchedUsage};
use tsb_core::resource::{Process, Usage};
use tsb_core::time::process_cpu_ns;

/// Most processes that are watched: a server that restarts again and again is found each time.
const PROCESSES_MAX: usize = 256;

/// tsb first, then the others, with their counters at the end of the previous interval.
#[derive(Debug)]
pub(super) struct ProcessUsage {
    processes: Vec<Process>,
    before: Vec<Usage>,
    own_cpu_ns: u64,
}

impl ProcessUsage {
    /// Watches this process and those of `pids` that exist.
    pub(super) fn new(pids: &[u32]) -> Self {
        let others = pids.iter().filter_map(|&pid| Process::watch(pid));
        let processes: Vec<Process> = Process::own().into_iter().chain(others).collect();
        Self {
            before: processes
                .iter()
                .map(|process| process.usage().unwrap_or_default())
                .collect(),
            processes,
            own_cpu_ns: process_cpu_ns(),
        }
    }

    /// The resources used in total, by process, at the end of the last interval; of one that has
    /// ended, those at the end of the last interval in which it was there.
    pub(super) fn in_all(self) -> Vec<Usage> {
        self.before
    }

    /// Watches those of `pids`, too, that exist and are not watched yet: at most
    /// [`PROCESSES_MAX`] in all.
    fn watch(&mut self, pids: &[u32]) {
        for &pid in pids {
            let is_watched = self.before.iter().any(|usage| usage.pid == pid);
            if self.processes.len() < PROCESSES_MAX
                && !is_watched
                && let Some(process) = Process::watch(pid)
            {
                self.before.push(process.usage().unwrap_or_default());
                self.processes.push(process);
            }
        }
    }

    /// Fills in the resources used since the previous interval. A process that has ended used
    /// nothing; if there is one, those that `find` returns are watched from now on, too.
    pub(super) fn fill(&mut self, interval: &mut Interval, find: impl FnOnce() -> Vec<u32>) {
        let own_cpu_ns = process_cpu_ns();
        interval.cpu_ns = own_cpu_ns - std::mem::replace(&mut self.own_cpu_ns, own_cpu_ns);
        let mut now: Vec<Option<Usage>> = self.processes.iter().map(Process::usage).collect();
        if now.iter().any(Option::is_none) {
            self.watch(&find());
            now.extend(self.before[now.len()..].iter().cloned().map(Some));
        }
        for (index, (now, before)) in now.into_iter().zip(&mut self.before).enumerate() {
            let now = now.unwrap_or_else(|| Usage {
                rss_bytes: 0,
                ..before.clone()
            });
            let used = since(&now, before);
            *before = now;
            if index == 0 {
                (interval.rss_bytes, interval.read_bytes, interval.written_bytes) =
                    (used.rss_bytes, used.read_bytes, used.written_bytes);
            } else {
                interval.watched.push(used);
            }
        }
    }
}

fn since(now: &Usage, before: &Usage) -> WatchedUsage {
    let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
    let mut used = WatchedUsage::default();
    used.pid = now.pid;
    used.cpu_ns = now.cpu_ns().saturating_sub(before.cpu_ns());
    used.rss_bytes = now.rss_bytes;
    used.read_bytes = grown(now.read_bytes, before.read_bytes);
    used.written_bytes = grown(now.written_bytes, before.written_bytes);
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_started_again_is_watched_beside_its_last_figures() {
        let run = || std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (mut first, mut second) = (run(), run());
        let mut used = ProcessUsage::new(&[first.id()]);
        used.fill(&mut Interval::default(), || panic!("none is lost"));
        first.kill().unwrap();
        first.wait().unwrap();
        let mut interval = Interval::default();
        used.fill(&mut interval, || vec![second.id(), second.id()]);
        let pids: Vec<u32> = interval.watched.iter().map(|watched| watched.pid).collect();
        assert_eq!(pids, [first.id(), second.id()]);
        let in_all: Vec<u32> = used.in_all().iter().skip(1).map(|usage| usage.pid).collect();
        assert_eq!(in_all, pids);
        second.kill().unwrap();
        second.wait().unwrap();
    }

    #[test]
    fn intervals_of_a_process_add_up_to_what_it_used() {
        let own = std::process::id();
        let mut used = ProcessUsage::new(&[own, u32::MAX]);
        let mut intervals = [Interval::default(), Interval::default()];
        for interval in &mut intervals {
            let until = process_cpu_ns() + 30_000_000;
            while process_cpu_ns() < until {}
            used.fill(interval, Vec::new);
        }
        assert!(
            intervals
                .iter()
                .all(|interval| interval.cpu_ns >= 30_000_000 && interval.rss_bytes > 0)
        );
        assert!(
            intervals
                .iter()
                .all(|interval| interval.watched.len() == 1 && interval.watched[0].pid == own)
        );
        let sum: u64 = intervals.iter().map(|interval| interval.watched[0].cpu_ns).sum();
        let all = used.in_all().remove(1);
        assert!(all.cpu_ns() >= sum && sum >= 30_000_000, "{all:?}");
    }
}
