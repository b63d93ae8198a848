//! Reports as their readers meet them: text, page, tables, side by side, and a run watched
//! from outside.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::output::output_of;
use crate::program::tsb;
use crate::snapshot::{fixture, is_as_kept};

fn stdout(arguments: &[&str]) -> String {
    let output = output_of(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const FIRST: &str = "reports/schema-1-first.json";

#[test]
fn text_reports_are_as_kept() {
    let first = fixture(FIRST);
    let first = first.to_str().unwrap();
    is_as_kept("reports/one.txt", &stdout(&["report", first]));
    is_as_kept("reports/side-by-side.txt", &stdout(&["report", first, first]));
    let labelled = ["report", first, first, "--label", "before", "--label", "after"];
    is_as_kept("reports/labelled.txt", &stdout(&labelled));
}

#[test]
fn errors_are_as_kept() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture(FIRST)).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).unwrap();
    };
    write("cut.json", &text[..text.len() / 2]);
    write("foreign.json", "{\"benchmarks\": []}");
    write(
        "later.json",
        &text.replacen("\"schema_version\": 1", "\"schema_version\": 7", 1),
    );
    let mut all = String::new();
    for arguments in [
        vec!["report", "cut.json"],
        vec!["report", "foreign.json"],
        vec!["report", "later.json"],
        vec!["report", "none.json"],
        vec!["run", "--rate", "fast"],
        vec!["run", "--html", "no/such/page.html"],
        vec!["run", "--expose", "0.0.0.0:9465"],
        vec!["emit", "--to", "tsb+tcp://127.0.0.1:1", "--html", "page.html"],
    ] {
        let output = tsb(&arguments).current_dir(dir.path()).output().unwrap();
        let _ = writeln!(all, "$ tsb {}", arguments.join(" "));
        all.push_str(&String::from_utf8_lossy(&output.stderr));
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let _ = writeln!(all, "exit code {}\n", output.status.code().unwrap());
    }
    is_as_kept("help/errors.txt", &all);
}

/// A short run, its report and its page.
fn run(dir: &Path, more: &[&str]) -> (Value, String) {
    let (json, page) = (dir.join("run.json"), dir.join("run.html"));
    let mut arguments = vec![
        "run",
        "--quiet",
        "--no-calibrate",
        "--workload",
        "mix",
        "--series",
        "540",
        "--rate",
        "20k",
        "--duration",
        "450ms",
        "--report-interval",
        "100ms",
    ];
    arguments.extend(["--out", json.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    arguments.extend(more);
    let output = output_of(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}");
    let json = std::fs::read_to_string(json).unwrap();
    (
        serde_json::from_str(&json).unwrap(),
        std::fs::read_to_string(page).unwrap(),
    )
}

fn sum(report: &Value, name: &str) -> u64 {
    let slices = report["intervals"].as_array().unwrap().iter();
    slices.map(|slice| slice[name].as_u64().unwrap()).sum()
}

#[test]
fn slices_add_up_to_the_run() {
    let dir = tempfile::tempdir().unwrap();
    for transport in ["inproc", "tcp"] {
        let (report, _) = run(dir.path(), &["--transport", transport]);
        assert_eq!(
            sum(&report, "accepted"),
            report["ledger"]["accepted"].as_u64().unwrap(),
            "{transport}"
        );
        assert_eq!(
            sum(&report, "sent"),
            report["ledger"]["sent"].as_u64().unwrap(),
            "{transport}"
        );
        let cells = report["intervals"].as_array().unwrap().iter();
        let cells = cells.filter_map(|slice| slice["response_cells"]["counts"].as_array());
        let operations: u64 = cells.flatten().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(
            operations,
            report["latency"]["response"]["count"].as_u64().unwrap(),
            "{transport}"
        );
    }
}

#[test]
fn the_page_of_a_run_shows_the_numbers_of_its_json() {
    let dir = tempfile::tempdir().unwrap();
    let (report, page) = run(dir.path(), &[]);
    let mut seen = 0;
    for tag in page.split("<data ").skip(1) {
        let part = |name: &str| {
            let rest = tag.split(&format!("{name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let at = part("data-at").replacen("/0", "", 1);
        let expected = report.pointer(&at).unwrap_or_else(|| panic!("{at} is not in the JSON"));
        assert_eq!(expected.to_string(), part(" value"), "{at}");
        seen += 1;
    }
    assert!(seen > 50, "{seen} figures");
    let data = page
        .split("id=\"data\">")
        .nth(1)
        .unwrap()
        .split("</script>")
        .next()
        .unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let slices = report["intervals"].as_array().unwrap();
    for (index, slice) in slices.iter().enumerate() {
        for name in ["end_ns", "accepted", "response_max_ns", "cpu_ns", "written_bytes"] {
            let expected = slice.get(name).unwrap_or(&Value::Null);
            assert_eq!(&data["runs"][0][name][index], expected, "{name} of slice {index}");
        }
        let mut cells = vec![slice["response_cells"]["first"].clone()];
        cells.extend(slice["response_cells"]["counts"].as_array().unwrap().iter().cloned());
        assert_eq!(data["runs"][0]["cells"][index], Value::Array(cells));
    }
    assert_eq!(data["runs"][0]["curves"], report["latency"]["curves"]);
}

#[test]
fn every_series_becomes_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let (report, _) = run(dir.path(), &["--transport", "tcp"]);
    let tables = dir.path().join("tables");
    let json = dir.path().join("run.json");
    stdout(&["report", json.to_str().unwrap(), "--csv", tables.to_str().unwrap()]);
    let table = |name: &str| std::fs::read_to_string(tables.join(name)).unwrap();
    let slices = report["intervals"].as_array().unwrap().len();
    assert_eq!(table("intervals.csv").lines().count(), 1 + slices);
    assert!(table("processes.csv").starts_with("run,store,end_s,pid,"));
    let operations = table("latency-cells.csv");
    let operations = operations
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(
        operations.sum::<u64>(),
        report["latency"]["response"]["count"].as_u64().unwrap()
    );
    let p50 = report["latency"]["response"]["p50_ns"].to_string();
    assert!(table("latency-quantiles.csv").contains(&format!(",response,0.5,{p50}\n")));
}

#[test]
fn a_run_can_be_watched_from_outside_and_prints_lines_without_a_terminal() {
    let mut child = tsb(&[
        "run",
        "--no-calibrate",
        "--workload",
        "mix",
        "--series",
        "540",
        "--duration",
        "3s",
        "--report-interval",
        "200ms",
        "--expose",
        "127.0.0.1:0",
    ])
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    // The first progress line: samples have been sent by then.
    let mut progress = String::new();
    lines.read_line(&mut progress).unwrap();
    assert!(progress.contains("accepted"), "{progress}");
    let mut connection = TcpStream::connect(&address).unwrap();
    connection
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    let accepted = text
        .lines()
        .find_map(|line| line.strip_prefix("tsb_samples_total{stage=\"accepted\"} "));
    assert!(accepted.unwrap().parse::<u64>().unwrap() > 0, "{text}");
    assert!(
        text.contains("tsb_response_seconds_count") && text.ends_with("# EOF\n"),
        "{text}"
    );
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    // 3: others had the machine.
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)));
    assert!(TcpStream::connect(&address).is_err(), "the endpoint outlives the run");
}
