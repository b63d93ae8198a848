//! What was confirmed is read back, and compared sample by sample.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tsb_core::report::experiment::mohawk::LoadRun;

use super::Context;
use crate::mohawk::connection::{ClientConnection, Outcome};
use crate::mohawk::requests::Keeping;
use crate::mohawk::windows::SPACING_MS;

/// Samples of one read: answers have a bound.
const PER_READ: u64 = 5_000;

/// Reads a range in pieces that answers have room for; ends are counted as they may be, so the
/// caller filters by time. Each piece has less than [`PER_READ`] samples, `every_ms` apart.
pub(in crate::mohawk) fn range_of(
    connection: &mut ClientConnection,
    gauge: &str,
    (start, end): (i64, i64),
    every_ms: i64,
) -> Outcome<BTreeMap<i64, f64>> {
    let mut found = BTreeMap::new();
    let step = every_ms * PER_READ.cast_signed();
    let mut from = start;
    while from < end {
        let to = (from + step).min(end);
        // Beyond both ends, since a rule may leave one out.
        let read = connection.get(gauge, (from - 1, to + 1), Some(2 * PER_READ))?;
        found.extend(read.rows.iter().map(|row| (row.timestamp, row.value)));
        from = to;
    }
    Ok(found)
}

/// Reads everything back.
pub(super) fn read_back(context: &Context<'_>, confirmed: &[(u32, u64)], run: &mut LoadRun) -> Outcome<()> {
    let mut by_gauge: HashMap<u32, BTreeSet<u64>> = HashMap::new();
    for (gauge, number) in confirmed {
        by_gauge.entry(*gauge).or_default().insert(*number);
    }
    let mut connection = context.endpoint.client(Keeping::Kept);
    for (gauge, numbers) in by_gauge {
        let last = numbers.last().copied().unwrap_or_default();
        // A slot before the first, which one of Mohawk's rules leaves out.
        let range = (context.time(0) - SPACING_MS, context.time(last) + 1);
        let found = range_of(&mut connection, &context.gauges.name(gauge), range, SPACING_MS)?;
        for number in numbers {
            match found.get(&context.time(number)) {
                None => run.lost += 1,
                Some(value) if context.gauges.is_value(gauge, number, *value) => run.verified += 1,
                Some(_) => run.altered += 1,
            }
        }
    }
    for (what, count) in [("not there", run.lost), ("another value", run.altered)] {
        if count > 0 {
            run.wrong.push(format!("{count} confirmed samples, read back: {what}"));
        }
    }
    Ok(())
}
