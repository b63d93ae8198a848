//! The comparison section: what makes the runs unequal, then every figure with its ratio.

use serde_json::Value;
use tsb_core::report::Run;

use super::PageRun;
use super::markup::Markup;
use super::verdict::class;
use crate::render::compare::{ComparedFigure, rows, unequal};
use crate::render::names::{letter, path};
use crate::render::side_by_side::caveats;

pub(super) fn section(shown: &[PageRun<'_>], runs: &[Run], values: &[Value], page: &mut Markup) {
    page.section("side-by-side", "Side by side", "");
    who(shown, page);
    let unequal = unequal(runs);
    if unequal.is_empty() {
        page.raw("<p class=\"equal\">The same samples, the same path, the same durability.</p>\n");
    } else {
        page.raw("<div class=\"unequal\"><p><strong>Unequal runs</strong></p><ul>\n");
        for sentence in unequal {
            page.element("<li>", &sentence, "</li>\n");
        }
        page.raw("</ul></div>\n");
    }
    table(values, page);
    page.raw("<p class=\"about\">A ratio is that of two single runs. How much of it is chance is not known until runs are repeated in turn.</p>\n");
    page.end_section();
}

/// Lists the runs and their verdicts, before any ratio.
fn who(shown: &[PageRun<'_>], page: &mut Markup) {
    page.raw("<ul class=\"who\">\n");
    for one in shown {
        let run = one.run;
        page.raw(&format!("<li><span class=\"letter run-{}\">", one.index % 6));
        page.element("", &letter(one.index), "</span> ");
        page.element("<strong>", one.name, "</strong>: ");
        if run.label.is_some() {
            page.text(&format!("{} ", run.target.store));
        }
        page.text(&format!("{}, {}. ", path(run), run.durability.level));
        page.raw(&format!("<strong class=\"status {}\">", class(run.verdict.status)));
        page.element("", &run.verdict.status.to_string(), "</strong>");
        let caveats = caveats(run);
        if !caveats.is_empty() {
            page.element(": ", &caveats.join("; "), ".");
        }
        page.raw("</li>\n");
    }
    page.raw("</ul>\n");
}

fn table(values: &[Value], page: &mut Markup) {
    page.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ratios\"><table class=\"ratios\"><thead><tr><th scope=\"col\">figure</th>");
    for index in 0..values.len() {
        page.element("<th scope=\"col\">", &letter(index), "</th>");
    }
    for index in 1..values.len() {
        page.element("<th scope=\"col\">", &format!("{}/A", letter(index)), "</th>");
    }
    page.raw("</tr></thead>\n");
    let columns = values.len() * 2;
    for (heading, rows) in rows(values) {
        page.raw("<tbody><tr class=\"group\">");
        page.element(
            &format!("<th scope=\"rowgroup\" colspan=\"{columns}\">"),
            heading,
            "</th></tr>\n",
        );
        for row in rows {
            line(&row, values, page);
        }
        page.raw("</tbody>\n");
    }
    page.raw("</table></div>\n");
}

fn line(row: &ComparedFigure, values: &[Value], page: &mut Markup) {
    page.element("<tr><th scope=\"row\">", row.figure.name, "</th>");
    for (index, value) in values.iter().enumerate() {
        page.raw("<td>");
        match (row.figure.of(value), value.pointer(row.figure.at)) {
            (Some(number), Some(exact)) => page.raw(&format!(
                "<data data-at=\"/{index}{}\" data-unit=\"{:?}\" value=\"{exact}\" title=\"{exact}\">{}</data>",
                row.figure.at,
                row.figure.unit,
                row.figure.unit.show(number)
            )),
            _ => page.raw("<span class=\"absent\">-</span>"),
        }
        page.raw("</td>");
    }
    for index in 1..values.len() {
        let ratio = row.ratio(index).map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        page.raw(&format!("<td class=\"ratio\">{ratio}</td>"));
    }
    page.raw("</tr>\n");
}
