//! Formats the state of a run as OpenMetrics text, for Prometheus and compatible tools.

use std::fmt::Write;

use super::state::{CoarseHistogram, LiveState, SharedState};
use crate::metrics::MetricsSource;
use crate::metrics::text::{buckets, family, quoted};

/// The shortest upper end of the latency buckets, as a power of two in nanoseconds: 1 us.
const SHORTEST: u32 = 10;

impl MetricsSource for SharedState {
    fn text(&self) -> String {
        // The asked rate of the newest interval needs the end of the one before it.
        text(&self.snapshot(2))
    }
}

/// The whole state as text.
fn text(state: &LiveState) -> String {
    let mut out = String::new();
    info(state, &mut out);
    samples(state, &mut out);
    gauges(state, &mut out);
    processes(state, &mut out);
    for (name, times, help) in [
        (
            "tsb_response_seconds",
            &state.response,
            "Due until done, of operations.",
        ),
        (
            "tsb_delivery_seconds",
            &state.delivery,
            "Start until the receiver had read it, of operations on a wire without answers.",
        ),
        (
            "tsb_service_seconds",
            &state.service,
            "Start until done, of operations; on a wire without answers from the end of the delivery.",
        ),
        ("tsb_lag_seconds", &state.lag, "Due until start, of operations."),
    ] {
        histogram(name, times, help, &mut out);
    }
    out.push_str("# EOF\n");
    out
}

fn info(state: &LiveState, out: &mut String) {
    let subject = &state.subject;
    family(out, "tsb_run", "info", "", "What is run.");
    let _ = writeln!(
        out,
        "tsb_run_info{{store=\"{}\",path=\"{}\",durability=\"{}\"}} 1",
        quoted(&subject.store),
        quoted(&subject.path),
        quoted(&subject.durability)
    );
    family(out, "tsb_phase", "stateset", "", "What the run is doing.");
    for phase in [
        "preparing",
        "calibrating",
        "running",
        "flushing",
        "reading back",
        "reporting",
    ] {
        let _ = writeln!(
            out,
            "tsb_phase{{tsb_phase=\"{phase}\"}} {}",
            u8::from(state.phase.name() == phase)
        );
    }
}

fn samples(state: &LiveState, out: &mut String) {
    let totals = &state.totals;
    family(
        out,
        "tsb_samples",
        "counter",
        "",
        "Samples that reached a stage of the ledger.",
    );
    for (stage, samples) in [
        ("sent", totals.samples),
        ("accepted", state.accepted),
        ("rejected", state.rejected),
        ("shed", totals.shed),
        ("unknown", totals.unknown),
    ] {
        let _ = writeln!(out, "tsb_samples_total{{stage=\"{stage}\"}} {samples}");
    }
    family(out, "tsb_operations", "counter", "", "Operations handed to the target.");
    let _ = writeln!(out, "tsb_operations_total {}", totals.operations);
}

fn gauges(state: &LiveState, out: &mut String) {
    let planned = state.subject.planned_ns.map(|ns| ns as f64 / 1e9);
    let gauges = [
        (
            "tsb_series",
            "",
            Some(state.subject.series as f64),
            "Series in the catalog.",
        ),
        (
            "tsb_asked_samples_per_second",
            "",
            state.asked_per_second(),
            "What the schedule asks now.",
        ),
        (
            "tsb_elapsed_seconds",
            "seconds",
            Some(state.elapsed_ns as f64 / 1e9),
            "Since sending began.",
        ),
        ("tsb_planned_seconds", "seconds", planned, "How long sending takes."),
        (
            "tsb_staleness_seconds",
            "seconds",
            state.staleness_ms.map(|ms| ms / 1e3),
            "Age of the newest visible sample of the stalest series.",
        ),
    ];
    for (name, unit, value, help) in gauges {
        let Some(value) = value else { continue };
        family(out, name, "gauge", unit, help);
        let _ = writeln!(out, "{name} {value}");
    }
}

fn processes(state: &LiveState, out: &mut String) {
    let Some(last) = state.intervals.back() else { return };
    let names = std::iter::once("tsb".to_owned()).chain(last.watched.iter().map(|other| other.pid.to_string()));
    let names: Vec<String> = names.collect();
    family(
        out,
        "tsb_process_cpu_seconds",
        "counter",
        "seconds",
        "CPU time since sending began.",
    );
    for (name, cpu_ns) in names.iter().zip(&state.cpu_ns) {
        let seconds = *cpu_ns as f64 / 1e9;
        let _ = writeln!(out, "tsb_process_cpu_seconds_total{{process=\"{name}\"}} {seconds}");
    }
    family(out, "tsb_process_resident_bytes", "gauge", "bytes", "Resident memory.");
    let sizes = std::iter::once(last.rss_bytes).chain(last.watched.iter().map(|other| other.rss_bytes));
    for (name, size) in names.iter().zip(sizes) {
        let _ = writeln!(out, "tsb_process_resident_bytes{{process=\"{name}\"}} {size}");
    }
}

fn histogram(name: &str, times: &CoarseHistogram, help: &str, out: &mut String) {
    family(out, name, "histogram", "seconds", help);
    let within = |edge_ns| times.count_within(edge_ns);
    buckets(out, name, "", SHORTEST, within, (times.count(), times.sum_ns()));
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::{Cells, Histogram};
    use tsb_core::report::Interval;

    use super::*;
    use tsb_run::{IntervalLatencies, RunInfo};

    #[test]
    fn the_text_is_what_the_format_asks_for() {
        let shared = SharedState::new();
        shared.begin(RunInfo {
            store: "a \"b\"\n\\".to_owned(),
            ..RunInfo::default()
        });
        let mut histogram = Histogram::new();
        for value in [500, 2_000, 3_000_000] {
            histogram.record(value);
        }
        let mut interval = Interval::default();
        interval.response_cells = Cells::new(&histogram);
        interval.cpu_ns = 1_500_000_000;
        shared.add(interval, &IntervalLatencies::default());
        let text = text(&shared.snapshot(1));
        assert!(text.contains("store=\"a \\\"b\\\"\\n\\\\\""), "{text}");
        assert!(
            text.contains("tsb_response_seconds_bucket{le=\"0.000001024\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("tsb_response_seconds_bucket{le=\"0.000002048\"} 2\n"),
            "{text}"
        );
        assert!(text.contains("tsb_response_seconds_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(
            text.contains("tsb_process_cpu_seconds_total{process=\"tsb\"} 1.5\n"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
        let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
        let mut once = families.clone();
        once.dedup();
        assert_eq!(families, once);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn the_asked_rate_of_a_schedule_is_that_of_its_newest_interval() {
        let shared = SharedState::default();
        for end_ns in [1_000_000_000, 2_000_000_000, 3_000_000_000] {
            let mut interval = Interval::default();
            interval.end_ns = end_ns;
            interval.asked = Some(1_000);
            shared.add(interval, &IntervalLatencies::default());
        }
        let text = shared.text();
        let asked = text
            .lines()
            .find(|line| line.starts_with("tsb_asked_samples_per_second"));
        assert!(asked.is_some_and(|line| line.ends_with(" 1000")), "{text}");
    }
}
