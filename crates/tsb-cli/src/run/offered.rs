//! How compressible the offered values were: repeat rate and an estimate of their entropy.
//!
//! The estimator: of up to 512 series spread over the catalog, the first ticks that were
//! sent (at most 2,048); for each series the order-0 entropy of the differences between
//! neighbouring values, weighted by samples. It knows no model of the series, so it
//! overestimates what a clever codec needs and, for short runs, underestimates because
//! few differences have been seen.

use std::collections::HashMap;
use std::ops::Range;

use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};

const SERIES_MAX: usize = 512;
const TICKS_MAX: u64 = 2_048;

/// What was estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    /// Share of values equal to the one before in their series. in [0, 1]
    pub repeat_rate: f64,
    /// Bits a value.
    pub entropy_bits: f64,
}

/// Estimates over what was issued; `ticks` has an entry a group.
pub(super) fn estimate(workload: &Workload, ticks: &[Range<u64>]) -> Estimate {
    let series = workload.catalog().len();
    let stride = series.div_ceil(SERIES_MAX).max(1);
    let mut replay = workload.replay(Timestamp(0));
    let (mut bits, mut repeats, mut pairs) = (0.0, 0u64, 0u64);
    for id in (0..series).step_by(stride).map(|index| SeriesId(index as u32)) {
        let Some(issued) = workload.group_of(id).and_then(|group| ticks.get(group)) else {
            continue;
        };
        let span = issued.start..issued.end.min(issued.start + TICKS_MAX);
        let mut values = Vec::new();
        replay.series(id, span, &mut |chunk| values.extend_from_slice(chunk.values));
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for pair in values.windows(2) {
            *seen.entry((pair[1] - pair[0]).to_bits()).or_default() += 1;
            repeats += u64::from(pair[0].to_bits() == pair[1].to_bits());
        }
        let count = values.len().saturating_sub(1) as f64;
        bits -= seen
            .values()
            .map(|&n| n as f64 * (n as f64 / count).log2())
            .sum::<f64>();
        pairs += count as u64;
    }
    if pairs == 0 {
        return Estimate::default();
    }
    Estimate {
        repeat_rate: repeats as f64 / pairs as f64,
        entropy_bits: bits / pairs as f64,
    }
}
