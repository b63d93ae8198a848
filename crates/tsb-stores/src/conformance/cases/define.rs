//! Clause 3: ids and keys.

use tsb_core::{Batch, Ids, SeriesId, SeriesKey, Times, Timestamp};

use super::{Case, CheckResult, binds_keys, of, of_all, of_readable, tick_values, value_of};
use crate::conformance::failure::{ensure, equal, refused};
use crate::conformance::subject::{definitions, key};
use crate::conformance::{CheckOutcome, Context};
use crate::error::Error;
use crate::store::{Query, Refusals, TimeRange};

pub(super) const CASES: &[Case] = &[
    of_all("c3_define_is_idempotent", define_is_idempotent),
    of_all("c3_define_of_nothing_is_fine", define_of_nothing),
    of("c3_define_takes_parts_in_any_order", binds_keys, parts_in_any_order),
    of_all("c3_new_series_come_at_any_time", new_series_at_any_time),
    of("c3_a_bound_id_keeps_its_key", binds_keys, a_bound_id_keeps_its_key),
    of("c3_a_bound_key_keeps_its_id", binds_keys, a_bound_key_keeps_its_id),
    of_readable("c3_labels_belong_to_the_key", labels_belong_to_the_key),
    of_all("c3_an_undefined_id_applies_nothing", an_undefined_id_applies_nothing),
    of(
        "c3_reads_of_an_undefined_id_are_errors",
        |c| c.query,
        reads_of_an_undefined_id,
    ),
    of_all("c3_a_flood_of_series_is_stopped", a_flood_of_series_is_stopped),
];

fn is_unknown(id: u32) -> impl Fn(&Error) -> bool {
    move |error| matches!(error, Error::UnknownSeries { id: found } if found.0 == id)
}

fn define_is_idempotent(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    let _ = subject.tick(0, context.at(0), &tick_values(0, 3, 0))?;
    subject.define(0..3)?;
    subject.define(1..2)?;
    subject.check()?;
    let _ = subject.tick(0, context.at(1), &tick_values(0, 3, 1))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn define_of_nothing(context: &Context) -> CheckResult {
    let mut subject = context.subject(0)?;
    subject.check()?;
    let _ = subject.tick(0, context.at(0), &[])?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn parts_in_any_order(context: &Context) -> CheckResult {
    let mut subject = context.subject(0)?;
    subject.define([7, 5, 6])?;
    let _ = subject.tick(5, context.at(0), &tick_values(5, 3, 0))?;
    let early = subject
        .store
        .write(&Batch::tick(SeriesId(4), context.at(0), &[0.0]), &mut Refusals::new());
    refused(
        "a write to series 4, which is not defined yet",
        early,
        "UnknownSeries",
        is_unknown(4),
    )?;
    subject.define([0, 4, 2])?;
    subject.define([3, 1])?;
    let _ = subject.tick(0, context.at(1), &tick_values(0, 8, 1))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn new_series_at_any_time(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let ticks = context.kept_ticks(40);
    for tick in 0..ticks {
        let series = 1 + tick as u32 / 4;
        subject.define(0..series)?;
        let _ = subject.tick(0, context.at(tick), &tick_values(0, series, tick))?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn a_bound_id_keeps_its_key(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let _ = subject.tick(0, context.at(0), &tick_values(0, 2, 0))?;
    let again = subject.store.define(&[(SeriesId(1), SeriesKey::new("another"))]);
    refused("binding id 1 to another key", again, "Conflict", |error| {
        matches!(error, Error::Conflict { id: SeriesId(1), .. })
    })?;
    subject.define(0..2)?;
    let _ = subject.tick(0, context.at(1), &tick_values(0, 2, 1))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn a_bound_key_keeps_its_id(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let again = subject.store.define(&[(SeriesId(2), key(0))]);
    refused("binding the key of id 0 to id 2", again, "Conflict", |error| {
        matches!(error, Error::Conflict { .. })
    })?;
    let _ = subject.tick(0, context.at(0), &tick_values(0, 2, 0))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn labels_belong_to_the_key(context: &Context) -> CheckResult {
    let mut subject = context.subject(0)?;
    let keys = [
        SeriesKey::new("cpu"),
        SeriesKey::with_labels("cpu", [("host", "a")]),
        SeriesKey::with_labels("cpu", [("host", "b")]),
        SeriesKey::with_labels("cpu", [("host", "a"), ("zone", "x")]),
        SeriesKey::with_labels("cpu", [("zone", "x")]),
    ];
    let pairs: Vec<_> = keys
        .into_iter()
        .enumerate()
        .map(|(id, key)| (SeriesId(id as u32), key))
        .collect();
    subject.store.define(&pairs)?;
    let reordered = SeriesKey::with_labels("cpu", [("zone", "x"), ("host", "a")]);
    subject.store.define(&[(SeriesId(3), reordered)])?;
    subject.defined = pairs.iter().map(|(id, _)| *id).collect();
    let _ = subject.tick(0, context.at(0), &tick_values(0, 5, 0))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn an_undefined_id_applies_nothing(context: &Context) -> CheckResult {
    let mut subject = context.subject(4)?;
    let _ = subject.tick(0, context.at(0), &tick_values(0, 4, 0))?;
    let at = context.at(1);
    let values = [1.0; 5];
    let times = [at; 5];
    let unknown = |index: usize| {
        let mut ids = [0, 1, 2, 3, 0].map(SeriesId);
        ids[index] = SeriesId(4);
        ids
    };
    let (first, middle, last) = (unknown(0), unknown(2), unknown(4));
    let batches = [
        ("a range that reaches beyond", Batch::tick(SeriesId(0), at, &values)),
        (
            "an undefined id first",
            Batch::new(Ids::Each(&first), Times::One(at), &values),
        ),
        (
            "an undefined id amid others",
            Batch::new(Ids::Each(&middle), Times::Each(&times), &values),
        ),
        (
            "an undefined id last",
            Batch::new(Ids::Each(&last), Times::Each(&times), &values),
        ),
    ];
    for (what, batch) in batches {
        let before = subject.store.stats();
        let mut refusals = Refusals::new();
        let result = subject.store.write(&batch, &mut refusals);
        refused(what, result, "UnknownSeries of #4", is_unknown(4))?;
        let after = subject.store.stats();
        equal(&format!("{what}: samples accepted"), &after.accepted, &before.accepted)?;
        subject.check()?;
    }
    let _ = subject.tick(0, context.at(2), &tick_values(0, 4, 2))?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn reads_of_an_undefined_id(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let _ = subject.tick(0, context.at(0), &tick_values(0, 2, 0))?;
    let series = [SeriesId(0), SeriesId(9)];
    let query = Query {
        series: &series,
        range: TimeRange::ALL,
        resample: None,
    };
    let answer = subject
        .store
        .query(&query, &mut |_, _, _| std::ops::ControlFlow::Continue(()));
    refused(
        "a query of series 9, which is not defined",
        answer,
        "UnknownSeries",
        is_unknown(9),
    )?;
    let mut newest: [Option<Timestamp>; 2] = [None; 2];
    let answer = subject.store.newest(&series, &mut newest);
    refused(
        "the newest of series 9, which is not defined",
        answer,
        "UnknownSeries",
        is_unknown(9),
    )?;
    Ok(CheckOutcome::Holds)
}

fn a_flood_of_series_is_stopped(context: &Context) -> CheckResult {
    let Some(bounded) = context.fixture.bounded()? else {
        return Ok(CheckOutcome::NotShown("the fixture has no bounded store"));
    };
    let store = bounded.store;
    let limit = bounded.max_series as u32;
    store.define(&definitions(0..limit))?;
    let one_more = store.define(&definitions([limit]));
    refused(
        "one series more than the bound",
        one_more,
        "TooManySeries",
        |error| matches!(error, Error::TooManySeries { limit } if *limit == bounded.max_series),
    )?;
    equal("series after the flood", &store.stats().series, &u64::from(limit))?;
    store.define(&definitions(0..limit))?;
    let values = [value_of(0, 0)];
    let mut refusals = Refusals::new();
    let ack = store.write(&Batch::tick(SeriesId(limit - 1), context.at(0), &values), &mut refusals)?;
    ensure(ack.accepted == 1, || {
        format!("the last series is not writable: {refusals:?}")
    })?;
    Ok(CheckOutcome::Holds)
}
