//! What the pages of all experiments have: the head with links, the story, the published figures, the
//! mistakes and the foot.

use tsb_core::report::Written;
use tsb_core::report::experiment::{Figure, Row};

use crate::render::experiment_figures::{dash, number_of};
use crate::render::html::begin;
use crate::render::html::markup::Markup;

/// Begins a page: its title, styles, and the links to its sections.
pub(super) fn begin_page(title: &str, styles: &[&str], links: &str) -> Markup {
    let mut page = Markup::new();
    begin(title, styles, "report", &mut page);
    page.raw(links);
    page.element("<main id=\"main\">\n<h1>", title, "</h1>\n");
    page
}

/// Begins the story; what was found follows.
pub(super) fn begin_story(parts: &[&str], page: &mut Markup) {
    page.section("story", "The story", "");
    for part in parts {
        page.element("<p>", part, "</p>\n");
    }
}

/// The published figures beside the measured ones; `about` names the machines.
pub(super) fn published(about: &str, rows: &[Row], page: &mut Markup) {
    page.section("published", "Published beside measured", about);
    let rows = rows.iter().map(|row| {
        let number = |value: f64| number_of(row, value);
        let interval = match (row.low, row.high) {
            (Some(low), Some(high)) if low < high => format!(" ({} to {})", number(low.max(0.0)), number(high)),
            _ => String::new(),
        };
        vec![
            row.what.clone(),
            row.published.map_or_else(dash, number),
            row.measured.map_or_else(dash, number) + &interval,
            row.unit.clone(),
            row.ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")),
            row.why.clone(),
        ]
    });
    page.table(
        "published figures",
        &["what", "published", "measured", "unit", "ratio", "why"],
        rows,
    );
    page.end_section();
}

/// Lists wrong answers, if there are any.
pub(super) fn list_wrong(answers: impl Iterator<Item = String>, page: &mut Markup) {
    let wrong: Vec<String> = answers.map(|answer| format!("Wrong: {answer}.")).collect();
    if !wrong.is_empty() {
        page.list(&wrong);
    }
}

/// The mean, and the ends of its interval.
pub(super) fn with_interval(figure: Option<Figure>, unit: &str) -> String {
    let Some(figure) = figure else { return dash() };
    let digits = if unit.is_empty() { 0 } else { 2 };
    let space = if unit.is_empty() { "" } else { " " };
    let mean = format!("{:.digits$}{space}{unit}", figure.mean);
    match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("{mean} ({:.digits$} to {high:.digits$})", low.max(0.0)),
        _ => mean,
    }
}

/// Lists the mistakes of the original.
pub(super) fn mistakes(heading: &str, mistakes: &[String], page: &mut Markup) {
    page.section("mistakes", heading, "");
    page.list(mistakes);
    page.end_section();
}

/// Ends a page with where it was written; `seed` if something was drawn.
pub(super) fn end_page(written: &Written, seed: Option<u64>, took_seconds: f64, mut page: Markup) -> String {
    let machine = written.machine.cpu.as_deref().unwrap_or("an unknown processor");
    let seed = seed.map_or_else(String::new, |seed| format!("seed {seed}; "));
    let foot = format!(
        "Written by tsb {}, report schema {}; {seed}took {took_seconds:.0} s on {machine}.",
        written.tsb_version, written.schema_version
    );
    page.element("</main>\n<footer><p>", &foot, "</p></footer>\n</body>\n</html>\n");
    page.finish()
}
