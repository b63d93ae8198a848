//! The machine as a whole: CPU time, memory, load, pressure, and what it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{described, named, read};
use crate::time::SECOND_NS;

/// CPU time of some CPUs so far, from `/proc/stat`, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// All time, idle time included.
    pub total: u64,
    /// Time that the hypervisor gave to other machines.
    pub steal: u64,
    /// Time in processes: user and kernel mode, with and without nice, without interrupts.
    pub busy: u64,
}

impl CpuTimes {
    /// The sum over the CPUs in `cpus`, or over all if `None`.
    pub fn read(cpus: Option<&BTreeSet<u32>>) -> Option<Self> {
        Self::parse(&read("/proc/stat")?, cpus)
    }

    pub(crate) fn parse(stat: &str, cpus: Option<&BTreeSet<u32>>) -> Option<Self> {
        let Some(cpus) = cpus else {
            return Self::parse_line(stat.lines().next()?.strip_prefix("cpu ")?);
        };
        let chosen = stat.lines().filter_map(|line| {
            let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
            cpus.contains(&number.parse().ok()?).then_some(rest)
        });
        chosen.map(Self::parse_line).reduce(|sum, one| {
            let (sum, one) = (sum?, one?);
            Some(Self {
                total: sum.total + one.total,
                steal: sum.steal + one.steal,
                busy: sum.busy + one.busy,
            })
        })?
    }

    fn parse_line(line: &str) -> Option<Self> {
        let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let total = fields.get(..8)?.iter().sum();
        Some(Self {
            total,
            steal: *fields.get(7)?,
            busy: fields.get(..3)?.iter().sum(),
        })
    }

    /// Share of the time since `earlier` that was stolen. in [0, 1]
    pub fn stolen_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total).max(1);
        self.steal.saturating_sub(earlier.steal) as f64 / total as f64
    }
}

/// Length of a clock tick, the unit of CPU time in `/proc`: 10 ms on every Linux of today.
pub fn tick_ns() -> u64 {
    SECOND_NS / rustix::param::clock_ticks_per_second().max(1)
}

/// Memory and swap, from `/proc/meminfo`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All memory.
    pub total: Option<u64>,
    /// What processes can get without swapping.
    pub available: Option<u64>,
    /// All swap.
    pub swap_total: Option<u64>,
    /// Unused swap.
    pub swap_free: Option<u64>,
}

impl Memory {
    /// Memory and swap now.
    pub fn read() -> Option<Self> {
        read("/proc/meminfo").map(|text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let bytes = |name: &str| named(text, name).map(|kib| kib * 1024);
        Self {
            total: bytes("MemTotal"),
            available: bytes("MemAvailable"),
            swap_total: bytes("SwapTotal"),
            swap_free: bytes("SwapFree"),
        }
    }
}

/// The processor's own name, from `/proc/cpuinfo`.
pub fn cpu_model() -> Option<String> {
    described(&read("/proc/cpuinfo")?, "model name").map(str::to_owned)
}

/// The kernel's version.
pub fn kernel_release() -> Option<String> {
    read("/proc/sys/kernel/osrelease")
}

/// The id of the current boot, as text; it is another one after a power cut.
pub fn boot_id() -> Option<String> {
    read("/proc/sys/kernel/random/boot_id")
}

/// The same as bytes; all 0 if the kernel gives none.
pub fn boot() -> [u8; 16] {
    let text = boot_id().unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut boot = [0; 16];
    for (byte, pair) in boot.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    boot
}

/// A number in `/proc/sys/net/core`.
pub fn network_setting(name: &str) -> Option<u64> {
    read(&format!("/proc/sys/net/core/{name}"))?.parse().ok()
}

/// How many threads ran, wanted a CPU, or waited without being interruptible (for storage), averaged
/// over about a minute, from `/proc/loadavg`.
pub fn load() -> Option<f64> {
    parse_load(&read("/proc/loadavg")?)
}

fn parse_load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The share of the last ten seconds in which some task waited for a resource: `cpu`, `memory` or
/// `io`. in [0, 1]
pub fn some_pressure(resource: &str) -> Option<f64> {
    parse_some_pressure(&read(&format!("/proc/pressure/{resource}"))?)
}

fn parse_some_pressure(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let value = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    value.parse::<f64>().ok().map(|percent| percent / 100.0)
}

/// Time so far in which some task waited for a resource, as for [`some_pressure`], in nanoseconds.
pub fn stalled_ns(resource: &str) -> Option<u64> {
    parse_stalled_ns(&read(&format!("/proc/pressure/{resource}"))?)
}

fn parse_stalled_ns(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let value = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    value.parse::<u64>().ok()?.checked_mul(1_000)
}

/// The type of the file system that an absolute path is on.
pub fn file_system(path: &Path) -> Option<String> {
    parse_file_system(&read("/proc/self/mountinfo")?, path)
}

/// That of the longest mount point above the path, in `proc_pid_mountinfo(5)`.
fn parse_file_system(mounts: &str, path: &Path) -> Option<String> {
    let parse = |line: &str| {
        let (mount, rest) = line.split_once(" - ")?;
        let point = PathBuf::from(mount.split(' ').nth(4)?.replace("\\040", " "));
        let kind = rest.split(' ').next()?.to_owned();
        path.starts_with(&point).then(|| (point.as_os_str().len(), kind))
    };
    // Of two mounts at one point the later hides the earlier, and max_by_key takes the later.
    mounts
        .lines()
        .filter_map(parse)
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  100 5 100 700 0 0 0 100 0 0\ncpu0 60 5 40 300 0 1 2 50 0 0\ncpu1 40 0 60 400 0 0 0 50 0 0\nintr 1 2\n";

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let before = CpuTimes::parse("cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1 1 1 1 1 1 1 1", None).unwrap();
        let after = CpuTimes::parse("cpu  150 0 150 780 0 0 0 120 50 0\n", None).unwrap();
        assert_eq!(after.stolen_since(before), 0.1);
        assert_eq!(CpuTimes::parse("cpu0 1 2", None), None);
        assert_eq!(CpuTimes::parse("cpu  1 2 x", None), None);
    }

    #[test]
    fn cpus_that_nobody_of_ours_may_use_are_left_out() {
        let one = CpuTimes::parse(STAT, Some(&BTreeSet::from([1]))).unwrap();
        assert_eq!((one.total, one.steal, one.busy), (550, 50, 100));
        let both = CpuTimes::parse(STAT, Some(&BTreeSet::from([0, 1]))).unwrap();
        assert_eq!((both.total, both.steal, both.busy), (1_008, 100, 205));
        assert_eq!(CpuTimes::parse(STAT, Some(&BTreeSet::from([7]))), None);
    }

    #[test]
    fn memory_is_in_bytes_and_what_is_not_there_is_absent() {
        let memory =
            Memory::parse("MemTotal:        8388608 kB\nMemFree: 7 kB\nMemAvailable:    1024 kB\nSwapFree: 0 kB\n");
        assert_eq!((memory.total, memory.available), (Some(8 << 30), Some(1 << 20)));
        assert_eq!((memory.swap_total, memory.swap_free), (None, Some(0)));
        assert_eq!(Memory::parse(""), Memory::default());
    }

    #[test]
    fn load_and_pressure_are_read() {
        assert_eq!(parse_load("0.30 0.20 0.10 1/100 7"), Some(0.3));
        assert_eq!(parse_load(""), None);
        let text = "some avg10=3.50 avg60=0.10 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0";
        assert_eq!(parse_some_pressure(text), Some(0.035));
        assert_eq!(parse_some_pressure("garbage"), None);
        assert_eq!(parse_stalled_ns(text), Some(7_000));
        assert_eq!(parse_stalled_ns("some avg10=3.50"), None);
    }

    const MOUNTS: &str = "22 1 0:1 / / rw - ext4 /dev/a rw\n23 22 0:2 / /tmp rw shared:1 - tmpfs tmpfs rw\n24 22 0:3 / /a\\040b rw - xfs /dev/b rw";

    #[test]
    fn the_longest_mount_point_counts() {
        let kind = |path: &str| parse_file_system(MOUNTS, Path::new(path));
        assert_eq!(kind("/srv/x").as_deref(), Some("ext4"));
        assert_eq!(kind("/tmp/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/tmpx").as_deref(), Some("ext4"));
        assert_eq!(kind("/a b/c").as_deref(), Some("xfs"));
        assert_eq!(parse_file_system("", Path::new("/")), None);
    }

    #[test]
    fn a_boot_is_the_same_for_as_long_as_it_lasts() {
        assert_eq!((boot_id(), boot()), (boot_id(), boot()));
        if boot_id().is_some() {
            assert_ne!(boot(), [0; 16]);
        }
    }
}
