//! The section of queries that were asked while samples were written.

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::Unit;
use tsb_run::units;

const COLUMNS: [(&str, &str, Unit); 11] = [
    ("p50", "p50_ns", Unit::Nanos),
    ("p90", "p90_ns", Unit::Nanos),
    ("p99", "p99_ns", Unit::Nanos),
    ("p99.9", "p999_ns", Unit::Nanos),
    ("max", "max_ns", Unit::Nanos),
    ("asked", "asked_per_second", Unit::Rate),
    ("held", "held_per_second", Unit::Rate),
    ("answers", "answers", Unit::Count),
    ("wrong", "wrong", Unit::Count),
    ("rows", "rows", Unit::Count),
    ("CPU of a query", "store_cpu_ns_per_query", Unit::NanosEach),
];

/// The section; nothing if no run has queries.
pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    let with_queries = || shown.iter().filter(|run| !run.run.query_latency.is_empty());
    if with_queries().next().is_none() {
        return;
    }
    page.section(
        "queries",
        "Queries beside the writes",
        "From when a query was due until its answer had come; in a closed loop, from when it was asked. Each answer was compared with what had been sent.",
    );
    for run in with_queries() {
        page.run_heading(run);
        table(run, page);
    }
    page.end_section();
}

fn table(shown: &PageRun<'_>, page: &mut Markup) {
    page.wide_table(shown, "queries");
    page.raw("<thead><tr><th scope=\"col\">stream</th>");
    for (name, ..) in COLUMNS {
        page.element("<th scope=\"col\">", name, "</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    for (name, stream) in &shown.run.query_latency {
        page.element("<tr><th scope=\"row\">", name, "");
        if *name != stream.query {
            page.element(" <span class=\"about\">", &stream.query, "</span>");
        }
        page.raw("</th>");
        // As a JSON pointer escapes them.
        let key = name.replace('~', "~0").replace('/', "~1");
        for (_, column, unit) in COLUMNS {
            page.raw("<td>");
            page.number(shown, &format!("/query_latency/{key}/{column}"), unit);
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n");
    let wrong = shown.run.query_latency.iter();
    let wrong = wrong.flat_map(|(name, stream)| stream.wrong_answers.iter().map(move |wrong| (name, wrong)));
    let wrong: Vec<_> = wrong.collect();
    if wrong.is_empty() {
        return;
    }
    page.raw("<ul class=\"meanings\">\n");
    for (name, wrong) in wrong {
        page.element("<li><strong>", name, "</strong> was answered wrong");
        page.text(&format!(
            " after {}, about {}: expected {}, came {}.",
            units::nanos(wrong.after_ns),
            wrong.series,
            wrong.expected,
            wrong.came
        ));
        page.raw("</li>\n");
    }
    page.raw("</ul>\n");
}
