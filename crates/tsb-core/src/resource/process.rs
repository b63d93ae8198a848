//! One process: its CPU, memory, faults, I/O and context switches.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::parse::{Stat, named};
use crate::time::SECOND_NS;

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
    /// Times that it gave up a CPU voluntarily.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Times that it was preempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
}

/// A process, watched since a first reading.
#[derive(Clone, Debug)]
pub struct Process {
    pid: u32,
    root: PathBuf,
    first: Reading,
}

#[derive(Clone, Debug, Default)]
struct Reading {
    stat: Stat,
    rss_max_kib: Option<u64>,
    voluntary: Option<u64>,
    involuntary: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
}

impl Process {
    /// This process.
    pub fn own() -> Option<Self> {
        Self::watch(std::process::id())
    }

    /// Watches a process; `None` if it does not exist or may not be inspected.
    pub fn watch(pid: u32) -> Option<Self> {
        let root = PathBuf::from(format!("/proc/{pid}"));
        let first = read(&root)?;
        Some(Self { pid, root, first })
    }

    /// What it used since the first reading; `None` if it has ended.
    pub fn usage(&self) -> Option<Usage> {
        let last = read(&self.root)?;
        let tick_ns = tick_ns();
        let page = rustix::param::page_size() as u64;
        let since = |last: Option<u64>, first: Option<u64>| Some(last?.saturating_sub(first?));
        Some(Usage {
            pid: self.pid,
            name: last.stat.name.clone(),
            user_cpu_ns: last.stat.user.saturating_sub(self.first.stat.user) * tick_ns,
            system_cpu_ns: last.stat.system.saturating_sub(self.first.stat.system) * tick_ns,
            rss_bytes: last.stat.resident * page,
            rss_bytes_max: last.rss_max_kib.map(|kib| kib * 1024),
            minor_faults: last.stat.minor_faults.saturating_sub(self.first.stat.minor_faults),
            major_faults: last.stat.major_faults.saturating_sub(self.first.stat.major_faults),
            read_bytes: since(last.read, self.first.read),
            written_bytes: since(last.written, self.first.written),
            voluntary_switches: since(last.voluntary, self.first.voluntary),
            involuntary_switches: since(last.involuntary, self.first.involuntary),
        })
    }

    /// Its resident memory now, in bytes.
    pub fn rss_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.root.join("stat")).ok()?;
        Some(Stat::parse(&text)?.resident * rustix::param::page_size() as u64)
    }
}

fn read(root: &std::path::Path) -> Option<Reading> {
    let text = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    let stat = Stat::parse(&text("stat")?)?;
    let (status, io) = (text("status").unwrap_or_default(), text("io").unwrap_or_default());
    Some(Reading {
        stat,
        rss_max_kib: named(&status, "VmHWM"),
        voluntary: named(&status, "voluntary_ctxt_switches"),
        involuntary: named(&status, "nonvoluntary_ctxt_switches"),
        read: named(&io, "read_bytes"),
        written: named(&io, "write_bytes"),
    })
}

/// Length of a clock tick: 10 ms on every Linux of today.
fn tick_ns() -> u64 {
    SECOND_NS / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(usage.user_cpu_ns + usage.system_cpu_ns >= 20_000_000, "{usage:?} {sum}");
        assert!(usage.rss_bytes > 100_000 && usage.rss_bytes <= usage.rss_bytes_max.unwrap_or(u64::MAX));
        assert!(Process::watch(u32::MAX).is_none());
    }
}
