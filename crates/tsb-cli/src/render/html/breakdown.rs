//! Response time taken apart: the shares of each quantile, and the slowest operations.

use super::PageRun;
use super::markup::Markup;
use crate::render::breakdown::{Part, largest, parts, quantile_name, slowest};
use crate::render::figures::Unit;
use tsb_core::report::BreakdownReport;
use tsb_run::units;

const AT: &str = "/latency/breakdown";

/// The section; nothing where no run has been taken apart.
pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    if shown.iter().all(|run| run.run.latency.breakdown.is_none()) {
        return;
    }
    page.section(
        "breakdown",
        "Response time taken apart",
        "What the operations around each quantile spent their time on: the mean over those whose response time is within an eighth of it. The shares of a column add up to 100 %.",
    );
    for run in shown {
        if let Some(breakdown) = &run.run.latency.breakdown {
            page.run_heading(run);
            shares(run, breakdown, page);
            worst(run, breakdown, page);
        }
    }
    page.end_section();
}

fn shares(shown: &PageRun<'_>, breakdown: &BreakdownReport, page: &mut Markup) {
    page.wide_table(shown, "response time taken apart");
    page.raw("<thead><tr><th scope=\"col\">part</th>");
    for one in &breakdown.quantiles {
        page.element("<th scope=\"col\">", &quantile_name(one.quantile), "</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    let mut row = |name: &str, place: &str, unit: Unit| {
        page.element("<tr><th scope=\"row\">", name, "</th>");
        for index in 0..breakdown.quantiles.len() {
            page.raw("<td>");
            page.number(shown, &format!("{AT}/quantiles/{index}/{place}"), unit);
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    };
    for part in parts(breakdown) {
        row(part.name, &format!("shares/{}", part.name), Unit::Share);
    }
    row("response time", "response_ns", Unit::Nanos);
    row("operations", "operations", Unit::Count);
    page.raw("</tbody></table></div>\n<ul class=\"meanings\">\n");
    for part in parts(breakdown) {
        page.element("<li><strong>", part.name, "</strong>: ");
        page.element("", part.meaning, ".</li>\n");
    }
    page.raw("</ul>\n<ul class=\"findings\">\n");
    for sentence in slowest(breakdown) {
        page.element("<li>", &sentence, ".</li>\n");
    }
    page.raw("</ul>\n");
}

fn worst(shown: &PageRun<'_>, breakdown: &BreakdownReport, page: &mut Markup) {
    page.raw("<details class=\"behind\"><summary>Table of the slowest operations</summary>\n");
    page.wide_table(shown, "the slowest operations");
    page.raw("<thead><tr><th scope=\"col\">due after</th><th scope=\"col\">response time</th>");
    let parts: Vec<&Part> = parts(breakdown).collect();
    for part in &parts {
        page.element("<th scope=\"col\">", part.name, "</th>");
    }
    page.raw("<th scope=\"col\">mostly</th><th scope=\"col\">group, tick</th><th scope=\"col\">meanwhile</th></tr></thead><tbody>\n");
    for (index, one) in breakdown.worst.iter().enumerate() {
        page.raw("<tr><th scope=\"row\">");
        page.number(shown, &format!("{AT}/worst/{index}/due_ns"), Unit::Nanos);
        page.raw("</th><td>");
        page.number(shown, &format!("{AT}/worst/{index}/response_ns"), Unit::Nanos);
        for part in &parts {
            page.raw("</td><td>");
            page.number(
                shown,
                &format!("{AT}/worst/{index}/parts/{}_ns", part.name),
                Unit::Nanos,
            );
        }
        page.element("</td><td>", largest(one).map_or("-", |part| part.name), "</td><td>");
        page.text(&format!("{}, {}", one.group, one.tick));
        let during = one.during.iter();
        let during = during.map(|event| format!("{} ({})", event.kind.words(), units::nanos(event.overlap_ns)));
        let during: Vec<String> = during.collect();
        let during = if during.is_empty() {
            "-".to_owned()
        } else {
            during.join("; ")
        };
        page.element("</td><td>", &during, "</td></tr>\n");
    }
    page.raw("</tbody></table></div></details>\n");
}
