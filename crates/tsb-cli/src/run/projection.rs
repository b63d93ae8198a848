//! What a day and a week would occupy: measured on a part of the fleet, not guessed from
//! ten seconds in which a store may have sealed nothing.

use std::sync::Arc;

use tsb_core::Timestamp;
use tsb_core::report::Projection;
use tsb_core::time::SECOND_NS;
use tsb_stores::{Refusals, Store};

use super::stage::{Stage, open_store};

/// Series of the part.
const SERIES: usize = 2_000;
/// Fleet time that the part is driven for.
const SPAN_NS: u64 = 2 * 3600 * SECOND_NS;
/// At most this many samples are generated, about a second's work: a large fleet that
/// reports as one gets a shorter span.
const GENERATED_MAX: u64 = 500_000_000;
/// At most this many are written: a fleet that reports often gets a shorter span.
const WRITTEN_MAX: u64 = 20_000_000;

/// Drives a part of the fleet into a second store of the same kind. Only for stores in
/// memory, where that costs a fraction of a second and leaves nothing behind.
pub(super) fn measure(stage: &Stage, store: &Arc<dyn Store>, held_per_second: f64) -> Option<Projection> {
    let capabilities = store.capabilities();
    // A wrapper may be slow on purpose: behind it the part would take minutes.
    let is_memory = stage.plan.stores.first()?.to_string().starts_with("memory");
    if capabilities.persistent || !capabilities.query || !is_memory {
        return None;
    }
    let second = open_store(&stage.plan).ok()?;
    let part = drive(stage, &*second)?;
    let footprint = second.stats().footprint;
    if footprint.sealed_samples == 0 {
        return None;
    }
    let sealed = footprint.sealed_bytes as f64 / footprint.sealed_samples as f64;
    let day_bytes = sealed * held_per_second * 86_400.0;
    Some(Projection {
        day_bytes,
        week_bytes: 7.0 * day_bytes,
        basis: format!(
            "sealed {sealed:.3} B a sample, measured with {} of the series over {} minutes of fleet time",
            part.series,
            part.span_ns / SECOND_NS / 60
        ),
    })
}

/// What of the fleet was driven, and for how long.
struct Part {
    series: usize,
    span_ns: u64,
}

/// Writes the first series, tick by tick: whole groups, or the beginning of a large one.
fn drive(stage: &Stage, store: &dyn Store) -> Option<Part> {
    let workload = &stage.workload;
    let (mut series, mut groups) = (0, 0);
    for group in workload.groups() {
        groups += 1;
        series += group.len as usize;
        if series >= SERIES {
            break;
        }
    }
    let is_one = groups == 1;
    store.define(&workload.catalog().definitions()).ok()?;
    let mut generator = workload.generator(0..groups, Timestamp(0));
    let mut refused = Refusals::new();
    let groups = &workload.groups()[..groups];
    let shortest = groups.iter().map(|group| group.interval_ns).min()?;
    let (mut generated, mut written) = (0, 0);
    let mut due = 0;
    while due < SPAN_NS && generated < GENERATED_MAX && written < WRITTEN_MAX {
        for (index, group) in groups.iter().enumerate() {
            let tick = due / group.interval_ns;
            if !due.is_multiple_of(group.interval_ns) || !group.ticks.contains(&tick) {
                continue;
            }
            let batch = generator.operation(index, tick);
            generated += batch.len() as u64;
            let part = if is_one { batch.len().min(SERIES) } else { batch.len() };
            written += store.write(&batch.slice(0..part), &mut refused).ok()?.accepted as u64;
        }
        due += shortest;
    }
    Some(Part {
        series: if is_one { series.min(SERIES) } else { series },
        span_ns: due,
    })
}
