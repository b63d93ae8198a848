//! Clause 11: the newest timestamps.

use super::{Case, CheckResult, binds_keys, of, of_readable, tick_values, value_of};
use crate::conformance::failure::{Failure, ensure, equal};
use crate::conformance::subject::Subject;
use crate::conformance::{CheckOutcome, Context};
use crate::store::OnConflict;
use tsb_core::{SeriesId, Timestamp};

pub(super) const CASES: &[Case] = &[
    of_readable("c11_newest_is_what_a_query_returns_last", newest_follows),
    of_readable("c11_newest_of_many_series_in_one_call", many_series),
    of_readable("c11_newest_fills_every_slot", fills_every_slot),
    of(
        "c11_newest_accepted_is_remembered",
        binds_keys,
        newest_accepted_is_remembered,
    ),
];

fn newest_follows(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    subject.check_newest(&[0, 1, 2].map(SeriesId))?;
    for tick in [3, 4, 9, 7, 9, 2, 10, 40, 39, 41] {
        let _ = subject.tick(0, context.at(tick), &[value_of(0, tick), value_of(1, tick)])?;
        subject.check_newest(&[2, 0, 1].map(SeriesId))?;
    }
    let _ = subject.samples(&[
        (2, context.at(50), 1.0),
        (2, context.at(49), 2.0),
        (0, context.at(1), 3.0),
    ])?;
    subject.check_newest(&[0, 1, 2].map(SeriesId))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn many_series(context: &Context) -> CheckResult {
    let series = 500;
    let mut subject = context.subject(series)?;
    for tick in 0..3 {
        // Each tick reaches fewer series than the previous one.
        let reached = series - tick as u32 * 150;
        let _ = subject.tick(0, context.at(tick * 40), &tick_values(0, reached, tick))?;
    }
    let backwards: Vec<_> = (0..series).rev().map(SeriesId).collect();
    subject.check_newest(&backwards)?;
    subject.check_newest(&[])?;
    subject.check_newest(&[7, 7, 499, 7].map(SeriesId))?;
    Ok(CheckOutcome::Holds)
}

fn fills_every_slot(context: &Context) -> CheckResult {
    let mut subject = context.subject(4)?;
    let _ = subject.samples(&[(1, context.at(0), 1.0), (3, context.at(1), 1.0)])?;
    // The subject passes slots with a wrong value in each.
    subject.check_newest(&[0, 1, 2, 3].map(SeriesId))?;
    Ok(CheckOutcome::Holds)
}

/// The store's newest accepted timestamps of two series.
fn newest_accepted(subject: &Subject) -> Result<[Option<Timestamp>; 2], Failure> {
    let mut newest = [Some(Timestamp(42)); 2];
    subject
        .store
        .newest_accepted(&[SeriesId(1), SeriesId(0)], &mut newest)?;
    Ok(newest)
}

fn newest_accepted_is_remembered(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let refuses = context.capabilities.late == OnConflict::Rejected;
    equal("newest accepted of nothing", &newest_accepted(&subject)?, &[None, None])?;
    let mut expected = [None, None];
    for tick in 1..8 {
        // Both series, then one alone.
        let series = 1 + tick as u32 % 2;
        let at = context.at(tick * 3);
        let _ = subject.tick(0, at, &tick_values(0, series, tick))?;
        expected = [if series == 2 { Some(at) } else { expected[0] }, Some(at)];
        check_newest_accepted(&newest_accepted(&subject)?, &expected, context, refuses)?;
    }
    if context.capabilities.persistent {
        subject.reopen()?;
        check_newest_accepted(&newest_accepted(&subject)?, &expected, context, refuses)?;
    }
    Ok(CheckOutcome::Holds)
}

fn check_newest_accepted(
    got: &[Option<Timestamp>; 2],
    expected: &[Option<Timestamp>; 2],
    context: &Context,
    must_say: bool,
) -> Result<(), Failure> {
    for (got, expected) in got.iter().zip(expected) {
        let is_right = match (got, expected) {
            (None, Some(_)) => !must_say,
            (Some(got), Some(expected)) => (*expected - *got).abs() < context.capabilities.resolution_ns.max(1),
            (got, None) => got.is_none(),
        };
        ensure(is_right, || {
            format!("newest accepted is {got:?}, expected {expected:?}")
        })?;
    }
    Ok(())
}
