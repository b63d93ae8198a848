//! Formats the result as text.

use std::fmt::Write;

use tsb_core::latency::Quantiles;
use tsb_core::report::experiment::mohawk::{ClassicRun, LoadSummary, MohawkDetails, Reproduction};
use tsb_run::units;

use crate::render::experiment_figures::{dash, mean, mean_and_half};
use crate::reproduce::{published, sentences};

/// Moments of a process that are shown, at the most.
const MOMENTS: usize = 5;
/// The least width of a column of backends, in characters.
const WIDTH_MIN: usize = 24;

/// The whole text.
pub(in crate::reproduce) fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let details = &experiment.details;
    let mut out = String::new();
    let _ = writeln!(out, "Which backend of Mohawk is fastest?");
    if experiment.is_debug_build {
        let _ = writeln!(
            out,
            "A build without optimization: client, endpoint and stores are slower."
        );
    }
    as_it_was(&mut out, result);
    moments(&mut out, details);
    corrected(&mut out, result);
    feeds(&mut out, details);
    published(&mut out, "a desktop, 2017", &experiment.rows);
    sentences(
        &mut out,
        "What the original got wrong, or left unmeasured",
        &experiment.mistakes,
    );
    sentences(&mut out, "Not run", &details.absent);
    sentences(&mut out, "Failed", &details.failures);
    sentences(&mut out, "Wrong answers", &wrong(details));
    let ended = if details.interrupted {
        "interrupted after"
    } else {
        "took"
    };
    let _ = writeln!(
        out,
        "\n{ended} {:.0} s; seed {}; rounds: {}",
        result.took_seconds, result.plan.asked.seed, result.plan.asked.rounds
    );
    out
}

/// All wrong answers, each with the run that got it.
fn wrong(details: &MohawkDetails) -> Vec<String> {
    let as_it_was = details.wrong_as_it_was().map(|wrong| format!("as it was, {wrong}"));
    let feeds = details
        .wrong_feeds()
        .map(|wrong| format!("one sample per second, {wrong}"));
    as_it_was.chain(details.wrong_corrected()).chain(feeds).collect()
}

/// The width of a column of backends: the name of one on a server has its address.
fn width_of_names(details: &MohawkDetails) -> usize {
    let names = details
        .classic
        .iter()
        .map(|summary| summary.backend.name.chars().count());
    names.max().unwrap_or(0).max(WIDTH_MIN)
}

fn as_it_was(out: &mut String, result: &Reproduction) {
    let count = result.plan.asked.count;
    let width = width_of_names(&result.experiment.details);
    let _ = writeln!(
        out,
        "\nAs it was: one client, {count} writes, then {count} reads, a connection for each.\n\
         {:width$}  {:10}  {:>15}  {:>12}  {:>14}  {:>14}  {:>9}  {:>12}  {:>6}",
        "backend",
        "durability",
        "seconds",
        "client CPU s",
        "endpoint CPU s",
        "database CPU s",
        "RSS MiB",
        "rows",
        "right"
    );
    for summary in &result.experiment.details.classic {
        let rows = summary.rows.map_or_else(|| "differ".to_owned(), units::count);
        let rows = match summary.empty {
            Some(0) | None => rows,
            Some(empty) => format!("{rows}, {empty}x 204"),
        };
        let _ = writeln!(
            out,
            "{:width$}  {:10}  {:>15}  {:>12}  {:>14}  {:>14}  {:>9}  {rows:>12}  {:>6}",
            summary.backend.name,
            summary.backend.durability,
            mean_and_half(summary.seconds, 2),
            mean(summary.client_cpu, 2),
            mean(summary.endpoint_cpu, 2),
            mean(summary.database_cpu, 2),
            summary
                .endpoint_rss
                .map_or_else(dash, |rss| format!("{:.1}", rss.mean / f64::from(1 << 20))),
            format!("{}/{}", summary.rounds_right, summary.rounds),
        );
    }
    let _ = writeln!(
        out,
        "+-: half of the 95 % interval over the rounds, which is wide for two. CPU: user and system, in ticks of 10 ms. \
         RSS: the most of the endpoint. right: rounds in which every row was what it had to be; 204: answers without rows."
    );
}

/// The processes of one run, each half second, as the document shows them.
fn moments(out: &mut String, details: &MohawkDetails) {
    let slowest = |a: &&ClassicRun, b: &&ClassicRun| a.seconds.total_cmp(&b.seconds);
    let Some(run) = details.as_it_was.iter().max_by(slowest) else {
        return;
    };
    let _ = writeln!(
        out,
        "\nThe processes of {}, round {}, the slowest run; in brackets what ps -o pcpu prints. Each half second is in the \
         JSON and on the page.",
        run.backend.name,
        run.round + 1
    );
    for process in &run.processes {
        let step = process.moments.len().div_ceil(MOMENTS).max(1);
        let shown: Vec<String> = process
            .moments
            .iter()
            .rev()
            .step_by(step)
            .rev()
            .map(|moment| {
                let lifetime = moment
                    .lifetime_percent
                    .map_or_else(String::new, |percent| format!(" ({percent:.1})"));
                let rss = moment.rss_bytes / 1_024;
                format!(
                    "{:.1} s {:.0} %{lifetime} {rss} KiB",
                    moment.at_seconds, moment.cpu_percent
                )
            })
            .collect();
        let _ = writeln!(out, "  {:8}  {}", process.role, shown.join("; "));
    }
}

fn corrected(out: &mut String, result: &Reproduction) {
    let asked = &result.plan.asked;
    let details = &result.experiment.details;
    if details.ways.is_empty() {
        return;
    }
    let width = width_of_names(details);
    let _ = writeln!(
        out,
        "\nCorrected: connections are kept, all answer the same question, and what was confirmed is read back.\n\
         kept: one client, a sample per write. batches: one client, {} gauges per write. concurrent: {} clients. \
         open: {} requests per second for {} s, due at absolute times, over {} connections.\n\
         {:10}  {:width$}  {:10}  {:>17}  {:>11}  {:>9}  {:>9}  {:>9}  {:>9}  {:>23}  {:>15}",
        asked.batch,
        asked.connections,
        asked.rate,
        asked.seconds,
        asked.connections,
        "way",
        "backend",
        "durability",
        "requests/s",
        "samples/s",
        "write p50",
        "write p99",
        "read p50",
        "read p99",
        "CPU us/request",
        "verified"
    );
    for summary in details.by_way() {
        line(out, summary, width);
    }
    let _ = writeln!(
        out,
        "p50, p99: of all rounds together, from sent, in the open loop from due, to answered; - where too few were made. \
         samples/s: samples confirmed per second of writing. CPU: client + endpoint + database, - where it is too little \
         to be counted. verified: read back as written, of those confirmed. Levels of durability differ: a faster backend may promise less."
    );
}

fn line(out: &mut String, summary: &LoadSummary, width: usize) {
    let parts = [summary.client_us, summary.endpoint_us, summary.database_us];
    let parts: Vec<String> = parts.into_iter().map(|part| mean(part, 0)).collect();
    let unanswered = match summary.unanswered {
        0 => String::new(),
        count => format!("; {} not answered", units::count(count)),
    };
    let _ = writeln!(
        out,
        "{:10}  {:width$}  {:10}  {:>17}  {:>11}  {:>9}  {:>9}  {:>9}  {:>9}  {:>23}  {:>15}{unanswered}",
        summary.way,
        summary.backend.name,
        summary.backend.durability,
        mean_and_half(summary.requests_per_second, 0),
        mean(summary.samples_per_second, 0),
        quantile(&summary.write, |all| all.p50_ns),
        quantile(&summary.write, |all| all.p99_ns),
        quantile(&summary.read, |all| all.p50_ns),
        quantile(&summary.read, |all| all.p99_ns),
        parts.join(" + "),
        format!(
            "{} of {}",
            units::count(summary.verified),
            units::count(summary.confirmed)
        ),
    );
}

fn feeds(out: &mut String, details: &MohawkDetails) {
    if details.feeds.is_empty() {
        return;
    }
    let width = width_of_names(details);
    let _ = writeln!(out, "\nOne sample per second, all confirmed; kept:");
    for feed in details.feeds.iter().filter(|feed| feed.round == 0) {
        let share = 100.0 * feed.kept as f64 / feed.confirmed.max(1) as f64;
        let _ = writeln!(
            out,
            "  {:width$}  {} of {} ({share:.1} %)",
            feed.backend.name,
            units::count(feed.kept),
            units::count(feed.confirmed)
        );
    }
}

fn quantile(all: &Quantiles, of: impl Fn(&Quantiles) -> Option<u64>) -> String {
    of(all).map_or_else(dash, units::nanos)
}
