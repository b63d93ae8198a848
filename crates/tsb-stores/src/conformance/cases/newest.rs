//! Clause 11: the newest timestamps.

use super::{Case, Outcome, of_readable, tick_values, value_of};
use crate::conformance::{Context, Finding};
use tsb_core::SeriesId;

pub(super) const CASES: &[Case] = &[
    of_readable("c11_newest_is_what_a_query_returns_last", newest_follows),
    of_readable("c11_newest_of_many_series_in_one_call", many_series),
    of_readable("c11_newest_fills_every_slot", fills_every_slot),
];

fn newest_follows(context: &Context) -> Outcome {
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
    Ok(Finding::Holds)
}

fn many_series(context: &Context) -> Outcome {
    let series = 500;
    let mut subject = context.subject(series)?;
    for tick in 0..3 {
        // Each tick reaches fewer series than the one before.
        let reached = series - tick as u32 * 150;
        let _ = subject.tick(0, context.at(tick * 40), &tick_values(0, reached, tick))?;
    }
    let backwards: Vec<_> = (0..series).rev().map(SeriesId).collect();
    subject.check_newest(&backwards)?;
    subject.check_newest(&[])?;
    subject.check_newest(&[7, 7, 499, 7].map(SeriesId))?;
    Ok(Finding::Holds)
}

fn fills_every_slot(context: &Context) -> Outcome {
    let mut subject = context.subject(4)?;
    let _ = subject.samples(&[(1, context.at(0), 1.0), (3, context.at(1), 1.0)])?;
    // The subject hands over slots with a wrong value in each.
    subject.check_newest(&[0, 1, 2, 3].map(SeriesId))?;
    Ok(Finding::Holds)
}
