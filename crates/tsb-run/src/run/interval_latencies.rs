//! Combines the reporting intervals that the monitor observed with the recorded latencies.

use tsb_core::latency::{Cells, Histogram, Interval as Recorded, Recording};
use tsb_core::report::Interval;

use super::path::PassResult;

/// The monitor's intervals with the latencies of the recordings. Every recorded operation is in
/// exactly one interval.
pub fn with_latencies(intervals: &[Interval], driven: &PassResult) -> Vec<Interval> {
    let ends: Vec<u64> = intervals.iter().map(|interval| interval.end_ns).collect();
    let mut intervals = intervals.to_vec();
    by_interval(&driven.response, driven.start_ns, &ends, |index, response| {
        let interval = &mut intervals[index];
        interval.response_p50_ns = response.supported_quantile(0.5);
        interval.response_p99_ns = response.supported_quantile(0.99);
        interval.response_max_ns = response.max();
        interval.response_cells = Cells::new(response);
    });
    by_interval(&driven.lag, driven.start_ns, &ends, |index, lag| {
        intervals[index].lag_max_ns = lag.max();
    });
    intervals
}

/// Calls `visit` with the histogram of each interval in which something was recorded. The
/// emitter and the monitor end their intervals at slightly different times: a recorded interval
/// belongs to the reporting interval that contains its middle, and later ones to the last.
pub(crate) fn by_interval(
    recording: &Recording,
    start_ns: u64,
    ends: &[u64],
    mut visit: impl FnMut(usize, &Histogram),
) {
    let Some(last) = ends.len().checked_sub(1) else { return };
    let index_of = |interval: &Recorded| {
        let middle = interval.start_ns.midpoint(interval.end_ns).saturating_sub(start_ns);
        ends.partition_point(|&end| end < middle).min(last)
    };
    // One histogram at a time: those of a whole day would not fit into memory.
    let mut histogram = Histogram::new();
    for intervals in recording
        .intervals
        .chunk_by(|one, other| index_of(one) == index_of(other))
    {
        histogram.clear();
        for interval in intervals {
            interval.add_to(&mut histogram);
        }
        if let Some(interval) = intervals.first() {
            visit(index_of(interval), &histogram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_intervals_find_their_place_and_none_is_lost() {
        let mut recording = Recording::default();
        // Slices end at 10, 21 and 30; a recorded interval is missing, one comes late.
        for (start_ns, end_ns) in [(1_000, 1_010), (1_020, 1_030), (1_030, 1_040)] {
            let mut histogram = Histogram::new();
            histogram.record(end_ns);
            recording.intervals.push(Recorded::new(start_ns, end_ns, &histogram));
        }
        let mut counts = [0; 3];
        by_interval(&recording, 1_000, &[10, 21, 30], |interval, histogram| {
            counts[interval] += histogram.count();
        });
        assert_eq!(counts, [1, 0, 2]);
        by_interval(&recording, 1_000, &[], |_, _| panic!("there is no interval"));
    }
}
