//! Clause 6: order, equal timestamps, late samples.
//!
//! The model knows what each capability means; these checks produce the situations.

use super::{Case, CheckResult, of, of_readable, value_of};
use crate::conformance::failure::{ensure, equal};
use crate::conformance::subject::reads;
use crate::conformance::{CheckOutcome, Context};
use crate::store::{Capabilities, Exactness, OnConflict};

pub(super) const CASES: &[Case] = &[
    of_readable("c6_batch_order_is_write_order", batch_order_is_write_order),
    of("c6_of_equal_timestamps_the_later_wins", later_wins, equal_timestamps),
    of(
        "c6_of_equal_timestamps_the_earlier_stays",
        earlier_stays,
        equal_timestamps,
    ),
    of("c6_of_equal_timestamps_both_stay", both_stay, equal_timestamps),
    of_readable("c6_equal_timestamps_in_old_data", equal_timestamps_in_old_data),
    of("c6_late_samples_are_taken", takes_late, late_samples),
    of("c6_late_samples_are_refused", refuses_late, late_samples),
    of("c6_very_late_samples_are_taken", takes_late, very_late_samples),
    of(
        "c6_a_slot_keeps_its_last_write",
        |c| has_slots(c) && takes_late(c),
        a_slot_keeps_its_last_write,
    ),
];

fn later_wins(c: &Capabilities) -> bool {
    reads(c) && c.duplicate == OnConflict::Accepted
}

fn earlier_stays(c: &Capabilities) -> bool {
    super::binds_keys(c) && c.duplicate == OnConflict::Rejected
}

fn both_stay(c: &Capabilities) -> bool {
    reads(c) && c.duplicate == OnConflict::KeptBoth
}

fn takes_late(c: &Capabilities) -> bool {
    reads(c) && c.late != OnConflict::Rejected
}

fn refuses_late(c: &Capabilities) -> bool {
    super::binds_keys(c) && c.late == OnConflict::Rejected
}

fn has_slots(c: &Capabilities) -> bool {
    reads(c) && matches!(c.exactness, Exactness::OnePerSlot(_))
}

fn batch_order_is_write_order(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    // Series 1 three times in one batch, in ascending time; its last value must be the newest.
    let _ = subject.samples(&[
        (1, context.at(0), 10.0),
        (0, context.at(0), 20.0),
        (1, context.at(1), 11.0),
        (2, context.at(0), 30.0),
        (1, context.at(2), 12.0),
    ])?;
    subject.check()?;
    // The same timestamp several times, in one batch with one time.
    let _ = subject.samples(&[
        (0, context.at(3), 1.0),
        (0, context.at(3), 2.0),
        (1, context.at(3), 5.0),
        (0, context.at(3), 3.0),
    ])?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn equal_timestamps(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..10 {
        let _ = subject.tick(0, context.at(tick), &[1.0, 2.0, 3.0])?;
        // The same tick again: the same series with other values, then one of them alone.
        let _ = subject.tick(0, context.at(tick), &[4.0, 5.0, 6.0])?;
        let _ = subject.tick(1, context.at(tick), &[7.0])?;
        // The same value again is still a duplicate.
        let _ = subject.tick(1, context.at(tick), &[7.0])?;
        subject.check()?;
    }
    // And twice within one batch.
    let _ = subject.samples(&[
        (0, context.at(20), 1.0),
        (0, context.at(20), 2.0),
        (2, context.at(20), 3.0),
    ])?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn equal_timestamps_in_old_data(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    // Long enough for a sealing store to have sealed.
    let ticks = context.kept_ticks(20_000);
    for tick in 0..ticks {
        let _ = subject.tick(0, context.at(tick), &[value_of(0, tick), value_of(1, tick)])?;
    }
    let mut again = Vec::new();
    for tick in (0..ticks).step_by(ticks as usize / 50 + 1) {
        again.push((1, context.at(tick), -value_of(1, tick)));
    }
    let (one_by_one, together) = again.split_at(again.len() / 2);
    for sample in one_by_one {
        let _ = subject.samples(std::slice::from_ref(sample))?;
    }
    let _ = subject.samples(together)?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn late_samples(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    for tick in [10, 20, 15, 5, 21, 14, 16, 0, 22] {
        let _ = subject.tick(0, context.at(tick), &[value_of(0, tick), value_of(1, tick)])?;
        subject.check()?;
    }
    let mixed: Vec<_> = [30, 25, 31, 24, 32]
        .map(|tick| (0, context.at(tick), value_of(0, tick)))
        .into();
    let _ = subject.samples(&mixed)?;
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn very_late_samples(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let ticks = context.kept_ticks(20_000);
    // Every other tick first, then those between, backwards, in writes of one sample.
    for tick in (0..ticks).step_by(2) {
        let _ = subject.tick(0, context.at(tick), &[value_of(0, tick), value_of(1, tick)])?;
    }
    for tick in (1..ticks)
        .step_by(ticks as usize / 100 * 2 + 2)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        let ack = subject.tick(1, context.at(tick), &[value_of(1, tick)])?;
        equal("a late sample: accepted", &ack.accepted, &1)?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn a_slot_keeps_its_last_write(context: &Context) -> CheckResult {
    let Exactness::OnePerSlot(slot_ns) = context.capabilities.exactness else {
        return Ok(CheckOutcome::NotShown("the store has no slots"));
    };
    let mut subject = context.subject(1)?;
    let start = context.at(0);
    let slot = start + -start.0.rem_euclid(slot_ns);
    let unit_ns = context.capabilities.resolution_ns.min(slot_ns);
    let step = (slot_ns / 8 / unit_ns * unit_ns).max(unit_ns);
    for (order, place) in [0, 3, 7, 2].into_iter().enumerate() {
        let _ = subject.tick(0, slot + (place * step).min(slot_ns - unit_ns), &[order as f64])?;
    }
    let _ = subject.tick(0, slot + slot_ns, &[9.0])?;
    subject.check()?;
    let stats = subject.store.stats();
    let counts = context.capabilities.counts_samples && slot_ns > unit_ns;
    ensure(!counts || stats.superseded >= 3, || {
        format!("three were overwritten, counted: {stats:?}")
    })?;
    Ok(CheckOutcome::Holds)
}
