//! Formats the result as text.

mod outages;

use std::fmt::Write;

use tsb_core::report::experiment::Row;
use tsb_core::report::experiment::hm9000::{AsItWas, CurvePoint, Hm9000Details, Reproduction};
use tsb_run::units;

use crate::render::experiment_figures::{dash, mean, mean_and_half};
use crate::reproduce::sentences;

/// Lines of the original's output that are shown, at the end of its first run.
const LINES: usize = 4;

/// The whole text.
pub(in crate::reproduce) fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let details = &experiment.details;
    let mut out = String::new();
    let _ = writeln!(out, "How many apps can HM9000 keep fresh?");
    if experiment.is_debug_build {
        let _ = writeln!(out, "A build without optimization: stores in this process are slower.");
    }
    as_it_was(&mut out, details);
    curve(&mut out, result);
    outages::outages(&mut out, result);
    published(&mut out, &experiment.rows);
    let heading = "What the original got wrong, or left unmeasured";
    sentences(&mut out, heading, &experiment.mistakes);
    for failure in &details.failures {
        let _ = writeln!(out, "\nNot measured: {failure}");
    }
    let ended = if details.interrupted {
        "interrupted after"
    } else {
        "took"
    };
    let _ = writeln!(
        out,
        "\n{ended} {:.0} s; seed {}",
        result.took_seconds, result.plan.asked.seed
    );
    out
}

fn as_it_was(out: &mut String, details: &Hm9000Details) {
    let _ = writeln!(
        out,
        "\nAs it was: a timer asks for two keys. Beside it, what was there.\n{:>8}  {:30}  {:>12}  {:>11}  {:>14}  {:>10}",
        "apps", "store", "called fresh", "polls fresh", "falsely", "missing"
    );
    for run in &details.as_it_was {
        let fresh_at = run
            .fresh_at_seconds
            .map_or_else(|| "never".to_owned(), |at| format!("{at:.1} s"));
        let falsely = format!("{} of {}", run.polls_falsely_fresh, run.polls_checked);
        let _ = writeln!(
            out,
            "{:>8}  {:30}  {fresh_at:>12}  {:>11}  {falsely:>14}  {:>10}",
            units::count(run.apps as u64),
            run.store,
            run.polls_fresh,
            units::count(run.missing_max),
        );
    }
    let _ = writeln!(
        out,
        "falsely: polls that said fresh while instances reported two seconds before were missing or wrong, of those \
         for which the store was read; missing: the most at one of them."
    );
    let is_real = |run: &&AsItWas| !run.is_virtual;
    if let Some(run) = details.as_it_was.iter().find(is_real) {
        let _ = writeln!(
            out,
            "\nWhat the original prints, {} with {} apps:",
            run.store,
            units::count(run.apps as u64)
        );
        for line in &run.lines[run.lines.len().saturating_sub(LINES)..] {
            let _ = writeln!(out, "  {line}");
        }
    }
}

fn curve(out: &mut String, result: &Reproduction) {
    let asked = &result.plan.asked;
    let _ = writeln!(
        out,
        "\nCorrected: every heartbeat puts all of its instances, due at absolute times for {} s; rounds: {}.",
        asked.seconds, asked.rounds
    );
    if asked.seconds <= 30 {
        let _ = writeln!(
            out,
            "Shorter than the time to live of 30 s: what breaks later is not seen, such as keys that expire."
        );
    }
    let _ = writeln!(
        out,
        "{:>9}  {:24}  {:>14}  {:>17}  {:>19}  {:>19}  {:>12}  {:>5}",
        "apps", "store", "called fresh s", "all there s", "keys/s", "put p90 ms", "CPU s / 1M", "kept"
    );
    for point in result.experiment.details.curve.iter().filter(|point| point.rounds > 0) {
        line(out, point);
    }
    let _ = writeln!(
        out,
        "called fresh: when the timer of the run as it was said so, - where it never did or there was no such run. \
         +-: half of the 95 % interval over the rounds, which is wide for two. keys/s: acknowledged, from the first put \
         to the last answer; in a run of 10 s the keys of 10 s are due within 9 s. put: from when it was due. CPU: of \
         the whole process with load, scans and embedded store, and of servers on this machine."
    );
    for found in &result.experiment.details.breaks {
        let kept = found.kept.map_or_else(
            || "does not keep the smallest number of apps fresh".to_owned(),
            |apps| format!("keeps {} apps fresh", units::count(apps as u64)),
        );
        let broke = found
            .broke
            .map_or_else(String::new, |apps| format!("; at {} apps: ", units::count(apps as u64)));
        let reason = if found.broke.is_some() { found.why.as_str() } else { "" };
        let _ = writeln!(out, "{} {kept}{broke}{reason}", found.store);
    }
}

fn line(out: &mut String, point: &CurvePoint) {
    let _ = writeln!(
        out,
        "{:>9}  {:24}  {:>14}  {:>17}  {:>19}  {:>19}  {:>12}  {:>5}",
        units::count(point.apps as u64),
        point.store,
        point.document_fresh_at.map_or_else(dash, |at| format!("{at:.1}")),
        mean_and_half(point.fresh_at, 2),
        mean_and_half(point.keys_per_second, 0),
        mean_and_half(point.response_p90_ms, 1),
        mean(point.cpu_seconds_per_million, 2),
        format!("{}/{}", point.rounds_kept, point.rounds),
    );
}

fn published(out: &mut String, rows: &[Row]) {
    let _ = writeln!(out, "\nPublished (etcd v2-rc1, 2013) beside measured here");
    for row in rows {
        let number = |value: Option<f64>| match value {
            None => "-".to_owned(),
            Some(value) if row.unit == "s" => format!("{value:.1}"),
            Some(value) => units::count(value as u64),
        };
        let published = match row.published {
            Some(_) => format!("published {} {}", number(row.published), row.unit),
            None => "not published".to_owned(),
        };
        let ratio = row
            .ratio
            .map_or_else(String::new, |ratio| format!(", ratio {ratio:.2}"));
        let measured = number(row.measured);
        let _ = writeln!(
            out,
            "  {}\n    {published}, measured {measured} {}{ratio}\n    {}",
            row.what, row.unit, row.why
        );
    }
}
