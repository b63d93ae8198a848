//! From the reports of `tsb` to the figures that the page shows, and no others.

use serde_json::{Map, Value, json};

use super::tree::Tree;

/// What is in the server's processes or, of a store of ours, in these parts of the one process.
const OURS: [&str; 5] = [
    "wire_cpu_ns_per_sample",
    "store_cpu_ns_per_sample",
    "store_threads_cpu_ns_per_sample",
    "store_flush_cpu_ns_per_sample",
    "store_newest_cpu_ns_per_sample",
];
/// A level that a sample can have when it is acknowledged, from the least to the most.
pub(super) const LEVELS: [&str; 4] = ["unconfirmed", "volatile", "buffered", "synced"];
/// Stores that are gone with their process.
const IN_MEMORY: [&str; 2] = ["memory:", "ring:"];

/// A run at a fixed rate.
pub(super) fn fixed(report: &Value, is_server: bool, page_cache_bytes: Option<u64>) -> Value {
    let mut figures = Figures::default();
    for (name, path) in [
        ("verdict", "/verdict/status"),
        ("acknowledged", "/durability/acknowledged"),
        ("copies", "/durability/copies"),
        ("exactness", "/target/exactness"),
        ("asked_per_second", "/rate/asked_per_second"),
        ("held_per_second", "/rate/held_per_second"),
        ("response_p50_ns", "/latency/response/p50_ns"),
        ("response_p99_ns", "/latency/response/p99_ns"),
        ("response_p999_ns", "/latency/response/p999_ns"),
        ("response_max_ns", "/latency/response/max_ns"),
        ("operations", "/latency/response/count"),
        ("staleness_p99_ms", "/staleness/p99_ms"),
        ("visibility_delay_ms", "/staleness/visibility_delay_ms"),
        ("bytes_per_sample", "/cost/bytes_per_sample"),
        ("disk_bytes_per_sample", "/cost/disk_bytes_per_sample"),
        ("accepted", "/ledger/accepted"),
        ("verified", "/ledger/verified"),
        ("lost", "/ledger/lost"),
        ("duration_ns", "/duration_ns"),
    ] {
        figures.take(name, report.pointer(path));
    }
    figures.take("is_stopped", report.get("is_stopped"));
    // A verdict that says more than that all is well has a reason.
    let is_plain = ["VALID", "NOISY"].contains(&report["verdict"]["status"].as_str().unwrap_or_default());
    figures.take("reason", report.pointer("/verdict/reasons/0").filter(|_| !is_plain));
    let (cpu, rss) = if is_server {
        of_processes(report)
    } else {
        of_parts(report)
    };
    figures.take("cpu_s_per_million", cpu.map(Value::from).as_ref());
    figures.take("rss_bytes", rss.map(Value::from).as_ref());
    figures.take("page_cache_bytes", page_cache_bytes.map(Value::from).as_ref());
    figures.0.into()
}

/// The processes beside tsb that a report has.
pub(super) fn watched(report: &Value) -> Vec<u64> {
    let others = report["resources"].as_array().into_iter().flatten().skip(1);
    others.filter_map(|usage| usage["pid"].as_u64()).collect()
}

/// Puts CPU time and memory of whole trees of processes in place of those of the report: what they used in
/// a run of their own, and what they occupied at its end.
pub(super) fn put_cost(figures: &mut Value, report: &Value, before: &Tree, after: &Tree) {
    let accepted = report["ledger"]["accepted"].as_f64().filter(|&accepted| accepted > 0.0);
    figures["cpu_s_per_million"] = accepted.map_or(Value::Null, |accepted| {
        ((after.cpu_s - before.cpu_s) * 1e6 / accepted).into()
    });
    figures["rss_bytes"] = after.pss_bytes.into();
    figures["is_of_tree"] = true.into();
}

/// CPU-seconds per million accepted samples, and resident memory, of the processes beside tsb.
fn of_processes(report: &Value) -> (Option<f64>, Option<u64>) {
    let others: Vec<&Value> = report["resources"].as_array().into_iter().flatten().skip(1).collect();
    let accepted = report["ledger"]["accepted"].as_f64().filter(|&accepted| accepted > 0.0);
    if others.is_empty() {
        return (None, None);
    }
    let sum = |name: &str| -> u64 { others.iter().filter_map(|usage| usage[name].as_u64()).sum() };
    let cpu_ns = (sum("user_cpu_ns") + sum("system_cpu_ns")) as f64;
    (
        accepted.map(|accepted| cpu_ns / 1e3 / accepted),
        Some(sum("rss_bytes_max")),
    )
}

/// The same of a store of ours: what the wire and the store took, and the memory of the whole process.
fn of_parts(report: &Value) -> (Option<f64>, Option<u64>) {
    let parts = OURS.iter().filter_map(|part| report["cost"][part].as_f64());
    // A store whose cost is below what can be measured has a bound in its place, and no sum.
    let is_known = report["cost"]["store_cpu_ns_per_sample"].is_number();
    let cpu = is_known.then(|| parts.sum::<f64>() / 1e3);
    (
        cpu,
        report.pointer("/resources/0/rss_bytes_max").and_then(Value::as_u64),
    )
}

/// The times of queries beside writes.
pub(super) fn queried(report: &Value) -> Value {
    let mut streams = Map::new();
    for (name, stream) in report["query_latency"].as_object().into_iter().flatten() {
        let mut figures = Figures::default();
        figures.take_all(stream, &["count", "answers", "wrong", "p50_ns", "p90_ns", "max_ns"]);
        streams.insert(name.clone(), figures.0.into());
    }
    let mut figures = Figures::default();
    figures.take("verdict", report.pointer("/verdict/status"));
    figures.take("held_per_second", report.pointer("/rate/held_per_second"));
    figures.take("reason", report.pointer("/verdict/reasons/0"));
    figures.take("streams", Some(&streams.into()));
    figures.0.into()
}

/// What a search found.
pub(super) fn capacity(report: &Value, delay_ms: u64) -> Value {
    let mut figures = Figures::default();
    let bounds = ["found_per_second", "low_per_second", "high_per_second"];
    figures.take_all(&report["capacity"], &bounds);
    figures.take_all(&report["capacity"], &["limited_by", "why", "broke_first"]);
    figures.take("slo", report.get("slo"));
    let probes = report["capacity"]["probes"].as_array().map_or(0, Vec::len);
    figures.take("probes", Some(&probes.into()));
    figures.take("visibility_delay_ms", Some(&delay_ms.into()));
    figures.0.into()
}

/// What a server that was killed in a run had lost, by the audit of that run.
pub(super) fn killed_server(report: &Value) -> Value {
    let mut figures = Figures::default();
    figures.take_all(&report["ledger"], &["sent", "confirmed", "accepted", "unknown"]);
    figures.take_all(&report["ledger"], &["verified", "lost", "lost_in_transport", "altered"]);
    figures.take("verdict", report.pointer("/verdict/status"));
    figures.take("reason", report.pointer("/verdict/reasons/0"));
    figures.0.into()
}

/// What a store of ours had lost, by the journal of the run that was killed with it, at the level at which
/// a write is acknowledged: the lowest that the journal has.
pub(super) fn killed_store(verification: &Value) -> Value {
    let store = &verification["stores"][0];
    let mut figures = Figures::default();
    let levels = store["journal"]["levels"].as_array();
    if let Some(level) = levels.and_then(|levels| levels.first()) {
        for (name, path) in [
            ("accepted", "acknowledged"),
            ("lost", "lost"),
            ("lost_at_most", "lost_at_most"),
        ] {
            figures.take(name, level.get(path));
        }
    }
    let promised = levels
        .into_iter()
        .flatten()
        .filter(|level| level["must_be_there"] == true);
    let broken: u64 = promised.filter_map(|level| level["lost"].as_u64()).sum();
    figures.take("lost_of_promised", Some(&broken.into()));
    figures.take("verdict", store.pointer("/verdict/status"));
    figures.0.into()
}

/// Whether a store of ours is gone with its process.
pub(super) fn keeps_nothing(spec: &str) -> bool {
    IN_MEMORY.iter().any(|scheme| spec.starts_with(scheme))
}

/// What a kill takes of such a store.
pub(super) fn nothing_kept() -> Value {
    json!({ "everything": true })
}

/// A line of progress.
pub(super) fn in_short(figure: &Value) -> String {
    let names = [
        "verdict",
        "held_per_second",
        "found_per_second",
        "low_per_second",
        "limited_by",
        "lost",
        "everything",
        "cpu_s_per_million",
    ];
    let said = names
        .iter()
        .filter_map(|name| Some(format!("{name} {}", figure.get(name)?)));
    said.collect::<Vec<_>>().join(", ")
}

/// Names and values, without those that a report does not have.
#[derive(Debug, Default)]
struct Figures(Map<String, Value>);

impl Figures {
    fn take(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.0.insert(name.to_owned(), value.clone());
        }
    }

    /// Takes these from a part of the report, under the names that they have there.
    fn take_all(&mut self, part: &Value, names: &[&str]) {
        for name in names {
            self.take(name, part.get(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_every_process_but_tsb_and_a_store_of_ours_is_parts_of_it() {
        let report = json!({
            "verdict": { "status": "VALID", "reasons": ["all is well"] },
            "ledger": { "accepted": 2_000_000, "verified": 2_000_000 },
            "latency": { "response": { "p50_ns": 5, "count": 7 } },
            "cost": { "wire_cpu_ns_per_sample": 100.0, "store_cpu_ns_per_sample": 50.0, "generator_cpu_ns_per_sample": 9.0 },
            "resources": [
                { "user_cpu_ns": 9_000_000_000_u64, "system_cpu_ns": 0, "rss_bytes_max": 7 },
                { "user_cpu_ns": 1_000_000_000, "system_cpu_ns": 500_000_000, "rss_bytes_max": 10 },
                { "user_cpu_ns": 500_000_000, "system_cpu_ns": 0, "rss_bytes_max": 20 },
            ],
        });
        let server = fixed(&report, true, Some(4));
        assert_eq!(
            (&server["cpu_s_per_million"], &server["rss_bytes"]),
            (&json!(1.0), &json!(30))
        );
        let ours = fixed(&report, false, None);
        assert_eq!(
            (&ours["cpu_s_per_million"], &ours["rss_bytes"]),
            (&json!(0.15), &json!(7))
        );
        assert_eq!(
            (&server["page_cache_bytes"], ours.get("page_cache_bytes")),
            (&json!(4), None)
        );
        assert!(server.get("response_p99_ns").is_none() && server.get("reason").is_none());
    }

    #[test]
    fn the_cost_of_a_tree_is_what_it_used_in_a_run() {
        let of = |cpu_s: f64| Tree {
            pids: vec![2],
            cpu_s,
            pss_bytes: 5,
        };
        let report = json!({ "ledger": { "accepted": 500_000 }, "resources": [{ "pid": 1 }, { "pid": 2 }] });
        let mut figures = json!({ "cpu_s_per_million": 0.0 });
        put_cost(&mut figures, &report, &of(1.0), &of(2.0));
        assert_eq!(
            figures,
            json!({ "cpu_s_per_million": 2.0, "rss_bytes": 5, "is_of_tree": true })
        );
        assert_eq!(watched(&report), [2]);
    }

    #[test]
    fn what_cannot_be_known_is_absent() {
        let report = json!({ "resources": [{ "rss_bytes_max": 7 }], "ledger": {}, "verdict": { "status": "INVALID", "reasons": ["a", "b"] } });
        let server = fixed(&report, true, None);
        assert!(server.get("cpu_s_per_million").is_none() && server.get("rss_bytes").is_none());
        assert_eq!(server["reason"], "a");
        assert!(fixed(&report, false, None).get("cpu_s_per_million").is_none());
    }

    #[test]
    fn a_capacity_keeps_its_limit_and_no_probe() {
        let report = json!({ "slo": ["lost=0"], "capacity": { "low_per_second": 5.0, "limited_by": "generator", "probes": [1, 2] } });
        let expected = json!({
            "low_per_second": 5.0, "limited_by": "generator", "slo": ["lost=0"], "probes": 2, "visibility_delay_ms": 0,
        });
        assert_eq!(capacity(&report, 0), expected);
    }

    #[test]
    fn a_kill_is_judged_at_the_level_of_the_acknowledgement() {
        let level = |must: bool, lost: u64| json!({ "must_be_there": must, "acknowledged": 100, "found": 100 - lost, "lost": lost });
        let verification = json!({ "stores": [{
            "verdict": { "status": "VALID" }, "journal": { "levels": [level(false, 9), level(true, 0)] },
        }]});
        let expected = json!({ "accepted": 100, "lost": 9, "lost_of_promised": 0, "verdict": "VALID" });
        assert_eq!(killed_store(&verification), expected);
        assert!(keeps_nothing("ring:?slot=1s") && !keeps_nothing("rrd:x"));
    }
}
