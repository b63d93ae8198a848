//! The smallest or the largest of some numbers. NaN stands for "no number".

use std::ops::Range;

/// Which of some numbers is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    /// The smallest.
    Least,
    /// The largest.
    Most,
}

/// Consecutive runs of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs<'a> {
    /// The first row of the first run.
    pub(crate) from: usize,
    /// For each run the row behind its last one, ascending; no run is empty.
    pub(crate) ends: &'a [u16],
}

impl<'a> Runs<'a> {
    /// The rows of each run.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut from = self.from;
        self.ends.iter().map(move |end| {
            let run = from..usize::from(*end);
            from = run.end;
            run
        })
    }
}

/// Lanes of a reduction: two vector registers.
const LANES: usize = 8;

impl Extreme {
    /// The extreme of two numbers: the first if they are equal.
    #[inline(always)]
    pub(crate) fn of_two(self, first: f64, second: f64) -> f64 {
        let is_second = match self {
            Self::Least => second < first,
            Self::Most => second > first,
        };
        if is_second || first.is_nan() { second } else { first }
    }

    /// The extreme of some values; NaN if none is a number.
    #[inline(always)]
    pub(crate) fn of_values(self, values: &[f64]) -> f64 {
        match self {
            Self::Least => reduce(values, f64::INFINITY, |value, least| value < least),
            Self::Most => reduce(values, f64::NEG_INFINITY, |value, most| value > most),
        }
    }

    /// The extreme of some integers, of which there must be one at least.
    #[inline(always)]
    pub(crate) fn of_integers(self, integers: &[i64]) -> i64 {
        match self {
            Self::Least => integers.iter().fold(i64::MAX, |least, integer| least.min(*integer)),
            Self::Most => integers.iter().fold(i64::MIN, |most, integer| most.max(*integer)),
        }
    }
}

/// The value that beats all others; `worst` is one that none is beaten by.
#[inline(always)]
fn reduce(values: &[f64], worst: f64, beats: impl Fn(f64, f64) -> bool) -> f64 {
    let better = |best: f64, value: f64| if beats(value, best) { value } else { best };
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = [worst; LANES];
    for row in rows {
        for lane in 0..LANES {
            lanes[lane] = better(lanes[lane], row[lane]);
        }
    }
    let all = lanes.iter().chain(rest).fold(worst, |best, &value| better(best, value));
    if all == worst && values.iter().all(|value| value.is_nan()) {
        f64::NAN
    } else {
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Extreme::{Least, Most};
    use super::*;

    #[test]
    fn extremes_leave_nan_out() {
        assert!(Most.of_values(&[f64::NAN; 9]).is_nan() && Least.of_values(&[f64::NAN; 20]).is_nan());
        let values: Vec<f64> = (0..21)
            .map(|i| if i % 3 == 0 { f64::NAN } else { f64::from(i) })
            .collect();
        assert_eq!((Least.of_values(&values), Most.of_values(&values)), (1.0, 20.0));
        assert_eq!(Most.of_values(&[f64::NEG_INFINITY, f64::NAN]), f64::NEG_INFINITY);
        assert_eq!(Least.of_values(&[f64::INFINITY, f64::NAN]), f64::INFINITY);
        assert_eq!(Most.of_two(f64::NAN, 3.0), 3.0);
        assert_eq!(Least.of_two(3.0, f64::NAN), 3.0);
        assert!(Most.of_two(f64::NAN, f64::NAN).is_nan());
    }

    #[test]
    fn runs_follow_each_other() {
        let runs = Runs {
            from: 3,
            ends: &[5, 6, 256],
        };
        assert_eq!(runs.iter().collect::<Vec<_>>(), [3..5, 5..6, 6..256]);
    }
}
