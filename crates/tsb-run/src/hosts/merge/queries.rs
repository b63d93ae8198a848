//! The streams of queries of the whole. Each host asked about its own series, in turn with the others.

use std::collections::BTreeMap;

use tsb_core::report::QueryLatency;

use super::MeasuredPart;
use crate::hosts::part::HostPart;
use crate::run::QueryTimes;
use crate::run::queries::NAMED_MAX;

/// Counts and rates add; quantiles are those of the added histograms.
pub(super) fn queries(measured: &[(&MeasuredPart, &HostPart)]) -> BTreeMap<String, QueryLatency> {
    let mut sums: BTreeMap<String, QueryLatency> = BTreeMap::new();
    let mut times: BTreeMap<&String, QueryTimes> = BTreeMap::new();
    for (_, part) in measured {
        for (name, latency) in &part.run.query_latency {
            match sums.get_mut(name) {
                Some(sum) => add(sum, latency),
                None => drop(sums.insert(name.clone(), latency.clone())),
            }
        }
        for (name, of_host) in &part.queries {
            times.entry(name).or_default().merge(of_host);
        }
    }
    for (name, times) in times {
        if let Some(sum) = sums.get_mut(name) {
            times.summarize(sum, sum.asked_per_second.is_none());
        }
    }
    sums
}

fn add(sum: &mut QueryLatency, more: &QueryLatency) {
    sum.store_cpu_ns_per_query = cpu_of_each(sum, more);
    sum.response.count += more.response.count;
    sum.answers += more.answers;
    sum.wrong += more.wrong;
    sum.unjudged += more.unjudged;
    sum.rows += more.rows;
    sum.early += more.early;
    sum.shed += more.shed;
    sum.unanswered += more.unanswered;
    sum.held_per_second += more.held_per_second;
    // Absent of a host in a closed loop, and of one whose threads could not be started.
    sum.asked_per_second = sum
        .asked_per_second
        .into_iter()
        .chain(more.asked_per_second)
        .reduce(|one, other| one + other);
    sum.wrong_answers.extend_from_slice(&more.wrong_answers);
    sum.wrong_answers.sort_by_key(|wrong| wrong.after_ns);
    sum.wrong_answers.truncate(NAMED_MAX);
}

/// The mean over all queries that were answered.
fn cpu_of_each(sum: &QueryLatency, more: &QueryLatency) -> Option<f64> {
    let spent = |latency: &QueryLatency| Some(latency.store_cpu_ns_per_query? * latency.response.count as f64);
    let all_ns = spent(sum)
        .into_iter()
        .chain(spent(more))
        .reduce(|one, other| one + other);
    let answered = (sum.response.count + more.response.count) as f64;
    all_ns.filter(|_| answered > 0.0).map(|ns| ns / answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_rates_add_and_a_cost_is_the_mean() {
        let of_host = |answers: u64, ns: Option<f64>| {
            let mut latency = QueryLatency::new("last@10/s");
            (latency.answers, latency.response.count) = (answers, answers);
            latency.asked_per_second = Some(5.0);
            latency.held_per_second = 4.0;
            latency.store_cpu_ns_per_query = ns;
            latency
        };
        let mut sum = of_host(10, Some(100.0));
        add(&mut sum, &of_host(30, Some(200.0)));
        assert_eq!(
            (sum.answers, sum.asked_per_second, sum.held_per_second),
            (40, Some(10.0), 8.0)
        );
        assert_eq!(sum.store_cpu_ns_per_query, Some(175.0));
        add(&mut sum, &of_host(0, None));
        assert_eq!((sum.answers, sum.store_cpu_ns_per_query), (40, Some(175.0)));
    }
}
