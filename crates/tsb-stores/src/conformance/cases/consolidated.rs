//! Clauses 7, 10 and 11 for stores from which only consolidated rows can be read.
//!
//! Whether every row is correct is checked by the audit. These checks test that rows exist where
//! the capabilities say so, and that a constant value is returned as that value.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use super::{Case, CheckResult, of};
use crate::conformance::failure::{Failure, ensure, equal, is_unsupported, refused};
use crate::conformance::subject::Subject;
use crate::conformance::{CheckOutcome, Context};
use crate::store::{Capabilities, Consolidated, Derivation, Exactness, Query, Resample, StoreExt, TimeRange};

pub(in crate::conformance) const CASES: &[Case] = &[
    of(
        "c7_a_steady_value_fills_its_rows",
        consolidates,
        steady_value_fills_its_rows,
    ),
    of(
        "c7_only_archives_answer_a_resampled_query",
        consolidates,
        only_archives_answer,
    ),
    of(
        "c7_a_range_cuts_rows_by_their_timestamps",
        consolidates,
        range_cuts_rows,
    ),
    of("c10_rows_come_back_after_reopening", comes_back, rows_come_back),
    of("c11_newest_is_the_last_known_row", consolidates, newest_is_the_last_row),
];

fn rule_of(capabilities: &Capabilities) -> Option<Consolidated> {
    match capabilities.exactness {
        // A rate of differences needs counters, and these samples are none.
        Exactness::Consolidated(rule) if rule.derivation == Derivation::Gauge => Some(rule),
        _ => None,
    }
}

pub(super) fn consolidates(capabilities: &Capabilities) -> bool {
    capabilities.query && rule_of(capabilities).is_some()
}

fn comes_back(capabilities: &Capabilities) -> bool {
    consolidates(capabilities) && capabilities.persistent
}

const SERIES: u32 = 3;

fn value_of(id: u32) -> f64 {
    f64::from(id) * 10.0 + 2.5
}

/// Three series with a sample at the end of each step: enough for eight rows.
fn fill(context: &Context) -> Result<(Subject, Consolidated, Timestamp), Failure> {
    let Some(rule) = rule_of(&context.capabilities) else {
        return Err("the store does not consolidate gauges".to_owned().into());
    };
    let mut subject = context.subject(SERIES)?;
    let step_s = rule.step_s as i64;
    let span_s = step_s * i64::from(rule.archives().next().map_or(1, |archive| archive.steps));
    let start_s = context.at(0).as_secs().div_euclid(span_s) * span_s;
    let steps = 9 * span_s / step_s;
    let values: Vec<f64> = (0..SERIES).map(value_of).collect();
    for step in 0..=steps {
        let _ = subject.tick(0, Timestamp::from_secs(start_s + step * step_s), &values)?;
    }
    Ok((subject, rule, Timestamp::from_secs(start_s + steps * step_s)))
}

fn span_ns(rule: &Consolidated, steps: u32) -> i64 {
    rule.step_s as i64 * i64::from(steps) * 1_000_000_000
}

fn steady_value_fills_its_rows(context: &Context) -> CheckResult {
    let (subject, rule, last) = fill(context)?;
    for (index, archive) in rule.archives().enumerate() {
        let span_ns = span_ns(&rule, archive.steps);
        let resample = Resample {
            step_ns: span_ns,
            consolidation: archive.consolidation,
        };
        for id in 0..SERIES {
            let rows = subject.rows(SeriesId(id), TimeRange::ALL, Some(resample))?;
            let is_right = |row: &(Timestamp, f64)| {
                row.0.0 % span_ns == 0 && row.0 + span_ns <= last && (row.1 - value_of(id)).abs() < 1e-9
            };
            let wrong = rows.iter().find(|row| !is_right(row));
            ensure(wrong.is_none(), || format!("archive {index} of #{id} has {wrong:?}"))?;
            if index == 0 {
                ensure(rows.len() >= 8.min(archive.rows as usize), || {
                    format!("archive 0 of #{id} has {} rows", rows.len())
                })?;
                // The same rows, with the timestamp of their end.
                let ends: Vec<_> = rows.iter().map(|row| (row.0 + span_ns, row.1)).collect();
                equal(
                    "the rows of a raw query",
                    &subject.rows(SeriesId(id), TimeRange::ALL, None)?,
                    &ends,
                )?;
            }
        }
    }
    Ok(CheckOutcome::Holds)
}

fn only_archives_answer(context: &Context) -> CheckResult {
    let (subject, rule, _) = fill(context)?;
    for consolidation in super::resample::CONSOLIDATIONS {
        for step_ns in [1, span_ns(&rule, 1) + 1, i64::MAX] {
            let query = Query {
                series: &[SeriesId(0)],
                range: TimeRange::ALL,
                resample: Some(Resample { step_ns, consolidation }),
            };
            let answer = subject.store.query(&query, &mut |_, _, _| ControlFlow::Continue(()));
            refused(
                &format!("{consolidation:?} of {step_ns} ns"),
                answer,
                "Unsupported",
                is_unsupported,
            )?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn range_cuts_rows(context: &Context) -> CheckResult {
    let (subject, _, _) = fill(context)?;
    let all = subject.rows(SeriesId(1), TimeRange::ALL, None)?;
    for (from, to) in [(0, 3), (2, 2), (1, all.len()), (3, 5)] {
        let at = |index: usize| all.get(index).map_or(Timestamp::MAX, |row| row.0);
        let range = TimeRange {
            start: at(from),
            end: at(to),
        };
        let expected: Vec<_> = all.iter().copied().filter(|row| range.contains(row.0)).collect();
        equal(
            &format!("rows in {range:?}"),
            &subject.rows(SeriesId(1), range, None)?,
            &expected,
        )?;
        // A nanosecond later: the first row is outside of the range, and the row at the end is
        // inside.
        let range = TimeRange {
            start: range.start + 1,
            end: range.end + 1,
        };
        let expected: Vec<_> = all.iter().copied().filter(|row| range.contains(row.0)).collect();
        equal(
            &format!("rows in {range:?}"),
            &subject.rows(SeriesId(1), range, None)?,
            &expected,
        )?;
    }
    Ok(CheckOutcome::Holds)
}

fn rows_come_back(context: &Context) -> CheckResult {
    let (mut subject, rule, last) = fill(context)?;
    let before = subject.store.samples(SeriesId(2), TimeRange::ALL)?;
    let mut newest = [None];
    subject.store.newest(&[SeriesId(2)], &mut newest)?;
    subject.reopen()?;
    equal("rows", &subject.store.samples(SeriesId(2), TimeRange::ALL)?, &before)?;
    let mut again = [None];
    subject.store.newest(&[SeriesId(2)], &mut again)?;
    equal("the newest row", &again, &newest)?;
    // The store still knows its samples: the same one is refused, and the next one is not.
    let values: Vec<f64> = (0..SERIES).map(value_of).collect();
    let ack = subject.tick(0, last, &values)?;
    equal("accepted of what is there", &ack.accepted, &0)?;
    let ack = subject.tick(0, last + span_ns(&rule, 1), &values)?;
    equal("accepted of the next step", &ack.accepted, &(SERIES as usize))?;
    Ok(CheckOutcome::Holds)
}

fn newest_is_the_last_row(context: &Context) -> CheckResult {
    let (mut subject, rule, last) = fill(context)?;
    for step in 0..6 {
        for id in 0..SERIES {
            let mut newest = [Some(Timestamp(42))];
            subject.store.newest(&[SeriesId(id)], &mut newest)?;
            let rows = subject.rows(SeriesId(id), TimeRange::ALL, None)?;
            equal(&format!("newest of #{id}"), &newest[0], &rows.last().map(|row| row.0))?;
        }
        // Half a step at a time: some of these end a step, others do not.
        let at = last + span_ns(&rule, 1) / 2 * (step + 1);
        let _ = subject.tick(0, Timestamp(at.0 / 1_000_000_000 * 1_000_000_000), &[1.0, 2.0, 3.0])?;
    }
    // A series without a file has none.
    subject.define([SERIES])?;
    let mut newest = [Some(Timestamp(42))];
    subject.store.newest(&[SeriesId(SERIES)], &mut newest)?;
    equal("newest of a series without samples", &newest, &[None])?;
    Ok(CheckOutcome::Holds)
}
