//! Formats the results of all layouts: a table, the meaning of its figures, and both as a page.

use serde_json::Value;

use super::super::python;
use super::{Cell, LEVELS, number};
use crate::table::Table;

/// A row a cell.
pub(super) fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new(&[
        "layout",
        "durability",
        ">workers",
        ">samples/s, lower..higher run",
        ">half: response p50 ms",
        ">p99 ms",
        ">max ms",
        ">half: stale p50 ms",
        ">p99 ms",
        ">server CPU-s/M",
        ">bytes/sample",
        ">verified",
        "verdicts",
    ]);
    for cell in cells {
        let [lower, higher] = cell.rate();
        let half = |path: &str, scale: f64| mean(&cell.half, |report| number(report, path) * scale);
        let full = |figure: &dyn Fn(&Value) -> f64| mean(&cell.full, figure);
        let first = cell.full.first().unwrap_or(&Value::Null);
        let level = first
            .pointer("/durability/acknowledged")
            .and_then(Value::as_str)
            .unwrap_or("?");
        let copies = number(first, "/durability/copies");
        let reports = || cell.full.iter().chain(&cell.half);
        let verified: f64 = reports().map(|report| number(report, "/ledger/verified")).sum();
        table.row(&[
            cell.layout,
            &format!("{level} on {copies}"),
            &cell.workers.to_string(),
            &format!("{lower:.0}..{higher:.0}"),
            &half("/latency/response/p50_ns", 1e-6),
            &half("/latency/response/p99_ns", 1e-6),
            &half("/latency/response/max_ns", 1e-6),
            &half("/staleness/p50_ms", 1.0),
            &half("/staleness/p99_ms", 1.0),
            &full(&server_cpu_s_per_million),
            &full(&|report| number(report, "/cost/disk_bytes_per_sample")),
            &format!("{verified:.0}"),
            &verdicts(reports()),
        ]);
    }
    table
}

/// What the runs say of themselves: each verdict, and of how many runs it is.
fn verdicts<'a>(reports: impl Iterator<Item = &'a Value>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for report in reports {
        let status = report.pointer("/verdict/status").and_then(Value::as_str).unwrap_or("?");
        match counts.iter_mut().find(|(name, _)| *name == status) {
            Some((_, count)) => *count += 1,
            None => counts.push((status, 1)),
        }
    }
    let words = counts.iter().map(|(status, count)| format!("{count} {status}"));
    words.collect::<Vec<_>>().join(", ")
}

/// What the figures mean, a sentence a line.
pub(super) fn notes(cells: &[Cell]) -> String {
    let mut notes = String::from(
        "A batch is a tick of all series of a worker: 1,000, and 100 with Mohawk's layout, which makes a collection for each within the run.\n\
         The rate is that of a closed loop: each worker writes as soon as it may; both runs are shown.\n\
         Response and staleness are those of an open loop at half of that rate, as the mean of two runs; a dash: too few operations for this quantile.\n\
         Where the two runs of a row are far apart, neither is a figure to quote.\n\
         Durability is what an ack was worth, and on how many machines.\n\
         Server CPU is that of all its processes in the closed loop, over the samples accepted.\n\
         Bytes are those of dbStats after a checkpoint; where a run wrote little, they are mostly those of empty collections.\n\
         Server and generator share the cores and wait for each other, which is no noise; where the generator was late for that, the verdict is GENERATOR-LIMITED.\n\
         So a rate is what both get out of this machine, and not what the server would take from another.\n",
    );
    notes.extend(best_over_mohawk(cells));
    notes
}

/// The fastest layout at the first level, as a multiple of the fastest of Mohawk's.
fn best_over_mohawk(cells: &[Cell]) -> Option<String> {
    let (server, level) = *LEVELS.first()?;
    let at_level = |is_mohawk: bool| {
        cells
            .iter()
            .filter(move |cell| (cell.server, cell.level) == (server, level) && (cell.layout == "mohawk") == is_mohawk)
    };
    let best = at_level(false).max_by(|a, b| a.rate()[0].total_cmp(&b.rate()[0]))?;
    let mohawk = at_level(true).map(|cell| cell.rate()[1]).max_by(f64::total_cmp)?;
    let ratio = best.rate()[0] / mohawk;
    Some(format!(
        "At {server} {level}, {} took {ratio:.0} times as many samples per second as Mohawk's layout (its slower run over the other's faster one); at least ten times was required.\n",
        best.layout
    ))
}

/// The table with the command and the machine that it is from.
pub(super) fn page(cells: &[Cell], command: &str) -> String {
    let machine = cells
        .iter()
        .find_map(|cell| cell.full.first()?.get("machine"))
        .unwrap_or(&Value::Null);
    format!(
        "# MongoDB: what each layout takes\n\n\
         Printed by `{command}`, on {}.\n\
         Every sample of every run was read back and compared.\n\n{}\n{}",
        place(machine),
        table(cells).markdown(),
        notes(cells),
    )
}

/// Where it was measured, of a report's `machine`.
pub(super) fn place(machine: &Value) -> String {
    format!(
        "{} cores of {}, {:.0} GiB, with mongod {}, which share them with tsb",
        number(machine, "/cores"),
        machine["cpu"].as_str().unwrap_or("?"),
        number(machine, "/memory_bytes") / f64::from(1 << 30),
        python::MONGOD_VERSION,
    )
}

/// CPU-seconds of the processes beside tsb itself, over a million accepted samples.
fn server_cpu_s_per_million(report: &Value) -> f64 {
    let others = report["resources"].as_array().into_iter().flatten().skip(1);
    let cpu_ns: f64 = others
        .map(|usage| number(usage, "/user_cpu_ns") + number(usage, "/system_cpu_ns"))
        .sum();
    cpu_ns / 1e9 / (number(report, "/ledger/accepted") / 1e6)
}

/// The mean of a figure, or a dash where a report has none.
fn mean(reports: &[Value], figure: impl Fn(&Value) -> f64) -> String {
    let mean = reports.iter().map(figure).sum::<f64>() / reports.len() as f64;
    if mean.is_nan() {
        "-".to_owned()
    } else {
        format!("{mean:.2}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(rate: f64) -> Value {
        json!({
            "rate": { "held_per_second": rate }, "durability": { "acknowledged": "volatile", "copies": 1 },
            "latency": { "response": { "p50_ns": 2_000_000 } }, "ledger": { "accepted": 2_000_000, "verified": 7 },
            "machine": { "cores": 2, "cpu": "a CPU", "memory_bytes": 2_u64 << 30 },
            "resources": [
                { "user_cpu_ns": 9_000_000_000_u64, "system_cpu_ns": 0 },
                { "user_cpu_ns": 1_000_000_000, "system_cpu_ns": 500_000_000 },
                { "user_cpu_ns": 500_000_000, "system_cpu_ns": 0 },
            ],
        })
    }

    fn judged(mut report: Value) -> Value {
        report["verdict"] = json!({ "status": "VALID" });
        report
    }

    #[test]
    fn the_server_is_everything_but_tsb() {
        assert_eq!(server_cpu_s_per_million(&report(1.0)), 1.0);
    }

    #[test]
    fn a_row_has_both_runs_and_the_level() {
        let cell = Cell {
            layout: "ticks",
            series: 1_000,
            server: "mongod",
            level: "w=1",
            workers: 8,
            full: vec![report(300.0), judged(report(100.0))],
            half: vec![judged(report(50.0))],
        };
        let text = table(&[cell]).render();
        assert!(text.contains("volatile on 1") && text.contains("100..300"), "{text}");
        assert!(
            text.contains(" 2.00       -  ") && text.contains("21  1 ?, 2 VALID\n"),
            "{text}"
        );
    }

    #[test]
    fn the_page_says_how_much_faster_the_best_is_and_where() {
        let cell = |layout, rate| Cell {
            layout,
            series: 1_000,
            server: "mongod",
            level: "w=1",
            workers: 8,
            full: vec![report(rate)],
            half: vec![report(rate / 2.0)],
        };
        let cells = [cell("series", 200.0), cell("ticks", 3_000.0), cell("mohawk", 10.0)];
        let page = page(&cells, "a command");
        assert!(
            page.contains("ticks took 300 times as many samples per second as Mohawk's layout"),
            "{page}"
        );
        assert!(page.contains("`a command`, on 2 cores of a CPU, 2 GiB"), "{page}");
    }
}
