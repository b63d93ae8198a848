//! Two contestants that are measured in turn, on the same machine.

use anyhow::{Result, bail};

/// The order of one round: the first has no advantage over the other.
pub(crate) const ROUND: [usize; 4] = [0, 1, 1, 0];

/// How many rounds were asked for: `[--rounds N]`.
pub(crate) fn rounds(job: &str, arguments: &[&str], default: usize) -> Result<usize> {
    match arguments {
        [] => Ok(default),
        ["--rounds", rounds] => match rounds.parse() {
            Ok(rounds) if rounds > 0 => Ok(rounds),
            _ => bail!("--rounds needs a number above 0, not {rounds}"),
        },
        other => bail!("{job}: no such argument: {}", other.join(" ")),
    }
}

/// The lowest, the median and the highest of some figures; `None` where there are none.
pub(crate) fn spread(mut figures: Vec<f64>) -> Option<[f64; 3]> {
    figures.sort_by(f64::total_cmp);
    let (&lowest, &highest) = (figures.first()?, figures.last()?);
    let count = figures.len();
    let median = f64::midpoint(figures[(count - 1) / 2], figures[count / 2]);
    Some([lowest, median, highest])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        assert_eq!(rounds("race", &[], 3).ok(), Some(3));
        assert_eq!(rounds("race", &["--rounds", "2"], 3).ok(), Some(2));
        assert!(rounds("race", &["--rounds", "0"], 3).is_err());
        assert!(rounds("race", &["--fast"], 3).is_err());
    }

    #[test]
    fn a_median_stands_between_extremes() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), Some([1.0, 2.0, 3.0]));
        assert_eq!(spread(vec![4.0, 1.0, 2.0, 3.0]), Some([1.0, 2.5, 4.0]));
        assert_eq!(spread(Vec::new()), None);
    }
}
