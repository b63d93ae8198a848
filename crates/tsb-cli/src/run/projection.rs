//! What a day and a week would occupy: measured on a part of the fleet, not guessed from
//! ten seconds in which a store may have sealed nothing.

use std::sync::Arc;

use tsb_core::Timestamp;
use tsb_core::report::Projection;
use tsb_core::time::SECOND_NS;
use tsb_stores::{Refusals, Store};

use super::stage::{Stage, open_store};

/// Series of the part.
const SERIES: u32 = 2_000;
/// Fleet time that the part is driven for.
const SPAN_NS: u64 = 2 * 3600 * SECOND_NS;
/// At most this many samples: a slow workload gets a smaller part.
const SAMPLES_MAX: u64 = 20_000_000;

/// Drives a part of the fleet into a second store of the same kind. Only for stores in
/// memory, where that costs a fraction of a second and leaves nothing behind.
pub(super) fn measure(stage: &Stage, store: &Arc<dyn Store>, held_per_second: f64) -> Option<Projection> {
    let capabilities = store.capabilities();
    if capabilities.persistent || !capabilities.query || stage.plan.stores.first()?.scheme() != "memory" {
        return None;
    }
    let second = open_store(&stage.plan).ok()?;
    let (series, samples) = drive(stage, &*second)?;
    let footprint = second.stats().footprint;
    if footprint.sealed_samples == 0 || samples == 0 {
        return None;
    }
    let sealed = footprint.sealed_bytes as f64 / footprint.sealed_samples as f64;
    let day_bytes = sealed * held_per_second * 86_400.0;
    Some(Projection {
        day_bytes,
        week_bytes: 7.0 * day_bytes,
        basis: format!(
            "sealed {sealed:.3} B a sample, measured with {series} of the series over {} minutes of fleet time",
            SPAN_NS / SECOND_NS / 60
        ),
    })
}

/// Writes the first groups tick by tick; how many series and samples that was.
fn drive(stage: &Stage, store: &dyn Store) -> Option<(u32, u64)> {
    let workload = &stage.workload;
    let mut series = 0;
    let mut groups = 0;
    for group in workload.groups() {
        groups += 1;
        series += group.len;
        if series >= SERIES {
            break;
        }
    }
    store.define(&workload.catalog().definitions()).ok()?;
    let mut generator = workload.generator(0..groups, Timestamp(0));
    let mut refused = Refusals::new();
    let mut samples = 0;
    let shortest = workload
        .groups()
        .iter()
        .take(groups)
        .map(|group| group.interval_ns)
        .min()?;
    for step in 0..SPAN_NS / shortest {
        for (index, group) in workload.groups().iter().enumerate().take(groups) {
            let due = step * shortest;
            let is_due = due.is_multiple_of(group.interval_ns);
            let tick = due / group.interval_ns;
            if !is_due || !group.ticks.contains(&tick) {
                continue;
            }
            let ack = store.write(&generator.operation(index, tick), &mut refused).ok()?;
            samples += ack.accepted as u64;
        }
        if samples > SAMPLES_MAX {
            break;
        }
    }
    Some((series, samples))
}
