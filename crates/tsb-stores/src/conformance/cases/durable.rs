//! Clauses 5 and 8: the guarantees of an ack and of a flush.

use tsb_core::{Durability, SeriesId};

use super::{Case, CheckResult, of, of_all, tick_values};
use crate::conformance::failure::{ensure, equal, is_unsupported, refused};
use crate::conformance::{CheckOutcome, Context};
use crate::store::{Position, Scope};

pub(super) const CASES: &[Case] = &[
    of_all("c5_an_ack_is_a_floor", an_ack_is_a_floor),
    of_all("c5_durable_only_grows", durable_only_grows),
    of_all("c5_a_higher_level_covers_no_more", a_higher_level_covers_no_more),
    of(
        "c5_nothing_has_a_level_beyond_reach",
        |c| c.reaches < Durability::Synced,
        nothing_beyond_reach,
    ),
    of_all("c8_flush_is_a_barrier", flush_is_a_barrier),
    of_all("c8_flush_of_some_series", flush_of_some_series),
    of(
        "c8_flush_beyond_reach_is_unsupported",
        |c| c.reaches < Durability::Synced,
        flush_beyond_reach,
    ),
];

fn an_ack_is_a_floor(context: &Context) -> CheckResult {
    let mut subject = context.subject(4)?;
    let before = subject.store.durable(Durability::Unconfirmed);
    let mut last = before;
    for tick in 0..20 {
        // The subject compares the ack's level and position with `durable`.
        let ack = subject.tick(0, context.at(tick), &tick_values(0, 4, tick))?;
        equal("accepted", &ack.accepted, &4)?;
        let reaches = subject.capabilities.reaches;
        ensure(ack.durability <= reaches, || {
            format!(
                "the ack says {}, the store claims to reach {reaches} at most",
                ack.durability
            )
        })?;
        ensure(ack.position > last, || {
            format!("position {:?} after {last:?}", ack.position)
        })?;
        last = ack.position;
        // A level above the ack's may cover it only if the store claims to reach that level.
        for level in Durability::ALL.into_iter().filter(|&level| level > reaches) {
            let covered = subject.store.durable(level);
            ensure(covered < ack.position, || {
                format!("durable({level}) covers {covered:?} without a claim to")
            })?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn durable_only_grows(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    let mut last = [Position(0); 4];
    let mut look = |subject: &crate::conformance::subject::Subject, when: String| {
        for (level, last) in Durability::ALL.into_iter().zip(&mut last) {
            let now = subject.store.durable(level);
            ensure(now >= *last, || {
                format!("durable({level}) went from {last:?} back to {now:?} {when}")
            })?;
            *last = now;
        }
        Ok::<_, crate::conformance::Failure>(())
    };
    for tick in 0..30 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 2, tick))?;
        look(&subject, format!("after write {tick}"))?;
        if tick % 7 == 3 {
            subject.store.flush(Scope::All, subject.capabilities.reaches)?;
            look(&subject, format!("after the flush that followed write {tick}"))?;
        }
        let _ = subject.tick(0, context.at(tick), &[])?;
        look(&subject, format!("after the empty write {tick}"))?;
    }
    Ok(CheckOutcome::Holds)
}

fn a_higher_level_covers_no_more(context: &Context) -> CheckResult {
    let mut subject = context.subject(2)?;
    for tick in 0..20 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 2, tick))?;
        if tick % 5 == 4 {
            subject.store.flush(Scope::All, subject.capabilities.reaches)?;
        }
        for pair in Durability::ALL.windows(2) {
            // Ask for the higher level first: between the calls, only more samples can become
            // durable.
            let (higher, lower) = (subject.store.durable(pair[1]), subject.store.durable(pair[0]));
            ensure(higher <= lower, || {
                format!(
                    "durable({}) is {higher:?}, beyond durable({}) at {lower:?}",
                    pair[1], pair[0]
                )
            })?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn nothing_beyond_reach(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let first = subject.tick(0, context.at(0), &[1.0])?;
    subject.store.flush(Scope::All, subject.capabilities.reaches)?;
    for level in Durability::ALL
        .into_iter()
        .filter(|&level| level > subject.capabilities.reaches)
    {
        let covered = subject.store.durable(level);
        ensure(covered < first.position, || {
            format!("durable({level}) covers {covered:?}, which is not claimed")
        })?;
    }
    Ok(CheckOutcome::Holds)
}

fn flush_is_a_barrier(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    let reachable = Durability::ALL
        .into_iter()
        .filter(|&level| level <= context.capabilities.reaches);
    for (round, level) in reachable.cycle().take(16).enumerate() {
        let tick = round as i64 * 2;
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 3, tick))?;
        let ack = subject.tick(1, context.at(tick + 1), &tick_values(1, 2, tick + 1))?;
        subject.store.flush(Scope::All, level)?;
        let covered = subject.store.durable(level);
        ensure(covered >= ack.position, || {
            format!(
                "after flush({level}) it covers {covered:?}, written was up to {:?}",
                ack.position
            )
        })?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}

fn flush_of_some_series(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..6 {
        let _ = subject.tick(0, context.at(tick), &tick_values(0, 3, tick))?;
        let some = [SeriesId(tick as u32 % 3)];
        subject
            .store
            .flush(Scope::Series(&some), subject.capabilities.reaches)?;
        subject.store.flush(Scope::Series(&[]), subject.capabilities.reaches)?;
        subject.check()?;
    }
    Ok(CheckOutcome::Holds)
}

fn flush_beyond_reach(context: &Context) -> CheckResult {
    let mut subject = context.subject(1)?;
    let _ = subject.tick(0, context.at(0), &[1.0])?;
    for level in Durability::ALL
        .into_iter()
        .filter(|&level| level > subject.capabilities.reaches)
    {
        let result = subject.store.flush(Scope::All, level);
        refused(&format!("flush({level})"), result, "Unsupported", is_unsupported)?;
        let result = subject.store.flush(Scope::Series(&[SeriesId(0)]), level);
        refused(
            &format!("flush({level}) of a series"),
            result,
            "Unsupported",
            is_unsupported,
        )?;
    }
    subject.check()?;
    Ok(CheckOutcome::Holds)
}
