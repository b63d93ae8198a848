//! Checks, before anything is sent, that a store can represent the plan's workload by the
//! store's own rules.

use tsb_core::time::SECOND_NS;
use tsb_core::workload::Workload;
use tsb_stores::{Capabilities, Consolidated, Exactness};

use super::run_context::RunContext;
use crate::error::Error;
use crate::units;

/// Refuses a fleet of which the store would keep, or show, nothing.
pub(super) fn check(context: &RunContext, capabilities: &Capabilities, store: &str) -> Result<(), Error> {
    match capabilities.exactness {
        Exactness::Consolidated(rule) => check_gaps(&context.workload, &rule, store),
        Exactness::Slots(_) => check_pace(context, store),
        _ => Ok(()),
    }
}

/// Refuses a fleet that runs faster than real time: its samples would be of the future, and a store
/// of slots answers nothing newer than the time of day.
fn check_pace(context: &RunContext, store: &str) -> Result<(), Error> {
    let is_ahead = context
        .speed()
        .is_some_and(|speed| speed.wall_ns(SECOND_NS) < SECOND_NS);
    if !is_ahead && !context.plan.is_closed_loop() {
        return Ok(());
    }
    Err(Error::plan(format!("cannot run this fleet into {store}"))
        .because_of("it runs faster than real time, and the store answers nothing newer than the time of day")
        .hint("leave out --rate, so that the fleet keeps its own pace; more --series are a higher rate"))
}

/// Refuses series that report less often than the longest gap of a consolidating store.
fn check_gaps(workload: &Workload, rule: &Consolidated, store: &str) -> Result<(), Error> {
    let longest_gap_ns = rule.longest_gap_s.saturating_mul(1_000_000_000);
    let slow = || {
        workload
            .groups()
            .iter()
            .filter(|group| group.interval_ns > longest_gap_ns)
    };
    let Some(slowest_ns) = slow().map(|group| group.interval_ns).max() else {
        return Ok(());
    };
    let series: u64 = slow().map(|group| u64::from(group.len)).sum();
    Err(Error::plan(format!("cannot run this fleet into {store}"))
        .because_of(format!(
            "{} of {} series report every {}, and beyond the heartbeat of {} every row is unknown",
            units::count(series),
            units::count(workload.catalog().len() as u64),
            units::nanos(slowest_ns),
            units::nanos(longest_gap_ns),
        ))
        .hint(format!(
            "give the store a longer one: ?heartbeat={}s",
            slowest_ns.div_ceil(1_000_000_000).saturating_mul(2)
        )))
}

/// Refuses a history that begins before what a store takes: it would refuse the beginning of it.
pub(super) fn check_history(preload_ns: Option<u64>, capabilities: &Capabilities, store: &str) -> Result<(), Error> {
    let Some((length_ns, back_ns)) = preload_ns.zip(capabilities.takes_back_ns) else {
        return Ok(());
    };
    if length_ns <= back_ns as u64 {
        return Ok(());
    }
    Err(Error::plan(format!("cannot write a history into {store}"))
        .because_of(format!(
            "--preload is {}, and it takes no sample more than {} before the newest one that it has",
            units::nanos(length_ns),
            units::nanos(back_ns as u64),
        ))
        .hint("leave out --preload, or configure the server with a longer out_of_order_time_window"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::Durability;

    #[test]
    fn a_history_beyond_what_a_store_takes_is_refused() {
        let mut capabilities = Capabilities::new(Durability::Buffered, Durability::Buffered);
        let check = |preload_ns, capabilities: &Capabilities| check_history(preload_ns, capabilities, "x");
        assert!(check(Some(u64::MAX), &capabilities).is_ok());
        capabilities.takes_back_ns = Some(3_600_000_000_000);
        assert!(check(None, &capabilities).is_ok() && check(Some(3_600_000_000_000), &capabilities).is_ok());
        let refused = format!("{:?}", check(Some(3_600_000_000_001), &capabilities).unwrap_err());
        assert!(refused.contains("out_of_order_time_window"), "{refused}");
    }
}
