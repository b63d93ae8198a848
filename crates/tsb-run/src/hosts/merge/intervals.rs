//! The intervals of the whole.

use std::collections::BTreeMap;

use tsb_core::latency::{Cells, Histogram};
use tsb_core::report::Interval;

use super::MeasuredPart;
use crate::hosts::part::HostPart;
use crate::run::by_interval;

/// Intervals of one time are added: all hosts began at the same moment.
pub(super) fn intervals(measured: &[(&MeasuredPart, &HostPart)]) -> Vec<Interval> {
    let longest = measured
        .iter()
        .map(|(_, part)| &part.run.intervals)
        .max_by_key(|all| all.len());
    let mut sums: Vec<Interval> = longest.map_or(Vec::new(), |all| {
        let ends = all.iter().map(|interval| {
            let mut sum = Interval::default();
            sum.end_ns = interval.end_ns;
            sum
        });
        ends.collect()
    });
    let ends: Vec<u64> = sums.iter().map(|interval| interval.end_ns).collect();
    // Recorded intervals of two hosts do not begin at the same nanosecond: each finds its place alone.
    let mut response: BTreeMap<usize, Histogram> = BTreeMap::new();
    for (_, part) in measured {
        let mut from_ns = 0_u64;
        for more in &part.run.intervals {
            let middle = from_ns.midpoint(more.end_ns);
            from_ns = more.end_ns;
            // By time: a host that stood still has one long interval, and fewer of them.
            let index = ends
                .partition_point(|&end| end < middle)
                .min(ends.len().saturating_sub(1));
            if let Some(sum) = sums.get_mut(index) {
                add(sum, more);
            }
        }
        by_interval(&part.times.response, part.times.start_ns, &ends, |index, histogram| {
            response.entry(index).or_default().merge(histogram);
        });
    }
    for (index, histogram) in &response {
        let sum = &mut sums[*index];
        sum.response_p50_ns = histogram.supported_quantile(0.5);
        sum.response_p99_ns = histogram.supported_quantile(0.99);
        sum.response_max_ns = histogram.max();
        sum.response_cells = Cells::new(histogram);
    }
    sums
}

/// Adds an interval of another host; the times are added apart.
pub(in crate::hosts) fn add(sum: &mut Interval, more: &Interval) {
    let plus = |sum: Option<u64>, more: Option<u64>| sum.map_or(more, |sum| Some(sum + more.unwrap_or(0)));
    sum.asked = plus(sum.asked, more.asked);
    sum.sent += more.sent;
    sum.accepted += more.accepted;
    sum.lag_max_ns = sum.lag_max_ns.max(more.lag_max_ns);
    let stalest = sum.staleness_max_ms.into_iter().chain(more.staleness_max_ms);
    sum.staleness_max_ms = stalest.reduce(f64::max);
    sum.cpu_ns += more.cpu_ns;
    sum.rss_bytes += more.rss_bytes;
    sum.read_bytes = plus(sum.read_bytes, more.read_bytes);
    sum.written_bytes = plus(sum.written_bytes, more.written_bytes);
}
