//! A run of any length keeps a bounded number of intervals, which still add up to the run.

use serde_json::Value;
use tsb_core::latency::INTERVALS_MAX;

use crate::program::tsb;

#[test]
fn many_intervals_are_folded_and_add_up_to_the_run() {
    let fleet = "run --quiet --no-calibrate --workload mix --series 540 --rate 54k";
    let mut run = tsb(&fleet.split(' ').collect::<Vec<_>>());
    run.args(["--report-interval", "2ms", "--duration", "6s", "--format", "json"]);
    let output = run.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let slices = report["intervals"].as_array().unwrap();
    assert!(slices.len() as u64 <= INTERVALS_MAX + 2, "{}", slices.len());
    let sum = |name: &str| slices.iter().filter_map(|slice| slice[name].as_u64()).sum::<u64>();
    assert_eq!(sum("sent"), report["ledger"]["sent"].as_u64().unwrap());
    assert_eq!(sum("accepted"), report["ledger"]["accepted"].as_u64().unwrap());
    let ends: Vec<u64> = slices.iter().map(|slice| slice["end_ns"].as_u64().unwrap()).collect();
    assert!(ends.is_sorted_by(|one, other| one < other), "in order");
    let operations: u64 = slices
        .iter()
        .flat_map(|slice| slice["response_cells"]["counts"].as_array().into_iter().flatten())
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(operations, report["latency"]["response"]["count"].as_u64().unwrap());
    // Three thousand histograms of three times each were more than half a gigabyte.
    let rss = |slice: &Value| slice["rss_bytes"].as_u64().unwrap();
    let grown = rss(slices.last().unwrap()).saturating_sub(rss(&slices[0]));
    assert!(grown < 200 << 20, "{grown} bytes");
}
