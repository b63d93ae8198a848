//! A program that speaks to rrdcached, speaking to `tsb ingest` instead: rrdtool with librrd's
//! client. What it has written is compared with what it writes itself.
//!
//! The comparison needs the package rrdtool; without it that is listed as ignored.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "support/program.rs"]
mod program;
#[path = "rrdcached/server.rs"]
#[expect(dead_code, reason = "lines that follow a reply are another test's")]
mod server;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use server::{Client, Server};

/// When files start.
const START_S: i64 = 1_699_999_999;

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output.stdout
}

fn rrdtool(arguments: &[&str]) -> Vec<u8> {
    run(Command::new("rrdtool").env("TZ", "UTC").args(arguments))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Creates, updates, flushes and reads through the server, with rrdtool alone beside it.
fn rrdtool_cannot_tell_it_from_rrdcached() {
    let server = Server::start(tempfile::tempdir().unwrap(), "");
    let address = server.address();
    let daemon = ["--daemon", address.as_str()];
    let cached = server.file("sub.d/a.rrd");
    let direct = server.folder.path().join("direct.rrd");
    let (cached, direct) = (text(&cached), text(&direct));
    let start = START_S.to_string();
    fs::create_dir(server.file("sub.d")).unwrap();
    let definitions = [
        "DS:a:GAUGE:20:U:U",
        "DS:b:COUNTER:20:0:1000",
        "RRA:AVERAGE:0.5:1:100",
        "RRA:MAX:0.5:6:50",
        "RRA:LAST:0.1:3:9",
    ];
    let create = ["create", cached, "--start", &start, "--step", "10"];
    rrdtool(&[&create[..], &daemon, &definitions].concat());
    fs::copy(cached, direct).unwrap();
    for round in 0..20_i64 {
        let readings: Vec<String> = (0..20)
            .map(|index| {
                let index = round * 20 + index;
                format!(
                    "{}:{}.{:03}:{}",
                    1_700_000_000 + index * 7,
                    index % 13,
                    index * 37 % 1_000,
                    index * 11
                )
            })
            .collect();
        let readings: Vec<&str> = readings.iter().map(String::as_str).collect();
        rrdtool(&[&["update", cached], &daemon[..], &readings].concat());
        rrdtool(&[&["update", direct], &readings[..]].concat());
    }
    assert_ne!(
        fs::read(cached).unwrap(),
        fs::read(direct).unwrap(),
        "nothing is written before it is asked for"
    );
    rrdtool(&[&["flushcached"], &daemon[..], &[cached]].concat());
    assert_eq!(fs::read(cached).unwrap(), fs::read(direct).unwrap());
    let window = ["--start", "1700000100", "--end", "1700002500"];
    for cf in ["AVERAGE", "MAX", "LAST"] {
        let through = rrdtool(&[&["fetch", cached, cf], &window[..], &daemon].concat());
        assert_eq!(
            through,
            rrdtool(&[&["fetch", direct, cf], &window[..]].concat()),
            "{cf}"
        );
    }
    for what in [&["info"][..], &["last"], &["first"], &["lastupdate"]] {
        let through = rrdtool(&[what, &[cached], &daemon].concat());
        let alone = String::from_utf8(rrdtool(&[what, &[direct]].concat())).unwrap();
        assert_eq!(
            String::from_utf8(through).unwrap(),
            alone.replace(direct, cached),
            "{what:?}"
        );
    }
    graphs_are_the_same(&daemon, &window, cached, direct);
    let result = server.stop();
    assert_eq!(
        (&result["ledger"]["accepted"], &result["cache"]["failed"]),
        (&401.into(), &0.into())
    );
}

fn graphs_are_the_same(daemon: &[&str], window: &[&str], cached: &str, direct: &str) {
    let graph = |file: &str, more: &[&str]| {
        let definition = format!("DEF:x={file}:a:AVERAGE");
        let parts = [&definition, "LINE1:x#ff0000:x", "PRINT:x:MAX:%.10le"];
        rrdtool(&[&["graph", "-", "--no-legend"], window, more, &parts[..]].concat())
    };
    let through = graph(cached, daemon);
    assert!(through.len() > 1_000);
    assert_eq!(through, graph(direct, &[]));
    // What waits is in a graph.
    rrdtool(&[&["update", cached], daemon, &["1700002890:5:9000"]].concat());
    rrdtool(&["update", direct, "1700002890:5:9000"]);
    let window = ["--start", "1700002700", "--end", "1700002900"];
    let fetch = |file: &str, more: &[&str]| rrdtool(&[&["fetch", file, "AVERAGE"], &window[..], more].concat());
    assert_eq!(fetch(cached, daemon), fetch(direct, &[]));
}

/// After so many acknowledged updates the process is killed: nothing is missing.
fn a_kill_loses_nothing_that_was_acknowledged() {
    for sync in ["none", "group", "each", "10ms"] {
        let options = format!("?write-cache.journal=JOURNAL&write-cache.sync={sync}");
        for acks in [10, 100, 1_000] {
            let server = Server::start(tempfile::tempdir().unwrap(), &options);
            let mut client = Client::of(&server);
            let create = format!("CREATE a.rrd -b {START_S} -s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:100");
            assert_eq!(client.ask(&create), "0 RRD created OK");
            for second in 0..acks {
                let reply = client.ask(&format!("UPDATE a.rrd {}:1.5", 1_700_000_000 + second));
                assert_eq!(reply, "0 errors, enqueued 1 value(s).");
            }
            let server = Server::start(server.kill(), &options);
            let mut client = Client::of(&server);
            assert!(client.ask("FLUSH a.rrd").starts_with("0 "));
            assert_eq!(
                client.ask("LAST a.rrd"),
                format!("0 {}", 1_700_000_000 + acks - 1),
                "{sync}"
            );
            let result = server.stop();
            assert_eq!(result["cache"]["replayed"], acks, "{sync}");
        }
    }
}

/// What `--listen rrdcached+...` does not go with is refused with a hint.
fn another_store_is_refused() {
    for (store, listen) in [
        ("memory:", "rrdcached+unix:/tmp/never.sock"),
        ("rrd:/tmp/never", "rrdcached+unix:/tmp/never.sock"),
        ("write-cache+rrd:", "rrdcached+tcp://127.0.0.1:0"),
    ] {
        let arguments = ["ingest", "--store", store, "--listen", listen];
        let output = program::tsb(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{store} {listen}");
    }
}

fn is_there(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    let silent = command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok()
}

fn main() -> ExitCode {
    let trial = |name: &str, needs: Option<(&'static str, &'static str)>, run: fn()| {
        Trial::ignorable_test(name, move || {
            if let Some((program, argument)) = needs
                && !is_there(program, argument)
            {
                return Ok(Completion::ignored_with(format!("it needs the package {program}")));
            }
            run();
            Ok::<_, Failed>(Completion::Completed)
        })
    };
    let trials = vec![
        trial(
            "rrdtool_cannot_tell_it_from_rrdcached",
            Some(("rrdtool", "--version")),
            rrdtool_cannot_tell_it_from_rrdcached,
        ),
        trial(
            "a_kill_loses_nothing_that_was_acknowledged",
            None,
            a_kill_loses_nothing_that_was_acknowledged,
        ),
        trial("another_store_is_refused", None, another_store_is_refused),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
