//! Formats the result as tables of text.

use std::fmt::Write;

use serde_json::Value;

/// The whole text.
pub(super) fn page(result: &Value) -> String {
    let experiment = &result["experiment"];
    let mut out = String::new();
    let _ = writeln!(out, "What does rrdcached buy? Daemon: {}", word(&experiment["daemon"]));
    if experiment["is_debug_build"] == true {
        let _ = writeln!(out, "A build without optimization: our own figures are too high.");
    }
    rounds(&mut out, experiment);
    published(&mut out, experiment);
    beyond(&mut out, experiment);
    let _ = writeln!(out, "\nWhat the original got wrong, or left unmeasured");
    for mistake in list(&experiment["mistakes"]) {
        let _ = writeln!(out, "  - {}", word(mistake));
    }
    let wrong = experiment["files_wrong"].as_u64().unwrap_or_default();
    let _ = writeln!(
        out,
        "\n{wrong} files do not hold what they were told last; took {:.0} s",
        number(&result["took_seconds"])
    );
    out
}

fn rounds(out: &mut String, experiment: &Value) {
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
    for round in list(&experiment["rounds"]) {
        let [accept, drain, sync] =
            ["accept_seconds", "drain_seconds", "sync_seconds"].map(|name| number(&round[name]));
        let resident = &round["resident"];
        let share = number(&resident["bytes"]) / number(&resident["of_bytes"]);
        let resident = if resident.is_null() {
            "unknown".to_owned()
        } else {
            format!("{:.2} %", share * 100.0)
        };
        let disk = |name: &str| {
            round[name]
                .as_f64()
                .map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}"))
        };
        let _ = writeln!(
            out,
            "{:>6}  {:15}  {:12}  {resident:>9}  {accept:>8.3}  {drain:>8.3}  {sync:>8.3}  {:>8.3}  {:>7.1}  {:>8}  {:>8}",
            round["files"].as_u64().unwrap_or_default(),
            word(&round["way"]),
            word(&round["pass"]),
            accept + drain + sync,
            number(&round["cpu_us_per_update"]),
            disk("read_bytes_per_update"),
            disk("written_bytes_per_update"),
        );
    }
    let _ = writeln!(
        out,
        "CPU and disk of an update, of whoever writes the files; what syncs write counts where the system says so.\n\
         across: every update ends a step and writes a row of two archives; within: none does."
    );
}

fn published(out: &mut String, experiment: &Value) {
    let rows: Vec<&Value> = list(&experiment["rows"]).collect();
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
            "  {:45}  {:>9.3} s  {:>9.3} s  ratio {:.4}",
            word(&row["what"]),
            number(&row["published"]),
            number(&row["measured"]),
            number(&row["ratio"]),
        );
    }
}

fn beyond(out: &mut String, experiment: &Value) {
    let mut title = "";
    let _ = writeln!(out, "\nBeyond the document");
    for entry in list(&experiment["beyond"]) {
        if word(&entry["what"]) != title {
            title = word(&entry["what"]);
            let _ = writeln!(out, "  {title}");
        }
        let _ = write!(out, "    {:15}", word(&entry["way"]));
        for (name, value) in entry.as_object().into_iter().flatten() {
            match value {
                Value::Number(_) if value.is_u64() => write!(out, "  {name} {value}"),
                Value::Number(_) => write!(out, "  {name} {:.3}", number(value)),
                Value::String(text) if name == "policy" => write!(out, "  {text}"),
                _ => Ok(()),
            }
            .unwrap_or_default();
        }
        out.push('\n');
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}
