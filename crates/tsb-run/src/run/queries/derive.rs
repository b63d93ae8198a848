//! What a client makes of the rows of an answer, within the time of its query: values outside a
//! band, statistics, and the difference of two series.
//!
//! The contract of a store has no filter and no arithmetic between series, so a program that uses it
//! does this itself. The check ([`is_right`]) computes the same in another way.

use tsb_core::Timestamp;

use crate::audit::Columns;
use crate::plan::QueryShape;

/// The statistics of a range, in this order: the number of values, their minimum, their maximum,
/// their mean, and their standard deviation (of the whole range, not of a sample). Values that are
/// not a number are left out, as they are in a consolidation; without any, all but the first are
/// not a number.
const STATISTICS: usize = 5;

/// Largest relative difference of two ways to compute a mean or a deviation.
const TOLERANCE: f64 = 1e-6;

/// Derives from `rows`, by series, what the shape asks for; nothing for a shape whose rows are the
/// answer.
pub(super) fn derive(shape: QueryShape, rows: &[Columns], into: &mut Vec<Columns>) {
    let series = match shape {
        QueryShape::Outside { .. } | QueryShape::Statistics { .. } => rows.len(),
        QueryShape::Difference { .. } => 1,
        QueryShape::Last { .. } | QueryShape::Raw { .. } | QueryShape::Steps { .. } => 0,
    };
    into.iter_mut().for_each(Columns::clear);
    into.resize_with(series, Columns::default);
    match (shape, rows) {
        (QueryShape::Outside { below, above, .. }, rows) => {
            for (rows, into) in rows.iter().zip(into) {
                let samples = rows.times.iter().zip(&rows.values);
                let outside = samples.filter(|(_, value)| **value < below || **value > above);
                outside.for_each(|(at, value)| into.push(*at, *value));
            }
        }
        (QueryShape::Statistics { .. }, rows) => {
            for (rows, into) in rows.iter().zip(into) {
                let at = rows.times.first().copied().unwrap_or(Timestamp(0));
                for value in statistics(&rows.values) {
                    into.push(at, value);
                }
            }
        }
        (QueryShape::Difference { .. }, [one, other]) => {
            if let Some(into) = into.first_mut() {
                subtract(one, other, into);
            }
        }
        _ => {}
    }
}

/// In one pass (Welford's method), as a client computes it.
fn statistics(values: &[f64]) -> [f64; STATISTICS] {
    let (mut count, mut min, mut max) = (0.0, f64::NAN, f64::NAN);
    let (mut mean, mut squares) = (0.0, 0.0);
    for value in values.iter().copied().filter(|value| !value.is_nan()) {
        count += 1.0;
        min = value.min(min);
        max = value.max(max);
        let before = value - mean;
        mean += before / count;
        squares += before * (value - mean);
    }
    if count == 0.0 {
        return [0.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN];
    }
    [count, min, max, mean, (squares / count).sqrt()]
}

/// For each time that both have, the value of `one` less that of `other`. Both are in time order.
fn subtract(one: &Columns, other: &Columns, into: &mut Columns) {
    let mut place = 0;
    for (&at, value) in one.times.iter().zip(&one.values) {
        while other.times.get(place).is_some_and(|time| *time < at) {
            place += 1;
        }
        if other.times.get(place) == Some(&at) {
            into.push(at, value - other.values[place]);
        }
    }
}

/// Whether what was derived follows from the rows, which have been checked by themselves.
///
/// # Errors
/// What was expected, and what came.
pub(super) fn is_right(shape: QueryShape, rows: &[Columns], derived: &[Columns]) -> Result<(), (String, String)> {
    match (shape, rows, derived) {
        (QueryShape::Outside { below, above, .. }, rows, derived) => {
            let is_inside = |value: f64| value.is_nan() || (below..=above).contains(&value);
            let mut pairs = rows.iter().zip(derived);
            pairs.try_for_each(|(rows, found)| left_over(rows, found, is_inside))
        }
        (QueryShape::Statistics { .. }, rows, derived) => {
            let mut pairs = rows.iter().zip(derived);
            pairs.try_for_each(|(rows, found)| are_statistics(&rows.values, &found.values))
        }
        (QueryShape::Difference { .. }, [one, other], [found]) => {
            let at = |rows: &Columns, at| Some(rows.values[rows.times.binary_search(&at).ok()?]);
            let common = one.times.iter().filter(|time| other.times.binary_search(time).is_ok());
            if common.count() != found.len() {
                return Err((
                    "a difference for each common step".to_owned(),
                    format!("{} differences", found.len()),
                ));
            }
            for (&time, &value) in found.times.iter().zip(&found.values) {
                let expected = at(one, time).zip(at(other, time)).map(|(one, other)| one - other);
                if expected.is_none_or(|expected| {
                    expected.to_bits() != value.to_bits() && !(expected.is_nan() && value.is_nan())
                }) {
                    return Err((format!("{expected:?} at {time}"), value.to_string()));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether rows that are not inside a band are all that was found, in their order.
fn left_over(rows: &Columns, found: &Columns, is_inside: impl Fn(f64) -> bool) -> Result<(), (String, String)> {
    let mut found_rows = found.times.iter().zip(&found.values);
    for (at, value) in rows.times.iter().zip(&rows.values) {
        if !is_inside(*value) && found_rows.next() != Some((at, value)) {
            return Err((
                format!("{value} at {at} among those outside"),
                "it was left out".to_owned(),
            ));
        }
    }
    match found_rows.next() {
        None => Ok(()),
        Some((at, value)) => Err(("only values outside".to_owned(), format!("{value} at {at}"))),
    }
}

/// Whether statistics are those of these values, computed by the definitions.
fn are_statistics(values: &[f64], found: &[f64]) -> Result<(), (String, String)> {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let [min, max] = [values.first(), values.last()].map(|value| value.copied().unwrap_or(f64::NAN));
    let expected = [count, min, max, mean, (squares / count).sqrt()];
    let scale = min.abs().max(max.abs()).max(f64::MIN_POSITIVE);
    let is_near = |(one, other): (&f64, &f64)| {
        one == other || one.is_nan() && other.is_nan() || (one - other).abs() <= TOLERANCE * scale
    };
    let is_exact = found.get(..3).is_some_and(|found| {
        found
            .iter()
            .zip(&expected)
            .all(|(one, other)| one == other || one.is_nan() && other.is_nan())
    });
    if found.len() == STATISTICS && is_exact && found.iter().zip(&expected).all(is_near) {
        return Ok(());
    }
    Err((format!("the statistics {expected:?}"), format!("{found:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(values: &[f64]) -> Columns {
        let mut columns = Columns::default();
        (0..)
            .zip(values)
            .for_each(|(at, value)| columns.push(Timestamp(at), *value));
        columns
    }

    fn derived(shape: QueryShape, rows: &[Columns]) -> Vec<Columns> {
        // What is left of the query before does not matter.
        let mut into = vec![columns(&[7.0]); 5];
        derive(shape, rows, &mut into);
        into
    }

    fn shape(text: &str) -> QueryShape {
        let kind: crate::plan::QueryKind = text.parse().unwrap();
        kind.shape()
    }

    #[test]
    fn values_outside_a_band_are_selected_and_its_ends_and_no_numbers_are_not() {
        let shape = shape("outside(series=2,below=10,above=90)");
        let rows = [
            columns(&[9.0, 10.0, f64::NAN, 50.0, 90.0, 91.0]),
            columns(&[10.5, -0.0]),
        ];
        let found = derived(shape, &rows);
        assert_eq!(found[0].values, [9.0, 91.0]);
        assert_eq!(found[0].times, [Timestamp(0), Timestamp(5)]);
        assert_eq!(found[1].values, [-0.0]);
        assert_eq!(is_right(shape, &rows, &found), Ok(()));
        let high = derived(self::shape("high-cpu"), &rows);
        assert_eq!(high[0].values, [91.0]);
        for wrong in [vec![9.0], vec![9.0, 91.0, 90.0], vec![91.0, 9.0]] {
            let wrong = [columns(&wrong), found[1].clone()];
            assert!(is_right(shape, &rows, &wrong).is_err());
        }
    }

    #[test]
    fn statistics_are_those_of_the_definitions() {
        let shape = shape("stats");
        let rows = [columns(&[2.0, f64::NAN, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])];
        let found = derived(shape, &rows);
        assert_eq!(found[0].values, [8.0, 2.0, 9.0, 5.0, 2.0]);
        assert_eq!(is_right(shape, &rows, &found), Ok(()));
        for place in 0..STATISTICS {
            let mut wrong = found.clone();
            wrong[0].values[place] += 1e-3;
            assert!(is_right(shape, &rows, &wrong).is_err(), "{place}");
        }
        // Large values that differ little, and none at all.
        for values in [vec![1e15, 1e15 + 1.0, 1e15 + 2.0], vec![f64::NAN], Vec::new()] {
            let rows = [columns(&values)];
            assert_eq!(is_right(shape, &rows, &derived(shape, &rows)), Ok(()), "{values:?}");
        }
    }

    #[test]
    fn a_difference_has_the_steps_that_both_series_have() {
        let shape = shape("difference");
        let mut other = columns(&[1.0, 2.0, 3.0, 4.0]);
        other.times[1] = Timestamp(0);
        other.times.remove(1);
        other.values.remove(1);
        let rows = [columns(&[10.0, 20.0, 30.0]), other];
        let found = derived(shape, &rows);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].times, [Timestamp(0), Timestamp(2)]);
        assert_eq!(found[0].values, [9.0, 27.0]);
        assert_eq!(is_right(shape, &rows, &found), Ok(()));
        let mut wrong = found.clone();
        wrong[0].values[1] = 28.0;
        assert!(is_right(shape, &rows, &wrong).is_err());
        assert!(is_right(shape, &rows, &[columns(&[9.0])]).is_err());
    }
}
