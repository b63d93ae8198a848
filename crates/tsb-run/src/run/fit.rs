//! Checks, before anything is sent, that a store can represent the plan's workload by the
//! store's own rules.

use tsb_core::workload::Workload;
use tsb_stores::{Capabilities, Exactness};

use crate::error::Error;
use crate::units;

/// Refuses a fleet with series that report less often than the longest gap of a consolidating
/// store: all their rows would be unknown.
pub(super) fn check(workload: &Workload, capabilities: &Capabilities, store: &str) -> Result<(), Error> {
    let Exactness::Consolidated(rule) = capabilities.exactness else {
        return Ok(());
    };
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
