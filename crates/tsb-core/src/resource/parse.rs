//! Parses the kernel's files into numbers. Pure: text in, counts out.

use std::collections::BTreeSet;

/// CPU time of some CPUs so far, from `/proc/stat`, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    pub(super) total: u64,
    pub(super) steal: u64,
    /// Time in processes: user and kernel mode, with and without nice, without interrupts.
    pub(super) busy: u64,
}

impl CpuTimes {
    /// The sum over the CPUs in `cpus`, or over all if `None`.
    pub(super) fn parse(stat: &str, cpus: Option<&BTreeSet<u32>>) -> Option<Self> {
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
    pub(super) fn stolen_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total).max(1);
        self.steal.saturating_sub(earlier.steal) as f64 / total as f64
    }
}

/// A thread's scheduler statistics: nanoseconds on a CPU, and nanoseconds in which it was runnable
/// and waited for one.
pub(super) fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
    Some((fields.next()?, fields.next()?))
}

/// The CPUs of a list such as `0-2,5`.
pub(super) fn cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

/// A process or thread, from `/proc/PID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    /// In clock ticks.
    pub(super) user: u64,
    /// In clock ticks.
    pub(super) system: u64,
    /// In pages.
    pub(super) resident: u64,
}

impl Stat {
    pub(super) fn parse(text: &str) -> Option<Self> {
        // The name stands in parentheses and may contain any character, including parentheses.
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
        // `fields` starts with field 3 of proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            name: text.get(open + 1..close)?.to_owned(),
            minor_faults: field(10)?,
            major_faults: field(12)?,
            user: field(14)?,
            system: field(15)?,
            resident: field(24)?,
        })
    }
}

/// The number after `name` in a file of `name: number` lines (`status`, `io`, `meminfo`).
pub(super) fn named(text: &str, name: &str) -> Option<u64> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The text after `name` in a file of `name : text` lines (`cpuinfo`).
pub(super) fn described<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .find(|line| line.split(':').next().is_some_and(|left| left.trim() == name))?;
    Some(line.split_once(':')?.1.trim())
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
        assert_eq!(cpu_list("0-2,5\n"), Some(BTreeSet::from([0, 1, 2, 5])));
        assert_eq!(cpu_list("x"), None);
        assert_eq!(schedstat("825848 55694 1\n"), Some((825_848, 55_694)));
        assert_eq!(schedstat("825848"), None);
    }

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
    fn lines_are_found_by_name() {
        let status = "VmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\nvoluntary_ctxt_switches:\t5\n";
        assert_eq!(named(status, "VmRSS"), Some(1024));
        assert_eq!(named(status, "ctxt_switches"), None);
        assert_eq!(
            described("model name\t: Some CPU @ 3: x\n", "model name"),
            Some("Some CPU @ 3: x")
        );
    }
}
