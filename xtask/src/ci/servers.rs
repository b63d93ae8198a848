//! Tests with real servers: starts them, runs the tests that need them and a complete run on
//! each layout, and stops what it started.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Outcome, features, packages, tests_run, whole_run};
use crate::servers;
use crate::shell::{capture_any, cargo, root, target_folder};

/// The server, and the variable by which tests are told where it is. Those of InfluxDB,
/// VictoriaMetrics and carbon do not all pass yet, and run by hand.
const SERVERS: &[(&str, &str)] = &[
    ("mongod", "TSB_TEST_MONGO"),
    ("mongod-set", "TSB_TEST_MONGO_SET"),
    ("etcd", "TSB_TEST_ETCD"),
    ("etcd-three", "TSB_TEST_ETCD_THREE"),
    ("postgres", "TSB_TEST_POSTGRES"),
    ("rrdcached", "TSB_TEST_RRDCACHED"),
    ("prometheus", "TSB_TEST_PROMETHEUS"),
];

/// The server whose program tests start by themselves, and the variable that tells them which.
const PROGRAMS: &[(&str, &str)] = &[
    ("mongod", "TSB_TEST_MONGOD"),
    ("etcd", "TSB_TEST_ETCD_PROGRAM"),
    ("prometheus", "TSB_TEST_PROMETHEUS_PROGRAM"),
    ("postgres", "TSB_TEST_POSTGRES_PROGRAM"),
];

/// The server that each run aims at, what is added to its spec, how many series there are, and
/// how many samples a second are sent.
const RUNS: &[(&str, &str, &str, &str)] = &[
    ("mongod", "layout=series&drop=1", "1000", "54000"),
    ("mongod", "layout=rows&drop=1", "1000", "54000"),
    ("mongod", "layout=bucket&drop=1", "1000", "54000"),
    ("mongod", "layout=ticks&drop=1", "1000", "54000"),
    // A collection each, which takes the server tens of milliseconds.
    ("mongod", "layout=mohawk&drop=1", "100", "500"),
    ("mongod-set", "layout=ticks&drop=1", "1000", "54000"),
    ("etcd", "drop=1", "1000", "10000"),
    ("etcd-three", "drop=1", "1000", "5000"),
    ("postgres", "drop=1", "1000", "54000"),
    (
        "postgres",
        "write=insert&synchronous_commit=off&schema=insert&drop=1",
        "1000",
        "54000",
    ),
    ("prometheus", "drop=1", "1000", "54000"),
    // A sample a second each: no step of an archive is shorter. Nothing can be dropped there.
    ("rrdcached", "step=1s&heartbeat=10s&prefix=ci-PID-", "1000", "1000"),
];

/// Checks that take minutes where a series is a collection, or a write waits for a majority or a
/// disk; a lone server runs them in its other layouts. They run by hand: `cargo test --workspace
/// --all-features --test servers`.
const SLOW: &[&str] = &[
    "mongo-mohawk::c7_random",
    "mongo-mohawk::c7_long",
    "mongo-mohawk::c7_rows",
    "mongo-set::c7",
    "etcd-cut::c7_long",
    "etcd-cut::c7_rows",
    "etcd-three::c7_long",
    "etcd-three::c7_rows",
    "postgres-copy::c6_equal_timestamps_in_old_data",
    "postgres-copy::c6_very_late_samples_are_taken",
    "postgres-copy::c7_long",
    "postgres-copy::c7_rows",
    // Whole batches are checked by `influx`; what a cut changes is in the other checks.
    "influx-cut::c7",
    "influx-cut::c10",
    // Each of its many reads may have to wait until the last write is visible.
    "victoriametrics::c7_random",
];

/// Tests at once: most of their time they wait for a server's disk, and not for a core.
const THREADS: &str = "12";

/// Conformance and audit on each of them.
pub(super) fn check() -> Result<Outcome> {
    let missing = packages::missing_for_servers();
    if !missing.is_empty() {
        return Ok(Outcome::NotRun(format!("install {}", missing.join(", "))));
    }
    let names: Vec<&str> = SERVERS.iter().map(|(name, _)| *name).collect();
    let ours: Vec<&str> = names.iter().copied().filter(|name| !servers::is_up(name)).collect();
    servers::up(&names)?;
    let checked = conformance().and_then(|passed| Ok((passed, audits()?)));
    if !ours.is_empty() {
        servers::down(&ours)?;
    }
    let (passed, audited) = checked?;
    Ok(Outcome::Passed(format!("{passed}; {audited}")))
}

fn conformance() -> Result<String> {
    // As the other tests are built, so that nothing is built again; with them comes `tsb`.
    let mut test = cargo(&[
        "test",
        "--workspace",
        "--test",
        "servers",
        "--test",
        "garbled",
        "--test",
        "listed",
    ]);
    test.args(features::every()?).args(["--", "--test-threads", THREADS]);
    for slow in SLOW {
        test.args(["--skip", slow]);
    }
    for (name, variable) in SERVERS {
        test.env(variable, servers::store_of(name)?);
    }
    for (name, variable) in PROGRAMS {
        if let Some(program) = servers::program_of(name) {
            test.env(variable, program);
        }
    }
    Ok(tests_run::counted(&mut test)?.note())
}

/// A run into each, with every sample read back.
fn audits() -> Result<String> {
    let mut notes = Vec::new();
    for (server, options, series, rate) in RUNS {
        let store = servers::store_of(server)?;
        let separator = if store.contains('?') { '&' } else { '?' };
        let options = options.replace("PID", &std::process::id().to_string());
        let store = format!("{store}{separator}{options}");
        let mut run = Command::new(target_folder()?.join("debug/tsb"));
        run.current_dir(root()).args([
            "run",
            "--store",
            &store,
            "--transport",
            "inproc",
            "--series",
            series,
            "--duration",
            "3s",
        ]);
        run.args(["--rate", rate, "--no-calibrate", "--format", "json"]);
        let (code, text) = capture_any(&mut run)?;
        let report: Value =
            serde_json::from_str(&text).with_context(|| format!("{store}: no report, exit {code:?}"))?;
        for report in whole_run::runs(&report) {
            let judged = whole_run::judge(code, report).with_context(|| store.clone())?;
            notes.push(format!("{server} {options}: {judged}"));
        }
    }
    Ok(notes.join("; "))
}
