//! `tsb canary` as its users start it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tsb_core::report::canary::{CanaryReport, FaultKind};
use tsb_core::time::{Clock, MonotonicClock};

use crate::program::tsb;

/// A canary that ends by itself.
fn canary(arguments: &[&str]) -> Output {
    let quick = ["canary", "--interval", "1s", "--series", "3", "--lost-after", "1s"];
    tsb(&quick).args(arguments).output().unwrap()
}

fn report(output: &Output) -> CanaryReport {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[cfg(feature = "sqlite")]
#[test]
fn a_canary_that_starts_again_finds_what_it_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("c.db").display());
    let out = folder.path().join("c.json");
    let arguments = [
        "--store",
        &store,
        "--keep",
        "1h",
        "--format",
        "json",
        "--duration",
        "4s",
    ];
    let first = canary(&[&arguments[..], &["--out", out.to_str().unwrap()]].concat());
    assert_eq!(
        first.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    assert_eq!(std::fs::read(&out).unwrap(), first.stdout);
    let first = report(&first);
    assert!(first.samples.acknowledged >= 6, "{:?}", first.samples);
    assert_eq!(first.samples.found_at_start, 0);
    assert!(first.is_balanced() && first.faults.is_empty() && first.newest_visible.is_some());
    let second = canary(&arguments);
    assert_eq!(second.status.code(), Some(0));
    assert_eq!(report(&second).samples.found_at_start, first.samples.acknowledged);
}

#[test]
fn a_store_that_loses_is_told_by_name_and_by_exit_code() {
    let store = "throttle+memory:?throttle.lose_one_in=3&throttle.seed=5";
    let output = canary(&["--store", store, "--duration", "6s"]);
    let (text, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(3), "{text}{said}");
    assert!(
        said.contains("tsb: lost: ") && said.contains("tsb_canary{canary=canary,series="),
        "{said}"
    );
    assert!(said.contains(", volatile, "), "{said}");
    assert!(
        text.contains("\n  lost ") && text.contains("Something is gone or wrong"),
        "{text}"
    );
    let json = canary(&["--store", store, "--duration", "6s", "--format", "json"]);
    let report = report(&json);
    assert!(
        report.count(FaultKind::Lost) > 0 && report.is_balanced(),
        "{:?}",
        report.samples
    );
    let named: u64 = report.named.iter().map(|fault| fault.samples).sum();
    assert_eq!(named, report.faults.iter().map(|fault| fault.samples).sum::<u64>());
}

#[test]
fn what_it_counts_is_served_while_it_runs() {
    let mut command = tsb(&[
        "canary",
        "--store",
        "memory:",
        "--interval",
        "1s",
        "--expose",
        "127.0.0.1:0",
    ]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("/metrics") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let address = said
        .rsplit_once("http://")
        .unwrap()
        .1
        .trim_end()
        .trim_end_matches("/metrics");
    let asked = || {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    };
    let mut text = asked();
    while !text.contains("tsb_canary_samples_total{outcome=\"acknowledged\"} 1") {
        MonotonicClock::new().wait_until(100_000_000);
        text = asked();
    }
    assert!(
        text.contains("tsb_canary_answers_total{question=\"fresh\",result=\"right\"}"),
        "{text}"
    );
    assert!(text.contains("tsb_canary_faults_total{kind=\"lost\",durability=\"unconfirmed\",age=\"minute\"} 0"));
    assert!(
        text.contains("tsb_canary_call_seconds_bucket{call=\"write\",le=\"+Inf\"}"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
    let body = text.split_once("\r\n\r\n").unwrap().1;
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Nothing is late, lost or wrong."));
}

#[test]
fn what_cannot_be_watched_is_refused_with_its_reason() {
    for (arguments, why) in [
        (&["--store", "null:"][..], "it cannot be read"),
        (
            &["--store", "memory:", "--interval", "1ms"],
            "one second between samples",
        ),
        (&["--store", "memory:", "--series", "20k"], "1 to 10,000 series"),
        (&["--store", "memory:", "--keep", "soon"], "cannot use --keep soon"),
        (&["--store", "memory:", "--expose", "0.0.0.0:0"], "--expose-remote"),
    ] {
        let output = tsb(&["canary"]).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
