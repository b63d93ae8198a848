//! Projects the size of a store after a day and a week, from sealed samples only: within ten
//! seconds a store may have sealed nothing.
//!
//! If the run itself sealed most of what the store holds, that is projected. Otherwise, for a
//! memory store, a part of the fleet is driven for hours of fleet time into a second store of
//! the same kind, without wrappers, which takes a few seconds at most and leaves nothing behind.
//! If too little is sealed in that way too, there is no projection, and the report says why.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::Timestamp;
use tsb_core::report::Projection;
use tsb_core::time::SECOND_NS;
use tsb_stores::{Footprint, Refusals, Stats, Store};

use super::run_context::RunContext;
use crate::units;

/// Number of series in the part.
const SERIES: usize = 2_000;
/// Minimum fleet time that the part is driven for.
const SPAN_NS: u64 = 2 * 3600 * SECOND_NS;
/// Minimum number of ticks, so that slow series seal something as well.
const TICKS: u64 = 1_000;
/// Upper bound of generated samples, about a second's work; a large fleet that reports in one
/// group gets a shorter span.
const GENERATED_MAX: u64 = 500_000_000;
/// Upper bound of written samples; a fleet that reports often gets a shorter span.
const WRITTEN_MAX: u64 = 20_000_000;
/// Time limit on slow machines.
const LIMIT_NS: u64 = 3 * SECOND_NS;
/// Number of batches between two checks of the clock and the stop flag.
const LOOK_EVERY: u64 = 64;
/// Minimum share of sealed samples for a projection.
const SEALED_SHARE: f64 = 0.5;
/// Minimum number of sealed samples for a projection.
const SEALED_MIN: u64 = 10_000;

/// Bytes per sealed sample, or why there is no such figure.
fn sealed_each(footprint: &Footprint, samples: u64) -> Result<f64, String> {
    let sealed = footprint.sealed_samples;
    if footprint.sealed_bytes == 0 || sealed < SEALED_MIN || (sealed as f64) < samples as f64 * SEALED_SHARE {
        return Err(format!(
            "{} of {} samples were sealed, too few to project from",
            units::count(sealed),
            units::count(samples)
        ));
    }
    Ok(footprint.sealed_bytes as f64 / sealed as f64)
}

fn projected(sealed: f64, held_per_second: f64, source: &str) -> Projection {
    let basis = format!(
        "{} samples/s held, at {} for a sealed sample, {source}",
        units::scaled(held_per_second),
        units::bytes_each(sealed)
    );
    Projection::new(sealed * held_per_second * 86_400.0, basis)
}

/// Projects the size from `stats`, the store's statistics after the run; or says why that is not
/// possible.
pub(super) fn measure(
    context: &RunContext,
    stats: &Stats,
    held_per_second: f64,
    stop: &AtomicBool,
) -> Result<Projection, String> {
    if let Some(held) = context.held.get() {
        return Err(format!("the place held {} before this run", held.words()));
    }
    let own = sealed_each(&stats.footprint, stats.samples);
    let why = match own {
        Ok(sealed) => return Ok(projected(sealed, held_per_second, "as in this run")),
        Err(why) => why,
    };
    let Some(spec) = context.plan.stores.first().filter(|spec| spec.scheme() == "memory") else {
        return Err(why);
    };
    if stop.load(Ordering::Relaxed) {
        return Err("the run was stopped".to_owned());
    }
    let second = spec.unwrapped().open().map_err(|error| error.to_string())?;
    let part = drive(context, &*second, stop)
        .ok_or_else(|| "the part that is projected from could not be driven".to_owned())?;
    let stats = second.stats();
    let minutes = part.span_ns / SECOND_NS / 60;
    let source = format!(
        "measured with {} of the series over {minutes} minutes of fleet time",
        part.series
    );
    let sealed = sealed_each(&stats.footprint, stats.samples).map_err(|why| format!("{why}, {source}"))?;
    Ok(projected(sealed, held_per_second, &source))
}

/// The part of the fleet that was driven, and its fleet time.
struct DrivenPart {
    series: usize,
    span_ns: u64,
}

/// Writes the first series tick by tick: whole groups, or the beginning of one large group.
fn drive(context: &RunContext, store: &dyn Store, stop: &AtomicBool) -> Option<DrivenPart> {
    let workload = &context.workload;
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
    let (mut generated, mut written, mut batches) = (0, 0, 0);
    let span_ns = SPAN_NS.max(shortest.saturating_mul(TICKS));
    let end_ns = context.clock.now().saturating_add(LIMIT_NS);
    let mut due = 0;
    'driving: while due < span_ns && generated < GENERATED_MAX && written < WRITTEN_MAX {
        for (index, group) in groups.iter().enumerate() {
            let tick = due / group.interval_ns;
            if !due.is_multiple_of(group.interval_ns) || !group.ticks.contains(&tick) {
                continue;
            }
            batches += 1;
            if batches % LOOK_EVERY == 0 && (stop.load(Ordering::Relaxed) || context.clock.now() > end_ns) {
                break 'driving;
            }
            let batch = generator.operation(index, tick);
            generated += batch.len() as u64;
            let part = if is_one { batch.len().min(SERIES) } else { batch.len() };
            written += store.write(&batch.slice(0..part), &mut refused).ok()?.accepted as u64;
        }
        due += shortest;
    }
    Some(DrivenPart {
        series: if is_one { series.min(SERIES) } else { series },
        span_ns: due,
    })
}
