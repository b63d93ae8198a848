//! The counts of a canary as OpenMetrics.

use std::fmt::Write;

use tsb_core::report::canary::{CanaryReport, FaultAge, FaultKind};
use tsb_core::{Durability, Timestamp};
use tsb_run::canary::Canary;

use crate::metrics::text::{buckets, family, quoted};

/// The shortest upper end of the buckets of times, as a power of two in nanoseconds: 16 us.
const SHORTEST: u32 = 14;

/// All counts of a canary, as they were at this time.
pub(super) fn text(canary: &Canary, now: Timestamp) -> String {
    let report = canary.report();
    let mut out = String::new();
    family(&mut out, "tsb_canary", "info", "", "Which store is watched.");
    let _ = writeln!(
        out,
        "tsb_canary_info{{store=\"{}\",name=\"{}\"}} 1",
        quoted(&report.store),
        quoted(&report.name)
    );
    samples(&report, &mut out);
    faults(&report, &mut out);
    questions(&report, &mut out);
    times(canary, now, &report, &mut out);
    let name = "tsb_canary_call_seconds";
    family(
        &mut out,
        name,
        "histogram",
        "seconds",
        "Times of writes and of answers.",
    );
    for (call, times) in canary.times() {
        let histogram = times.histogram();
        let within = |edge_ns| histogram.count() - histogram.count_above(edge_ns);
        let label = format!("call=\"{call}\"");
        buckets(
            &mut out,
            name,
            &label,
            SHORTEST,
            within,
            (histogram.count(), times.sum_ns()),
        );
    }
    out.push_str("# EOF\n");
    out
}

fn samples(report: &CanaryReport, out: &mut String) {
    let help = "Samples by what became of their write; uncertain ones are not judged.";
    family(out, "tsb_canary_samples", "counter", "", help);
    let samples = &report.samples;
    for (outcome, count) in [
        ("acknowledged", samples.acknowledged),
        ("refused", samples.refused),
        ("unknown", samples.unknown),
        ("skipped", samples.skipped),
    ] {
        let _ = writeln!(out, "tsb_canary_samples_total{{outcome=\"{outcome}\"}} {count}");
    }
    family(
        out,
        "tsb_canary_seen_samples",
        "counter",
        "",
        "Acknowledged samples that an answer had, once each.",
    );
    let _ = writeln!(out, "tsb_canary_seen_samples_total {}", samples.seen);
    let help = "Acknowledged samples that no answer had yet, and that are not lost.";
    family(out, "tsb_canary_open_samples", "gauge", "", help);
    let _ = writeln!(out, "tsb_canary_open_samples {}", samples.open);
}

fn faults(report: &CanaryReport, out: &mut String) {
    let help = "Samples with a fault, once each, by the level that they had reached and by their age.";
    family(out, "tsb_canary_faults", "counter", "", help);
    // All from the start: a rate over a counter that begins above 0 does not see its first fault.
    let cells = FaultKind::ALL
        .into_iter()
        .flat_map(|kind| Durability::ALL.into_iter().map(move |level| (kind, level)))
        .flat_map(|(kind, level)| FaultAge::ALL.into_iter().map(move |age| (kind, level, age)));
    for cell in cells {
        let same = (report.faults.iter()).find(|fault| (fault.kind, fault.durability, fault.age) == cell);
        let (kind, durability, age) = (cell.0.name(), cell.1, cell.2.name());
        let count = same.map_or(0, |fault| fault.samples);
        let _ = writeln!(
            out,
            "tsb_canary_faults_total{{kind=\"{kind}\",durability=\"{durability}\",age=\"{age}\"}} {count}"
        );
    }
}

fn questions(report: &CanaryReport, out: &mut String) {
    family(
        out,
        "tsb_canary_answers",
        "counter",
        "",
        "Answers by question; failed ones were not given.",
    );
    for (question, answers) in &report.questions {
        for (result, count) in [
            ("right", answers.right),
            ("late", answers.late),
            ("wrong", answers.wrong),
            ("failed", answers.failed),
        ] {
            let _ = writeln!(
                out,
                "tsb_canary_answers_total{{question=\"{question}\",result=\"{result}\"}} {count}"
            );
        }
    }
}

fn times(canary: &Canary, now: Timestamp, report: &CanaryReport, out: &mut String) {
    let gauges = [
        (
            "tsb_canary_step_timestamp_seconds",
            Some(now),
            "When the canary last wrote and asked.",
        ),
        (
            "tsb_canary_due_timestamp_seconds",
            Some(canary.next_due()),
            "When it writes and asks next.",
        ),
        (
            "tsb_canary_newest_visible_timestamp_seconds",
            report.newest_visible,
            "The newest visible sample of the stalest series.",
        ),
    ];
    for (name, at, help) in gauges {
        let Some(at) = at else { continue };
        family(out, name, "gauge", "seconds", help);
        let _ = writeln!(out, "{name} {}", at.0 as f64 / 1e9);
    }
}
