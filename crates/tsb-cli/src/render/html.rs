//! Formats a report as one self-contained HTML page, to be passed on.
//!
//! Text, figures and tables are in the markup and need no script; the script draws the plots from
//! columns that `data` embeds as JSON. Figures that `Markup::number` writes carry their exact number and
//! their JSON pointer. The page fetches nothing: its own content security policy forbids it.

mod axis;
mod breakdown;
mod capacity;
mod chart;
mod data;
mod experiments;
mod hosts;
mod latency;
mod ledger;
mod machine;
mod markup;
mod phases;
mod plot_frame;
mod plots;
mod queries;
mod side_by_side;
mod sides;
mod size;
mod thresholds;
mod verdict;

use serde_json::Value;
use tsb_core::report::{Report, Run};

use super::names::{moment, names, path};
pub use capacity::capacity_page;
pub use experiments::dalmatiner::page as dalmatiner_page;
pub use experiments::hm9000::page as hm9000_page;
pub use experiments::mohawk::page as mohawk_page;
pub use experiments::records::page as records_page;
pub use experiments::rrdcached::page as rrdcached_page;
use markup::Markup;
pub use sides::page as sides_page;
use tsb_run::foreign;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
const PLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");
const PLOT_SCRIPT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
const PLOT_LICENCE: &str = include_str!("../../vendor/uplot/LICENSE");

/// A run, as a value and as JSON.
#[derive(Clone, Copy, Debug)]
struct PageRun<'a> {
    index: usize,
    /// Its name among several runs.
    name: &'a str,
    run: &'a Run,
    json: &'a Value,
    /// Whether the page shows several runs.
    is_one_of_several: bool,
}

/// The whole page.
///
/// # Errors
/// If the report cannot be serialized.
pub fn page(report: &Report) -> Result<String, serde_json::Error> {
    let values: Vec<Value> = report.runs.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let names = names(&report.runs);
    let shown: Vec<PageRun<'_>> = report
        .runs
        .iter()
        .zip(&values)
        .zip(&names)
        .enumerate()
        .map(|(index, ((run, json), name))| PageRun {
            index,
            name,
            run,
            json,
            is_one_of_several: report.runs.len() > 1,
        })
        .collect();
    let mut page = Markup::new();
    begin(
        &format!("{}: a run of tsb", title(&shown)),
        &[PLOT_STYLE, "\n", STYLE],
        "report",
        &mut page,
    );
    page.raw(CONTROLS);
    page.raw("<main id=\"main\">\n");
    masthead(report, &shown, &mut page);
    if shown.len() > 1 {
        side_by_side::section(&shown, &report.runs, &values, &mut page);
    }
    verdict::section(&shown, &mut page);
    thresholds::section(&shown, &mut page);
    phases::section(&shown, &mut page);
    plots::rate_and_staleness(&shown, &mut page);
    latency::section(&shown, &mut page);
    breakdown::section(&shown, &mut page);
    queries::section(&shown, &mut page);
    hosts::section(&shown, &mut page);
    plots::heat_map(&shown, &mut page);
    plots::resources(&shown, &mut page);
    ledger::section(&shown, &mut page);
    verdict::durability(&shown, &mut page);
    size::section(&shown, &mut page);
    machine::plan(&shown, &mut page);
    machine::machine(&shown, &mut page);
    page.raw("</main>\n");
    foot(report, &mut page);
    scripts(&shown, &mut page)?;
    Ok(page.finish())
}

/// Content security policy: inline script and style, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

fn title(shown: &[PageRun<'_>]) -> String {
    let names: Vec<&str> = shown.iter().map(|shown| shown.name).collect();
    names.join(" and ")
}

/// The head of a page, and the beginning of its body: a link to the main part, which is called
/// `what`.
fn begin(title: &str, styles: &[&str], what: &str, page: &mut Markup) {
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.raw(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n"
    ));
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    page.text(title);
    page.raw("</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
    for style in styles {
        page.raw(style);
    }
    page.raw("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the ");
    page.text(what);
    page.raw("</a>\n");
}

/// The bar at the top: links to sections, and the zoom of the plots.
const CONTROLS: &str = "<header class=\"bar\">
<nav aria-label=\"Sections\"><a href=\"#verdict\">Verdict</a><a href=\"#rate\">Rate</a><a href=\"#latency\">Latency</a><a href=\"#resources\">Resources</a><a href=\"#ledger\">Ledger</a><a href=\"#size\">Size</a><a href=\"#plan\">Plan</a></nav>
<div class=\"zoom\" role=\"group\" aria-label=\"Time shown in all plots\" hidden>
<output id=\"span\"></output>
<button type=\"button\" data-zoom=\"left\" aria-label=\"Earlier\">&#8592;</button><button type=\"button\" data-zoom=\"right\" aria-label=\"Later\">&#8594;</button><button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button><button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">&#8722;</button><button type=\"button\" data-zoom=\"all\">All</button>
</div>
</header>
";

fn masthead(report: &Report, shown: &[PageRun<'_>], page: &mut Markup) {
    page.raw("<h1>");
    page.text(&title(shown));
    page.raw("</h1>\n<p class=\"about\">");
    if let [only] = shown {
        let run = only.run;
        page.figure(only, &super::figures::OFFERED[0]);
        page.text(&format!(
            " series of the fleet {} {}, for ",
            fleet(only.json),
            path(run)
        ));
        page.number(only, "/duration_ns", super::figures::Unit::Nanos);
        page.text(&format!(", begun {}.", moment(run.started_at_ns)));
    } else {
        page.text(&format!(
            "{} runs side by side, the first begun {}.",
            shown.len(),
            report
                .runs
                .first()
                .map_or(String::new(), |run| moment(run.started_at_ns))
        ));
    }
    page.raw("</p>\n");
}

fn fleet(run: &Value) -> String {
    match run.pointer("/plan/workload/fleet") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => "unknown".to_owned(),
    }
}

fn foot(report: &Report, page: &mut Markup) {
    page.raw("<footer><p>");
    page.text(&format!(
        "Written by tsb {}, report schema {}. Figures are rounded for reading; most carry their exact number, which is shown where the pointer rests on it and is the one in the JSON report.",
        report.tsb_version, report.schema_version
    ));
    page.raw("</p></footer>\n<div id=\"spoken\" class=\"unseen\" aria-live=\"polite\"></div>\n");
}

fn scripts(shown: &[PageRun<'_>], page: &mut Markup) -> Result<(), serde_json::Error> {
    page.raw("<script type=\"application/json\" id=\"data\">");
    // `</script>` and `<!--` cannot occur where no `<` does.
    let data = serde_json::to_string(&data::of(shown))?.replace('<', "\\u003c");
    page.raw(&foreign::lines(&data));
    page.raw("</script>\n<script>\n/*\n");
    page.raw(PLOT_LICENCE);
    page.raw("*/\n");
    page.raw(PLOT_SCRIPT);
    page.raw("\n</script>\n<script>\n");
    page.raw(SCRIPT);
    page.raw("</script>\n</body>\n</html>\n");
    Ok(())
}

#[cfg(test)]
mod tests;
