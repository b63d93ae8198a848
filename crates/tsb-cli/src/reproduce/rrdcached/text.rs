//! Formats the result as tables of text.

use std::fmt::Write;

use serde_json::Value;
use tsb_core::report::experiment::Row;
use tsb_core::report::experiment::rrdcached::{Beyond, Reproduction, Round};

/// The whole text.
pub(super) fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut out = String::new();
    let _ = writeln!(out, "What does rrdcached buy? Daemon: {}", experiment.details.daemon);
    if experiment.is_debug_build {
        let _ = writeln!(out, "A build without optimization: our own figures are too high.");
    }
    rounds(&mut out, &experiment.details.rounds);
    published(&mut out, &experiment.rows);
    beyond(&mut out, &experiment.details.beyond);
    let _ = writeln!(out, "\nWhat the original got wrong, or left unmeasured");
    for mistake in &experiment.mistakes {
        let _ = writeln!(out, "  - {mistake}");
    }
    let _ = writeln!(
        out,
        "\n{} files do not hold what they were told last; took {:.0} s",
        experiment.details.files_wrong, result.took_seconds
    );
    out
}

fn rounds(out: &mut String, rounds: &[Round]) {
    let _ = writeln!(
        out,
        "\n{:>6}  {:15}  {:12}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>7}  {:>8}  {:>8}",
        "files",
        "way",
        "round",
        "resident",
        "accept s",
        "drain s",
        "sync s",
        "total s",
        "CPU us",
        "read B",
        "written B"
    );
    for round in rounds {
        let resident = round.resident.map_or_else(
            || "unknown".to_owned(),
            |resident| format!("{:.2} %", resident.bytes as f64 * 100.0 / resident.of_bytes as f64),
        );
        let disk = |bytes: Option<f64>| bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}"));
        let _ = writeln!(
            out,
            "{:>6}  {:15}  {:12}  {resident:>9}  {:>8.3}  {:>8.3}  {:>8.3}  {:>8.3}  {:>7.1}  {:>8}  {:>8}",
            round.files,
            round.way,
            round.pass,
            round.accept_seconds,
            round.drain_seconds,
            round.sync_seconds,
            round.total_seconds(),
            round.cpu_us_per_update,
            disk(round.read_bytes_per_update),
            disk(round.written_bytes_per_update),
        );
    }
    let _ = writeln!(
        out,
        "CPU and disk of an update, of whoever writes the files; what syncs write counts where the system says so.\n\
         across: every update ends a step and writes a row of two archives; within: none does."
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
