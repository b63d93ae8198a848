//! The samples that are written: a function of seed, gauge and number, so that every answer can be
//! compared with what was written.

use crate::draws::Draws;

/// The largest difference by which a value that was read may differ: SQLite in Mohawk's layout
/// keeps six decimals.
const TOLERANCE: f64 = 1e-6;

/// Gauges of one run, with names that begin alike.
#[derive(Clone, Debug)]
pub(super) struct Gauges {
    prefix: String,
    seed: u64,
}

impl Gauges {
    pub(super) fn new(prefix: &str, seed: u64) -> Self {
        Self {
            prefix: prefix.to_owned(),
            seed,
        }
    }

    /// The name of gauge `gauge`, from 1, as in `example.doc.1`.
    pub(super) fn name(&self, gauge: u32) -> String {
        format!("{}.{gauge}", self.prefix)
    }

    /// The value of a sample, uniform in [0, 100) as in the original.
    pub(super) const fn value(&self, gauge: u32, number: u64) -> f64 {
        let mut draws = Draws::new(self.seed ^ ((gauge as u64) << 40) ^ number);
        draws.unit() * 100.0
    }

    /// Whether a value that was read is the one that was written.
    pub(super) fn is_value(&self, gauge: u32, number: u64, read: f64) -> bool {
        (read - self.value(gauge, number)).abs() <= TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_from_the_seed_and_a_wrong_one_is_seen() {
        let gauges = Gauges::new("example.doc", 1);
        assert_eq!(gauges.name(1), "example.doc.1");
        let values: Vec<f64> = (0..1_000).map(|number| gauges.value(1, number)).collect();
        assert!(values.iter().all(|value| (0.0..100.0).contains(value)));
        assert!(values[..500].iter().all(|value| !values[500..].contains(value)));
        assert_ne!(gauges.value(1, 5), gauges.value(2, 5));
        assert_ne!(gauges.value(1, 5), Gauges::new("example.doc", 2).value(1, 5));
        let rounded = (values[7] * 1e6).round() / 1e6;
        assert!(gauges.is_value(1, 7, rounded) && !gauges.is_value(1, 8, rounded));
    }
}
