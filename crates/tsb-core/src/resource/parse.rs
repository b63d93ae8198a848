//! The kernel's files as numbers. Pure: text in, counts out.

/// The first line of `/proc/stat`, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuTimes {
    total: u64,
    steal: u64,
}

impl CpuTimes {
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let total = fields.get(..8)?.iter().sum();
        Some(Self {
            total,
            steal: *fields.get(7)?,
        })
    }

    /// Share of the time since `earlier`.
    pub(super) fn stolen_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total).max(1);
        self.steal.saturating_sub(earlier.steal) as f64 / total as f64
    }
}

/// `total=` of the `some` line of a pressure file, in microseconds.
pub(super) fn pressure_total_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse().ok()
}

/// What `/proc/PID/stat` says of a process or thread.
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
        // The name stands in parentheses and may hold anything, parentheses included.
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
        // The first of these is field 3 of proc(5).
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

/// The number behind `name` in a file of `name: number` lines (`status`, `io`, `meminfo`).
pub(super) fn named(text: &str, name: &str) -> Option<u64> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The text behind `name` in a file of `name : text` lines (`cpuinfo`).
pub(super) fn described<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .find(|line| line.split(':').next().is_some_and(|left| left.trim() == name))?;
    Some(line.split_once(':')?.1.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let before = CpuTimes::parse("cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1 1 1 1 1 1 1 1").unwrap();
        let after = CpuTimes::parse("cpu  150 0 150 780 0 0 0 120 50 0\n").unwrap();
        assert_eq!(after.stolen_since(before), 0.1);
        assert_eq!(CpuTimes::parse("cpu0 1 2"), None);
        assert_eq!(CpuTimes::parse("cpu  1 2 x"), None);
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
        assert_eq!(
            pressure_total_us("some avg10=0.00 avg60=0.00 total=42\nfull total=7\n"),
            Some(42)
        );
    }
}
