//! A process and its threads: CPU time, memory, I/O, waiting, groups, open sockets.

use std::collections::BTreeSet;
use std::fs;

use super::{described, named, read, stat_fields};

/// A process, from `/proc/PID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Its short name.
    pub name: String,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// CPU time in user mode, in clock ticks.
    pub user: u64,
    /// CPU time in the kernel, in clock ticks.
    pub system: u64,
    /// Resident memory, in pages.
    pub resident: u64,
}

impl Stat {
    /// Reads that of a process.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&read(&format!("/proc/{pid}/stat"))?)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, fields) = stat_fields(text.as_bytes())?;
        let fields: Vec<&[u8]> = fields.collect();
        let field = |number: usize| std::str::from_utf8(fields.get(number - 3)?).ok()?.parse().ok();
        Some(Self {
            name: String::from_utf8_lossy(name).into_owned(),
            minor_faults: field(10)?,
            major_faults: field(12)?,
            user: field(14)?,
            system: field(15)?,
            resident: field(24)?,
        })
    }
}

/// A process, from `/proc/PID/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatus {
    /// The peak of its resident memory, in KiB.
    pub resident_max_kib: Option<u64>,
    /// The CPUs that its main thread may use.
    pub cpus: Option<BTreeSet<u32>>,
}

impl ProcessStatus {
    /// Reads that of a process.
    pub fn of(pid: u32) -> Option<Self> {
        read(&format!("/proc/{pid}/status")).map(|text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        Self {
            resident_max_kib: named(text, "VmHWM"),
            cpus: described(text, "Cpus_allowed_list").and_then(cpu_list),
        }
    }
}

/// How often a thread left a CPU, from its `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Times that it waited for something.
    pub voluntary: u64,
    /// Times that it was preempted.
    pub involuntary: u64,
}

impl Switches {
    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            voluntary: named(text, "voluntary_ctxt_switches")?,
            involuntary: named(text, "nonvoluntary_ctxt_switches")?,
        })
    }
}

/// The switches of each thread of a process; those that end meanwhile may be missing.
pub fn switches_of(pid: u32) -> impl Iterator<Item = (u32, Switches)> {
    of_threads(pid, "status", Switches::parse)
}

/// The CPUs of a list such as `0-2,5`.
fn cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

/// What a process caused to be transferred from and to storage, from `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
}

impl Io {
    /// Reads that of a process.
    pub fn of(pid: u32) -> Option<Self> {
        read(&format!("/proc/{pid}/io")).map(|text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        Self {
            read_bytes: named(text, "read_bytes"),
            written_bytes: named(text, "write_bytes"),
        }
    }
}

/// A thread, from its `schedstat`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU.
    pub used_ns: u64,
    /// Time in which it was runnable and waited for a CPU.
    pub waited_ns: u64,
}

impl Schedstat {
    /// Reads that of a thread of this process.
    pub fn of_thread(thread: u32) -> Option<Self> {
        Self::parse(&read(&format!("/proc/self/task/{thread}/schedstat"))?)
    }

    /// Reads that of the calling thread.
    pub fn of_calling_thread() -> Option<Self> {
        Self::parse(&read("/proc/thread-self/schedstat")?)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
        Some(Self {
            used_ns: fields.next()?,
            waited_ns: fields.next()?,
        })
    }
}

/// The threads of a process; those that end meanwhile may be missing.
pub fn schedstats_of(pid: u32) -> impl Iterator<Item = (u32, Schedstat)> {
    of_threads(pid, "schedstat", Schedstat::parse)
}

/// What a file says of each thread of a process.
fn of_threads<T>(pid: u32, file: &str, parse: fn(&str) -> Option<T>) -> impl Iterator<Item = (u32, T)> {
    entries(format!("/proc/{pid}/task")).filter_map(move |thread: fs::DirEntry| {
        let number = thread.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(thread.path().join(file)).ok()?;
        Some((number, parse(&text)?))
    })
}

/// The ids of all processes.
pub fn processes() -> impl Iterator<Item = u32> {
    entries("/proc".to_owned()).filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The inodes of the sockets that a process has open; none if it may not be inspected.
pub fn sockets_of(pid: u32) -> impl Iterator<Item = u64> {
    let links = entries(format!("/proc/{pid}/fd")).filter_map(|file| fs::read_link(file.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
}

fn entries(folder: String) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// A control group that this process is in, from `/proc/self/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    /// The number of the hierarchy.
    pub number: String,
    /// Its controllers, separated by commas; empty in version 2.
    pub controllers: String,
    /// Its path below the mount point of the hierarchy.
    pub path: String,
}

impl ControlGroup {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, ':').map(str::to_owned);
        Some(Self {
            number: fields.next()?,
            controllers: fields.next()?,
            path: fields.next()?,
        })
    }
}

/// The control groups that this process is in.
pub fn own_groups() -> Vec<ControlGroup> {
    let text = read("/proc/self/cgroup").unwrap_or_default();
    text.lines().filter_map(ControlGroup::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 0 11 0 13 0 15 16 0 0 20 0 1 0 99 4096 25 18446744073709551615 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.name, "a) b (c");
        assert_eq!(
            (
                stat.minor_faults,
                stat.major_faults,
                stat.user,
                stat.system,
                stat.resident
            ),
            (11, 13, 15, 16, 25)
        );
        for bad in ["", "7", "7 (x", "7 (x) S 1 2"] {
            assert_eq!(Stat::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn status_and_io_have_what_the_kernel_reports() {
        let status = ProcessStatus::parse("VmHWM:\t  2048 kB\nCpus_allowed_list:\t0-2,5\n");
        assert_eq!(status.resident_max_kib, Some(2048));
        assert_eq!(status.cpus, Some(BTreeSet::from([0, 1, 2, 5])));
        let switches = Switches::parse("voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n").unwrap();
        assert_eq!((switches.voluntary, switches.involuntary), (5, 6));
        assert_eq!(Switches::parse("Name:\tx\n"), None);
        assert_eq!(ProcessStatus::parse("Name:\tx\n"), ProcessStatus::default());
        assert_eq!(cpu_list("x"), None);
        let io = Io::parse("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n");
        assert_eq!((io.read_bytes, io.written_bytes), (Some(4096), Some(8192)));
    }

    #[test]
    fn a_thread_has_used_and_waited() {
        let stat = Schedstat::parse("825848 55694 1\n").unwrap();
        assert_eq!((stat.used_ns, stat.waited_ns), (825_848, 55_694));
        assert_eq!(Schedstat::parse("825848"), None);
    }

    #[test]
    fn a_group_is_three_fields() {
        let group = ControlGroup::parse("3:cpu,cpuacct:/a:b").unwrap();
        assert_eq!(
            (&*group.number, &*group.controllers, &*group.path),
            ("3", "cpu,cpuacct", "/a:b")
        );
        assert_eq!(ControlGroup::parse("1:x"), None);
    }
}
