//! Clause 10: closing and reopening.

use std::ops::ControlFlow;

use tsb_core::{Batch, Durability, SeriesId};

use super::{Case, CheckResult, of, of_all, tick_values, value_of};
use crate::conformance::failure::{Failure, ensure, equal, is_closed, refused};
use crate::conformance::subject::{definitions, key, reads};
use crate::conformance::{CheckOutcome, Context};
use crate::store::{Capabilities, Query, Refusals, Scope, StoreExt, TimeRange};

pub(super) const CASES: &[Case] = &[
    of_all("c10_close_is_idempotent", close_is_idempotent),
    of_all("c10_everything_after_close_is_closed", everything_is_closed),
    of_all("c10_close_while_others_write", close_while_others_write),
    of("c10_reopened_with_all_that_was_synced", comes_back, reopened_with_all),
    of("c10_close_flushes", comes_back, close_flushes),
    of("c10_reopened_under_other_ids", comes_back, reopened_under_other_ids),
    of("c10_reopened_many_times", comes_back, reopened_many_times),
];

fn comes_back(c: &Capabilities) -> bool {
    reads(c) && c.persistent
}

fn close_is_idempotent(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let _ = subject.tick(0, context.at(0), &[1.0])?;
    for _ in 0..3 {
        subject.store.close()?;
    }
    let empty = context.store()?;
    empty.close()?;
    empty.close()?;
    ensure(empty.capabilities() == context.capabilities, || {
        "capabilities differ after closing".to_owned()
    })?;
    Ok(CheckOutcome::Holds)
}

fn everything_is_closed(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let ack = subject.tick(0, context.at(0), &[1.0, 2.0])?;
    let store = &subject.store;
    store.close()?;
    let write = store.write(&Batch::tick(SeriesId(0), context.at(1), &[1.0]), &mut Refusals::new());
    refused("write", write, "Closed", is_closed)?;
    let write = store.write(&Batch::tick(SeriesId(0), context.at(1), &[]), &mut Refusals::new());
    refused("write of nothing", write, "Closed", is_closed)?;
    refused("define", store.define(&definitions(0..3)), "Closed", is_closed)?;
    refused(
        "flush",
        store.flush(Scope::All, Durability::Unconfirmed),
        "Closed",
        is_closed,
    )?;
    let series = [SeriesId(0)];
    let query = Query {
        series: &series,
        range: TimeRange::ALL,
        resample: None,
    };
    refused(
        "query",
        store.query(&query, &mut |_, _, _| ControlFlow::Continue(())),
        "Closed",
        is_closed,
    )?;
    refused("newest", store.newest(&series, &mut [None]), "Closed", is_closed)?;
    let newest = store.newest_accepted(&series, &mut [None]);
    refused("newest accepted", newest, "Closed", is_closed)?;
    // These methods cannot return Closed; their answers must still be correct.
    let covered = store.durable(ack.durability);
    ensure(covered >= ack.position, || {
        format!("durable({}) is back at {covered:?}", ack.durability)
    })?;
    equal("stats: accepted", &store.stats().accepted, &2)?;
    store.close()?;
    Ok(CheckOutcome::Holds)
}

fn close_while_others_write(context: &Context) -> CheckResult {
    let subject = context.subject(4)?;
    let store = &subject.store;
    let writer = |id: u32| {
        let mut accepted = 0_u64;
        for tick in 0..1_000 {
            let values = [value_of(id, tick)];
            match store.write(
                &Batch::tick(SeriesId(id), context.at(tick), &values),
                &mut Refusals::new(),
            ) {
                Ok(ack) => accepted += ack.accepted as u64,
                Err(error) if is_closed(&error) => return Ok(accepted),
                Err(error) => return Err(Failure::from(error)),
            }
            // Otherwise an unfair lock might never let the closing thread in.
            std::thread::yield_now();
        }
        Ok(accepted)
    };
    let accepted = std::thread::scope(|scope| {
        let writers = [0, 1, 2].map(|id| scope.spawn(move || writer(id)));
        while store.stats().accepted < 30 && !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::yield_now();
        }
        let closed = store.close();
        let mut accepted = 0;
        for writer in writers {
            accepted += writer.join().map_err(|_| "a writer panicked".to_owned())??;
        }
        closed?;
        Ok::<_, Failure>(accepted)
    })?;
    equal(
        "accepted by the acks and by the statistics",
        &store.stats().accepted,
        &accepted,
    )?;
    Ok(CheckOutcome::Holds)
}

fn reopened_with_all(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..50 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 3, tick))?;
    }
    subject.store.flush(Scope::All, subject.capabilities.reaches)?;
    subject.reopen()?;
    subject.check()?;
    let _ = subject.tick(0, context.at(50), &tick_values(0, 3, 50))?;
    subject.check_newest(&[0, 1, 2].map(SeriesId))?;
    Ok(CheckOutcome::Holds)
}

fn close_flushes(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    for tick in 0..7 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 2, tick))?;
    }
    subject.reopen()?;
    for &id in &subject.defined {
        subject.check_rows(id, TimeRange::ALL)?;
    }
    subject.check_newest(&[0, 1].map(SeriesId))?;
    Ok(CheckOutcome::Holds)
}

fn reopened_under_other_ids(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..10 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 3, tick))?;
    }
    subject.store.close()?;
    let again = subject.open_again()?;
    // Another run: the same keys under other ids, a new key between them, and one key not
    // defined.
    again.define(&[(SeriesId(0), key(2)), (SeriesId(1), key(77)), (SeriesId(2), key(0))])?;
    let _ = again.write_all(&Batch::tick(SeriesId(0), context.at(10), &[1.0, 2.0, 3.0]))?;
    for (id, was, value) in [(0, Some(2), 1.0), (1, None, 2.0), (2, Some(0), 3.0)] {
        let mut expected = was.map_or(Vec::new(), |was| subject.model.rows(SeriesId(was), TimeRange::ALL));
        expected.push((context.at(10), value));
        if matches!(context.capabilities.exactness, crate::store::Exactness::Exact) {
            let got = again.samples(SeriesId(id), TimeRange::ALL)?;
            equal(&format!("samples of the key now bound to id {id}"), &got, &expected)?;
        }
    }
    again.close()?;
    Ok(CheckOutcome::Holds)
}

fn reopened_many_times(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    for round in 0..10 {
        let _ = subject.tick(0, context.at(round), &tick_values(0, 2, round))?;
        if round == 5 {
            subject.define([2])?;
        }
        subject.reopen()?;
        for &id in &subject.defined {
            subject.check_rows(id, TimeRange::ALL)?;
        }
    }
    Ok(CheckOutcome::Holds)
}
