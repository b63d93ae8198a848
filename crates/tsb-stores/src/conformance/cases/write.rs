//! Clause 4, the counts of an ack; clause 9, the state after a failure.

use tsb_core::{Batch, Ids, SeriesId, Times};

use super::{Case, CheckResult, of, of_all, tick_values};
use crate::conformance::failure::{ensure, equal, refused};
use crate::conformance::subject::{definitions, is_full};
use crate::conformance::{CheckOutcome, Context, Faulty};
use crate::error::Error;
use crate::store::{OnConflict, Reason, Refusals, Scope, StoreExt, TimeRange};

pub(super) const CASES: &[Case] = &[
    of_all("c4_every_shape_of_batch_is_taken", every_shape_is_taken),
    of_all("c4_refusals_are_appended", refusals_are_appended),
    of(
        "c4_special_values_are_refused_by_name",
        |c| !c.special_values,
        special_values_are_refused,
    ),
    of_all("c4_a_full_store_refuses_by_name", a_full_store_refuses_by_name),
    of_all(
        "c9_a_failed_write_leaves_a_sound_store",
        a_failed_write_leaves_a_sound_store,
    ),
    of_all("c9_a_failed_flush_poisons", a_failed_flush_poisons),
];

fn every_shape_is_taken(context: &Context) -> CheckResult {
    let mut subject = context.subject(6)?;
    let ids = [4, 1, 3, 0].map(SeriesId);
    let in_order = [0, 1, 2, 3].map(SeriesId);
    let values = [0.5, 1.5, -2.5, 4.0];
    let mut total = 0;
    for round in 0..3 {
        let at = |tick: i64| context.at(round * 20 + tick);
        let each = [at(3), at(4)];
        let equal_times = [at(6); 4];
        // Timestamps increase from shape to shape: late and equal samples have checks of their
        // own.
        let batches = [
            Batch::tick(SeriesId(0), at(0), &values),
            Batch::tick(SeriesId(2), at(1), &values),
            Batch::tick(SeriesId(5), at(2), &values[..1]),
            Batch::new(Ids::Range(SeriesId(4)), Times::Each(&each), &values[..2]),
            Batch::new(Ids::Each(&ids[..3]), Times::One(at(5)), &values[..3]),
            Batch::new(Ids::Each(&in_order), Times::Each(&equal_times), &values),
            Batch::tick(SeriesId(0), at(7), &[]),
            Batch::new(Ids::Each(&[]), Times::Each(&[]), &[]),
        ];
        for (shape, batch) in batches.iter().enumerate() {
            let ack = subject.write(batch)?;
            let what = format!("round {round}, shape {shape}: accepted");
            equal(&what, &ack.accepted, &batch.len())?;
            total += batch.len() as u64;
        }
    }
    equal("stats: accepted", &subject.store.stats().accepted, &total)?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn refusals_are_appended(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let _ = subject.tick(0, context.at(5), &[1.0, 1.0])?;
    let mut refusals = Refusals::new();
    refusals.push(77, Reason::Injected);
    let kept = refusals.as_slice().to_vec();
    // The middle sample is refused, if the store can refuse any.
    let (middle_at, middle) = if !subject.capabilities.special_values {
        (context.at(6), f64::NAN)
    } else if subject.capabilities.duplicate == OnConflict::Rejected {
        (context.at(5), 3.0)
    } else if subject.capabilities.late == OnConflict::Rejected {
        (context.at(4), 3.0)
    } else {
        (context.at(6), 3.0)
    };
    let times = [context.at(6), middle_at, context.at(7)];
    let values = [2.0, middle, 4.0];
    let ids = [0, 1, 0].map(SeriesId);
    let batch = Batch::new(Ids::Each(&ids), Times::Each(&times), &values);
    let ack = subject.store.write(&batch, &mut refusals)?;
    let is_refused = middle_at != context.at(6) || middle.is_nan();
    equal("rejected", &ack.rejected, &usize::from(is_refused))?;
    equal(
        "what the list held before",
        &refusals.as_slice().get(..1),
        &Some(&kept[..]),
    )?;
    let added: Vec<_> = refusals
        .as_slice()
        .iter()
        .skip(1)
        .map(|refusal| refusal.index)
        .collect();
    equal("the refused indices", &added, &vec![1; usize::from(is_refused)])?;
    Ok(CheckOutcome::Holds)
}

fn special_values_are_refused(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    for (tick, value) in [f64::NAN, 1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY]
        .into_iter()
        .enumerate()
    {
        let ack = subject.tick(0, context.at(tick as i64), &[value])?;
        equal(
            &format!("{value}: accepted"),
            &ack.accepted,
            &usize::from(value.is_finite()),
        )?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn a_full_store_refuses_by_name(context: &Context) -> CheckResult {
    let bounded = match context.fixture.bounded()? {
        Some(bounded) if bounded.fills_up => bounded,
        _ => return Ok(CheckOutcome::NotShown("the fixture has no store that fills up")),
    };
    let store = bounded.store;
    let series = bounded.max_series as u32;
    store.define(&definitions(0..series))?;
    let mut accepted = 0_u64;
    let mut refusals = Refusals::new();
    for tick in 0..10_000_000 / i64::from(series) {
        // Values that do not compress: a compressing store would take too long to fill.
        let noise = |id: u32| {
            f64::from_bits(
                0x3ff0_0000_0000_0000 | super::super::rng::Rng::new(u64::from(id) << 32 | tick as u64).next() >> 12,
            )
        };
        let values: Vec<_> = (0..series).map(noise).collect();
        let ack = store.write(&Batch::tick(SeriesId(0), context.at(tick), &values), &mut refusals)?;
        equal(
            "accepted + rejected",
            &(ack.accepted + ack.rejected),
            &(series as usize),
        )?;
        accepted += ack.accepted as u64;
        if ack.rejected > 0 {
            break;
        }
    }
    ensure(!refusals.is_empty(), || {
        "ten million samples and the store is not full".to_owned()
    })?;
    let other = refusals.as_slice().iter().find(|refusal| !is_full(refusal.reason));
    ensure(other.is_none(), || format!("a full store refused as {other:?}"))?;
    let stats = store.stats();
    equal("stats: accepted", &stats.accepted, &accepted)?;
    equal(
        "samples + superseded + expired",
        &(stats.samples + stats.superseded + stats.expired),
        &accepted,
    )?;
    let ids = (0..series).map(SeriesId);
    let mut visible = 0;
    for id in ids {
        visible += store.samples(id, TimeRange::ALL)?.len() as u64;
    }
    equal("samples that a query returns", &visible, &stats.samples)?;
    Ok(CheckOutcome::Holds)
}

fn a_failed_write_leaves_a_sound_store(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..3 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 3, tick))?;
        let result = subject.store.write(
            &Batch::tick(SeriesId(3), context.at(tick), &[0.0]),
            &mut Refusals::new(),
        );
        let Err(error) = result else {
            return Err("a write to an undefined series succeeded".to_owned().into());
        };
        ensure(!error.is_retryable(), || {
            format!("\"{error}\" is said to be worth a retry, and is not")
        })?;
        subject.store.flush(Scope::All, subject.capabilities.reaches)?;
        subject.check()?;
    }
    Ok(CheckOutcome::Holds)
}

fn a_failed_flush_poisons(context: &Context) -> CheckResult {
    let Some(Faulty { store, fail }) = context.fixture.faulty()? else {
        return Ok(CheckOutcome::NotShown("the fixture has no medium that can fail"));
    };
    store.define(&definitions(0..2))?;
    let highest = store.capabilities().reaches;
    let first = store.write_all(&Batch::tick(SeriesId(0), context.at(0), &[1.0, 2.0]))?;
    store.flush(Scope::All, highest)?;
    let second = store.write_all(&Batch::tick(SeriesId(0), context.at(1), &[1.0, 2.0]))?;
    fail(true);
    refused(
        "a flush to a failing medium",
        store.flush(Scope::All, highest),
        "an error",
        |_| true,
    )?;
    fail(false);
    let covered = store.durable(highest);
    ensure(covered >= first.position && covered < second.position, || {
        format!("after the failed flush durable() is {covered:?}, should cover {first:?} and not {second:?}")
    })?;
    let is_poisoned = |error: &Error| matches!(error, Error::Poisoned { .. });
    let again = store.flush(Scope::All, highest);
    refused("a second flush, the medium healed", again, "Poisoned", is_poisoned)?;
    let write = store.write(&Batch::tick(SeriesId(0), context.at(2), &[1.0]), &mut Refusals::new());
    refused("a write after the failed flush", write, "Poisoned", is_poisoned)?;
    // Closing works, or reports why it could not flush; in both cases the store is closed.
    let _ = store.close();
    let after = store.write(&Batch::tick(SeriesId(0), context.at(3), &[1.0]), &mut Refusals::new());
    refused("a write after closing", after, "Closed", |error| {
        matches!(error, Error::Closed)
    })?;
    Ok(CheckOutcome::Holds)
}
