//! The phases of a run, one after the other: a table, and what each came to in words.

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::Unit;
use crate::render::phases::sentences;

/// The columns: heading, place below the phase, unit.
const COLUMNS: [(&str, &str, Unit); 8] = [
    ("from", "from_ns", Unit::Nanos),
    ("to", "end_ns", Unit::Nanos),
    ("asked", "asked_per_second", Unit::Rate),
    ("held", "held_per_second", Unit::Rate),
    ("response p50", "latency/response/p50_ns", Unit::Nanos),
    ("response p99", "latency/response/p99_ns", Unit::Nanos),
    ("slowest", "latency/response/max_ns", Unit::Nanos),
    ("stalest", "staleness_max_ms", Unit::Millis),
];

/// The section; nothing where no run has phases.
pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    if shown.iter().all(|run| run.run.phases.is_empty()) {
        return;
    }
    page.section(
        "phases",
        "Phase by phase",
        "The plan has phases. Every plot over time marks where each begins, and shades those in which the plan disturbs the store; of runs side by side, where all have the same phases. Held is above asked where what was left of an earlier phase was taken; response times are of the operations that ended in the phase.",
    );
    for run in shown.iter().filter(|run| !run.run.phases.is_empty()) {
        page.run_heading(run);
        table(run, page);
        page.raw("<ul class=\"findings\">\n");
        for sentence in sentences(&run.run.phases) {
            page.element("<li>", &sentence, "</li>\n");
        }
        page.raw("</ul>\n");
    }
    page.end_section();
}

fn table(run: &PageRun<'_>, page: &mut Markup) {
    page.wide_table(run, "phases");
    page.raw("<thead><tr><th scope=\"col\">phase</th>");
    for (heading, ..) in COLUMNS {
        page.element("<th scope=\"col\">", heading, "</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    for (index, phase) in run.run.phases.iter().enumerate() {
        page.element(
            "<tr><th scope=\"row\">",
            &format!("{} {}", index + 1, phase.name),
            "</th>",
        );
        for (_, at, unit) in COLUMNS {
            page.raw("<td>");
            page.number(run, &format!("/phases/{index}/{at}"), unit);
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n");
}
