//! What a canary prints: a line when it starts, one for each fault, and the result.

use tsb_core::report::canary::{CanaryReport, FaultKind, NamedFault};
use tsb_core::time::SECOND_NS;
use tsb_run::units;

/// The line at the start.
pub(super) fn started(report: &CanaryReport) -> String {
    let found = match report.samples.found_at_start {
        0 => "no samples of an earlier one are there".to_owned(),
        found => format!("{} samples of an earlier one are there", units::count(found)),
    };
    format!(
        "tsb: canary '{}' in {}: {} series, one sample every {}, asked for over {}; {found}",
        report.name,
        report.store,
        units::count(report.series),
        units::exact_duration(report.interval_ns),
        units::exact_duration(report.keeps_ns),
    )
}

/// One fault: which samples, and what is wrong with them.
pub(super) fn fault(fault: &NamedFault) -> String {
    let samples = match fault.samples {
        1 => format!("the sample of {} at {}", fault.series, units::rfc3339(fault.first)),
        more => format!(
            "{} samples of {} from {} to {}",
            units::count(more),
            fault.series,
            units::rfc3339(fault.first),
            units::rfc3339(fault.last)
        ),
    };
    let values = match (fault.expected, fault.found) {
        (Some(expected), Some(found)) if fault.kind == FaultKind::Altered => {
            format!(", first as {found} instead of {expected}")
        }
        (None, Some(found)) => format!(", first as {found}"),
        _ => String::new(),
    };
    let age_ns = (fault.noticed - fault.first).max(0) as u64;
    format!(
        "{}: {samples}, {}, {} old{values} (question '{}')",
        fault.kind.name(),
        fault.durability,
        units::exact_duration(age_ns / SECOND_NS * SECOND_NS),
        fault.question
    )
}

/// The result.
pub(super) fn result(report: &CanaryReport) -> String {
    let samples = &report.samples;
    let mut lines = vec![
        format!(
            "canary '{}' in {}, {}",
            report.name,
            report.store,
            units::exact_duration(report.elapsed_ns / SECOND_NS * SECOND_NS)
        ),
        format!(
            "  samples   acknowledged {}, refused {}, unknown {}, skipped {}; found at the start {}",
            units::count(samples.acknowledged),
            units::count(samples.refused),
            units::count(samples.unknown),
            units::count(samples.skipped),
            units::count(samples.found_at_start)
        ),
        format!(
            "  of these  seen {}, lost unseen {}, altered when first seen {}, let go unseen {}, not settled yet {}",
            units::count(samples.seen),
            units::count(samples.lost_unseen),
            units::count(samples.altered_unseen),
            units::count(samples.let_go_unseen),
            units::count(samples.open)
        ),
    ];
    let asked = (report.questions.iter())
        .filter(|(_, answers)| answers.right + answers.late + answers.wrong + answers.failed > 0);
    lines.extend(asked.map(|(name, answers)| {
        let slowest = answers.answer.max_ns.map_or("-".to_owned(), units::nanos);
        format!(
            "  {name:<9} right {}, late {}, wrong {}, failed {}; slowest answer {slowest}",
            units::count(answers.right),
            units::count(answers.late),
            units::count(answers.wrong),
            units::count(answers.failed)
        )
    }));
    lines.extend(report.faults.iter().map(|fault| {
        format!(
            "  {:<9} {} samples at {}, at the age of a {} at most",
            fault.kind.name(),
            units::count(fault.samples),
            fault.durability,
            fault.age.name()
        )
    }));
    lines.push(verdict(report).to_owned());
    lines.join("\n") + "\n"
}

fn verdict(report: &CanaryReport) -> &'static str {
    if !report.is_sound() {
        "Something is gone or wrong: the lines above say what, and --format json names the first faults."
    } else if report.count(FaultKind::Late) > 0 {
        "Nothing is lost or wrong; some samples came late."
    } else {
        "Nothing is late, lost or wrong."
    }
}
