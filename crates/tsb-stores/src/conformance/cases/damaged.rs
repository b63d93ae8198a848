//! Clause 10 for stores whose files were damaged: missing or changed samples must be reported.

use super::tick_writer::{SERIES, TickWriter, WrittenTicks};
use super::unclosed::outlives;
use super::{Case, CheckResult, of};
use crate::conformance::failure::{Failure, ensure};
use crate::conformance::subject::{definitions, reads};
use crate::conformance::{CheckOutcome, Context, Damaged};
use crate::damage::Damage;
use crate::store::{Capabilities, Scope, StoreExt, TimeRange};
use tsb_core::{Durability, SeriesId};

pub(super) const CASES: &[Case] = &[of("c10_a_loss_by_damage_is_said", keeps, loss_is_said)];

/// Number of damages per check, each at a place of its own.
const ROUNDS: u64 = 48;

fn keeps(c: &Capabilities) -> bool {
    outlives(c) && c.reaches >= Durability::Buffered
}

/// Why a store passes without having shown anything.
const NOTHING_TO_DAMAGE: CheckOutcome = CheckOutcome::NotShown("the place has no files of which damage is always seen");

fn loss_is_said(context: &Context) -> CheckResult {
    if !context.fixture.can_damage() {
        return Ok(NOTHING_TO_DAMAGE);
    }
    let mut shown = 0;
    for seed in 0..ROUNDS {
        let place = context.fixture.place()?;
        let mut writer = TickWriter::open(&*place)?;
        let ticks = 3 + seed as i64 % 29;
        for _ in 0..ticks {
            writer.write()?;
        }
        // If a journal covers the acks, mostly leave it unflushed.
        if context.capabilities.acknowledges < Durability::Buffered || seed % 3 == 0 {
            writer.store.flush(Scope::All, context.capabilities.reaches)?;
        }
        if seed % 8 == 0 {
            writer.store.close()?;
        }
        let Some(damaged) = place.after_damage(seed)? else {
            continue;
        };
        shown += 1;
        said_or_harmless(writer.drop_unclosed(), &damaged, ticks)
            .map_err(|what| format!("{}, after {ticks} ticks: {what}", damaged.what))?;
    }
    if shown == 0 {
        return Ok(NOTHING_TO_DAMAGE);
    }
    Ok(CheckOutcome::Holds)
}

fn said_or_harmless(mut written: WrittenTicks, damaged: &Damaged, ticks: i64) -> Result<(), Failure> {
    let Ok(store) = damaged.place.open() else { return Ok(()) };
    if store.define(&definitions(0..SERIES as u32)).is_err() {
        return Ok(());
    }
    let is_unreadable = |id| store.samples(SeriesId(id), TimeRange::ALL).is_err();
    if reads(&store.capabilities()) && (0..SERIES as u32).any(is_unreadable) {
        return Ok(());
    }
    let writer = TickWriter::of(store, written.clone());
    let Err(lost) = written.check(&writer, &[ticks; SERIES]) else {
        return Ok(());
    };
    let said = writer.store.stats().damage;
    ensure(said.iter().any(Damage::may_lose_samples), || {
        format!("{lost}; and what is said is {said:?}")
    })
}
