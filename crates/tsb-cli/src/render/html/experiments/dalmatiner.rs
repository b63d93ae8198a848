//! The page of `tsb reproduce dalmatiner`: the story, for somebody who has not read the document.

use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::dalmatiner::{DalmatinerDetails, QueryRun, Reproduction, TargetSummary};
use tsb_run::units;

use super::bars::{Bar, BarChart, Part};
use super::frame::{begin_page, begin_story, end_page, list_wrong, mistakes, published, with_interval};
use crate::render::disorder::disorder;
use crate::render::experiment_figures::dash;
use crate::render::html::markup::Markup;
use crate::render::html::{PLOT_STYLE, STYLE};

const TITLE: &str = "What does a metric cost?";
/// The links to the sections.
const BAR: &str = "<header class=\"bar\"><nav aria-label=\"Sections\"><a href=\"#story\">Story</a><a href=\"#feed\">Feed</a><a href=\"#queries\">Queries</a><a href=\"#size\">Size</a><a href=\"#kill\">Killed</a><a href=\"#published\">Published</a><a href=\"#mistakes\">Mistakes</a></nav></header>\n";
const STORY: [&str; 3] = [
    "DalmatinerDB was a store of metrics for SmartOS. In 2014 its author mirrored the kernel statistics of a production cloud, once per second, to three systems: DalmatinerDB took half a CPU core, Graphite one and a half, KairosDB with Cassandra one and three quarters. DalmatinerDB needed 8.65 bits for a point, and answered in milliseconds.",
    "Nobody looked whether what was sent was there. The feed sent Graphite one point in five. The headline names 54,000 metrics per second, and the tables were measured at 15,000. The CPU was saved by a cache of half an hour in memory without a log, and the bits per point are a quotient of two constants.",
    "Here one seeded stream of the same kind goes to every target in turn, and every sample is read back. DalmatinerDB's files and both of its caches are built again and run behind its own protocol, beside stores of ours behind the same protocol, and whatever server is given. Then each is asked, measured, and killed.",
];

/// The whole page.
pub fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut page = begin_page(TITLE, &[PLOT_STYLE, "\n", STYLE], BAR);
    story(result, &mut page);
    feed(result, &mut page);
    queries(&experiment.details, &mut page);
    sizes(&experiment.details, &mut page);
    kills(result, &mut page);
    published(
        "Zones of SmartOS in 2014, and this machine.",
        &experiment.rows,
        &mut page,
    );
    mistakes("What the original got wrong", &experiment.mistakes, &mut page);
    let seed = Some(result.plan.asked.seed);
    end_page(&result.written, seed, result.took_seconds, page)
}

fn story(result: &Reproduction, page: &mut Markup) {
    let details = &result.experiment.details;
    begin_story(&STORY, page);
    let mut found: Vec<String> = details
        .kills
        .iter()
        .filter(|kill| kill.round == 0 && kill.lost > 0)
        .map(|kill| {
            format!(
                "{}, killed, lost {} of {} samples.",
                kill.target.name,
                units::count(kill.lost),
                units::count(kill.taken)
            )
        })
        .collect();
    if !details.is_right() {
        found.push("Some runs or answers were wrong: see the tables.".to_owned());
    }
    found.extend(details.absent.iter().map(|absent| format!("Not run: {absent}.")));
    found.extend(details.failures.iter().map(|failure| format!("Failed: {failure}.")));
    if result.experiment.is_quick {
        found.push("This is the quick version: short runs, and few rounds.".to_owned());
    }
    if result.experiment.is_debug_build {
        found.push("The build is not optimized: client, endpoint and stores are slower.".to_owned());
    }
    if details.interrupted {
        found.push("Interrupted: not everything was measured.".to_owned());
    }
    page.list(&found);
    page.end_section();
}

fn feed(result: &Reproduction, page: &mut Markup) {
    let (details, plan) = (&result.experiment.details, &result.plan.asked);
    let about = format!(
        "One sample per second and series for {} s, every message with samples of one second; figures are means over rounds in random order; rounds: {}. Levels of durability differ: a target that is cheaper may promise less.",
        plan.seconds, plan.rounds
    );
    page.section("feed", "The same stream for each", &about);
    page.list(&disorder(plan));
    for series in &plan.series {
        let summaries = details.summaries.iter().filter(|summary| summary.series == *series);
        let bars = summaries.filter_map(|summary| {
            let cores = summary.cores()?;
            Some(Bar {
                name: summary.target.name.clone(),
                parts: vec![Part {
                    tone: usize::from(summary.target.way != "tcp"),
                    value: cores.mean,
                }],
                published: published_cores(summary),
                about: format!("{:.3} cores, {}", cores.mean, summary.target.acknowledged),
            })
        });
        BarChart {
            caption: &format!("CPU cores of the target at {} samples per second", units::count(*series)),
            about: "The target's alone, until everything was sent; the line is the published figure, of 15,000 per second.",
            key: &["behind DalmatinerDB's protocol", "in process, or a server that was given"],
            bars: bars.collect(),
        }
        .draw(page);
    }
    let columns = [
        "target",
        "way",
        "durability",
        "values",
        "series",
        "CPU s per million",
        "CPU of the last write",
        "RSS",
        "page cache",
        "verified",
        "valid",
        "highest rate",
    ];
    page.table(
        "the rounds of the feed",
        &columns,
        details.summaries.iter().map(feed_row),
    );
    list_wrong(details.wrong(), page);
    page.end_section();
}

/// The published figure of a target of this kind, at the rate of the tables.
fn published_cores(summary: &TargetSummary) -> Option<f64> {
    match summary.target.name.as_str() {
        "mstore, round 1" if summary.series == 15_000 => Some(0.9),
        "mstore, round 2" if summary.series == 15_000 => Some(0.48),
        name if name.starts_with("graphite:") && summary.series == 15_000 => Some(1.44),
        _ => None,
    }
}

fn feed_row(summary: &TargetSummary) -> Vec<String> {
    let bytes = |figure: Option<Figure>| figure.map_or_else(dash, |figure| units::bytes(figure.mean));
    vec![
        summary.target.name.clone(),
        summary.target.way.clone(),
        summary.target.acknowledged.clone(),
        summary.target.exactness.clone(),
        units::count(summary.series),
        with_interval(summary.cpu_seconds_per_million, "s"),
        summary
            .last_write_cpu_seconds
            .map_or_else(dash, |figure| format!("{:.2} s", figure.mean)),
        bytes(summary.rss_bytes),
        bytes(summary.page_cache_bytes),
        format!("{} of {}", units::count(summary.verified), units::count(summary.sent)),
        format!("{} of {}", summary.rounds_valid, summary.rounds),
        summary
            .peak_per_second
            .map_or_else(dash, |peak| format!("{}/s", units::count(peak.mean.round() as u64))),
    ]
}

fn queries(details: &DalmatinerDetails, page: &mut Markup) {
    page.section(
        "queries",
        "Queries of a day",
        "q1: the maximum of each minute of an hour of one series. q2: of each hour of a day of seven. Every answer is compared with what was written.",
    );
    let first = details
        .queries
        .iter()
        .filter(|run| run.round == 0 && run.query == "q2" && run.times.count > 0);
    let bars = first.map(|run| Bar {
        name: format!("{}, {}", run.target.name, run.state),
        parts: vec![Part {
            tone: 0,
            value: run.mean_ms,
        }],
        published: published_ms(run),
        about: format!("{:.2} ms", run.mean_ms),
    });
    BarChart {
        caption: "q2: 604,800 points to 168 maxima",
        about: "Mean milliseconds of the first round; the line is the published figure of DalmatinerDB.",
        key: &[],
        bars: bars.collect(),
    }
    .draw(page);
    let rows = details.queries.iter().map(|run| {
        let quantile = |of: Option<u64>| of.map_or_else(dash, units::nanos);
        vec![
            run.target.name.clone(),
            (run.round + 1).to_string(),
            run.query.clone(),
            run.state.clone(),
            units::count(run.times.count),
            format!("{:.3} ms", run.mean_ms),
            quantile(run.times.p50_ns),
            quantile(run.times.max_ns),
            units::count(run.rows),
            if run.by_target { "target" } else { "client" }.to_owned(),
        ]
    });
    let columns = [
        "target",
        "round",
        "query",
        "state",
        "asked",
        "mean",
        "p50",
        "max",
        "rows",
        "maxima by",
    ];
    page.table("the queries", &columns, rows);
    page.end_section();
}

fn published_ms(run: &QueryRun) -> Option<f64> {
    match (run.target.name.as_str(), run.state.as_str()) {
        ("mstore, round 2", "first") => Some(120.0),
        ("mstore, round 2", "repeated") => Some(85.0),
        _ => None,
    }
}

fn sizes(details: &DalmatinerDetails, page: &mut Markup) {
    page.section(
        "size",
        "What a day occupies",
        "Bits per sample, index included: lengths without holes, blocks of the file system, and each 128 KiB by Snappy, as a pool of ZFS would compress it by its own method.",
    );
    let rows = details.sizes.iter().map(|size| {
        vec![
            size.target.name.clone(),
            units::count(size.samples),
            size.nominal_bits.map_or_else(dash, |bits| format!("{bits:.0}")),
            format!("{:.2}", size.apparent_bits),
            format!("{:.2}", size.disk_bits),
            format!("{:.2}", size.compressed_bits),
        ]
    });
    let columns = ["target", "samples", "nominal", "apparent", "on disk", "compressed"];
    page.table("bits per sample", &columns, rows);
    page.end_section();
}

fn kills(result: &Reproduction, page: &mut Markup) {
    let plan = &result.plan.asked;
    let about = format!(
        "Each took {} s of {} series, was killed, and was opened again.",
        plan.killed_seconds,
        units::count(plan.killed_series)
    );
    page.section("kill", "What a crash takes", &about);
    let rows = result.experiment.details.kills.iter().map(|kill| {
        vec![
            kill.target.name.clone(),
            kill.target.acknowledged.clone(),
            units::count(kill.taken),
            units::count(kill.lost),
            format!("{} s", kill.longest_loss_seconds),
        ]
    });
    let columns = ["target", "durability", "taken", "lost", "longest loss of a series"];
    page.table("what was lost", &columns, rows);
    page.end_section();
}

#[cfg(test)]
mod tests;
