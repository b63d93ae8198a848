//! One process: its CPU, memory, faults, I/O and context switches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::proc::{Io, ProcessStatus, Stat, Switches, switches_of, tick_ns};

/// What a process used between two readings. A count that could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// CPU time in user mode, in nanoseconds.
    pub user_cpu_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_cpu_ns: u64,
    /// Resident memory at the end, in bytes.
    pub rss_bytes: u64,
    /// The peak of its resident memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes_max: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Bytes that it caused to be read from storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Times that its threads gave up a CPU to wait for something; of threads that are still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Times that its threads were preempted; of threads that are still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
}

impl Usage {
    /// CPU time in user mode and in the kernel, in nanoseconds.
    pub const fn cpu_ns(&self) -> u64 {
        self.user_cpu_ns + self.system_cpu_ns
    }
}

/// A process, watched since a first reading.
#[derive(Clone, Debug)]
pub struct Process {
    pid: u32,
    first: ProcessSnapshot,
}

#[derive(Clone, Debug, Default)]
struct ProcessSnapshot {
    stat: Stat,
    status: ProcessStatus,
    io: Io,
    switches: BTreeMap<u32, Switches>,
}

impl ProcessSnapshot {
    fn of(pid: u32) -> Option<Self> {
        Some(Self {
            stat: Stat::of(pid)?,
            status: ProcessStatus::of(pid).unwrap_or_default(),
            io: Io::of(pid).unwrap_or_default(),
            switches: switches_of(pid).collect(),
        })
    }
}

impl Process {
    /// This process.
    pub fn own() -> Option<Self> {
        Self::watch(std::process::id())
    }

    /// Watches a process; `None` if it does not exist or may not be inspected.
    pub fn watch(pid: u32) -> Option<Self> {
        let first = ProcessSnapshot::of(pid)?;
        Some(Self { pid, first })
    }

    /// What it used since the first reading; `None` if it has ended.
    pub fn usage(&self) -> Option<Usage> {
        let (first, last) = (&self.first, ProcessSnapshot::of(self.pid)?);
        let tick_ns = tick_ns();
        let page = rustix::param::page_size() as u64;
        let since = |last: Option<u64>, first: Option<u64>| Some(last?.saturating_sub(first?));
        Some(Usage {
            pid: self.pid,
            name: last.stat.name.clone(),
            user_cpu_ns: last.stat.user.saturating_sub(first.stat.user) * tick_ns,
            system_cpu_ns: last.stat.system.saturating_sub(first.stat.system) * tick_ns,
            rss_bytes: last.stat.resident * page,
            rss_bytes_max: last.status.resident_max_kib.map(|kib| kib * 1024),
            minor_faults: last.stat.minor_faults.saturating_sub(first.stat.minor_faults),
            major_faults: last.stat.major_faults.saturating_sub(first.stat.major_faults),
            read_bytes: since(last.io.read_bytes, first.io.read_bytes),
            written_bytes: since(last.io.written_bytes, first.io.written_bytes),
            voluntary_switches: switches(first, &last, |switches| switches.voluntary),
            involuntary_switches: switches(first, &last, |switches| switches.involuntary),
        })
    }

    /// Its resident memory now, in bytes.
    pub fn rss_bytes(&self) -> Option<u64> {
        Some(Stat::of(self.pid)?.resident * rustix::param::page_size() as u64)
    }
}

/// The switches of the threads of `last` since `first`; `None` if they cannot be read.
fn switches(first: &ProcessSnapshot, last: &ProcessSnapshot, of: fn(&Switches) -> u64) -> Option<u64> {
    let of_thread = |(thread, now): (&u32, &Switches)| of(now).saturating_sub(first.switches.get(thread).map_or(0, of));
    (!last.switches.is_empty()).then(|| last.switches.iter().map(of_thread).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, MonotonicClock};

    #[test]
    fn this_process_is_seen_to_work() {
        let own = Process::own().unwrap();
        let before = crate::time::process_cpu_ns();
        let mut sum = 0u64;
        while crate::time::process_cpu_ns() - before < 60_000_000 {
            sum = (0..10_000).fold(sum, |sum: u64, n| {
                sum.wrapping_mul(31).wrapping_add(std::hint::black_box(n))
            });
        }
        let usage = own.usage().unwrap();
        assert!(usage.cpu_ns() >= 20_000_000, "{usage:?} {sum}");
        assert!(usage.rss_bytes > 100_000 && usage.rss_bytes <= usage.rss_bytes_max.unwrap_or(u64::MAX));
        assert!(Process::watch(u32::MAX).is_none());
    }

    #[test]
    fn switches_of_all_threads_count() {
        let own = Process::own().unwrap();
        let (said, heard) = std::sync::mpsc::sync_channel(1);
        let (over, end) = std::sync::mpsc::sync_channel::<()>(1);
        let thread = std::thread::spawn(move || {
            let clock = MonotonicClock::new();
            for turn in 1..=50 {
                clock.wait_until(turn * 1_000_000);
            }
            said.send(()).unwrap();
            let _ = end.recv();
        });
        heard.recv().unwrap();
        let usage = own.usage().unwrap();
        drop(over);
        thread.join().unwrap();
        assert!(usage.voluntary_switches.unwrap() >= 40, "{usage:?}");
    }
}
