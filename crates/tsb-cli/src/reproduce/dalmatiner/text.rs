//! Formats the result as text.

use std::fmt::Write;

use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::dalmatiner::{DalmatinerDetails, DalmatinerPlan, Reproduction, TargetSummary};
use tsb_run::units;

use crate::render::disorder::disorder;
use crate::render::experiment_figures::{dash, mean, mean_and_half};
use crate::reproduce::{published, sentences};

/// The least width of a column of targets, in characters.
const WIDTH_MIN: usize = 28;

/// The whole text.
pub(in crate::reproduce) fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let details = &experiment.details;
    let plan = &result.plan.asked;
    let mut out = String::new();
    let _ = writeln!(out, "What does a metric cost in DalmatinerDB, Graphite and KairosDB?");
    if experiment.is_debug_build {
        let _ = writeln!(
            out,
            "A build without optimization: client, endpoint and stores are slower."
        );
    }
    let width = width_of_names(plan);
    feeds(&mut out, details, plan, width);
    queries(&mut out, details, plan, width);
    sizes(&mut out, details, width);
    kills(&mut out, details, plan, width);
    published(&mut out, "zones of SmartOS, 2014", &experiment.rows);
    sentences(
        &mut out,
        "What the original got wrong, or left unmeasured",
        &experiment.mistakes,
    );
    sentences(&mut out, "Not run", &details.absent);
    sentences(&mut out, "Failed", &details.failures);
    sentences(&mut out, "Wrong", &details.wrong().collect::<Vec<_>>());
    sentences(&mut out, "Not valid", &not_valid(details));
    let ended = if details.interrupted {
        "interrupted after"
    } else {
        "took"
    };
    let _ = writeln!(
        out,
        "\n{ended} {:.0} s; seed {}; rounds: {}",
        result.took_seconds, plan.seed, plan.rounds
    );
    out
}

fn width_of_names(plan: &DalmatinerPlan) -> usize {
    let names = plan.targets.iter().map(|name| name.chars().count());
    names.max().unwrap_or(0).max(WIDTH_MIN)
}

/// Runs of the feed that are not valid and not invalid either, with the reason.
fn not_valid(details: &DalmatinerDetails) -> Vec<String> {
    use tsb_core::verdict::Status;
    let runs = details
        .feeds
        .iter()
        .filter(|run| !matches!(run.status, Status::Valid | Status::Invalid));
    runs.map(|run| {
        format!(
            "{}, {}, {} series, round {}: {}: {}",
            run.target.name,
            run.load,
            units::count(run.series),
            run.round + 1,
            run.status,
            run.reasons.join("; ")
        )
    })
    .collect()
}

fn feeds(out: &mut String, details: &DalmatinerDetails, plan: &DalmatinerPlan, width: usize) {
    let _ = writeln!(
        out,
        "\nThe feed: one sample per second and series for {} s, kernel statistics, messages with samples of one second; all read back.\n\
         {:width$}  {:6}  {:10}  {:>7}  {:>17}  {:>7}  {:>10}  {:>9}  {:>9}  {:>25}  {:>6}  {:>12}",
        plan.seconds,
        "target",
        "way",
        "durability",
        "series",
        "CPU s/million",
        "cores",
        "last write",
        "RSS MB",
        "cache MB",
        "verified",
        "valid",
        "highest rate"
    );
    for summary in &details.summaries {
        feed_line(out, summary, width);
    }
    for sentence in disorder(plan) {
        let _ = writeln!(out, "{sentence}");
    }
    let _ = writeln!(
        out,
        "way: tcp, in a process of its own behind DalmatinerDB's protocol; inproc, in this process; server, one that was given. \
         CPU, cores: the target's alone, until everything was sent, in ticks of 10 ms; last write: CPU time after that, until what \
         waited is in its files: a cache writes each series once, however little waits, so it says nothing of a longer run. \
         inproc has no process between: compare it with inproc. RSS: the most of the target's processes; \
         cache: its files in the page cache. durability: of an acknowledgement. +-: half of the 95 % interval over the rounds."
    );
}

fn feed_line(out: &mut String, summary: &TargetSummary, width: usize) {
    let megabytes = |figure: Option<Figure>| mean(figure.map(|figure| figure.scaled(1e-6)), 1);
    let _ = writeln!(
        out,
        "{:width$}  {:6}  {:10}  {:>7}  {:>17}  {:>7}  {:>10}  {:>9}  {:>9}  {:>25}  {:>6}  {:>12}",
        summary.target.name,
        summary.target.way,
        summary.target.acknowledged,
        units::count(summary.series),
        mean_and_half(summary.cpu_seconds_per_million, 3),
        mean(summary.cores(), 4),
        summary
            .last_write_cpu_seconds
            .map_or_else(dash, |figure| format!("{:.2} s", figure.mean)),
        megabytes(summary.rss_bytes),
        megabytes(summary.page_cache_bytes),
        format!("{} of {}", units::count(summary.verified), units::count(summary.sent)),
        format!("{}/{}", summary.rounds_valid, summary.rounds),
        summary
            .peak_per_second
            .map_or_else(dash, |peak| format!("{}/s", units::count(peak.mean.round() as u64))),
    );
}

fn queries(out: &mut String, details: &DalmatinerDetails, plan: &DalmatinerPlan, width: usize) {
    if details.queries.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nQueries of a day that is there: q1, the maximum of each minute of an hour, one series; q2, of each hour of a day, seven. Mean ms.\n\
         {:width$}  {:5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}  computed by",
        "target", "query", "first", "repeated", "beside", "cold", "rows"
    );
    for name in &plan.targets {
        for query in ["q1", "q2"] {
            let of = |state: &str| {
                let runs = details.queries.iter();
                let runs = runs.filter(|run| {
                    run.target.name == *name && run.query == query && run.state == state && run.times.count > 0
                });
                Figure::of(&runs.map(|run| run.mean_ms).collect::<Vec<_>>())
            };
            let Some(one) = details
                .queries
                .iter()
                .find(|run| run.target.name == *name && run.query == query)
            else {
                continue;
            };
            let times = ["first", "repeated", "beside", "cold"].map(|state| mean(of(state), 3));
            let by = if one.by_target { "the target" } else { "the client" };
            let _ = writeln!(
                out,
                "{name:width$}  {query:5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {by}",
                times[0], times[1], times[2], times[3], one.rows
            );
        }
    }
    let _ = writeln!(
        out,
        "first: of its series after the history was written, which flushes a cache of points. repeated: the same again. \
         beside: while the feed is written. cold: opened again, files out of the page cache. Every answer was compared."
    );
}

fn sizes(out: &mut String, details: &DalmatinerDetails, width: usize) {
    if details.sizes.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nA day of history, bits per sample:\n{:width$}  {:>11}  {:>8}  {:>9}  {:>9}  {:>10}",
        "target", "samples", "nominal", "apparent", "on disk", "compressed"
    );
    for size in details.sizes.iter().filter(|size| size.round == 0) {
        let _ = writeln!(
            out,
            "{:width$}  {:>11}  {:>8}  {:>9.2}  {:>9.2}  {:>10.2}",
            size.target.name,
            units::count(size.samples),
            size.nominal_bits.map_or_else(dash, |bits| format!("{bits:.0}")),
            size.apparent_bits,
            size.disk_bits,
            size.compressed_bits
        );
    }
    let _ = writeln!(
        out,
        "apparent: lengths without holes. on disk: blocks. compressed: each 128 KiB by Snappy, as a pool of ZFS would by its own method. Index included."
    );
}

fn kills(out: &mut String, details: &DalmatinerDetails, plan: &DalmatinerPlan, width: usize) {
    if details.kills.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nKilled after it had taken {} s of {} series, and opened again:",
        plan.killed_seconds,
        units::count(plan.killed_series)
    );
    for kill in &details.kills {
        let _ = writeln!(
            out,
            "  {:width$}  lost {} of {} samples, up to the last {} s of a series",
            kill.target.name,
            units::count(kill.lost),
            units::count(kill.taken),
            kill.longest_loss_seconds
        );
    }
}
