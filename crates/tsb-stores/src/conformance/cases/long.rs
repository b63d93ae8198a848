//! Checks that need many samples, such as for a store that loses one in a hundred thousand.
//!
//! They belong to [`Tier::Long`](crate::conformance::Tier): they are listed as ignored unless
//! they are requested.

use std::ops::ControlFlow;

use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::{Case, CheckResult, of_readable};
use crate::conformance::failure::{Failure, ensure, equal};
use crate::conformance::model::same_value;
use crate::conformance::subject::{definitions, open_again};
use crate::conformance::{BoxedStore, CheckOutcome, Context, Tier};
use crate::store::{Exactness, Query, Scope, StoreExt, TimeRange};

pub(super) const CASES: &[Case] = &[Case {
    tier: Tier::Long,
    ..of_readable("c7_none_of_a_million_samples_is_lost", none_is_lost)
}];

/// Series and ticks: a million samples, so that a store that loses one in 100,000 loses ten.
const SERIES: u32 = 250;
const TICKS: i64 = 4_000;

/// All values are distinct, since `TICKS` is below 4,096, and exact as 32-bit floats.
fn value_of(id: u32, tick: i64) -> f64 {
    f64::from(id) * 4_096.0 + tick as f64
}

struct TickGrid {
    start: Timestamp,
    step_ns: i64,
    ticks: i64,
}

impl TickGrid {
    /// One tick per slot if the store has slots, and no more than retention keeps.
    fn of(context: &Context) -> Self {
        let step_ns = match context.capabilities.exactness {
            Exactness::OnePerSlot(slot_ns) => slot_ns,
            _ => context.tick_ns(),
        };
        let kept = context
            .capabilities
            .retention_ns
            .map_or(i64::MAX, |keeps_ns| keeps_ns / step_ns);
        Self {
            start: context.at(0),
            step_ns,
            ticks: TICKS.min(kept - 1),
        }
    }

    fn at(&self, tick: i64) -> Timestamp {
        self.start + tick * self.step_ns
    }
}

fn none_is_lost(context: &Context) -> CheckResult {
    let grid = TickGrid::of(context);
    let place = context.fixture.place()?;
    let store = place.open()?;
    store.define(&definitions(0..SERIES))?;
    let ids: Vec<SeriesId> = (0..SERIES).map(SeriesId).collect();
    let mut accepted = 0;
    for tick in 0..grid.ticks {
        let values: Vec<f64> = (0..SERIES).map(|id| value_of(id, tick)).collect();
        let at = grid.at(tick);
        // Mostly whole ticks; sometimes the same samples in two other shapes.
        let ack = match tick % 16 {
            5 => store.write_all(&Batch::new(Ids::Each(&ids), Times::One(at), &values))?,
            11 => store.write_all(&Batch::new(Ids::Each(&ids), Times::Each(&vec![at; ids.len()]), &values))?,
            _ => store.write_all(&Batch::tick(SeriesId(0), at, &values))?,
        };
        accepted += ack.accepted as i64;
    }
    equal("accepted", &accepted, &(grid.ticks * i64::from(SERIES)))?;
    check(context, &store, &grid)?;
    if context.capabilities.persistent {
        store.flush(Scope::All, context.capabilities.reaches)?;
        drop(store);
        let store = open_again(&*place)?;
        store.define(&definitions(0..SERIES))?;
        check(context, &store, &grid).map_err(|what| format!("dropped and opened again: {what}"))?;
    }
    Ok(CheckOutcome::Holds)
}

fn check(context: &Context, store: &BoxedStore, grid: &TickGrid) -> Result<(), Failure> {
    for id in 0..SERIES {
        let query = Query {
            series: &[SeriesId(id)],
            range: TimeRange::ALL,
            resample: None,
        };
        let (mut next, mut wrong) = (0, None);
        store.query(&query, &mut |_, times, values| {
            for (&at, &value) in times.iter().zip(values) {
                let is_next =
                    at == grid.at(next) && same_value(context.capabilities.exactness, value, value_of(id, next));
                if !is_next {
                    wrong.get_or_insert((next, at, value));
                }
                next += 1;
            }
            ControlFlow::Continue(())
        })?;
        ensure(wrong.is_none() && next == grid.ticks, || {
            let first = wrong.map_or_else(String::new, |(tick, at, value)| {
                format!("; the first difference is {value} at {at} where tick {tick} was expected")
            });
            format!("series {id} has {next} of {} samples{first}", grid.ticks)
        })?;
    }
    Ok(())
}
