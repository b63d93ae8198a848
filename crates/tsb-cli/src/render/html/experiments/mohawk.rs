//! The page of `tsb reproduce mohawk`: the story, for somebody who has not read the document.

use tsb_core::latency::Quantiles;
use tsb_core::report::experiment::mohawk::{ClassicRun, ClassicSummary, LoadSummary, MohawkDetails, Reproduction};
use tsb_core::report::experiment::{Figure, Row};
use tsb_run::units;

use super::bars::{Bar, BarChart, Part};
use super::frame::{begin_page, begin_story, end_page, list_wrong, mistakes, published, with_interval};
use crate::render::experiment_figures::dash;
use crate::render::html::markup::Markup;
use crate::render::html::{PLOT_STYLE, STYLE};

const TITLE: &str = "Which backend of Mohawk is fastest?";
/// The links to the sections.
const BAR: &str = "<header class=\"bar\"><nav aria-label=\"Sections\"><a href=\"#story\">Story</a><a href=\"#classic\">As it was</a><a href=\"#corrected\">Corrected</a><a href=\"#feed\">Slots</a><a href=\"#published\">Published</a><a href=\"#mistakes\">Mistakes</a></nav></header>\n";
const STORY: [&str; 3] = [
    "Mohawk was a small store of metrics in Go that answered like Hawkular. In 2017 its author compared its three backends: slots in memory, SQLite and MongoDB. A script in Python wrote one gauge 1,000 times and read it 1,000 times, and the shell took the time: 2.0 s in memory, 4.9 s over MongoDB, 14.5 s over SQLite.",
    "What was measured is mostly the script. It opens a connection for each request, waits for each answer and looks at none. So nobody saw that SQLite returned twice as many rows as the others, or that the memory keeps one sample of each half minute.",
    "Here the same bytes are sent again, and every row is compared with what was written. Then it is corrected: connections are kept, writes have many gauges, several clients work at a time, requests are due at absolute times, all backends answer the same question, and each figure has its durability beside it.",
];

/// The whole page.
pub fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut page = begin_page(TITLE, &[PLOT_STYLE, "\n", STYLE], BAR);
    story(result, &mut page);
    as_it_was(result, &mut page);
    corrected(result, &mut page);
    feed(&experiment.details, &mut page);
    published("A desktop in 2017, and this machine.", &experiment.rows, &mut page);
    mistakes("What the original got wrong", &experiment.mistakes, &mut page);
    let seed = Some(result.plan.asked.seed);
    end_page(&result.written, seed, result.took_seconds, page)
}

fn story(result: &Reproduction, page: &mut Markup) {
    let details = &result.experiment.details;
    begin_story(&STORY, page);
    let mut found: Vec<String> = Vec::new();
    for summary in &details.classic {
        let Some((seconds, rows)) = summary.seconds.zip(summary.rows) else {
            continue;
        };
        found.push(format!(
            "{} as it was took {:.2} s and returned {} rows; a confirmed write is {}.",
            summary.backend.name,
            seconds.mean,
            units::count(rows),
            summary.backend.durability
        ));
    }
    if !details.is_right() {
        found.push("Some answers were wrong: see the tables.".to_owned());
    }
    found.extend(details.absent.iter().map(|absent| format!("Not run: {absent}.")));
    found.extend(details.failures.iter().map(|failure| format!("Failed: {failure}.")));
    if result.experiment.is_quick {
        found.push("This is the quick version: few rounds and few requests.".to_owned());
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

/// The published time of a backend, from the rows, which have it by the name.
fn published_seconds(rows: &[Row], name: &str) -> Option<f64> {
    let is_its = |row: &&Row| row.unit == "s" && row.ratio.is_some() && row.what.starts_with(&format!("{name}, 999"));
    rows.iter().find(is_its)?.published
}

fn as_it_was(result: &Reproduction, page: &mut Markup) {
    let details = &result.experiment.details;
    let about = format!(
        "One status request, {0} writes, then {0} reads, each on a connection of its own; figures are means over rounds in random order; rounds: {1}.",
        result.plan.asked.count, result.plan.asked.rounds
    );
    page.section("classic", "As it was, with the answers looked at", &about);
    let mean = |figure: Option<Figure>| figure.map_or(0.0, |figure| figure.mean);
    let bars = details.classic.iter().map(|summary| {
        let cpu = [summary.client_cpu, summary.endpoint_cpu, summary.database_cpu].map(mean);
        let seconds = mean(summary.seconds);
        let waiting = (seconds - cpu.iter().sum::<f64>()).max(0.0);
        let published = published_seconds(&result.experiment.rows, &summary.backend.name);
        Bar {
            name: summary.backend.name.clone(),
            parts: [cpu[0], cpu[1], cpu[2], waiting]
                .into_iter()
                .enumerate()
                .map(|(tone, value)| Part { tone, value })
                .collect(),
            published,
            about: match published {
                Some(published) => format!("{seconds:.2} s, published {published:.2}"),
                None => format!("{seconds:.2} s"),
            },
        }
    });
    BarChart {
        caption: "Where the time went",
        about: "Seconds. CPU time of the three parts, and the rest, in which all wait, such as for a disk; the line is the published time.",
        key: &["client", "endpoint", "database", "the rest"],
        bars: bars.collect(),
    }
    .draw(page);
    let rows = details.classic.iter().map(classic_row);
    let columns = [
        "backend",
        "durability",
        "time",
        "rows",
        "204",
        "right",
        "client CPU",
        "endpoint CPU",
        "database CPU",
        "endpoint RSS",
        "server",
    ];
    page.table("the rounds as they were", &columns, rows);
    list_wrong(details.wrong_as_it_was(), page);
    moments(&details.as_it_was, page);
    page.end_section();
}

fn classic_row(summary: &ClassicSummary) -> Vec<String> {
    let seconds = |figure: Option<Figure>| figure.map_or_else(dash, |figure| format!("{:.2} s", figure.mean));
    vec![
        summary.backend.name.clone(),
        summary.backend.durability.clone(),
        with_interval(summary.seconds, "s"),
        summary.rows.map_or_else(|| "differ".to_owned(), units::count),
        summary.empty.map_or_else(|| "differ".to_owned(), units::count),
        format!("{} of {}", summary.rounds_right, summary.rounds),
        seconds(summary.client_cpu),
        seconds(summary.endpoint_cpu),
        seconds(summary.database_cpu),
        summary.endpoint_rss.map_or_else(dash, |rss| units::bytes(rss.mean)),
        summary.backend.status.clone(),
    ]
}

/// The processes of each backend's first round, each half second.
fn moments(runs: &[ClassicRun], page: &mut Markup) {
    page.raw("<details><summary>The processes each half second, as the document recorded one of them</summary>\n");
    let first = runs.iter().filter(|run| run.round == 0);
    let rows = first.flat_map(|run| {
        run.processes.iter().flat_map(move |process| {
            process.moments.iter().map(move |moment| {
                vec![
                    run.backend.name.clone(),
                    process.role.clone(),
                    format!("{:.2} s", moment.at_seconds),
                    format!("{:.0} %", moment.cpu_percent),
                    moment
                        .lifetime_percent
                        .map_or_else(dash, |percent| format!("{percent:.1} %")),
                    units::bytes(moment.rss_bytes as f64),
                ]
            })
        })
    });
    let columns = ["backend", "process", "at", "CPU since", "CPU of its life, as ps", "RSS"];
    page.table("processes each half second", &columns, rows);
    page.raw("</details>\n");
}

fn corrected(result: &Reproduction, page: &mut Markup) {
    let asked = &result.plan.asked;
    let about = format!(
        "kept: one client, one sample per write. batches: {} gauges per write. concurrent: {} clients. open: {} requests per second for {} s, due at absolute times. Levels of durability differ: a faster backend may promise less.",
        asked.batch, asked.connections, asked.rate, asked.seconds
    );
    page.section("corrected", "Corrected", &about);
    let details = &result.experiment.details;
    let ways = details.by_way();
    let bars = ways.iter().filter_map(|summary| {
        let rate = summary.samples_per_second?;
        Some(Bar {
            name: format!("{}, {}", summary.way, summary.backend.name),
            parts: vec![Part {
                tone: 0,
                value: rate.mean,
            }],
            published: None,
            about: format!(
                "{}/s, {}",
                units::count(rate.mean.round() as u64),
                summary.backend.durability
            ),
        })
    });
    BarChart {
        caption: "Samples confirmed per second",
        about: "While was written. In the open loop the rate is what was asked, unless a backend does not hold it.",
        key: &[],
        bars: bars.collect(),
    }
    .draw(page);
    let rows = ways.iter().map(|summary| load_row(summary));
    let columns = [
        "way",
        "backend",
        "durability",
        "requests/s",
        "samples/s",
        "write p50",
        "write p99",
        "read p50",
        "read p99",
        "client CPU",
        "endpoint CPU",
        "database CPU",
        "verified",
        "not answered",
    ];
    page.table("the corrected rounds", &columns, rows);
    list_wrong(details.wrong_corrected(), page);
    page.end_section();
}

fn load_row(summary: &LoadSummary) -> Vec<String> {
    let quantile = |of: Option<u64>| of.map_or_else(dash, units::nanos);
    let per_request = |figure: Option<Figure>| figure.map_or_else(dash, |figure| format!("{:.0} us", figure.mean));
    let Quantiles { p50_ns, p99_ns, .. } = summary.write;
    vec![
        summary.way.clone(),
        summary.backend.name.clone(),
        summary.backend.durability.clone(),
        with_interval(summary.requests_per_second, ""),
        with_interval(summary.samples_per_second, ""),
        quantile(p50_ns),
        quantile(p99_ns),
        quantile(summary.read.p50_ns),
        quantile(summary.read.p99_ns),
        per_request(summary.client_us),
        per_request(summary.endpoint_us),
        per_request(summary.database_us),
        format!(
            "{} of {}",
            units::count(summary.verified),
            units::count(summary.confirmed)
        ),
        units::count(summary.unanswered),
    ]
}

fn feed(details: &MohawkDetails, page: &mut Markup) {
    page.section(
        "feed",
        "One sample per second",
        "What a read of everything returns of a feed that was confirmed whole. A slot of 30 s keeps one sample in thirty, and says nothing.",
    );
    let bars = details.feeds.iter().filter(|feed| feed.round == 0).map(|feed| Bar {
        name: feed.backend.name.clone(),
        parts: vec![Part {
            tone: 0,
            value: feed.kept as f64,
        }],
        published: None,
        about: format!("{} of {}", units::count(feed.kept), units::count(feed.confirmed)),
    });
    BarChart {
        caption: "Samples kept",
        about: "Of the first round.",
        key: &[],
        bars: bars.collect(),
    }
    .draw(page);
    list_wrong(details.wrong_feeds(), page);
    page.end_section();
}

#[cfg(test)]
mod tests;
