//! What came of thresholds, and the attempts before a run.

use super::PageRun;
use super::markup::Markup;
use crate::render::thresholds::{of_attempt, sentence};

/// The section; nothing where no run has either.
pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    let has = |run: &&PageRun<'_>| !run.run.thresholds.is_empty() || !run.run.attempts.is_empty();
    if !shown.iter().any(|run| has(&run)) {
        return;
    }
    page.section(
        "thresholds",
        "Thresholds",
        "Conditions that were given with the command, and what came of each. One whose figure the run does not have was not passed.",
    );
    for run in shown.iter().filter(has) {
        page.run_heading(run);
        page.raw("<ul class=\"findings\">\n");
        for threshold in &run.run.thresholds {
            page.element("<li>", &sentence(threshold), "</li>\n");
        }
        for (index, attempt) in run.run.attempts.iter().enumerate() {
            let text = format!("Attempt {}, which was repeated, was {}", index + 1, of_attempt(attempt));
            page.element("<li>", &text, "</li>\n");
        }
        page.raw("</ul>\n");
    }
    page.end_section();
}
