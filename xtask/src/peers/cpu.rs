//! Measures CPU time of child processes, from the kernel's totals of children waited for.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::proc_files::stat_number;
use crate::shell::{Stopwatch, capture, spell};

/// Measures children one after the other; nothing else may be waited for meanwhile.
#[derive(Debug)]
pub(super) struct CpuMeter {
    ticks_per_second: f64,
}

/// What a child took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// User and system time, in seconds.
    pub(super) cpu_s: f64,
    /// From its start to its end, in seconds.
    pub(super) wall_s: f64,
}

impl CpuMeter {
    pub(super) fn new() -> Result<Self> {
        let printed = capture(Command::new("getconf").arg("CLK_TCK"))?;
        let ticks_per_second = printed.trim().parse().context("getconf CLK_TCK prints no number")?;
        Ok(Self { ticks_per_second })
    }

    /// Runs a command to its end; what it took, and what it printed.
    pub(super) fn cost_of(&self, command: &mut Command) -> Result<(Cost, String)> {
        let (before, watch) = (children_ticks()?, Stopwatch::start());
        let printed = capture(command)?;
        let cost = Cost {
            wall_s: watch.elapsed().as_secs_f64(),
            cpu_s: (children_ticks()? - before) as f64 / self.ticks_per_second,
        };
        Ok((cost, printed))
    }

    /// Runs a command to its end, output thrown away, and gives its user and system
    /// time, to a hundredth of a second.
    pub(super) fn seconds_of(&self, command: &mut Command) -> Result<f64> {
        let before = children_ticks()?;
        let spelled = spell(command);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot start {spelled}"))?;
        if !status.success() {
            bail!("{spelled} failed: {status}");
        }
        Ok((children_ticks()? - before) as f64 / self.ticks_per_second)
    }
}

/// User and system time of all children waited for, in ticks.
fn children_ticks() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    parse(&stat).context("/proc/self/stat has no times of children")
}

fn parse(stat: &str) -> Option<u64> {
    let (user, system) = (stat_number(stat, 16)?, stat_number(stat, 17)?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_children_are_fields_16_and_17() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 40 2 15 0 1 0 99";
        assert_eq!(parse(stat), Some(42));
        assert_eq!(parse("7 (x) S 1"), None);
    }

    #[test]
    fn a_child_that_works_has_cpu_time() -> Result<()> {
        let meter = CpuMeter::new()?;
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let seconds = meter.seconds_of(Command::new("sh").args(["-c", busy]))?;
        assert!(seconds > 0.0, "{seconds}");
        Ok(())
    }
}
