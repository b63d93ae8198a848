//! Formats the streams of queries of a run as text: a table of their times, and wrong answers by
//! name.

use tsb_core::report::{QueryLatency, Run};

use super::lines::Lines;
use tsb_run::foreign;
use tsb_run::units::{count, nanos, nanos_each};

/// Number of wrong answers of a stream that are listed; more are in the JSON.
const SHOWN: usize = 3;

/// The table, and what was wrong; nothing for a run without queries.
pub(super) fn table(run: &Run, lines: &mut Lines) {
    if run.query_latency.is_empty() {
        return;
    }
    lines.heading("Queries beside the writes, from due until answered");
    let names = run.query_latency.keys().map(|name| foreign::line(name).chars().count());
    let width = names.max().unwrap_or(0).clamp(12, 32);
    let [p50, p90, p99, p999, max] = ["p50", "p90", "p99", "p99.9", "max"];
    lines.row(format!(
        "  {:width$} {p50:>8} {p90:>8} {p99:>8} {p999:>8} {max:>8} {:>9} {:>9} {:>9} {:>6}",
        "", "asked/s", "held/s", "answers", "wrong"
    ));
    for (name, stream) in &run.query_latency {
        lines.row(row(&foreign::line(name), width, stream));
    }
    for (name, stream) in &run.query_latency {
        about(name, stream, lines);
    }
}

fn row(name: &str, width: usize, stream: &QueryLatency) -> String {
    let show = |value: Option<u64>| value.map_or("-".to_owned(), nanos);
    format!(
        "  {name:width$} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9.1} {:>9} {:>6}",
        show(stream.response.p50_ns),
        show(stream.response.p90_ns),
        show(stream.response.p99_ns),
        show(stream.response.p999_ns),
        show(stream.response.max_ns),
        stream
            .asked_per_second
            .map_or("max".to_owned(), |asked| format!("{asked:.1}")),
        stream.held_per_second,
        count(stream.answers),
        count(stream.wrong),
    )
}

/// What a stream asked, how much it was told, and what was wrong.
fn about(name: &str, stream: &QueryLatency, lines: &mut Lines) {
    let rows = stream.rows as f64 / stream.response.count.max(1) as f64;
    let cpu = stream.store_cpu_ns_per_query.map_or(String::new(), |ns| {
        format!(", {} of CPU in the store for each", nanos_each(ns))
    });
    let never = [
        (stream.shed, "never asked"),
        (stream.unanswered, "never answered"),
        (stream.unjudged, "answers that nobody can judge"),
    ];
    let never = never.iter().filter(|(queries, _)| *queries > 0);
    let never = never.fold(String::new(), |all, (queries, what)| {
        format!("{all}; {} {what}", count(*queries))
    });
    lines.sentence(format!(
        "{name} ({}): {rows:.1} rows in an answer{cpu}{never}",
        stream.query
    ));
    for wrong in stream.wrong_answers.iter().take(SHOWN) {
        lines.sentence(format!(
            "wrong after {}, about {}: expected {}, came {}",
            nanos(wrong.after_ns),
            wrong.series,
            wrong.expected,
            wrong.came
        ));
    }
    let more = stream.wrong.saturating_sub(SHOWN as u64);
    if more > 0 {
        lines.sentence(format!("and {} more wrong answers to {name}", count(more)));
    }
}
