//! The page of sides that ran in rounds: ratios with their intervals, and every run as a point.
//!
//! Its plots are markup, so it needs no script.

use std::fmt::Write;

use tsb_core::report::{RoundRun, SideComparison, SideRatio};
use tsb_run::compare::{DECIDING, is_headline};

use super::markup::Markup;
use super::{STYLE, begin};
use crate::render::names::{moment, path};
use crate::render::sides::{ending, headline, percent, sentence, times, unequal_heading, unit, warm_up};

const OWN_STYLE: &str = include_str!("sides.css");

/// The whole page.
pub fn page(comparison: &SideComparison) -> String {
    let names: Vec<String> = comparison
        .sides
        .iter()
        .map(|side| format!("{} {}", side.name, side.about))
        .collect();
    let title = names.join(", ");
    let mut page = Markup::new();
    begin(
        &format!("{title}: a comparison of tsb"),
        &[STYLE, OWN_STYLE],
        "comparison",
        &mut page,
    );
    page.raw("<main id=\"main\">\n");
    masthead(comparison, &mut page);
    unequal(comparison, &mut page);
    for a in 0..comparison.sides.len() {
        for b in a + 1..comparison.sides.len() {
            ratios(comparison, a, b, &mut page);
        }
    }
    rounds(comparison, &mut page);
    means(comparison, &mut page);
    method(comparison, &mut page);
    page.raw("</main>\n<footer><p>");
    page.text(&format!(
        "Written by tsb {}, report schema {}. The JSON result has the exact numbers, and every run.",
        comparison.written.tsb_version, comparison.written.schema_version
    ));
    page.raw("</p></footer>\n</body>\n</html>\n");
    page.finish()
}

fn letter(comparison: &SideComparison, side: usize, page: &mut Markup) {
    let name = comparison.sides.get(side).map_or("?", |side| side.name.as_str());
    page.raw(&format!("<span class=\"letter run-{}\">", side % 6));
    page.text(name);
    page.raw("</span> ");
}

fn masthead(comparison: &SideComparison, page: &mut Markup) {
    page.raw("<h1>");
    for (index, side) in comparison.sides.iter().enumerate() {
        letter(comparison, index, page);
        page.text(&side.about);
        page.raw(" ");
    }
    page.raw("</h1>\n<p class=\"about\">");
    page.text(&ending(comparison));
    if let Some(first) = comparison.runs.first() {
        page.text(&format!(
            " Begun {} on {} x {}, {}.",
            moment(first.started_at_ns),
            first.machine.cores,
            first.machine.cpu.as_deref().unwrap_or("an unknown CPU"),
            path(first)
        ));
    }
    page.raw("</p>\n");
}

fn unequal(comparison: &SideComparison, page: &mut Markup) {
    let boxes = [
        ("unequal", unequal_heading(comparison), &comparison.unequal),
        ("notes", "Before using a figure", &comparison.notes),
    ];
    for (class, heading, sentences) in boxes.into_iter().filter(|(.., sentences)| !sentences.is_empty()) {
        page.raw(&format!("<div class=\"{class}\"><p><strong>"));
        page.text(heading);
        page.raw("</strong></p><ul>\n");
        for sentence in sentences {
            page.element("<li>", sentence, "</li>\n");
        }
        page.raw("</ul></div>\n");
    }
}

/// The place of a ratio on a logarithmic axis that shows 1 in its middle, in percent.
fn place(ratio: f64, reach: f64) -> f64 {
    (50.0 + 50.0 * ratio.ln() / reach).clamp(0.0, 100.0)
}

fn ratios(comparison: &SideComparison, a: usize, b: usize, page: &mut Markup) {
    let (first, second) = (&comparison.sides[a].name, &comparison.sides[b].name);
    let shown: Vec<&SideRatio> = headline(comparison, a, b).collect();
    page.section(
        &format!("ratio-{a}-{b}"),
        &format!("{} against {}", esc(second), esc(first)),
        "Each ratio with its 95 % interval. An interval that contains 1 shows no difference; the column beside it says which difference these rounds would have shown in 8 of 10 cases. Of twenty figures that do not differ, one falls outside its interval by chance.",
    );
    if shown.is_empty() {
        page.raw("<p class=\"absent\">No ratio: that takes two complete rounds.</p>\n");
        page.end_section();
        return;
    }
    page.raw("<ul>\n");
    for ratio in shown.iter().filter(|ratio| DECIDING.contains(&ratio.metric.as_str())) {
        page.element("<li>", &sentence(comparison, ratio), "</li>\n");
    }
    page.raw("</ul>\n");
    let ends = shown.iter().flat_map(|ratio| [ratio.ratio_low, ratio.ratio_high]);
    let furthest = ends.map(|end| end.ln().abs()).filter(|end| end.is_finite());
    // At least a tenth either way, so that a narrow interval looks narrow; at most a factor of 20.
    let reach = furthest.fold(1.1_f64.ln(), f64::max).min(20.0_f64.ln());
    page.raw(&format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ratios of {} to {}\"><table class=\"forest\"><thead><tr><th scope=\"col\">figure</th>",
        esc(second),
        esc(first)
    ));
    for heading in [
        first.as_str(),
        second.as_str(),
        &format!("{second}/{first}"),
        "95 % interval",
    ] {
        page.element("<th scope=\"col\">", heading, "</th>");
    }
    page.raw(&format!(
        "<th scope=\"col\" class=\"axis\"><span>{:.2}</span><span>1</span><span>{:.2}</span></th><th scope=\"col\">detectable</th><th scope=\"col\">outcome</th></tr></thead><tbody>\n",
        (-reach).exp(),
        reach.exp()
    ));
    for ratio in shown {
        row(comparison, ratio, reach, page);
    }
    page.raw("</tbody></table></div>\n");
    page.end_section();
}

fn row(comparison: &SideComparison, ratio: &SideRatio, reach: f64, page: &mut Markup) {
    let unit = unit(&ratio.metric);
    page.element("<tr><th scope=\"row\">", &ratio.metric, "</th>");
    for value in [ratio.a, ratio.b] {
        page.element(&format!("<td title=\"{value}\">"), &unit.show(value), "</td>");
    }
    let (low, high) = (place(ratio.ratio_low, reach), place(ratio.ratio_high, reach));
    let is_sure = matches!(ratio.outcome.as_str(), "lower" | "higher");
    let outcome = match ratio.outcome.as_str() {
        _ if is_sure && !comparison.is_ranked => "not ranked",
        "not_seen" => "not seen",
        outcome => outcome,
    };
    let mut markup = String::new();
    let _ = writeln!(
        markup,
        "<td class=\"ratio\">{}</td><td>{} to {}</td><td class=\"axis\"><span class=\"one\"></span><span class=\"interval{}\" style=\"left:{low:.2}%;width:{:.2}%\"></span><span class=\"point\" style=\"left:{:.2}%\"></span></td><td>{}</td><td>{outcome}{}</td></tr>",
        times(ratio.ratio),
        times(ratio.ratio_low),
        times(ratio.ratio_high),
        if is_sure { " is-sure" } else { "" },
        high - low,
        place(ratio.ratio, reach),
        percent(ratio.detectable),
        if ratio.erratic && is_sure { ", erratic" } else { "" },
    );
    page.raw(&markup);
}

/// Names of sides are letters or the caller's; in headings they are escaped here.
fn esc(text: &str) -> String {
    let mut markup = Markup::new();
    markup.text(text);
    markup.finish()
}

/// A plot for each deciding figure: one point per run, in the order in which they ran.
fn rounds(comparison: &SideComparison, page: &mut Markup) {
    page.section(
        "rounds",
        "Rounds",
        "Each point is one run, in the order in which they ran, on a logarithmic axis. What moves all sides alike is the machine.",
    );
    let runs: Vec<&RoundRun> = comparison.rounds.iter().flat_map(|round| &round.runs).collect();
    page.raw("<p class=\"key\">");
    for (index, side) in comparison.sides.iter().enumerate() {
        letter(comparison, index, page);
        page.text(&side.about);
        page.raw(" ");
    }
    page.raw("</p>\n");
    for metric in DECIDING {
        let known = runs.iter().enumerate();
        let points: Vec<(usize, usize, f64)> = known
            .filter_map(|(index, run)| Some((index, run.side, *run.figures.get(metric)?)))
            .filter(|(.., value)| *value > 0.0)
            .collect();
        plot(metric, &points, runs.len(), page);
    }
    page.end_section();
}

fn plot(metric: &str, points: &[(usize, usize, f64)], runs: usize, page: &mut Markup) {
    let values = || points.iter().map(|(.., value)| *value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if points.is_empty() {
        return;
    }
    // A figure that hardly moves is not drawn as if it did.
    let (bottom, top) = (least.min(most / 1.1), most.max(least * 1.1));
    page.raw("<figure class=\"plot\"><figcaption><strong>");
    page.text(metric);
    page.raw("</strong></figcaption>\n<div class=\"points\">");
    let label = |value: f64| unit(metric).show(value);
    page.element("<span class=\"top\">", &label(top), "</span>");
    page.element("<span class=\"bottom\">", &label(bottom), "</span>");
    for &(index, side, value) in points {
        let x = 100.0 * (index as f64 + 0.5) / runs.max(1) as f64;
        let y = 100.0 * (value / bottom).ln() / (top / bottom).ln();
        page.raw(&format!(
            "<span class=\"dot letter run-{}\" style=\"left:{x:.2}%;bottom:{y:.2}%\" title=\"run {}: {}\"></span>",
            side % 6,
            index + 1,
            esc(&label(value))
        ));
    }
    page.raw("</div></figure>\n");
}

fn means(comparison: &SideComparison, page: &mut Markup) {
    page.section(
        "means",
        "Means",
        "The mean of each side over all rounds, with its 95 % interval.",
    );
    page.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of means\"><table><thead><tr><th scope=\"col\">figure</th>");
    for side in &comparison.sides {
        page.element("<th scope=\"col\">", &side.name, "</th><th scope=\"col\">interval</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    let mut names: Vec<&String> = comparison.sides.iter().flat_map(|side| side.figures.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| is_headline(name)) {
        page.element("<tr><th scope=\"row\">", name, "</th>");
        for side in &comparison.sides {
            match side.figures.get(name) {
                Some(estimate) => {
                    let show = |value: f64| unit(name).show(value.max(0.0));
                    page.element(
                        &format!("<td title=\"{}\">", estimate.value),
                        &show(estimate.value),
                        "</td>",
                    );
                    let interval = format!("{} to {}", show(estimate.low), show(estimate.high));
                    page.element("<td>", &interval, "</td>");
                }
                None => page.raw("<td class=\"absent\">-</td><td></td>"),
            }
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n");
    page.end_section();
}

fn method(comparison: &SideComparison, page: &mut Markup) {
    page.section("method", "How it was measured", "");
    page.element(
        "<p>",
        &format!(
            "A round runs every side twice, in a seeded order (seed {}) and then in the reverse one, each run in a fresh place; a steady drift of the machine cancels. {} All other figures are those of whole runs.",
            comparison.plan.seed,
            warm_up(comparison),
        ),
        "</p>\n",
    );
    page.end_section();
}
