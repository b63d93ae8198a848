//! The page of `tsb reproduce rrdcached`, for somebody who has not read the document.

use tsb_core::report::experiment::rrdcached::{Reproduction, Simulated, passes};
use tsb_core::report::experiment::{Figure, Row};

use super::frame::{begin_page, begin_story, end_page, mistakes};
use crate::render::experiment_figures::{dash, mean};
use crate::render::html::STYLE;
use crate::render::html::markup::Markup;

const TITLE: &str = "What does rrdcached buy?";
/// The links to the sections.
const BAR: &str = "<header class=\"bar\"><nav aria-label=\"Sections\"><a href=\"#story\">Story</a><a href=\"#passes\">Passes</a><a href=\"#published\">Published</a><a href=\"#simulated\">Simulated</a><a href=\"#mistakes\">Mistakes</a></nav></header>\n";
const STORY: [&str; 4] = [
    "RRDtool keeps each metric in a file of its own, of a fixed size. An update changes the header of the file and, when a step of five minutes has ended, a row in two or more of its archives: some pages of 4 KiB, scattered over the disk. With tens of thousands of files the disk is the limit.",
    "rrdcached is a daemon in front of the files. It answers an update from memory, keeps values until a timeout has passed, and writes all that wait for a file at once.",
    "In 2012 kazeburo and sonots published how much that gains, for 1,000 to 60,000 files: direct updates against the daemon, with a cold page cache and a warm one. The daemon's drain was read by eye from iostat.",
    "Here every engine does the same work on the same files, in rounds in which each has a turn: librrd and our engine directly, our write cache and the daemon behind a socket. A cold cache is proved cold, a drain ends when the counters say so, a sync is measured behind it, and every file is read back.",
];

/// The whole page.
pub fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut page = begin_page(TITLE, &[STYLE], BAR);
    begin_story(&STORY, &mut page);
    let daemon = format!(
        "Daemon: {}. {} files did not hold what they were told last.",
        experiment.details.daemon, experiment.details.files_wrong
    );
    page.element("<p>", &daemon, "</p>\n");
    if experiment.is_debug_build {
        page.raw("<p>This program was built without optimization, so our own figures are too high.</p>\n");
    }
    page.end_section();
    pass_table(result, &mut page);
    published(&experiment.rows, &mut page);
    if let Some(simulated) = &experiment.details.simulated {
        predictions(simulated, &mut page);
    }
    let heading = "What the original got wrong, or left unmeasured";
    mistakes(heading, &experiment.mistakes, &mut page);
    end_page(&result.written, None, result.took_seconds, page)
}

fn pass_table(result: &Reproduction, page: &mut Markup) {
    let all = passes(&result.experiment.details.rounds);
    if all.is_empty() {
        return;
    }
    let about = "Means over the rounds, in seconds, with the 95 % interval of the total. Cold: no page of the files was in memory, as the share shows. Across: every update ends a step and writes a row of two archives; within: none does.";
    page.section("passes", "The passes", about);
    let head = [
        "files",
        "pass",
        "way",
        "in memory",
        "accept",
        "drain",
        "sync",
        "total",
        "interval",
    ];
    let rows = all.iter().map(|pass| {
        let memory = pass
            .resident_percent
            .map_or_else(dash, |figure| format!("{:.2} %", figure.mean));
        let cells = [pass.accept, pass.drain, pass.sync, pass.total].map(seconds);
        let [accept, drain, sync, total] = cells;
        let name = [pass.files.to_string(), pass.name.clone(), pass.way.clone()];
        [
            name.to_vec(),
            vec![memory, accept, drain, sync, total, interval(pass.total)],
        ]
        .concat()
    });
    page.table("passes", &head, rows);
    page.end_section();
}

fn published(rows: &[Row], page: &mut Markup) {
    if rows.is_empty() {
        return;
    }
    let about = "Two Xeon X5650 with disks of 15,000 rpm, 2012, beside this machine.";
    page.section("published", "Published and measured", about);
    let head = [
        "what",
        "published",
        "measured",
        "interval",
        "ratio",
        "what the two cover",
    ];
    let figure = |figure: Option<f64>, unit: &str| figure.map_or_else(dash, |figure| format!("{figure:.3} {unit}"));
    let rows = rows.iter().map(|row| {
        let ends = row.low.zip(row.high);
        vec![
            row.what.clone(),
            figure(row.published, &row.unit),
            figure(row.measured, &row.unit),
            ends.map_or_else(dash, |(low, high)| format!("{low:.3} to {high:.3}")),
            row.ratio.map_or_else(dash, |ratio| format!("{ratio:.4}")),
            row.why.clone(),
        ]
    });
    page.table("published figures", &head, rows);
    page.end_section();
}

fn predictions(simulated: &Simulated, page: &mut Markup) {
    let about = format!(
        "Drains in simulated time, over a model of the disk and the costs of writes on {} files. The error is that of the prediction, where real runs were made.",
        simulated.cost_files
    );
    page.section("simulated", "Simulated", &about);
    let head = ["way", "what", "predicted", "measured", "interval", "error"];
    let rows = simulated.points.iter().map(|point| {
        let with_unit = |figure: f64| format!("{figure:.3} {}", point.unit);
        let ends = point.low.zip(point.high);
        vec![
            point.way.clone(),
            point.what.clone(),
            with_unit(point.predicted),
            point.measured.map_or_else(dash, with_unit),
            ends.map_or_else(dash, |(low, high)| format!("{low:.3} to {high:.3}")),
            point
                .error
                .map_or_else(dash, |error| format!("{:+.1} %", error * 100.0)),
        ]
    });
    page.table("predictions", &head, rows);
    page.raw("<h3>Hours of updates, every file once per minute</h3>\n");
    let head = [
        "way",
        "files",
        "hours",
        "timeout",
        "jitter",
        "values of a write",
        "longest wait",
        "drain",
        "sync",
    ];
    let rows = simulated.hours.iter().map(|hour| {
        vec![
            hour.way.clone(),
            hour.files.to_string(),
            hour.hours.to_string(),
            format!("{} s", hour.timeout_seconds),
            format!("{} s", hour.jitter_seconds),
            format!("{:.2}", hour.coalescing),
            format!("{:.1} s", hour.wait_max_seconds),
            format!("{:.2} s", hour.drain_seconds),
            format!("{:.2} s", hour.sync_seconds),
        ]
    });
    page.table("hours", &head, rows);
    page.end_section();
}

fn seconds(figure: Option<Figure>) -> String {
    mean(figure, 3)
}

fn interval(figure: Option<Figure>) -> String {
    let ends = figure.and_then(|figure| figure.low.zip(figure.high));
    ends.map_or_else(dash, |(low, high)| format!("{low:.3} to {high:.3}"))
}
