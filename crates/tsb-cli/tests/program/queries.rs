//! The program asks a store while it writes to it: what it prints of right and of wrong answers.

use std::process::Output;

use serde_json::Value;

use crate::program;

const RUN: [&str; 12] = [
    "run",
    "--series",
    "108",
    "--duration",
    "1s",
    "--preload",
    "2h",
    "--no-calibrate",
    "--quiet",
    "--queries",
    "q1@100/s,day=q2(span=90m,step=10m)@50/s,last@200/s,range(1m)@100/s",
    "--query-workers=2",
];

fn tsb(arguments: &[&str]) -> Output {
    program::tsb(&[&RUN, arguments].concat()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn right_answers_are_in_every_form_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, html, csv) = (file("r.json"), file("r.html"), file("csv"));
    let output = tsb(&["--out", &json, "--html", &html]);
    let printed = text(&output.stdout);
    assert!(
        printed.contains("Queries beside the writes"),
        "{printed}{}",
        text(&output.stderr)
    );
    for stream in ["  q1 ", "  day ", "  last ", "  range(span=1m) "] {
        assert!(printed.contains(stream), "{stream}: {printed}");
    }
    assert!(printed.contains("2h of history"), "{printed}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let streams = report["query_latency"].as_object().unwrap();
    assert_eq!(streams.len(), 4);
    for (name, stream) in streams {
        assert_eq!(stream["wrong"], 0, "{name}: {stream}");
        assert!(stream["answers"].as_u64().unwrap() > 10, "{name}: {stream}");
        assert!(stream["p50_ns"].as_u64().unwrap() > 0, "{name}: {stream}");
        assert!(stream["asked_per_second"].as_f64().unwrap() > 40.0, "{name}: {stream}");
    }
    assert_eq!(streams["day"]["query"], "q2(span=90m,step=10m)@50/s");
    assert!(report["cost"]["queries_cpu_ns_per_sample"].as_f64().unwrap() > 0.0);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("id=\"queries\"") && page.contains("/query_latency/day/p50_ns"));
    // The plan asks the same again, and the store is read back with its history.
    let plan = &report["plan"];
    assert_eq!(plan["queries"][1], "day=q2(span=90m,step=10m)@50/s");
    assert_eq!(
        (&plan["query_workers"], &plan["preload_ns"]),
        (&2.into(), &7_200_000_000_000_u64.into())
    );
    let again = program::tsb(&["report", &json, "--csv", &csv]).output().unwrap();
    assert!(text(&again.stdout).contains("Queries beside the writes"));
    let table = std::fs::read_to_string(folder.path().join("csv/queries.csv")).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
}

#[test]
fn a_wrong_answer_makes_the_run_invalid_and_is_named() {
    let output = tsb(&["--store", "throttle+memory:?throttle.wrong_one_in=20", "--no-verify"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{printed}{}", text(&output.stderr));
    assert!(printed.contains("Verdict: INVALID"), "{printed}");
    assert!(
        printed.contains("answers to last were wrong, the first about"),
        "{printed}"
    );
    assert!(
        printed.contains("wrong after") && printed.contains(": expected"),
        "{printed}"
    );
}

#[test]
fn a_store_is_verified_later_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let (json, store) = (folder.path().join("r.json"), folder.path().join("m.db"));
    let (json, store) = (json.display().to_string(), format!("sqlite:{}", store.display()));
    let output = tsb(&["--store", &store, "--out", &json]);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let verified = report["ledger"]["verified"].as_u64().unwrap();
    assert!(verified > 700_000, "{}{}", text(&output.stdout), text(&output.stderr));
    let again = program::tsb(&["verify", &json, "--format", "json"]).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    let ledger = &again["stores"][0]["ledger"];
    assert_eq!(ledger["verified"].as_u64(), Some(verified), "{again}");
}

#[test]
fn unanswerable_queries_are_refused_before_anything_is_sent() {
    for (arguments, words) in [
        (
            &["--queries", "last@1/s", "--transport", "udp"][..],
            "over udp may be lost",
        ),
        (&["--queries", "last@1/s", "--store", "null:"], "cannot return samples"),
        (&["--queries", "last@1/s", "--store", "ring:"], "one sample per slot"),
        (&["--queries", "q9@1/s"], "no kind of query"),
        (&["--preload", "1500ms"], "whole seconds"),
    ] {
        let output = program::tsb(&[&["run", "--quiet"], arguments].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
