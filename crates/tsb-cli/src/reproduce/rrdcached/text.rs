//! Formats the result as tables of text.

mod predictions;

use std::fmt::Write;

use serde_json::Value;
use tsb_core::report::experiment::rrdcached::{Beyond, Pass, Reproduction, Round, passes};
use tsb_core::report::experiment::{Figure, Row};

use crate::reproduce::sentences;

/// The whole text.
pub(in crate::reproduce) fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut out = String::new();
    let _ = writeln!(out, "What does rrdcached buy? Daemon: {}", experiment.details.daemon);
    if experiment.is_debug_build {
        let _ = writeln!(out, "A build without optimization: our own figures are too high.");
    }
    rounds(&mut out, &experiment.details.rounds);
    published(&mut out, &experiment.rows);
    beyond(&mut out, &experiment.details.beyond);
    if let Some(simulated) = &experiment.details.simulated {
        predictions::table(&mut out, simulated);
    }
    let heading = "What the original got wrong, or left unmeasured";
    sentences(&mut out, heading, &experiment.mistakes);
    let _ = writeln!(
        out,
        "\n{} files do not hold what they were told last; took {:.0} s",
        experiment.details.files_wrong, result.took_seconds
    );
    out
}

/// One line for each pass of each engine: means over the rounds, with the interval of the total.
fn rounds(out: &mut String, rounds: &[Round]) {
    if rounds.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:>6}  {:15}  {:12}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:19}  {:>7}  {:>8}  {:>9}",
        "files",
        "way",
        "pass",
        "resident",
        "accept s",
        "drain s",
        "sync s",
        "total s",
        "its 95 % interval",
        "CPU us",
        "read B",
        "written B"
    );
    for pass in passes(rounds) {
        line(out, &pass);
    }
    let _ = writeln!(
        out,
        "Means over the rounds. CPU and disk are those of one update, of the process that writes the files; what syncs\n\
         write counts where the system says so.\n\
         across: every update ends a step and writes a row of two archives; within: none does."
    );
}

fn line(out: &mut String, pass: &Pass) {
    let shown = |figure: Option<Figure>, digits: usize| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{:.digits$}", figure.mean))
    };
    let resident = pass
        .resident_percent
        .map_or_else(|| "unknown".to_owned(), |figure| format!("{:.2} %", figure.mean));
    let interval = pass
        .total
        .and_then(|total| Some(format!("{:.3} to {:.3}", total.low?, total.high?)));
    let _ = writeln!(
        out,
        "{:>6}  {:15}  {:12}  {resident:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:19}  {:>7}  {:>8}  {:>9}",
        pass.files,
        pass.way,
        pass.name,
        shown(pass.accept, 3),
        shown(pass.drain, 3),
        shown(pass.sync, 3),
        shown(pass.total, 3),
        interval.unwrap_or_else(|| "-".to_owned()),
        shown(pass.cpu_us, 1),
        shown(pass.read_bytes, 0),
        shown(pass.written_bytes, 0),
    );
}

fn published(out: &mut String, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nPublished (two Xeon X5650, 15k disks, 2012) beside measured here"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "  {:45}  {:>9.3} {}  {:>9.3} {}  ratio {:.4}",
            row.what,
            figure(row.published),
            row.unit,
            figure(row.measured),
            row.unit,
            figure(row.ratio),
        );
    }
}

/// A figure of a row; each row of this experiment has all of them.
fn figure(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::NAN)
}

/// The figures of each entry under their names in the document.
fn beyond(out: &mut String, entries: &[Beyond]) {
    if entries.is_empty() {
        return;
    }
    let mut title = String::new();
    let _ = writeln!(out, "\nBeyond the document");
    for entry in entries {
        // An entry has numbers and texts only, so it can be serialized.
        let entry = serde_json::to_value(entry).unwrap_or_default();
        let word = |name: &str| entry[name].as_str().unwrap_or("?");
        if word("what") != title {
            word("what").clone_into(&mut title);
            let _ = writeln!(out, "  {title}");
        }
        let _ = write!(out, "    {:15}", word("way"));
        for (name, value) in entry.as_object().into_iter().flatten() {
            match value {
                Value::Number(count) if count.is_u64() => write!(out, "  {name} {count}"),
                Value::Number(figure) => write!(out, "  {name} {:.3}", figure.as_f64().unwrap_or_default()),
                Value::String(text) if name == "policy" => write!(out, "  {text}"),
                _ => Ok(()),
            }
            .unwrap_or_default();
        }
        out.push('\n');
    }
}
