//! The latency section: quantiles as curves and as a table.

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::Unit;
use crate::render::times;

const COLUMNS: [(&str, &str, Unit); 7] = [
    ("p50", "p50_ns", Unit::Nanos),
    ("p90", "p90_ns", Unit::Nanos),
    ("p99", "p99_ns", Unit::Nanos),
    ("p99.9", "p999_ns", Unit::Nanos),
    ("max", "max_ns", Unit::Nanos),
    ("operations", "count", Unit::Count),
    ("samples", "samples", Unit::Count),
];

pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "latency",
        "Latency by quantile",
        "Response time, delivery, service time and lag are different things; an average of any of them says little.",
    );
    if shown.iter().any(|run| run.run.latency.curves.is_some()) {
        page.plot(
            "quantiles",
            None,
            "Quantiles",
            "How slow the slowest part of all operations was: further right is rarer. A curve ends where fewer than ten operations lie beyond.",
        );
    }
    for run in shown {
        page.run_heading(run);
        table(run, page);
    }
    page.end_section();
}

fn table(shown: &PageRun<'_>, page: &mut Markup) {
    page.raw("<p>An operation is done when ");
    page.text(&shown.run.latency.done);
    page.raw(".</p>\n");
    page.wide_table(shown, "latency");
    page.raw("<thead><tr><th scope=\"col\">time</th>");
    for (name, ..) in COLUMNS {
        page.element("<th scope=\"col\">", name, "</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    let times = times::of(shown.run);
    for (time, _) in &times {
        page.element("<tr><th scope=\"row\">", time.name, "</th>");
        for (_, column, unit) in COLUMNS {
            page.raw("<td>");
            page.number(shown, &format!("/latency/{}/{column}", time.name), unit);
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n<ul class=\"meanings\">\n");
    for (time, _) in &times {
        page.element("<li><strong>", time.name, "</strong>: ");
        page.element("", time.meaning, "</li>\n");
    }
    page.raw("<li><strong>p99</strong>: 99 of 100 operations took no longer. A dash stands where too few operations ran to say");
    if let Some(why) = times::absent(&shown.run.latency.response) {
        page.element(" (", &why, ")");
    }
    page.raw(". Batches are operations here: one may carry many samples.</li>\n");
    if shown.run.latency.untimed > 0 {
        page.raw("<li><strong>");
        page.number(shown, "/latency/untimed", Unit::Count);
        page.raw("</strong> operations ended where they could not be timed.</li>\n");
    }
    page.raw("</ul>\n");
}
