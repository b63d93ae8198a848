//! The verdict with its reasons, the headline figures, and durability.

use tsb_core::Durability;
use tsb_core::verdict::Status;

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::{Figure, PROJECTION, RATE, STALENESS, Unit};

/// The first section of the page.
pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    page.raw("<section id=\"verdict\" aria-label=\"Verdict\">\n");
    for run in shown {
        page.run_heading(run);
        one(run, page);
        headline(run, page);
        notes(run, page);
    }
    page.end_section();
}

fn one(shown: &PageRun<'_>, page: &mut Markup) {
    let verdict = &shown.run.verdict;
    page.raw(&format!("<div class=\"verdict {}\">\n", class(verdict.status)));
    page.element("<p class=\"word\">", &verdict.status.to_string(), "</p>\n");
    page.element("<p>", meaning(verdict.status), "</p>\n<ul>\n");
    for reason in &verdict.reasons {
        page.element("<li>", reason, "</li>\n");
    }
    if shown.run.interrupted {
        page.raw("<li><strong>Interrupted</strong>: all figures are about the part that was done.</li>\n");
    }
    page.raw("</ul>\n");
    if !verdict.measured.is_empty() {
        page.raw("<details><summary>Every figure that has a threshold</summary>\n<ul>\n");
        for measured in &verdict.measured {
            page.element("<li>", &measured.to_string(), "</li>\n");
        }
        page.raw("</ul>\n</details>\n");
    }
    page.raw("</div>\n");
}

pub(super) const fn class(status: Status) -> &'static str {
    match status {
        Status::Invalid | Status::GeneratorLimited => "is-bad",
        Status::TransportLimited | Status::StoreLimited => "is-limit",
        Status::Valid => "is-good",
        // Unverified and noisy runs, and a verdict that this page does not know.
        _ => "is-doubtful",
    }
}

const fn meaning(status: Status) -> &'static str {
    match status {
        Status::Invalid => "Do not use these figures: the accounts do not add up, or acknowledged data is not there.",
        Status::Unverified => "Too little was read back and compared to know whether what was acknowledged is there.",
        Status::GeneratorLimited => "Do not use these figures for the store: the generator was the limit.",
        Status::TransportLimited => {
            "Do not use these figures for the store: too much was lost before it got there. What was lost is a measurement of the way to it."
        }
        Status::StoreLimited => {
            "The store did not hold the asked rate, or refused what it was given. What it held is a measurement of the store."
        }
        Status::Noisy => {
            "Every sample is accounted for, but the machine was disturbed: rates may be too low and times too long."
        }
        Status::Valid => "Every sample is accounted for, and neither the generator nor the machine was the limit.",
        _ => "This page does not know what the verdict means: see its reasons.",
    }
}

/// The headline figures, at most four.
fn headline(shown: &PageRun<'_>, page: &mut Markup) {
    let run = shown.run;
    page.raw("<dl class=\"headline\">\n");
    let level = run.durability.level;
    let held = format!("held at durability {level}");
    card(shown, &held, &RATE[1], "accepted; what was asked is below", page);
    let response = &run.latency.response;
    let quantiles = [
        (
            response.p99_ns,
            "response p99",
            "/latency/response/p99_ns",
            "99 of 100 operations were answered within this, from the moment they were due",
        ),
        (
            response.p90_ns,
            "response p90",
            "/latency/response/p90_ns",
            "9 of 10 operations were answered within this, from the moment they were due; too few ran for p99",
        ),
        (
            response.p50_ns,
            "response p50",
            "/latency/response/p50_ns",
            "half of the operations were answered within this; too few ran for more",
        ),
        (
            response.max_ns,
            "response at most",
            "/latency/response/max_ns",
            "the slowest operation; too few ran for a quantile",
        ),
    ];
    if let Some((_, name, at, meaning)) = quantiles.into_iter().find(|(value, ..)| value.is_some()) {
        let figure = Figure {
            name,
            at,
            unit: Unit::Nanos,
            meaning,
        };
        card(shown, name, &figure, meaning, page);
    }
    card(
        shown,
        "staleness p99",
        &STALENESS[1],
        "age of the newest visible sample, over all series and moments",
        page,
    );
    // What the store occupies now says little: heads and journal do not grow with time.
    card(
        shown,
        "a week",
        &PROJECTION[1],
        "what a week at the held rate would occupy; what it rests on stands with the sizes",
        page,
    );
    page.raw("</dl>\n");
}

fn card(shown: &PageRun<'_>, name: &str, figure: &Figure, meaning: &str, page: &mut Markup) {
    if figure.of(shown.json).is_none() {
        return;
    }
    page.element("<div><dt>", name, "</dt><dd class=\"number\">");
    page.figure(shown, figure);
    page.element("</dd><dd class=\"meaning\">", meaning, "</dd></div>\n");
}

fn notes(shown: &PageRun<'_>, page: &mut Markup) {
    if shown.run.notes.is_empty() {
        return;
    }
    page.raw("<div class=\"notes\"><p><strong>Mind</strong></p><ul>\n");
    for note in &shown.run.notes {
        page.element("<li>", note, "</li>\n");
    }
    page.raw("</ul></div>\n");
}

/// The durability of an acknowledgement, and how long samples waited for it.
pub(super) fn durability(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "durability",
        "Durability and loss window",
        "What an acknowledged sample had reached, and how long a sample could be lost before it got there.",
    );
    for run in shown {
        page.run_heading(run);
        let report = &run.run.durability;
        page.raw("<p class=\"level\"><strong>");
        page.text(&report.level.to_string());
        page.raw("</strong>, on ");
        page.number(run, "/durability/copies", Unit::Count);
        page.text(if report.copies == 1 { " copy. " } else { " copies. " });
        page.text(survives(report.level));
        page.raw("</p>\n");
        if report.wait.is_some() {
            page.figures(run, WAIT);
        }
    }
    page.end_section();
}

const fn survives(level: Durability) -> &'static str {
    match level {
        Durability::Unconfirmed => "Its arrival was not acknowledged: it may be lost anywhere on the way.",
        Durability::Volatile => "It is in the store's memory: it is lost when that process ends.",
        Durability::Buffered => {
            "It is with the operating system: it survives the end of the process, and not a power cut."
        }
        Durability::Synced => "It was synced to the medium: it survives a power cut, if the medium keeps its word.",
    }
}

const WAIT: &[Figure] = &[
    Figure {
        name: "wait, p50",
        at: "/durability/wait/p50_ns",
        unit: Unit::Nanos,
        meaning: "Half of the operations had reached that level within this time of being due.",
    },
    Figure {
        name: "wait, p99",
        at: "/durability/wait/p99_ns",
        unit: Unit::Nanos,
        meaning: "99 of 100 had. What a failure takes with it is what was sent in this time.",
    },
    Figure {
        name: "wait, max",
        at: "/durability/wait/max_ns",
        unit: Unit::Nanos,
        meaning: "The longest wait of this run; a longer run may see a longer one.",
    },
];
