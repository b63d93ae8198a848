//! The slices of a report: what the monitor saw of each, with the latencies that were
//! recorded in it.

use tsb_core::latency::{Cells, Histogram, Recording};
use tsb_core::report::Interval;

use super::path::Driven;

/// The monitor's slices with the latencies of the recordings. Every recorded operation is
/// in one of them.
pub(super) fn with_latencies(slices: &[Interval], driven: &Driven) -> Vec<Interval> {
    let ends: Vec<u64> = slices.iter().map(|slice| slice.end_ns).collect();
    let response = by_slice(&driven.response, driven.start_ns, &ends);
    let lag = by_slice(&driven.lag, driven.start_ns, &ends);
    let slices = slices.iter().zip(response.iter().zip(&lag));
    slices
        .map(|(slice, (response, lag))| Interval {
            response_p50_ns: response.supported_quantile(0.5),
            response_p99_ns: response.supported_quantile(0.99),
            response_max_ns: response.max(),
            lag_max_ns: lag.max(),
            response_cells: Cells::new(response),
            ..slice.clone()
        })
        .collect()
}

/// The histogram of each slice. The emitter and the monitor end their intervals a little
/// apart: a recorded one belongs to the slice that its middle lies in, and what was timed
/// behind the last slice to the last.
fn by_slice(recording: &Recording, start_ns: u64, ends: &[u64]) -> Vec<Histogram> {
    let mut all = vec![Histogram::new(); ends.len()];
    for interval in &recording.intervals {
        let middle = interval.start_ns.midpoint(interval.end_ns).saturating_sub(start_ns);
        let index = ends.partition_point(|&end| end < middle);
        if let Some(histogram) = all.get_mut(index.min(ends.len().saturating_sub(1))) {
            histogram.merge(&interval.histogram);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::Interval as Recorded;

    use super::*;

    #[test]
    fn recorded_intervals_find_their_slices_and_none_is_lost() {
        let mut recording = Recording::default();
        // Slices end at 10, 21 and 30; a recorded interval is missing, one comes late.
        for (start_ns, end_ns) in [(1_000, 1_010), (1_020, 1_030), (1_030, 1_040)] {
            let mut histogram = Histogram::new();
            histogram.record(end_ns);
            recording.intervals.push(Recorded {
                start_ns,
                end_ns,
                histogram,
            });
        }
        let counts: Vec<u64> = by_slice(&recording, 1_000, &[10, 21, 30])
            .iter()
            .map(Histogram::count)
            .collect();
        assert_eq!(counts, [1, 0, 2]);
        assert!(by_slice(&recording, 1_000, &[]).is_empty());
    }
}
