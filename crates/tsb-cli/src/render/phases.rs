//! Formats the phases of a run: as a table of text, and what each came to in sentences, which the
//! page shows as well.

use tsb_core::report::{ON_TIME_NS, PhaseReport, Run};
use tsb_core::verdict::HELD_SHARE_MIN;
use tsb_run::units::{nanos, scaled};

use super::lines::Lines;

/// The table of the phases and their sentences; nothing for a run without phases.
pub fn text(run: &Run, lines: &mut Lines) {
    if run.phases.is_empty() {
        return;
    }
    lines.heading("Phases: samples per second, and response time");
    let name = |phase: &PhaseReport| tsb_run::foreign::line(&phase.name).into_owned();
    let names = run.phases.iter().map(|phase| name(phase).chars().count());
    let width = names.max().unwrap_or(0).clamp(5, 24);
    lines.row(format!(
        "  {:width$} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "", "from", "to", "asked", "held", "p99", "max"
    ));
    for phase in &run.phases {
        let rate = |value: Option<f64>| value.map_or("-".to_owned(), scaled);
        let response = phase.latency.unwrap_or_default().response;
        let time = |value: Option<u64>| value.map_or("-".to_owned(), nanos);
        lines.row(format!(
            "  {:width$} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            name(phase),
            nanos(phase.from_ns),
            nanos(phase.end_ns),
            rate(phase.asked_per_second),
            rate(phase.held_per_second),
            time(response.p99_ns),
            time(response.max_ns),
        ));
    }
    for sentence in sentences(&run.phases) {
        lines.sentence(sentence);
    }
}

/// What the phases came to beyond their numbers: faults of the plan, how long answers were late,
/// and what was left at the end of each.
pub fn sentences(phases: &[PhaseReport]) -> Vec<String> {
    phases.iter().filter_map(sentence).collect()
}

fn sentence(phase: &PhaseReport) -> Option<String> {
    let faults = phase
        .faults
        .as_ref()
        .map(|faults| format!("by the plan the store {faults}"));
    let parts: Vec<String> = [faults, lateness(phase), backlog(phase)]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| format!("{}: {}", phase.name, parts.join("; ")))
}

/// Until when answers were late in it; nothing where the first interval was on time.
fn lateness(phase: &PhaseReport) -> Option<String> {
    let latency = phase.latency.filter(|latency| latency.response.count > 0)?;
    let limit = nanos(ON_TIME_NS);
    match (phase.on_time_after_ns, latency.response.max_ns) {
        (Some(0), _) | (None, None) => None,
        (Some(after_ns), _) => Some(format!(
            "late until {} after it began; then an interval came in which every answer took less than {limit} from due",
            nanos(after_ns)
        )),
        (None, Some(max_ns)) => Some(format!(
            "late in every interval: some answer took more than {limit} from due, the slowest {}",
            nanos(max_ns)
        )),
    }
}

/// What the store had not taken by the end of a phase, where that is more than a verdict allows.
fn backlog(phase: &PhaseReport) -> Option<String> {
    let kept = phase.kept_share.filter(|kept| *kept < HELD_SHARE_MIN)?;
    Some(format!(
        "at its end the store was behind by {:.1} % of what was due in it",
        (1.0 - kept) * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::Histogram;
    use tsb_core::report::PhaseLatency;

    use super::*;

    fn phase(name: &str, on_time_after_ns: Option<u64>, kept_share: f64) -> PhaseReport {
        let mut histogram = Histogram::new();
        histogram.record(2_000_000_000);
        let mut phase = PhaseReport::new(name, 0, 1);
        phase.on_time_after_ns = on_time_after_ns;
        phase.kept_share = Some(kept_share);
        phase.latency = Some(PhaseLatency::new(&histogram, &histogram));
        phase
    }

    #[test]
    fn the_story_is_told_where_there_is_one() {
        let mut spike = phase("spike", None, 0.4);
        spike.faults = Some("stalls for 2.00 s".to_owned());
        let told = sentences(&[
            phase("load", Some(0), 1.0),
            spike,
            phase("recovery", Some(3_000_000_000), 0.99),
            PhaseReport::new("unmeasured", 0, 1),
        ]);
        assert_eq!(
            told,
            [
                "spike: by the plan the store stalls for 2.00 s; late in every interval: some answer took more than 100 ms \
                 from due, the slowest 2.00 s; at its end the store was behind by 60.0 % of what was due in it",
                "recovery: late until 3.00 s after it began; then an interval came in which every answer took less than \
                 100 ms from due",
            ]
        );
    }
}
