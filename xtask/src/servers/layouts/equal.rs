//! Compares our MongoDB client with the driver alone, with the batches of a trial of the driver
//! that was made before the client was written. The example `mongo_table` measures.

use anyhow::{Context, Result};
use serde_json::Value;

use super::number;
use super::page::place;
use crate::shell::{capture, cargo};
use crate::table::Table;

/// Documents of a run, which at the trial's rates of single samples take the 0.9 to 20 s that
/// its runs took, and half as many of sixty, 1.1 to 2.1 s; and blocks of four runs a cell:
/// three give the ratio an interval.
const DOCUMENTS_AND_BLOCKS: [&str; 2] = ["400000", "3"];

/// The example's report, of the server at `host:port`.
pub(super) fn measure(address: &str) -> Result<Value> {
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "tsb-bench",
        "--features",
        "mongo",
        "--example",
        "mongo_table",
        "--",
    ];
    let text = capture(cargo(&example).arg(address).args(DOCUMENTS_AND_BLOCKS))?;
    serde_json::from_str(&text).context("mongo_table printed no JSON")
}

/// A row a cell.
pub(super) fn table(report: &Value) -> Table {
    let mut table = Table::new(&[
        "document",
        ">workers",
        ">documents a request",
        ">of a series",
        ">trial, samples/s",
        ">tsb, samples/s: median (lowest..highest)",
        ">driver alone",
        ">tsb over driver (95 %)",
        ">tsb: client CPU-us/sample",
        ">server",
        ">driver alone: client",
        ">server",
        ">cores busy",
        ">bytes/sample",
        "at least the trial's",
    ]);
    for row in rows(report) {
        let text = |path: &str, digits: usize| format!("{:.digits$}", number(row, path));
        let (lowest, highest) = ends(&row["ours"]["rates"]);
        let documents = number(row, "/documents");
        table.row(&[
            &document(row),
            &text("/workers", 0),
            &format!("{documents:.0}"),
            &text("/samples_per_series", 0),
            &text("/trial_rate", 0),
            &format!("{} ({lowest:.0}..{highest:.0})", text("/ours/rate", 0)),
            &text("/driver/rate", 0),
            &format!(
                "{} ({}..{})",
                text("/ratio/ratio", 2),
                text("/ratio/ratio_low", 2),
                text("/ratio/ratio_high", 2)
            ),
            &text("/ours/client_cpu_us_per_sample", 3),
            &text("/ours/server_cpu_us_per_sample", 3),
            &text("/driver/client_cpu_us_per_sample", 3),
            &text("/driver/server_cpu_us_per_sample", 3),
            &text("/ours/cores_busy", 2),
            &text("/ours/bytes_per_sample", 1),
            &verdict(row),
        ]);
    }
    table
}

/// What a document is, by the layout that makes it.
fn document(row: &Value) -> String {
    let what = match row["layout"].as_str() {
        Some("rows") => "one sample",
        Some("series") => "one sample, time-series collection",
        _ => "60 samples",
    };
    format!("{what} (`layout={}`)", row["layout"].as_str().unwrap_or("?"))
}

/// Whether the rate is there; where it is not, what share of it is.
fn verdict(row: &Value) -> String {
    let share = number(row, "/ours/rate") / number(row, "/trial_rate");
    if share >= 1.0 {
        "yes".to_owned()
    } else {
        format!("no, {share:.2} of it")
    }
}

/// The table with the command and the machine that it is from.
pub(super) fn page(report: &Value, command: &str) -> String {
    format!(
        "# MongoDB: our client beside the driver alone\n\n\
         Printed by `{command}`, on {}.\n\
         Batches are those of a trial of the driver alone that was made before the client was written.\n\n{}\n{}",
        place(&report["machine"]),
        table(report).markdown(),
        notes(report),
    )
}

/// What the figures mean, a sentence a line.
pub(super) fn notes(report: &Value) -> String {
    let held = rows(report).filter(|row| verdict(row) == "yes").count();
    let count = rows(report).count();
    format!(
        "{held} of {count} rows reach the trial's rate.\n\
         The trial's rates are those of the driver alone on the same kind of machine, one run of 0.9 to 20 s per cell; the shape of its documents is known, not their fields, and its documents of 60 samples had no time per sample.\n\
         A request is one batch: the samples of one tick of its series, or of as many ticks as the column \"of a series\" says.\n\
         The driver alone is `insert_many` of the same documents, made before the clock starts, into the same collections; to those of the time-series collection it adds a key of twelve bytes, which ours do not have.\n\
         Making the documents is in tsb's time and CPU.\n\
         Runs are interleaved in {:.0} blocks of tsb, driver, driver, tsb, each of {:.0} documents, of 60 samples half as many, into an empty database: at the trial's rates that takes the 0.9 to 20 s which its runs took.\n\
         How many there are decides the rate of a time-series collection, whose buckets cost the more to append to the fuller they are, and of large documents, whose unwritten part fills the server's cache.\n\
         After each run the server counted the samples, and of tsb's runs series were read back and compared.\n\
         The machine has two cores for both; \"cores busy\" is what client and server together had of them in tsb's runs.\n",
        number(report, "/blocks"),
        number(report, "/documents"),
    )
}

fn rows(report: &Value) -> impl Iterator<Item = &Value> {
    report["rows"].as_array().into_iter().flatten()
}

fn ends(rates: &Value) -> (f64, f64) {
    let rates = || rates.as_array().into_iter().flatten().filter_map(Value::as_f64);
    (
        rates().fold(f64::INFINITY, f64::min),
        rates().fold(f64::NEG_INFINITY, f64::max),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_says_whether_the_rate_is_there() {
        let row = |rate: f64| {
            json!({
                "layout": "rows", "workers": 8, "documents": 1_000, "samples_per_series": 8, "trial_rate": 200.0,
                "ours": { "rates": [rate, 90.0], "rate": rate, "bytes_per_sample": 34.0, "cores_busy": 1.5 },
                "driver": { "rate": 210.0 }, "ratio": { "ratio": 0.9, "ratio_low": 0.8, "ratio_high": 1.0 },
            })
        };
        let report = json!({ "blocks": 3, "documents": 400_000, "machine": { "cpu": "a CPU" }, "rows": [row(220.0), row(100.0)] });
        let text = table(&report).markdown();
        assert!(text.contains("| 220 (90..220) | 210 | 0.90 (0.80..1.00) |"), "{text}");
        assert!(
            text.contains("| yes |\n") && text.contains("| no, 0.50 of it |\n"),
            "{text}"
        );
        assert!(notes(&report).starts_with("1 of 2 rows"), "{}", notes(&report));
        let page = page(&report, "a command");
        assert!(page.contains("`a command`, on NaN cores of a CPU"), "{page}");
    }
}
