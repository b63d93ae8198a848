//! The run slice by slice, for spreadsheets: one line an interval.

use std::fmt::Write;

use tsb_core::report::{Report, Run};

const HEAD: &str = "run,store,end_s,sent,accepted,response_p50_ns,response_p99_ns,response_max_ns,lag_max_ns,staleness_max_ms,cpu_ns,rss_bytes";

/// All runs of a report.
pub fn report(report: &Report) -> String {
    let mut out = format!("{HEAD}\n");
    for (index, run) in report.runs.iter().enumerate() {
        rows(index, run, &mut out);
    }
    out
}

fn rows(index: usize, run: &Run, out: &mut String) {
    let show = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for slice in &run.intervals {
        let _ = writeln!(
            out,
            "{index},\"{}\",{},{},{},{},{},{},{},{},{},{}",
            run.target.store.replace('"', "\"\""),
            slice.end_ns as f64 / 1e9,
            slice.sent,
            slice.accepted,
            show(slice.response_p50_ns),
            show(slice.response_p99_ns),
            show(slice.response_max_ns),
            show(slice.lag_max_ns),
            slice.staleness_max_ms.map_or(String::new(), |ms| format!("{ms:.3}")),
            slice.cpu_ns,
            slice.rss_bytes,
        );
    }
}
