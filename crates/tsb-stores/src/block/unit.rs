//! The units of time on whose boundaries blocks are cut, so that maxima of whole units can be
//! told from those of their blocks.

/// In nanoseconds.
pub(crate) const HOUR: i64 = 3_600_000_000_000;
/// In nanoseconds.
const DAY: i64 = 24 * HOUR;

/// The unit for rows from `start` to `end`: an hour, or a day if the rows span more than a
/// quarter of an hour; `None` if they span more than a quarter of a day.
fn unit_of(start: i64, end: i64) -> Option<i64> {
    let span = end.checked_sub(start)?;
    [HOUR, DAY].into_iter().find(|unit| span <= unit / 4)
}

/// The last timestamp of the unit that holds everything from `start` to `end`, if one does.
pub(crate) fn unit_end(start: i64, end: i64) -> Option<i64> {
    let unit = unit_of(start, end)?;
    let last = start.checked_sub(start.rem_euclid(unit))?.checked_add(unit - 1)?;
    (end <= last).then_some(last)
}

/// The start of the unit that `end` lies in, if `start` is before it: rows from `start` to `end`
/// are sealed on both sides of it separately.
pub(crate) fn boundary(start: i64, end: i64) -> Option<i64> {
    let boundary = end.checked_sub(end.rem_euclid(unit_of(start, end)?))?;
    (boundary > start).then_some(boundary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_belongs_to_its_hour_or_to_its_day() {
        let minute = HOUR / 60;
        assert_eq!(unit_end(0, 4 * minute), Some(HOUR - 1));
        assert_eq!(unit_end(-4 * minute, -1), Some(-1));
        assert_eq!(unit_end(-1, 0), None);
        assert_eq!(unit_end(5 * HOUR, 5 * HOUR + 40 * minute), Some(DAY - 1));
        assert_eq!(unit_end(DAY - HOUR, DAY), None);
        assert_eq!(unit_end(0, 7 * HOUR), None);
        assert_eq!(unit_end(i64::MIN, i64::MAX), None);
        assert_eq!(unit_end(i64::MIN, i64::MIN), None);
        assert_eq!(boundary(-4 * minute, minute), Some(0));
        assert_eq!(boundary(0, 4 * minute), None);
        assert_eq!(boundary(DAY - HOUR, DAY + HOUR), Some(DAY));
    }
}
