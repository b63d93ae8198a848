//! Clause 7 for consolidated answers: every consolidation, compared with the model's own.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use super::{Case, CheckResult, of};
use crate::conformance::failure::{Failure, is_unsupported, refused};
use crate::conformance::rng::Rng;
use crate::conformance::subject::{Subject, reads};
use crate::conformance::{CheckOutcome, Context};
use crate::store::{Capabilities, Consolidation, Exactness, Query, Resample, TimeRange};

pub(super) const CASES: &[Case] = &[
    of("c7_rows_of_min", resamples, |context| {
        rows_of(context, Consolidation::Min)
    }),
    of("c7_rows_of_max", resamples, |context| {
        rows_of(context, Consolidation::Max)
    }),
    of("c7_rows_of_average", resamples, |context| {
        rows_of(context, Consolidation::Average)
    }),
    of("c7_rows_of_sum", resamples, |context| {
        rows_of(context, Consolidation::Sum)
    }),
    of("c7_rows_of_count", resamples, |context| {
        rows_of(context, Consolidation::Count)
    }),
    of("c7_rows_of_first", resamples, |context| {
        rows_of(context, Consolidation::First)
    }),
    of("c7_rows_of_last", resamples, |context| {
        rows_of(context, Consolidation::Last)
    }),
    of("c7_steps_before_the_epoch", resamples, steps_before_the_epoch),
    of("c7_rows_of_a_long_history", resamples, rows_of_a_long_history),
    of(
        "c7_resampling_is_unsupported",
        |c| c.query && !c.resample,
        resampling_is_unsupported,
    ),
];

/// All consolidations.
pub(super) const CONSOLIDATIONS: [Consolidation; 7] = [
    Consolidation::Min,
    Consolidation::Max,
    Consolidation::Average,
    Consolidation::Sum,
    Consolidation::Count,
    Consolidation::First,
    Consolidation::Last,
];

fn resamples(c: &Capabilities) -> bool {
    reads(c) && c.resample
}

/// The most common query of a dashboard.
pub(super) fn per_minute() -> Resample {
    Resample {
        step_ns: 60_000_000_000,
        consolidation: Consolidation::Max,
    }
}

/// Numbers whose sum depends on the order of addition.
const ORDERED: [f64; 7] = [1e16, 1.0, -1e16, 0.1, 3.0, -0.25, 1e-3];

/// Three series: whole numbers with gaps, difficult numbers, and mostly NaN if the store keeps
/// it.
fn fill(context: &Context) -> Result<(Subject, Timestamp, Timestamp), Failure> {
    let mut subject = context.subject(3)?;
    let mut rng = Rng::new(11);
    let ticks = context.kept_ticks(280);
    let special = context.capabilities.special_values;
    let is_exact = matches!(
        context.capabilities.exactness,
        Exactness::Exact | Exactness::OnePerSlot(_)
    );
    for tick in 0..ticks {
        let at = context.at(tick);
        let nan = if special && !rng.one_in(3) { f64::NAN } else { 2.5 };
        let awkward = if is_exact { rng.pick(&ORDERED) } else { 0.75 };
        if !rng.one_in(5) {
            let _ = subject.tick(0, at, &[tick as f64 * 3.0 - 200.0])?;
        }
        let _ = subject.tick(1, at, &[awkward, nan])?;
        if tick % 70 == 69 {
            // More than a minute without a sample in series 0.
            let _ = subject.tick(1, at, &[awkward])?;
        }
    }
    Ok((subject, context.at(0), context.at(ticks)))
}

fn rows_of(context: &Context, consolidation: Consolidation) -> CheckResult {
    let (subject, start, end) = fill(context)?;
    let tick_ns = context.tick_ns();
    for step_ns in [
        tick_ns,
        tick_ns * 7,
        tick_ns * 60,
        tick_ns * 3_600,
        tick_ns * 60 + 1,
        i64::MAX / 2,
    ] {
        let resample = Resample { step_ns, consolidation };
        for (from, to) in [(0, 0), (1, 0), (3, 5), (59, 60), (100, 120)] {
            // Ranges that cut the first and the last step.
            let range = TimeRange {
                start: start + from * tick_ns,
                end: end + -to * tick_ns,
            };
            for &id in &subject.defined {
                subject.check_resampled(id, range, resample)?;
            }
        }
    }
    Ok(CheckOutcome::Holds)
}

fn steps_before_the_epoch(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let grain = context.capabilities.resolution_ns;
    for step in -25..25 {
        let _ = subject.tick(0, Timestamp(step * grain), &[step as f64])?;
    }
    let range = TimeRange {
        start: Timestamp(-23 * grain),
        end: Timestamp(24 * grain),
    };
    for consolidation in CONSOLIDATIONS {
        for steps in [1, 7, 10] {
            let step_ns = steps * grain;
            subject.check_resampled(SeriesId(0), range, Resample { step_ns, consolidation })?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn rows_of_a_long_history(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let ticks = context.kept_ticks(5_000);
    for tick in 0..ticks {
        let value = (tick % 97) as f64 - 40.0;
        let _ = subject.tick(0, context.at(tick), &[value, value * 0.5])?;
    }
    let tick_ns = context.tick_ns();
    for consolidation in CONSOLIDATIONS {
        for (from, to, steps) in [(0, ticks, 3_600), (17, ticks - 9, 60), (ticks / 2, ticks / 2 + 100, 7)] {
            let range = TimeRange {
                start: context.at(from),
                end: context.at(to),
            };
            let resample = Resample {
                step_ns: steps * tick_ns,
                consolidation,
            };
            subject.check_resampled(SeriesId(0), range, resample)?;
            subject.check_resampled(SeriesId(1), range, resample)?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn resampling_is_unsupported(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let _ = subject.tick(0, context.at(0), &[1.0])?;
    for consolidation in CONSOLIDATIONS {
        let query = Query {
            series: &[SeriesId(0)],
            range: TimeRange::ALL,
            resample: Some(Resample {
                consolidation,
                ..per_minute()
            }),
        };
        let answer = subject.store.query(&query, &mut |_, _, _| ControlFlow::Continue(()));
        refused(
            &format!("{consolidation:?} per minute"),
            answer,
            "Unsupported",
            is_unsupported,
        )?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}
