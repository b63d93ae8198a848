//! Examines the clock: its source, the cost of reading it, and how late a wait ends.

use tsb_core::resource::Machine;
use tsb_core::time::{Clock, MonotonicClock, thread_cpu_ns};

use super::{Level, MachineFinding};
use tsb_run::units::nanos;

/// A more expensive reading is a system call, or nearly.
const READ_NS_MAX: u64 = 100;

/// Number of timed readings.
const READS: u64 = 200_000;

/// Number of timed waits, one per millisecond.
const WAITS: u64 = 250;

/// Largest median lag that sleeping and spinning should leave.
const LAG_P50_NS_MAX: u64 = 2_000;

/// Largest lag at the 0.9 quantile: a tenth of an interval of 100 ms.
const LAG_P90_NS_MAX: u64 = 10_000_000;

pub(super) fn examine(machine: &Machine) -> Vec<MachineFinding> {
    let clock = MonotonicClock::new();
    vec![
        judge_source(machine.clock_source.as_deref(), read_cost(&clock)),
        judge_pacing(&pacing(&clock)),
    ]
}

/// CPU time of one reading, in nanoseconds.
fn read_cost(clock: &dyn Clock) -> u64 {
    let before = thread_cpu_ns();
    let mut latest = 0;
    for _ in 0..READS {
        latest = std::hint::black_box(clock.now()).max(latest);
    }
    std::hint::black_box(latest);
    (thread_cpu_ns() - before) / READS
}

fn judge_source(source: Option<&str>, cost_ns: u64) -> MachineFinding {
    let value = format!("{}, {} per reading", source.unwrap_or("unknown source"), nanos(cost_ns));
    let meaning = "every operation reads the clock; a slow clock adds to every time that is measured";
    MachineFinding::ok("clock", value, meaning).advise_if(
        cost_ns > READ_NS_MAX,
        Level::Warn,
        "a clock source that needs no system call (tsc, kvm-clock, arch_sys_counter); see the kernel's boot messages for why it was rejected",
    )
}

/// How late each wait ended, in nanoseconds, sorted.
fn pacing(clock: &dyn Clock) -> Vec<u64> {
    let start = clock.now() + 1_000_000;
    let mut lags = Vec::with_capacity(WAITS as usize);
    for index in 0..WAITS {
        let due = start + index * 1_000_000;
        clock.wait_until(due);
        lags.push(clock.now().saturating_sub(due));
    }
    lags.sort_unstable();
    lags
}

fn judge_pacing(sorted_lags: &[u64]) -> MachineFinding {
    let at = |share: usize| sorted_lags.get((sorted_lags.len() * share / 100).min(sorted_lags.len().saturating_sub(1)));
    let (Some(&p50), Some(&p90), Some(&max)) = (at(50), at(90), sorted_lags.last()) else {
        return MachineFinding::unknown("pacing", "nothing was timed");
    };
    let value = format!(
        "lag p50 {}, p90 {}, max {} of {} waits",
        nanos(p50),
        nanos(p90),
        nanos(max),
        sorted_lags.len()
    );
    let meaning = "how late the emitter would start its operations here; lag is part of response time";
    MachineFinding::ok("pacing", value, meaning).advise_if(
        p50 > LAG_P50_NS_MAX || p90 > LAG_P90_NS_MAX,
        Level::Warn,
        "stop what else runs on these cores; lag is printed in every report, so such a run is not wrong, only noisier",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_clock_is_warned_about() {
        assert_eq!(judge_source(Some("tsc"), 25).level, Level::Ok);
        assert_eq!(judge_source(Some("hpet"), 900).level, Level::Warn);
        assert_eq!(judge_source(None, 25).value, "unknown source, 25 ns per reading");
    }

    #[test]
    fn lag_is_judged_by_its_quantiles() {
        let lags: Vec<u64> = (0..100).map(|index| index * 10).collect();
        let finding = judge_pacing(&lags);
        assert_eq!(finding.value, "lag p50 500 ns, p90 900 ns, max 990 ns of 100 waits");
        assert_eq!(finding.level, Level::Ok);
        assert_eq!(judge_pacing(&[5_000; 10]).level, Level::Warn);
        assert_eq!(judge_pacing(&[]).level, Level::Ok);
    }
}
