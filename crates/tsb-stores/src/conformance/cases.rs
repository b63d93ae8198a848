//! The list of checks, one file per topic, and the conditions under which each applies.

use super::subject::reads;
use super::{Case, CheckOutcome, Context, Failure, Tier};
use crate::store::{Capabilities, Exactness};

mod concurrent;
pub(super) mod consolidated;
mod damaged;
mod define;
mod durable;
mod lifecycle;
mod long;
mod newest;
mod order;
mod query;
mod random;
mod resample;
pub(super) mod slots;
pub(super) mod tick_writer;
mod unclosed;
mod write;

/// All checks, in the order in which they run.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    let files: [&'static [Case]; 15] = [
        concurrent::CASES,
        define::CASES,
        write::CASES,
        durable::CASES,
        order::CASES,
        // Before the long histories: it finds most flaws, and faster.
        random::CASES,
        query::CASES,
        resample::CASES,
        consolidated::CASES,
        slots::CASES,
        lifecycle::CASES,
        unclosed::CASES,
        damaged::CASES,
        newest::CASES,
        long::CASES,
    ];
    files.into_iter().flatten()
}

type CheckResult = Result<CheckOutcome, Failure>;

/// A check for every store.
const fn of_all(name: &'static str, run: fn(&Context) -> CheckResult) -> Case {
    Case {
        name,
        applies: |_| true,
        run,
        tier: Tier::Usual,
    }
}

/// A check for stores whose raw samples can be read.
const fn of_readable(name: &'static str, run: fn(&Context) -> CheckResult) -> Case {
    Case {
        name,
        applies: reads,
        run,
        tier: Tier::Usual,
    }
}

/// A check for stores for which `applies` returns true.
const fn of(name: &'static str, applies: fn(&Capabilities) -> bool, run: fn(&Context) -> CheckResult) -> Case {
    Case {
        name,
        applies,
        run,
        tier: Tier::Usual,
    }
}

/// Whether the store knows its series individually; a calibrating store only counts them.
fn binds_keys(capabilities: &Capabilities) -> bool {
    capabilities.exactness != Exactness::Nothing
}

/// A value that every exactness class preserves; it identifies series and tick.
fn value_of(id: u32, tick: i64) -> f64 {
    f64::from(id) * 1_000.0 + tick as f64
}

/// The values of one tick of the series from `first`.
fn tick_values(first: u32, series: u32, tick: i64) -> Vec<f64> {
    (first..first + series).map(|id| value_of(id, tick)).collect()
}
