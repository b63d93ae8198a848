//! What a sample of the whole cost.

use tsb_core::ledger::Counter;
use tsb_core::report::{Cost, CpuBelow, LedgerReport, Run};

use super::Whole;
use crate::run;

/// Costs per sample, each weighted by the samples of its host; sizes from the shared store.
pub(super) fn cost(whole: &Whole<'_>, runs: &[&Run], ledger: &LedgerReport) -> Cost {
    let weights: Vec<f64> = runs
        .iter()
        .map(|run| {
            let counts = &run.ledger.counts;
            let accepted = counts.count(Counter::Accepted).max(counts.count(Counter::Confirmed));
            // Costs are of what was sent while the clock ran.
            accepted.saturating_sub(run.preload.map_or(0, |preload| preload.accepted)) as f64
        })
        .collect();
    let all: f64 = weights.iter().sum();
    let mean = |of: &dyn Fn(&Cost) -> Option<f64>| {
        let each = runs.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0);
        let sum: Option<f64> = each.map(|(run, weight)| Some(of(&run.cost)? * weight)).sum();
        sum.filter(|_| all > 0.0).map(|sum| sum / all)
    };
    let mut cost = Cost::default();
    cost.generator_cpu_ns_per_sample = mean(&|cost| cost.generator_cpu_ns_per_sample);
    cost.pacing_cpu_ns_per_sample = mean(&|cost| cost.pacing_cpu_ns_per_sample);
    cost.wire_cpu_ns_per_sample = mean(&|cost| cost.wire_cpu_ns_per_sample);
    cost.store_cpu_ns_per_sample = mean(&|cost| cost.store_cpu_ns_per_sample);
    if cost.store_cpu_ns_per_sample.is_none() {
        let below = mean(&|cost| {
            let below = cost.store_cpu_below.map(|below| below.ns_per_sample);
            cost.store_cpu_ns_per_sample.or(below)
        });
        cost.store_cpu_below = below.map(CpuBelow::new);
    }
    cost.store_threads_cpu_ns_per_sample = mean(&|cost| cost.store_threads_cpu_ns_per_sample);
    cost.store_flush_cpu_ns_per_sample = mean(&|cost| cost.store_flush_cpu_ns_per_sample);
    cost.store_newest_cpu_ns_per_sample = mean(&|cost| cost.store_newest_cpu_ns_per_sample);
    cost.queries_cpu_ns_per_sample = mean(&|cost| cost.queries_cpu_ns_per_sample);
    cost.watching_cpu_ns_per_sample = mean(&|cost| cost.watching_cpu_ns_per_sample);
    cost.parts_cpu_ns_per_sample = mean(&|cost| cost.parts_cpu_ns_per_sample);
    cost.process_cpu_ns_per_sample = mean(&|cost| cost.process_cpu_ns_per_sample);
    cost.audit_cpu_ns_per_sample = mean(&|cost| cost.audit_cpu_ns_per_sample);
    cost.wire_bytes_per_sample = mean(&|cost| cost.wire_bytes_per_sample);
    if let Some(stats) = &whole.stats {
        run::bytes_of_each(&mut cost, stats, ledger.counts.count(Counter::Verified));
    } else {
        cost.bytes_per_sample = mean(&|cost| cost.bytes_per_sample);
        cost.sealed_bytes_per_sample = mean(&|cost| cost.sealed_bytes_per_sample);
        cost.disk_bytes_per_sample = mean(&|cost| cost.disk_bytes_per_sample);
    }
    cost.projection_absent = Some("several hosts shared the run".to_owned());
    cost.method = runs.first().map_or(String::new(), |run| run.cost.method.clone());
    cost
}
