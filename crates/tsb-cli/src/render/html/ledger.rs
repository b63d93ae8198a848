//! The ledger section: the stages from due to verified, and the samples that left after each.

use tsb_core::ledger::{Counter, EQUATIONS};

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::Unit;

/// The stages of a sample, and their meaning.
const STAGES: [(Counter, &str); 6] = [
    (Counter::Due, "The schedule said that it was time."),
    (Counter::Sent, "Handed to the wire or to the store."),
    (Counter::Confirmed, "Acknowledged by a server."),
    (Counter::Received, "Seen by our listener, or by the store."),
    (Counter::Accepted, "Taken by the store: from here on it must be there."),
    (Counter::Verified, "Read back after the run, and as it was written."),
];

/// Number of losses listed on the page; all are in the JSON.
const SHOWN: usize = 20;

pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "ledger",
        "Ledger",
        "Where every sample went. Each bar is a stage; what left the flow behind it is counted by name, and every stage must be the sum of what became of it.",
    );
    for run in shown {
        page.run_heading(run);
        flow(run, page);
        findings(run, page);
    }
    page.end_section();
}

fn flow(shown: &PageRun<'_>, page: &mut Markup) {
    let ledger = &shown.run.ledger.counts;
    let stages = STAGES.iter().filter(|(counter, _)| ledger.get(*counter).is_some());
    let most = stages
        .clone()
        .map(|(counter, _)| ledger.count(*counter))
        .max()
        .unwrap_or(0)
        .max(1);
    page.raw("<ol class=\"flow\">\n");
    for (counter, meaning) in stages {
        let width = ledger.count(*counter) as f64 * 100.0 / most as f64;
        page.element("<li><span class=\"stage\">", counter.name(), "</span>");
        page.raw("<span class=\"number\">");
        page.number(shown, &format!("/ledger/{}", counter.name()), Unit::Count);
        page.raw(&format!(
            "</span><span class=\"track\"><span style=\"width:{width:.3}%\"></span></span>"
        ));
        page.element("<span class=\"meaning\">", meaning, "</span>");
        branches(shown, *counter, page);
        page.raw("</li>\n");
    }
    page.raw("</ol>\n");
    page.raw(if ledger.is_balanced() {
        "<p class=\"balance is-good\"><strong>Balanced</strong>: every sample is accounted for.</p>\n"
    } else {
        "<p class=\"balance is-bad\"><strong>Not balanced</strong>: the equations below do not hold.</p>\n"
    });
}

/// Lists the samples that left after a stage.
fn branches(shown: &PageRun<'_>, stage: Counter, page: &mut Markup) {
    let ledger = &shown.run.ledger.counts;
    let is_stage = |counter: &Counter| STAGES.iter().any(|(stage, _)| stage == counter);
    let parts = EQUATIONS.iter().filter(|equation| equation.whole == stage);
    let mut left: Vec<Counter> = parts
        .flat_map(|equation| equation.parts)
        .copied()
        .filter(|part| !is_stage(part) && ledger.get(*part).is_some())
        .collect();
    if stage == Counter::Verified && ledger.get(Counter::Duplicated).is_some() {
        left.push(Counter::Duplicated);
    }
    if left.is_empty() {
        return;
    }
    page.raw("<ul class=\"branches\">");
    for counter in left {
        let is_zero = ledger.count(counter) == 0;
        page.raw(if is_zero { "<li>" } else { "<li class=\"lost\">" });
        page.text(&format!("{} ", counter.name().replace('_', " ")));
        page.number(shown, &format!("/ledger/{}", counter.name()), Unit::Count);
        page.element(" <span class=\"meaning\">(", branch_meaning(counter), ")</span></li>");
    }
    page.raw("</ul>");
}

const fn branch_meaning(counter: Counter) -> &'static str {
    match counter {
        Counter::Shed => "due, never sent",
        Counter::KernelDropped => "dropped by the kernel's buffers",
        Counter::LostInTransport => "sent, never received",
        Counter::Malformed => "received, but no record",
        Counter::Rejected => "refused by the store",
        Counter::Refused => "refused by the server",
        Counter::Unknown => "the server never said",
        Counter::Superseded => "a later write of the same timestamp won",
        Counter::Expired => "older than the store's retention",
        Counter::Lost => "acknowledged and not there",
        Counter::Altered => "there with another value",
        Counter::Duplicated => "copies beyond one",
        Counter::Unconsolidated => "in a step that no row says yet",
        Counter::Unrepresented => "in a step that the store leaves unknown by its own rules",
        Counter::Uncompared => "in a row that depends on samples which may not have come",
        _ => "",
    }
}

fn findings(shown: &PageRun<'_>, page: &mut Markup) {
    let ledger = &shown.run.ledger;
    let mut lines: Vec<String> = ledger
        .violated
        .iter()
        .map(|equation| format!("violated: {equation}"))
        .collect();
    let reasons = ledger.rejected_by_reason.iter();
    lines.extend(reasons.map(|(reason, samples)| format!("rejected as {reason}: {}", tsb_run::units::count(*samples))));
    lines.extend(ledger.lost_at_most.map(|at_most| {
        let samples = tsb_run::units::count(at_most);
        format!("the store may have lost up to {samples}: it is not known which samples never reached it")
    }));
    lines.extend(ledger.losses.iter().take(SHOWN).map(ToString::to_string));
    if ledger.losses.len() > SHOWN {
        lines.push(format!("and {} more, named in the JSON", ledger.losses.len() - SHOWN));
    }
    if lines.is_empty() {
        return;
    }
    page.raw("<ul class=\"findings\">\n");
    for line in lines {
        page.element("<li>", &line, "</li>\n");
    }
    page.raw("</ul>\n");
}
