//! Tests with real servers: starts them, runs the tests that need them and a complete run on
//! each layout, and stops what it started.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::memory_disk::MemoryDisk;
use super::{Outcome, features, packages, tests_run, whole_run};
use crate::servers;
use crate::shell::{capture, capture_any, cargo, root, target_folder};

/// The server, and the variable by which tests are told where it is.
const SERVERS: &[(&str, &str)] = &[
    ("mongod", "TSB_TEST_MONGO"),
    ("mongod-set", "TSB_TEST_MONGO_SET"),
    ("etcd", "TSB_TEST_ETCD"),
    ("etcd-three", "TSB_TEST_ETCD_THREE"),
    ("postgres", "TSB_TEST_POSTGRES"),
    ("rrdcached", "TSB_TEST_RRDCACHED"),
    ("prometheus", "TSB_TEST_PROMETHEUS"),
    ("influxdb", "TSB_TEST_INFLUX"),
    ("victoriametrics", "TSB_TEST_VICTORIAMETRICS"),
    ("carbon", "TSB_TEST_CARBON"),
    ("clickhouse", "TSB_TEST_CLICKHOUSE"),
];

/// The server whose program tests start by themselves, and the variable that tells them which.
const PROGRAMS: &[(&str, &str)] = &[
    ("mongod", "TSB_TEST_MONGOD"),
    ("etcd", "TSB_TEST_ETCD_PROGRAM"),
    ("prometheus", "TSB_TEST_PROMETHEUS_PROGRAM"),
    ("postgres", "TSB_TEST_POSTGRES_PROGRAM"),
    ("influxdb", "TSB_TEST_INFLUX_PROGRAM"),
    ("victoriametrics", "TSB_TEST_VICTORIAMETRICS_PROGRAM"),
    ("carbon", "TSB_TEST_CARBON_PROGRAM"),
    ("clickhouse", "TSB_TEST_CLICKHOUSE_PROGRAM"),
];

/// Servers that only the slow tier starts, which runs every check of them: one of Java takes seconds
/// to start, and as much memory as all others. With the variables for the server and for its program.
const SLOW_SERVERS: &[(&str, &str, &str)] = &[
    ("questdb", "TSB_TEST_QUESTDB", "TSB_TEST_QUESTDB_PROGRAM"),
    ("cassandra", "TSB_TEST_CASSANDRA", "TSB_TEST_CASSANDRA_PROGRAM"),
    ("kairosdb", "TSB_TEST_KAIROSDB", "TSB_TEST_KAIROSDB_PROGRAM"),
];

/// A run: the server that it aims at, what is added to its spec, how many series there are, and how
/// many samples per second are sent.
type AuditedRun = (&'static str, &'static str, &'static str, &'static str);

/// The runs into each server.
const RUNS: &[AuditedRun] = &[
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
    ("influxdb", "drop=1", "1000", "54000"),
    ("influxdb", "measurement=all&drop=1", "1000", "54000"),
    ("victoriametrics", "drop=1", "1000", "54000"),
    ("clickhouse", "drop=1", "1000", "54000"),
    // A file for each series, and a slot per second.
    ("carbon", "drop=1", "1000", "1000"),
    // A sample a second each: no step of an archive is shorter. Nothing can be dropped there.
    ("rrdcached", "step=1s&heartbeat=10s&prefix=ci-PID-", "1000", "1000"),
];

/// And those into the servers of the slow tier, which are started for them only.
const SLOW_RUNS: &[AuditedRun] = &[
    ("questdb", "drop=1", "1000", "54000"),
    ("cassandra", "drop=1", "1000", "10000"),
    ("cassandra-three", "drop=1", "1000", "5000"),
    ("kairosdb", "drop=1", "1000", "5000"),
    ("kairosdb", "put=PUT&drop=1", "1000", "5000"),
    ("victoriametrics", "put=PUT&drop=1", "1000", "54000"),
    ("kairosdb-on-cassandra", "drop=1", "1000", "5000"),
];

/// Why checks take minutes, and which ones; a lone server or another layout runs the same checks in
/// less. `cargo xtask ci --only slow-servers` runs them, and so does `--full`.
const SLOW: &[(&str, &[&str])] = &[
    (
        "a layout or a cluster of its own, which an audited run is made into; `mongo-series` and \
         `mongo-ticks` check the same client",
        &["mongo-bucket::c", "mongo-mohawk::c", "mongo-rows::c", "mongo-set::c"],
    ),
    (
        "requests cut smaller, or three nodes; `etcd` and `keyed-etcd` check the same client, and three \
         nodes are killed, listed and audited beside them",
        &[
            "etcd-cut::c",
            "etcd-of-three::c",
            "keyed-etcd-three::",
            "keyed-etcd-v2-three::",
        ],
    ),
    (
        "a write is a commit, which waits for the disk",
        &[
            "postgres-copy::c6_equal_timestamps_in_old_data",
            "postgres-copy::c6_very_late_samples_are_taken",
            "postgres-copy::c7_long",
            "postgres-copy::c7_rows",
        ],
    ),
    (
        "a request waits for the disk, and these checks write a few samples thousands of times",
        &[
            "influx::c6_equal_timestamps_in_old_data",
            "influx::c6_very_late_samples_are_taken",
            "influx::c7_gaps",
            "influx::c7_long",
            "influx::c7_random",
            "influx::c7_rows_of_a_long_history",
            "influx::c7_stats",
        ],
    ),
    (
        "a batch is many requests, each of which waits for the disk; `influx` checks whole batches",
        &[
            "influx-cut::c1",
            "influx-cut::c6_equal",
            "influx-cut::c6_late",
            "influx-cut::c6_of_equal",
            "influx-cut::c6_very_late",
            "influx-cut::c7",
            "influx-cut::c8",
            "influx-cut::c10",
        ],
    ),
    (
        "`influx` checks the same requests, and an audited run is made into it",
        &["influx-measurement::c"],
    ),
    (
        "each of many reads may have to wait until the last write is visible",
        &["victoriametrics::c7_random"],
    ),
    (
        "each of thousands of small writes is a part, which the server merges with others",
        &[
            "clickhouse::c6_equal_timestamps_in_old_data",
            "clickhouse::c6_very_late_samples_are_taken",
            "clickhouse::c7_gaps",
            "clickhouse::c7_long",
            "clickhouse::c7_random",
            "clickhouse::c7_rows_of_a_long_history",
        ],
    ),
    (
        "a flush is a snapshot of the whole server",
        &["victoriametrics::c8_flush"],
    ),
];

/// Tests at once: most of their time they wait for a server, and not for a core.
const THREADS: &str = "12";

/// Conformance and audit on each of them, without what is slow.
pub(super) fn check() -> Result<Outcome> {
    let memory = MemoryDisk::new()?;
    let memory = memory.as_ref();
    with_servers(&[], memory, || {
        let kept = if memory.is_some() {
            "files in memory"
        } else {
            "files on disk"
        };
        Ok(format!("{kept}; {}; {}", conformance(memory)?, audits(RUNS)?))
    })
}

/// The slow checks, with all files on disk: the tables of QuestDB alone take 16 GB, mostly empty.
pub(super) fn slow() -> Result<Outcome> {
    let missing = packages::missing_for_slow_servers();
    if !missing.is_empty() {
        return Ok(Outcome::NotRun(format!("install {}", missing.join(", "))));
    }
    let more: Vec<&str> = SLOW_RUNS.iter().map(|(name, ..)| *name).collect();
    with_servers(&more, None, || {
        let mut notes = Vec::new();
        for name in slow_names().chain(SLOW_SERVERS.iter().map(|(name, ..)| *name)) {
            let mut test = tests(&[], None)?;
            let count = tests_run::counted(test.args(["--", name, "--test-threads", THREADS]));
            notes.push(format!("{name}: {}", count.with_context(|| name)?.note()));
        }
        notes.push(audits(SLOW_RUNS)?);
        Ok(notes.join("; "))
    })
}

fn slow_names() -> impl Iterator<Item = &'static str> {
    SLOW.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Starts the servers that are not up, and `more`, and stops those afterwards. Their files are in
/// `memory`, if there is room.
fn with_servers(more: &[&str], memory: Option<&MemoryDisk>, run: impl FnOnce() -> Result<String>) -> Result<Outcome> {
    let missing = packages::missing_for_servers();
    if !missing.is_empty() {
        return Ok(Outcome::NotRun(format!("install {}", missing.join(", "))));
    }
    let names: Vec<&str> = SERVERS
        .iter()
        .map(|(name, _)| *name)
        .chain(more.iter().copied())
        .collect();
    if let Some(memory) = memory {
        servers::keep_in(memory.path());
        // What a run left running that was killed.
        servers::down(&names)?;
    }
    let ours: Vec<&str> = names.iter().copied().filter(|name| !servers::is_up(name)).collect();
    // In memory the records of servers go with their files, so that none may be left running.
    let ended = servers::up(&names).and_then(|()| run());
    if !ours.is_empty() {
        servers::down(&ours)?;
    }
    Ok(Outcome::Passed(ended?))
}

/// The tests of servers, which are told where they are. As the other tests are built, so that
/// nothing is built again; with them comes `tsb`.
fn tests(more: &[&str], memory: Option<&MemoryDisk>) -> Result<Command> {
    let mut test = cargo(&["test", "--workspace", "--test", "servers"]);
    test.args(more).args(features::every()?);
    if let Some(memory) = memory {
        test.env("TMPDIR", memory.temporary());
    }
    for (name, variable) in SERVERS {
        test.env(variable, servers::store_of(name)?);
    }
    for (name, variable) in PROGRAMS {
        if let Some(program) = servers::program_of(name) {
            test.env(variable, program);
        }
    }
    for (name, variable, program_variable) in SLOW_SERVERS.iter().filter(|(name, ..)| servers::is_up(name)) {
        test.env(variable, servers::store_of(name)?);
        test.envs(servers::program_of(name).map(|program| (program_variable, program)));
    }
    Ok(test)
}

fn conformance(memory: Option<&MemoryDisk>) -> Result<String> {
    let listed = capture(tests(&[], memory)?.args(["--", "--list"]))?;
    if let Some(name) = slow_names().find(|name| !listed.contains(name)) {
        bail!("no test is called {name}, which is left out as slow");
    }
    let mut test = tests(&["--test", "garbled", "--test", "listed"], memory)?;
    test.args(["--", "--test-threads", THREADS]);
    for name in slow_names() {
        test.args(["--skip", name]);
    }
    Ok(tests_run::counted(&mut test)?.note())
}

/// A run into each, with every sample read back.
fn audits(audited: &[AuditedRun]) -> Result<String> {
    let mut notes = Vec::new();
    for (server, options, series, rate) in audited {
        let store = servers::store_of(server)?;
        let separator = if store.contains('?') { '&' } else { '?' };
        let mut options = options.replace("PID", &std::process::id().to_string());
        if options.contains("PUT") {
            options = options.replace("PUT", &format!("127.0.0.1:{}", servers::put_port_of(server)?));
        }
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
