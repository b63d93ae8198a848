//! Clauses 1 and 2: concurrent calls from any thread, which may block; and clause 8 during
//! writes.

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tsb_core::{Batch, Ids, SeriesId, Times};

use super::{Case, CheckResult, of, of_all, of_readable, tick_values, value_of};
use crate::conformance::failure::{Failure, ensure, equal};
use crate::conformance::model::same_value;
use crate::conformance::subject::{definitions, reads};
use crate::conformance::{CheckOutcome, Context};
use crate::store::{OnConflict, Query, Refusals, Scope, Store, StoreExt, TimeRange};

pub(super) const CASES: &[Case] = &[
    of_all("c1_many_writers_and_readers", many_writers_and_readers),
    of_all("c1_series_are_defined_while_others_write", defined_while_others_write),
    of(
        "c1_two_writers_share_a_series",
        |c| reads(c) && c.late != OnConflict::Rejected,
        two_writers_share_a_series,
    ),
    of_all("c2_a_plain_thread_is_enough", a_plain_thread_is_enough),
    of_readable(
        "c2_a_slow_visitor_holds_up_no_writer",
        a_slow_visitor_holds_up_no_writer,
    ),
    of_all("c8_flush_covers_what_others_wrote", flush_covers_what_others_wrote),
];

const WRITERS: u32 = 4;
/// Series per writer.
const SERIES: u32 = 8;

/// How long a check waits for another thread before it reports a deadlock. The suite's own tests
/// provoke one.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 20 });

fn join<T>(handle: std::thread::ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    handle
        .join()
        .map_err(|_| Failure::from("a thread panicked inside the store".to_owned()))?
}

/// Writes `ticks` ticks to the series of writer `writer`, alternating between all shapes of
/// batches.
fn write_range(store: &dyn Store, context: &Context, writer: u32, ticks: i64) -> Result<u64, Failure> {
    let first = writer * SERIES;
    let ids: Vec<_> = (first..first + SERIES).map(SeriesId).collect();
    let mut accepted = 0;
    for tick in 0..ticks {
        let values = tick_values(first, SERIES, tick);
        let at = context.at(tick);
        let times = [at; SERIES as usize];
        let ack = match tick % 3 {
            0 => store.write_all(&Batch::tick(SeriesId(first), at, &values))?,
            1 => store.write_all(&Batch::new(Ids::Each(&ids), Times::One(at), &values))?,
            _ => store.write_all(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values))?,
        };
        accepted += ack.accepted as u64;
    }
    Ok(accepted)
}

/// Reads series repeatedly until `done`: every answer must be correct, and never less than
/// before.
fn read_until(store: &dyn Store, context: &Context, done: &AtomicBool) -> Result<u64, Failure> {
    let mut seen = vec![None; (WRITERS * SERIES) as usize];
    let mut reads = 0;
    let mut is_last_round = false;
    while !is_last_round {
        is_last_round = done.load(Ordering::Acquire);
        for id in 0..WRITERS * SERIES {
            let rows = store.samples(SeriesId(id), TimeRange::ALL)?;
            ensure(rows.is_sorted_by(|a, b| a.0 < b.0), || format!("#{id} does not ascend"))?;
            for &(at, value) in &rows {
                let tick = (at - context.at(0)) / context.tick_ns();
                let is_right = same_value(context.capabilities.exactness, value, value_of(id, tick));
                ensure(is_right, || {
                    format!("#{id} at {at} is {value}, which was never written")
                })?;
            }
            let mut newest = [None];
            store.newest(&[SeriesId(id)], &mut newest)?;
            let last = rows.last().map(|(at, _)| *at);
            if context.capabilities.visibility_delay_ms == 0 {
                let before = &mut seen[id as usize];
                ensure(last >= *before, || {
                    format!("#{id} was seen up to {before:?}, then up to {last:?}")
                })?;
                ensure(newest[0] >= last, || {
                    format!("newest of #{id} is {newest:?}, a query saw {last:?}")
                })?;
                *before = last;
            }
            reads += 1;
        }
        let _ = store.stats();
    }
    Ok(reads)
}

fn many_writers_and_readers(context: &Context) -> CheckResult {
    let subject = context.subject(WRITERS * SERIES)?;
    let store: &dyn Store = &*subject.store;
    let ticks = context.kept_ticks(200);
    let can_read = reads(&context.capabilities);
    let done = AtomicBool::new(false);
    let accepted = std::thread::scope(|scope| {
        let done = &done;
        let readers: Vec<_> = (0..usize::from(can_read) * 2)
            .map(|_| scope.spawn(move || read_until(store, context, done)))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write_range(store, context, writer, ticks)))
            .collect();
        let accepted = writers.into_iter().map(join).collect::<Vec<_>>();
        done.store(true, Ordering::Release);
        for reader in readers {
            ensure(join(reader)? > 0, || "a reader saw nothing".to_owned())?;
        }
        accepted.into_iter().sum::<Result<u64, _>>()
    })?;
    let written = u64::from(WRITERS * SERIES) * ticks as u64;
    equal("accepted by all writers", &accepted, &written)?;
    equal("stats: accepted", &store.stats().accepted, &written)?;
    // Write the same to the model, sequentially: the result must be the same.
    let mut subject = subject;
    for writer in 0..WRITERS {
        for tick in 0..ticks {
            for id in writer * SERIES..(writer + 1) * SERIES {
                subject.model.apply(SeriesId(id), context.at(tick), value_of(id, tick));
            }
        }
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn defined_while_others_write(context: &Context) -> CheckResult {
    let mut subject = context.subject(SERIES)?;
    let ticks = context.kept_ticks(200);
    let more = 300;
    {
        let store: &dyn Store = &*subject.store;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || write_range(store, context, 0, ticks));
            for id in SERIES..SERIES + more {
                store.define(&definitions([id]))?;
                let _ = store.write_all(&Batch::tick(SeriesId(id), context.at(0), &[value_of(id, 0)]))?;
            }
            join(writer)
        })?;
    }
    for tick in 0..ticks {
        for id in 0..SERIES {
            subject.model.apply(SeriesId(id), context.at(tick), value_of(id, tick));
        }
    }
    subject.defined.extend((SERIES..SERIES + more).map(SeriesId));
    for id in SERIES..SERIES + more {
        subject.model.apply(SeriesId(id), context.at(0), value_of(id, 0));
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn two_writers_share_a_series(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let step = context.slot_tick_ns();
    let keeps = context
        .capabilities
        .retention_ns
        .map_or(400, |keeps_ns| keeps_ns / step - 1);
    let at = |tick: i64| context.at(0) + tick * step;
    let ticks = 400.min(keeps);
    {
        let store = &subject.store;
        std::thread::scope(|scope| {
            let writer = |parity: i64| {
                for tick in (parity..ticks).step_by(2) {
                    let _ = store.write_all(&Batch::tick(SeriesId(0), at(tick), &[value_of(0, tick)]))?;
                }
                Ok::<_, Failure>(())
            };
            let other = scope.spawn(move || writer(1));
            writer(0)?;
            join(other)
        })?;
    }
    for tick in 0..ticks {
        subject.model.apply(SeriesId(0), at(tick), value_of(0, tick));
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn a_plain_thread_is_enough(context: &Context) -> CheckResult {
    // Opened in one thread, used in a second one without a runtime, closed in a third.
    let store = context.store()?;
    let capabilities = context.capabilities;
    let at = context.at(0);
    let used = std::thread::spawn(move || {
        store.define(&definitions(0..2))?;
        let ack = store.write_all(&Batch::tick(SeriesId(0), at, &[1.0, 2.0]))?;
        store.flush(Scope::All, capabilities.reaches)?;
        if capabilities.query {
            store.newest(&[SeriesId(1)], &mut [None])?;
            store.samples(SeriesId(0), TimeRange::ALL)?;
        }
        equal("accepted", &ack.accepted, &2)?;
        Ok::<_, Failure>(store)
    });
    let store = used
        .join()
        .map_err(|_| "the store panicked in a plain thread".to_owned())??;
    let closed = std::thread::spawn(move || store.close()).join();
    closed.map_err(|_| "close panicked in a plain thread".to_owned())??;
    Ok(CheckOutcome::Holds)
}

fn a_slow_visitor_holds_up_no_writer(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    for tick in 0..100 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 2, tick))?;
    }
    subject.check()?;
    let store = &subject.store;
    let (go, wait_for_go) = mpsc::sync_channel(1);
    let (done, wait_for_done) = mpsc::sync_channel(1);
    let was_held_up = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            if wait_for_go.recv().is_ok() {
                // The series that is being read, and `define`, which often takes the widest lock.
                let _ = store.write_all(&Batch::tick(SeriesId(0), context.at(100), &tick_values(0, 2, 100)))?;
                store.define(&definitions(0..3))?;
                let _ = done.send(());
            }
            Ok::<_, Failure>(())
        });
        let mut was_held_up = None;
        let series = [SeriesId(0), SeriesId(1)];
        let query = Query {
            series: &series,
            range: TimeRange::ALL,
            resample: None,
        };
        store.query(&query, &mut |_, _, _| {
            if was_held_up.is_none() {
                let _ = go.send(());
                was_held_up = Some(wait_for_done.recv_timeout(PATIENCE).is_err());
            }
            ControlFlow::Continue(())
        })?;
        drop(go);
        join(writer)?;
        Ok::<_, Failure>(was_held_up)
    })?;
    equal("a write waits for the visitor of a query", &was_held_up, &Some(false))?;
    Ok(CheckOutcome::Holds)
}

fn flush_covers_what_others_wrote(context: &Context) -> CheckResult {
    let subject = context.subject(WRITERS * SERIES)?;
    let store: &dyn Store = &*subject.store;
    let level = context.capabilities.reaches;
    let rounds = 30;
    let (written, flushed) = (Barrier::new(WRITERS as usize + 1), Barrier::new(WRITERS as usize + 1));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (written, flushed) = (&written, &flushed);
                scope.spawn(move || {
                    let mut result = Ok(());
                    for tick in 0..rounds {
                        // Reach the barriers in any case, or all threads would hang.
                        let values = tick_values(writer * SERIES, SERIES, tick);
                        let batch = Batch::tick(SeriesId(writer * SERIES), context.at(tick), &values);
                        let ack = store.write(&batch, &mut Refusals::new());
                        written.wait();
                        flushed.wait();
                        let check = |ack: crate::store::Ack| {
                            let covered = store.durable(level);
                            ensure(covered >= ack.position, || {
                                format!(
                                    "flushed to {level}: {covered:?}, but writer {writer} was at {:?}",
                                    ack.position
                                )
                            })
                        };
                        result = result.and(ack.map_err(Failure::from).and_then(check));
                    }
                    result
                })
            })
            .collect();
        let mut result = Ok(());
        for _ in 0..rounds {
            written.wait();
            let flush = store.flush(Scope::All, level).map_err(Failure::from);
            result = result.and(flush);
            flushed.wait();
        }
        writers.into_iter().map(join).fold(result, Result::and)
    })?;
    Ok(CheckOutcome::Holds)
}
