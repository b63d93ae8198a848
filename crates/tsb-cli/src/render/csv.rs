//! Formats the time series of a report as CSV: the reporting intervals for stdout, and further
//! tables for files.

use std::fmt::Write;

use tsb_core::latency::{Cells, cell_highest, cell_lowest};
use tsb_core::report::{Report, Run};

use tsb_run::foreign;

const HEAD: &str = "run,store,end_s,sent,accepted,response_p50_ns,response_p99_ns,response_max_ns,lag_max_ns,staleness_max_ms,cpu_ns,rss_bytes,read_bytes,written_bytes,asked";

/// All runs of a report, one line per interval.
pub fn report(report: &Report) -> String {
    table(report, HEAD, slices)
}

/// All tables of a report: file name and contents.
pub fn tables(report: &Report) -> [(&'static str, String); 5] {
    [
        ("intervals.csv", self::report(report)),
        (
            "processes.csv",
            table(
                report,
                "run,store,end_s,pid,cpu_ns,rss_bytes,read_bytes,written_bytes",
                processes,
            ),
        ),
        (
            "latency-cells.csv",
            table(report, "run,store,end_s,lowest_ns,highest_ns,operations", cells),
        ),
        (
            "latency-quantiles.csv",
            table(report, "run,store,time,quantile,value_ns", quantiles),
        ),
        (
            "queries.csv",
            table(
                report,
                "run,store,stream,query,asked_per_second,held_per_second,count,answers,wrong,rows,p50_ns,p90_ns,p99_ns,p999_ns,max_ns",
                queries,
            ),
        ),
    ]
}

fn table(report: &Report, head: &str, rows: impl Fn(&str, &Run, &mut String)) -> String {
    let mut out = format!("{head}\n");
    for (index, run) in report.runs.iter().enumerate() {
        let start = format!("{index},{}", foreign::quoted_cell(&run.target.store));
        rows(&start, run, &mut out);
    }
    out
}

fn show(value: Option<u64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn slices(start: &str, run: &Run, out: &mut String) {
    for slice in &run.intervals {
        let _ = writeln!(
            out,
            "{start},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            seconds(slice.end_ns),
            slice.sent,
            slice.accepted,
            show(slice.response_p50_ns),
            show(slice.response_p99_ns),
            show(slice.response_max_ns),
            show(slice.lag_max_ns),
            slice.staleness_max_ms.map_or(String::new(), |ms| format!("{ms:.3}")),
            slice.cpu_ns,
            slice.rss_bytes,
            show(slice.read_bytes),
            show(slice.written_bytes),
            show(slice.asked),
        );
    }
}

fn processes(start: &str, run: &Run, out: &mut String) {
    for slice in &run.intervals {
        for process in &slice.watched {
            let _ = writeln!(
                out,
                "{start},{},{},{},{},{},{}",
                seconds(slice.end_ns),
                process.pid,
                process.cpu_ns,
                process.rss_bytes,
                show(process.read_bytes),
                show(process.written_bytes),
            );
        }
    }
}

fn cells(start: &str, run: &Run, out: &mut String) {
    for slice in &run.intervals {
        for (cell, operations) in slice.response_cells.iter().flat_map(Cells::iter) {
            // A damaged report may name cells that do not exist.
            if cell < tsb_core::latency::CELLS {
                let (lowest, highest) = (cell_lowest(cell), cell_highest(cell));
                let _ = writeln!(out, "{start},{},{lowest},{highest},{operations}", seconds(slice.end_ns));
            }
        }
    }
}

fn quantiles(start: &str, run: &Run, out: &mut String) {
    let Some(curves) = &run.latency.curves else { return };
    for (time, curve) in [
        ("response", Some(&curves.response)),
        ("delivery", curves.delivery.as_ref()),
        ("service", Some(&curves.service)),
        ("lag", Some(&curves.lag)),
    ] {
        let Some(curve) = curve else { continue };
        for (quantile, value) in &curve.0 {
            let _ = writeln!(out, "{start},{time},{quantile},{value}");
        }
    }
}

fn queries(start: &str, run: &Run, out: &mut String) {
    for (name, stream) in &run.query_latency {
        let _ = writeln!(
            out,
            "{start},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            foreign::quoted_cell(name),
            foreign::quoted_cell(&stream.query),
            stream
                .asked_per_second
                .map_or(String::new(), |asked| format!("{asked:.3}")),
            format_args!("{:.3}", stream.held_per_second),
            stream.response.count,
            stream.answers,
            stream.wrong,
            stream.rows,
            show(stream.response.p50_ns),
            show(stream.response.p90_ns),
            show(stream.response.p99_ns),
            show(stream.response.p999_ns),
            show(stream.response.max_ns),
        );
    }
}
