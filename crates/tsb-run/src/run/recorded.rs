//! The parts of a report that describe a replayed recording.

use std::ops::Range;

use tsb_core::report::RecordingReport;
use tsb_core::workload::Workload;

use super::run_context::RunContext;
use crate::units;

/// Number of unreadable rows that are listed.
const NAMED: usize = 5;
/// Number of the reader's decisions that are listed.
const TOLD: usize = 8;

/// What was replayed, moved and left out; `None` for a simulated fleet.
pub(super) fn report(workload: &Workload, issued: &[Range<u64>]) -> Option<RecordingReport> {
    let window = workload.window()?;
    let mut report = RecordingReport::default();
    report.series = window.series.into();
    report.samples = window.present;
    if window.own_times { "own" } else { "grid" }.clone_into(&mut report.times);
    report.grid_ns = (!window.own_times).then_some(window.recorded_interval_ns);
    report.start_ns = window.start.0;
    report.length_ns = window.length_ns;
    report.passes = workload.passes(issued);
    report.copies = window.copies.into();
    report.moved = window.moved;
    report.moved_ns_max = window.moved_ns_max;
    report.dropped = window.superseded;
    report.doubled = window.doubled;
    report.left_out = window.problems;
    report.decisions = workload.trace_decisions().to_vec();
    Some(report)
}

/// Caveats about the recording for the reader of the figures.
pub(super) fn notes(context: &RunContext) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(times(&context.workload));
    let decisions = context.workload.trace_decisions();
    notes.extend(
        decisions
            .iter()
            .take(TOLD)
            .map(|decision| format!("the recording: {decision}")),
    );
    if decisions.len() > TOLD {
        notes.push(format!("and {} more such notes in the report", decisions.len() - TOLD));
    }
    notes.extend(left_out(context));
    notes
}

/// How the recorded timestamps were mapped to the run's.
fn times(workload: &Workload) -> Option<String> {
    let window = workload.window()?;
    if window.own_times {
        let doubled = match window.doubled {
            0 => String::new(),
            doubled => format!(
                "; {} of them have the time of another of their series, and the store keeps what it keeps of these",
                units::count(doubled)
            ),
        };
        return Some(format!(
            "the recording is replayed at its own times: {} samples, none moved or dropped{doubled}",
            units::count(window.present)
        ));
    }
    (window.moved > 0 || window.superseded > 0).then(|| {
        format!(
            "the recording is laid on a grid of {}: of {} samples {} were moved, by at most {}, and {} dropped since a \
             later one fell on the same tick (grid=none replays it at its own times)",
            units::nanos(window.recorded_interval_ns),
            units::count(window.present + window.superseded),
            units::count(window.moved),
            units::nanos(window.moved_ns_max),
            units::count(window.superseded)
        )
    })
}

/// The number of rows and cells that could not be read, and the first of them.
fn left_out(context: &RunContext) -> Vec<String> {
    let Some(problems) = context
        .workload
        .trace_problems()
        .filter(|problems| !problems.is_empty())
    else {
        return Vec::new();
    };
    let kinds: Vec<String> = problems
        .kinds
        .iter()
        .map(|(what, count)| format!("{what}: {}", units::count(*count)))
        .collect();
    let mut lines = vec![format!(
        "{} rows or cells of {} were left out: {}",
        units::count(problems.count),
        context.plan.workload.fleet,
        kinds.join(", ")
    )];
    lines.extend(problems.named.iter().take(NAMED).map(ToString::to_string));
    let more = problems.count.saturating_sub(NAMED as u64);
    if more > 0 {
        lines.push(format!("and {} more", units::count(more)));
    }
    lines
}

/// A note if a part of the recording was replayed more than once.
pub(super) fn repeats(workload: &Workload, issued: &[Range<u64>]) -> Option<String> {
    let window = workload.window()?;
    let passes = workload.passes(issued);
    let copies = if window.copies > 1 {
        format!(
            ", and each of its {} series is replayed as up to {} copies, shifted in time",
            window.series, window.copies
        )
    } else {
        String::new()
    };
    let length = if window.own_times {
        units::nanos(window.length_ns)
    } else {
        format!("{} ticks", window.ticks)
    };
    (passes > 1.0 || window.copies > 1)
        .then(|| format!("a recorded window of {length} was passed {passes:.2} times{copies}"))
}
