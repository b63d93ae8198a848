//! Raw data of one metric, as each of Mohawk's backends selects it.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::behaviour::{Backend, Behaviour, HawkularOptions, Problem};
use super::window::Window;
use crate::series::SeriesKey;
use crate::time::Timestamp;
use crate::wire::SampleReader;

/// Maximum number of samples read for one metric of an answer.
pub(super) const MAX_READ: usize = 500_000;

/// Length of a slot of the memory backend, in milliseconds.
pub(super) const SLOT_MS: i64 = 30_000;

/// Number of its slots in 0.15.4: seven days.
pub(super) const SLOTS: i64 = 7 * 86_400_000 / SLOT_MS;

/// A time in milliseconds, and a value.
pub(super) type Item = (i64, f64);

/// The slots that the memory backend of 0.15.4 walks through, backwards from that of the end. The
/// slot of the start is not among them, unless the walk covers all; a range of more than seven
/// days is taken modulo seven days.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    end: i64,
    pub(super) slots: i64,
}

impl Walk {
    pub(super) fn new(start_ms: i64, end_ms: i64) -> Self {
        let (start, end) = (start_ms.div_euclid(SLOT_MS), end_ms.div_euclid(SLOT_MS));
        let slots = match end.saturating_sub(start).rem_euclid(SLOTS) {
            0 => SLOTS,
            slots => slots,
        };
        Self { end, slots }
    }

    fn reaches(self, at_ms: i64) -> bool {
        (self.end - at_ms.div_euclid(SLOT_MS)).rem_euclid(SLOTS) < self.slots
    }
}

/// Restricts a range as the memory backend of 0.15.4 does: to seven days before the newest second,
/// and to its first millisecond.
pub(super) fn clamped(start: i64, end: i64, newest_ms: Option<i64>) -> (i64, i64) {
    let Some(newest) = newest_ms else {
        return (start, end);
    };
    let last = newest.div_euclid(1_000) * 1_000;
    let start = start.max(last.saturating_sub(SLOTS * SLOT_MS));
    (start, if end > last { last + 1 } else { end })
}

/// The raw data of a metric.
pub(super) fn raw(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    window: &Window,
    newest_ms: Option<i64>,
    options: HawkularOptions,
) -> Result<Vec<Item>, Problem> {
    if options.is(Behaviour::Mohawk0154, Backend::Memory) {
        let walk = Walk::new(window.start, window.end);
        let (start, end) = clamped(window.start, window.end, newest_ms);
        return select(reader, key, (start, end), window, |at| walk.reaches(at));
    }
    // This one excludes its start, and includes its end.
    let shift = i64::from(options.is(Behaviour::Mohawk0154, Backend::Sqlite3));
    let range = (window.start.saturating_add(shift), window.end.saturating_add(shift));
    select(reader, key, range, window, |_| true)
}

/// The samples from `range.0` to before `range.1` that pass, in the order and up to the limit that
/// is asked for.
fn select(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    range: (i64, i64),
    window: &Window,
    passes: impl Fn(i64) -> bool,
) -> Result<Vec<Item>, Problem> {
    let limit = usize::try_from(window.limit).unwrap_or(usize::MAX);
    let mut items = VecDeque::new();
    let mut is_too_much = false;
    visit(reader, key, range, &mut |item| {
        if !passes(item.0) {
            return ControlFlow::Continue(());
        }
        if items.len() == limit {
            if !window.is_newest_first {
                return ControlFlow::Break(());
            }
            items.pop_front();
        }
        is_too_much = items.len() == MAX_READ;
        if is_too_much {
            return ControlFlow::Break(());
        }
        items.push_back(item);
        ControlFlow::Continue(())
    })?;
    if is_too_much {
        return Err(TOO_MUCH);
    }
    let mut items = Vec::from(items);
    if window.is_newest_first {
        items.reverse();
    }
    Ok(items)
}

pub(super) const TOO_MUCH: Problem =
    Problem::TooLarge("an answer has more than 500,000 samples or buckets of a metric: ask for a shorter range");

/// All samples from `range.0` to before `range.1`, the oldest first.
pub(super) fn all(reader: &mut dyn SampleReader, key: &SeriesKey, range: (i64, i64)) -> Result<Vec<Item>, Problem> {
    let window = Window {
        start: range.0,
        end: range.1,
        limit: i64::MAX,
        is_newest_first: false,
        bucket_ms: 0,
    };
    select(reader, key, range, &window, |_| true)
}

/// The last sample from a time on.
pub(super) fn last(reader: &mut dyn SampleReader, key: &SeriesKey, start: i64) -> Result<Option<Item>, Problem> {
    let window = Window {
        start,
        end: i64::MAX,
        limit: 1,
        is_newest_first: true,
        bucket_ms: 0,
    };
    let found = select(reader, key, (window.start, window.end), &window, |_| true)?;
    Ok(found.first().copied())
}

/// The newest timestamp of each metric; `None` where it has no sample.
pub(super) fn newest(reader: &mut dyn SampleReader, keys: &[SeriesKey]) -> Result<Vec<Option<Timestamp>>, Problem> {
    let newest = reader.newest(keys).map_err(Problem::Store)?;
    debug_assert_eq!(newest.len(), keys.len());
    Ok(newest)
}

fn visit(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    (start_ms, end_ms): (i64, i64),
    take: &mut dyn FnMut(Item) -> ControlFlow<()>,
) -> Result<(), Problem> {
    if start_ms >= end_ms {
        return Ok(());
    }
    let at = |millis: i64| Timestamp(millis.saturating_mul(1_000_000));
    reader
        .samples(key, at(start_ms), at(end_ms), &mut |times, values| {
            for (at, value) in times.iter().zip(values) {
                take((at.as_nanos().div_euclid(1_000_000), *value))?;
            }
            ControlFlow::Continue(())
        })
        .map_err(Problem::Store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_of_0154_leaves_out_the_slot_of_its_start() {
        let walk = Walk::new(1_000_000_000, 1_000_090_000);
        assert_eq!(walk.slots, 3);
        assert!(!walk.reaches(1_000_000_000) && walk.reaches(1_000_030_000) && walk.reaches(1_000_090_000));
        assert_eq!(
            Walk::new(60_000, 61_000).slots,
            SLOTS,
            "within one slot it walks through all"
        );
        let week = SLOTS * SLOT_MS;
        assert_eq!(
            Walk::new(0, week + 60_000).slots,
            2,
            "longer ranges are taken modulo seven days"
        );
    }

    #[test]
    fn ranges_end_at_the_newest_second() {
        assert_eq!(clamped(0, 9_000, Some(5_999)), (0, 5_001));
        assert_eq!(clamped(0, 5_000, Some(5_999)), (0, 5_000));
        let week = SLOTS * SLOT_MS;
        assert_eq!(clamped(0, week, Some(week + 7_000)).0, 7_000);
        assert_eq!(clamped(3, 4, None), (3, 4));
    }
}
