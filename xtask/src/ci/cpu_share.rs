//! The share of the machine's CPU time that was in use during a step: one that mostly waits can run
//! beside another.

use std::fs;

/// CPU time of all cores since the machine started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    total: u64,
    idle: u64,
}

impl CpuTimes {
    /// As the kernel states them now; nothing where there is no `/proc`.
    pub(super) fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, and two
    /// that are in user already.
    fn parse(text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = first.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
        Self {
            total: ticks.iter().sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
        }
    }

    /// Per cent of the CPU time since `before` that was in use.
    pub(super) fn percent_since(self, before: Self) -> Option<f64> {
        let total = self.total.checked_sub(before.total).filter(|total| *total > 0)?;
        let idle = self.idle.saturating_sub(before.idle);
        Some(100.0 * total.saturating_sub(idle) as f64 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_time_is_not_in_use() {
        let before = CpuTimes::parse("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2 3 4");
        let after = CpuTimes::parse("cpu  60 0 30 95 15 0 0 0 9 0\n");
        assert_eq!((before.total, before.idle), (100, 80));
        assert_eq!(after.percent_since(before), Some(70.0));
        assert_eq!(before.percent_since(before), None);
        assert_eq!(CpuTimes::parse(""), CpuTimes::default());
    }
}
