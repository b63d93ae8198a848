//! What makes sides unequal beside their figures.

use std::fmt::Write;

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::verdict::Status;

/// Asked rates that differ by less than this share count as equal: they are computed from counts.
const ASKED_SAME: f64 = 0.01;

/// Counts of samples that a side did not take as they were sent, and the verbs for them.
const NOT_TAKEN: [(Counter, &str); 10] = [
    (Counter::Shed, "did not send"),
    (Counter::KernelDropped, "dropped on the way"),
    (Counter::LostInTransport, "lost on the way"),
    (Counter::Malformed, "could not read"),
    (Counter::Rejected, "refused"),
    (Counter::Refused, "refused at its server"),
    (Counter::Unknown, "left unanswered"),
    (Counter::Lost, "lost"),
    (Counter::Altered, "altered"),
    (Counter::Duplicated, "duplicated"),
];

/// A side and its runs so far.
pub(super) struct SideRuns<'a> {
    pub name: &'a str,
    pub runs: Vec<&'a Run>,
}

/// The differences that a reader must know before the figures, work and durability first. Empty
/// if the sides differ in nothing that is listed here.
pub(super) fn unequal(sides: &[SideRuns<'_>]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut tell = |what: &dyn Fn(&Run) -> String, start: &str, end: &str| {
        let said: Vec<Vec<String>> = sides.iter().map(|side| distinct(&side.runs, what)).collect();
        if said.iter().any(|one| Some(one) != said.first()) {
            let named = sides.iter().zip(&said);
            let named: Vec<String> = named
                .map(|(side, said)| format!("{} {}", side.name, said.join(" or ")))
                .collect();
            sentences.push(format!("{start}: {}. {end}", named.join(", ")));
        }
    };
    tell(
        &|run| run.fingerprint.clone(),
        "They did not do the same work; fingerprints of the samples",
        "Ratios compare the work as much as the side.",
    );
    tell(
        &durability,
        "Their acknowledgements are not worth the same",
        "A lower level is faster because it promises less.",
    );
    tell(
        &|run| run.target.exactness.clone(),
        "Their stores do not return values equally exactly",
        "A store that keeps less has less to do.",
    );
    tell(
        &|run| if run.rate.closed_loop { "closed" } else { "open" }.to_owned(),
        "One waited for its store and another did not; loops",
        "Response times of a closed loop leave out how long others would have waited.",
    );
    let asked_of = |side: &SideRuns<'_>| side.runs.first().and_then(|run| run.rate.asked_per_second);
    let rates = sides
        .iter()
        .filter_map(|side| Some((side.name.to_owned(), asked_of(side)?)));
    sentences.extend(asked(&rates.collect::<Vec<_>>()));
    sentences.extend(sides.iter().filter_map(not_taken));
    sentences.extend(sides.iter().filter_map(no_result));
    sentences
}

fn distinct(runs: &[&Run], what: &dyn Fn(&Run) -> String) -> Vec<String> {
    let mut said: Vec<String> = runs.iter().map(|run| what(run)).collect();
    said.sort();
    said.dedup();
    said
}

/// What an acknowledgement was worth: `synced on 1 copy`.
pub fn durability(run: &Run) -> String {
    let copies = run.durability.copies;
    let plural = if copies == 1 { "copy" } else { "copies" };
    format!("{} on {copies} {plural}", run.durability.level)
}

/// A sentence if the asked rates, each with the name of who was asked, differ by more than counting
/// explains.
pub fn asked(rates: &[(String, f64)]) -> Option<String> {
    let least = rates.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
    let most = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    (most - least > ASKED_SAME * most).then(|| {
        let named: Vec<String> = rates
            .iter()
            .map(|(name, rate)| format!("{name} {}/s", crate::units::scaled(*rate)))
            .collect();
        format!(
            "They were asked for different rates: {}. A store that is asked for less answers sooner.",
            named.join(", ")
        )
    })
}

/// A sentence if a side did not take every sample as it was sent.
fn not_taken(side: &SideRuns<'_>) -> Option<String> {
    let mut text = String::new();
    for (counter, verb) in NOT_TAKEN {
        let count: u64 = side.runs.iter().filter_map(|run| run.ledger.counts.get(counter)).sum();
        if count > 0 {
            let joint = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{joint}{verb} {}", crate::units::count(count));
        }
    }
    let due: u64 = side
        .runs
        .iter()
        .filter_map(|run| run.ledger.counts.get(Counter::Due))
        .sum();
    (!text.is_empty()).then(|| {
        format!(
            "{} {text} of {} samples that were due. A side that does less of the work is faster for it.",
            side.name,
            crate::units::count(due)
        )
    })
}

/// A sentence if the figures of a side are no result of its store.
fn no_result(side: &SideRuns<'_>) -> Option<String> {
    let without = |status: &Status| matches!(status, Status::Invalid | Status::Unverified | Status::GeneratorLimited);
    let count = side.runs.iter().filter(|run| without(&run.verdict.status)).count();
    let first = side.runs.iter().find(|run| without(&run.verdict.status))?;
    let reason = first
        .verdict
        .reasons
        .first()
        .map_or("no reason is given", String::as_str);
    Some(format!(
        "{} has {count} of {} runs without a result, the first {}: {reason}",
        side.name,
        side.runs.len(),
        first.verdict.status
    ))
}

#[cfg(test)]
mod tests;
