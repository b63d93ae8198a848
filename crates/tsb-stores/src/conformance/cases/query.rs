//! Clause 7: the results of raw queries; and statistics, which must agree with them.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use super::{Case, CheckResult, of, of_readable, tick_values, value_of};
use crate::conformance::failure::{Failure, ensure, equal, is_unsupported, refused};
use crate::conformance::subject::{Subject, reads};
use crate::conformance::{CheckOutcome, Context};
use crate::store::{Exactness, OnConflict, Query, TimeRange};

pub(super) const CASES: &[Case] = &[
    of_readable("c7_what_is_accepted_is_visible", accepted_samples_are_visible),
    of_readable("c7_a_range_holds_its_start_and_not_its_end", ranges_are_half_open),
    of_readable("c7_series_come_in_the_order_asked", series_come_in_the_order_asked),
    of_readable("c7_break_ends_the_query_as_success", break_ends_the_query),
    of_readable("c7_nothing_asked_is_nothing_answered", nothing_asked),
    of_readable("c7_long_histories_come_whole", long_histories_come_whole),
    of_readable("c7_gaps_and_jitter_come_back", gaps_and_jitter),
    of("c7_values_come_back_to_the_bit", to_the_bit, values_to_the_bit),
    of(
        "c7_values_come_back_as_precise_as_claimed",
        not_to_the_bit,
        values_as_claimed,
    ),
    of_readable("c7_timestamps_far_from_now", timestamps_far_from_now),
    of(
        "c7_stats_agree_with_queries",
        |c| reads(c) && c.counts_samples,
        stats_agree,
    ),
    of("c7_reads_are_unsupported", |c| !c.query, reads_are_unsupported),
];

fn to_the_bit(c: &crate::store::Capabilities) -> bool {
    reads(c) && matches!(c.exactness, Exactness::Exact | Exactness::OnePerSlot(_))
}

fn not_to_the_bit(c: &crate::store::Capabilities) -> bool {
    reads(c) && !to_the_bit(c)
}

/// Some ticks of some series, one slot apart if the store has slots.
fn fill(context: &Context, series: u32, ticks: i64) -> Result<(Subject, Vec<Timestamp>), Failure> {
    let mut subject = context.subject(series)?;
    let step = context.slot_tick_ns();
    let ticks = context
        .capabilities
        .retention_ns
        .map_or(ticks, |keeps_ns| ticks.min(keeps_ns / step - 1))
        .max(2);
    let times: Vec<_> = (0..ticks).map(|tick| context.at(0) + tick * step).collect();
    for (tick, &at) in times.iter().enumerate() {
        let _ = subject.tick(0, at, &tick_values(0, series, tick as i64))?;
    }
    Ok((subject, times))
}

fn accepted_samples_are_visible(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..30 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 3, tick))?;
        subject.check_rows(SeriesId(tick as u32 % 3), TimeRange::ALL)?;
        let _ = subject.samples(&[(2, context.at(tick) + context.capabilities.resolution_ns, 0.5)])?;
        subject.check_rows(SeriesId(2), TimeRange::ALL)?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn ranges_are_half_open(context: &Context) -> CheckResult {
    let (subject, times) = fill(context, 2, 12)?;
    let grain = context.capabilities.resolution_ns;
    let mut edges = Vec::new();
    for &at in &times {
        edges.extend([at + -grain, at, at + grain]);
    }
    for &start in &edges {
        for &end in &edges {
            subject.check_rows(SeriesId(1), TimeRange { start, end })?;
        }
        let until = TimeRange {
            start: Timestamp::MIN,
            end: start,
        };
        subject.check_rows(SeriesId(0), until)?;
        let from = TimeRange {
            start,
            end: Timestamp::MAX,
        };
        subject.check_rows(SeriesId(0), from)?;
    }
    Ok(CheckOutcome::Holds)
}

fn series_come_in_the_order_asked(context: &Context) -> CheckResult {
    let (mut subject, _) = fill(context, 6, 5)?;
    // A series without samples gives no chunk.
    subject.define([6])?;
    let asked = [5, 0, 6, 3, 1].map(SeriesId);
    let query = Query {
        series: &asked,
        range: TimeRange::ALL,
        resample: None,
    };
    let mut seen: Vec<SeriesId> = Vec::new();
    let mut samples = 0;
    subject.store.query(&query, &mut |id, times, _| {
        if seen.last() != Some(&id) {
            seen.push(id);
        }
        samples += times.len();
        ControlFlow::Continue(())
    })?;
    if context.capabilities.visibility_delay_ms == 0 {
        equal(
            "series in the order of the answer",
            &seen,
            &[5, 0, 3, 1].map(SeriesId).to_vec(),
        )?;
        let expected: usize = asked
            .iter()
            .map(|&id| subject.model.rows(id, TimeRange::ALL).len())
            .sum();
        equal("samples of several series", &samples, &expected)?;
    }
    Ok(CheckOutcome::Holds)
}

fn break_ends_the_query(context: &Context) -> CheckResult {
    let (subject, _) = fill(context, 4, 10)?;
    subject.check()?;
    let series = [0, 1, 2, 3].map(SeriesId);
    for resample in [None, Some(super::resample::per_minute())] {
        if resample.is_some() && !context.capabilities.resample {
            continue;
        }
        let query = Query {
            series: &series,
            range: TimeRange::ALL,
            resample,
        };
        let mut visits = 0;
        subject.store.query(&query, &mut |_, _, _| {
            visits += 1;
            ControlFlow::Break(())
        })?;
        equal("visits of a visitor that breaks at once", &visits, &1)?;
    }
    Ok(CheckOutcome::Holds)
}

fn nothing_asked(context: &Context) -> CheckResult {
    let (subject, times) = fill(context, 2, 5)?;
    let (first, last) = (times[0], times[times.len() - 1]);
    let series = [SeriesId(0), SeriesId(1)];
    let empty_ranges = [
        (first, first),
        (last, first),
        (last + 1_000_000_000_000, Timestamp::MAX),
        (Timestamp::MAX, Timestamp::MIN),
    ];
    let ranges = empty_ranges.map(|(start, end)| (&series[..], TimeRange { start, end }));
    for (series, range) in ranges.into_iter().chain([(&[][..], TimeRange::ALL)]) {
        let query = Query {
            series,
            range,
            resample: None,
        };
        let mut visits = 0;
        subject.store.query(&query, &mut |_, _, _| {
            visits += 1;
            ControlFlow::Continue(())
        })?;
        equal(&format!("visits for {} series in {range:?}", series.len()), &visits, &0)?;
    }
    Ok(CheckOutcome::Holds)
}

fn long_histories_come_whole(context: &Context) -> CheckResult {
    let (subject, times) = fill(context, 3, 10_000)?;
    subject.check()?;
    for part in 0..20 {
        let at = |share: usize| times[times.len() * share / 41];
        let range = TimeRange {
            start: at(part) + 1,
            end: at(40 - part),
        };
        subject.check_rows(SeriesId(part as u32 % 3), range)?;
    }
    Ok(CheckOutcome::Holds)
}

fn gaps_and_jitter(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    let mut rng = super::super::rng::Rng::new(7);
    let grain = context.capabilities.resolution_ns;
    let mut at = context.at(0);
    for tick in 0..context.kept_ticks(3_000) {
        // A jitter of several resolutions, sometimes of only one; sometimes a gap.
        let jitter = if rng.one_in(20) {
            grain
        } else {
            grain * rng.between(1, 1_000_000_000 / grain.min(1_000_000_000) + 2)
        };
        at = at + jitter;
        if rng.one_in(200) && context.capabilities.retention_ns.is_none() {
            at = at + context.tick_ns() * 86_400;
        }
        let values = tick_values(0, 3, tick);
        match rng.below(4) {
            0 => drop(subject.tick(1, at, &values[1..])?),
            1 => drop(subject.samples(&[(0, at, values[0])])?),
            _ => drop(subject.tick(0, at, &values)?),
        }
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

/// Values that are difficult for a codec; the special ones last.
pub(super) const AWKWARD: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1e-300,
    5e-324,
    -2.225_073_858_507_201e-308,
    f64::MIN_POSITIVE,
    f64::MAX,
    f64::MIN,
    f64::EPSILON,
    9_007_199_254_740_993.0,
    -123_456_789.125,
    std::f64::consts::PI,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn values_to_the_bit(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let step = match context.capabilities.exactness {
        Exactness::OnePerSlot(slot_ns) => slot_ns,
        _ => context.tick_ns(),
    };
    let mut values = AWKWARD.to_vec();
    // Other NaNs than the usual one: a quiet one with a payload, and a negative one.
    values.extend([
        f64::from_bits(0x7ff8_0000_dead_beef),
        f64::from_bits(0xfff8_0000_0000_0000),
    ]);
    values.retain(|value| context.capabilities.special_values || value.is_finite());
    let mut at = context.at(0);
    for &value in &values {
        let ack = subject.tick(0, at, &[value, -value])?;
        equal(&format!("{value:?}: accepted"), &ack.accepted, &2)?;
        at = at + step;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn values_as_claimed(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let values = [
        0.0,
        1.0,
        -1.0,
        0.1,
        1.5,
        -123.456,
        16_777_217.0,
        1e6 + 0.3,
        0.333_333_333_333,
    ];
    for (tick, value) in values.into_iter().enumerate() {
        let _ = subject.tick(0, context.at(tick as i64), &[value, -value])?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn timestamps_far_from_now(context: &Context) -> CheckResult {
    let mut times: Vec<i64> = vec![i64::MIN, i64::MIN + 1, -1_000_000_001, -1, 0, 1, 999_999_999];
    times.extend([context.at(0).0, 1 << 62, i64::MAX - 2, i64::MAX - 1]);
    let grain = context.capabilities.resolution_ns;
    times.retain(|at| at % grain == 0);
    // Ascending in one series; in another one all late, if the store accepts that.
    let mut subject = context.subject(2)?;
    for (tick, &at) in times.iter().enumerate() {
        let _ = subject.tick(0, Timestamp(at), &[value_of(0, tick as i64)])?;
        subject.check_rows(SeriesId(0), TimeRange::ALL)?;
    }
    if context.capabilities.late != OnConflict::Rejected {
        for (tick, &at) in times.iter().enumerate().rev() {
            let _ = subject.tick(1, Timestamp(at), &[value_of(1, tick as i64)])?;
        }
    }
    subject.check()?;
    for &start in &times {
        let range = TimeRange {
            start: Timestamp(start),
            end: Timestamp(start) + 1_000,
        };
        subject.check_rows(SeriesId(0), range)?;
    }
    Ok(CheckOutcome::Holds)
}

fn stats_agree(context: &Context) -> CheckResult {
    let mut subject = context.subject(4)?;
    subject.check_stats()?;
    for tick in 0..200 {
        // Some late, some equal: each outcome must be counted.
        let tick = if tick % 9 == 5 { tick - 3 } else { tick };
        let _ = subject.tick(tick as u32 % 3, context.at(tick), &[1.0, tick as f64])?;
        subject.check_stats()?;
    }
    subject.check()?;
    let stats = subject.store.stats();
    let mut visible = 0;
    for &id in &subject.defined {
        visible += subject.rows(id, TimeRange::ALL, None)?.len() as u64;
    }
    equal("samples counted and visible", &stats.samples, &visible)?;
    let has_a_size = stats.footprint.total_bytes() > 0 || context.fixture.shares_its_size();
    ensure(has_a_size, || "samples that occupy no byte".to_owned())?;
    Ok(CheckOutcome::Holds)
}

fn reads_are_unsupported(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let _ = subject.tick(0, context.at(0), &[1.0])?;
    let series = [SeriesId(0)];
    for resample in [None, Some(super::resample::per_minute())] {
        let query = Query {
            series: &series,
            range: TimeRange::ALL,
            resample,
        };
        let answer = subject.store.query(&query, &mut |_, _, _| ControlFlow::Continue(()));
        refused("query", answer, "Unsupported", is_unsupported)?;
    }
    let answer = subject.store.newest(&series, &mut [None]);
    refused("newest", answer, "Unsupported", is_unsupported)?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}
