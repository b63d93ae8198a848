//! The program as its users meet it: real processes, real sockets, real files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::ingest::listening;
use crate::output::{output_of, stderr};
use crate::program::tsb;

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// A short run that must end well, as JSON.
fn run(more: &[&str]) -> Value {
    let mut arguments = vec![
        "run",
        "--quiet",
        "--format",
        "json",
        "--no-calibrate",
        "--workload",
        "mix",
        "--series",
        "540",
        "--rate",
        "20k",
        "--duration",
        "300ms",
    ];
    arguments.extend(more);
    let output = output_of(&arguments);
    assert!(matches!(code(&output), Some(0 | 3)), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_json_report_has_the_promised_names_and_balances() {
    for transport in [["--transport", "inproc"], ["--transport", "tcp"]] {
        let report = run(&transport);
        for pointer in [
            "/schema_version",
            "/plan",
            "/seed",
            "/fingerprint",
            "/machine",
            "/verdict/status",
            "/verdict/reasons",
            "/durability/level",
            "/durability/copies",
            "/durability/wait/count",
            "/rate/asked_per_second",
            "/rate/held_per_second",
            "/ledger/due",
            "/ledger/shed",
            "/ledger/sent",
            "/ledger/received",
            "/ledger/rejected",
            "/ledger/accepted",
            "/ledger/verified",
            "/ledger/superseded",
            "/ledger/expired",
            "/ledger/lost",
            "/ledger/altered",
            "/ledger/duplicated",
            "/ledger/balanced",
            "/latency/response/count",
            "/latency/response/samples",
            "/latency/response/max_ns",
            "/latency/service/max_ns",
            "/latency/lag/max_ns",
            "/staleness/p50_ms",
            "/staleness/p99_ms",
            "/staleness/max_ms",
            "/cost/generator_cpu_ns_per_sample",
            "/cost/store_cpu_ns_per_sample",
            "/cost/bytes_per_sample",
            "/offered/repeat_rate",
            "/offered/entropy_bits",
            "/resources/0/rss_bytes",
        ] {
            assert!(
                report.pointer(pointer).is_some(),
                "{pointer} is missing with {transport:?}"
            );
        }
        assert_eq!(report["ledger"]["balanced"], true);
        assert_eq!(report["ledger"]["verified"], report["ledger"]["due"]);
        assert_ne!(report["verdict"]["status"], "INVALID");
    }
}

#[test]
fn a_report_reruns_itself_with_the_same_samples() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.json");
    let first = run(&["--out", path.to_str().unwrap(), "--transport", "inproc", "--seed", "7"]);
    let again = output_of(&["run", "--quiet", "--format", "json", "--plan", path.to_str().unwrap()]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(first["fingerprint"], again["fingerprint"]);
    assert_eq!(first["plan"], again["plan"]);
    let other = run(&["--transport", "inproc", "--seed", "8"]);
    assert_ne!(first["fingerprint"], other["fingerprint"]);
}

#[test]
fn a_run_file_says_the_same_as_flags() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.toml");
    std::fs::write(
        &path,
        "workload = \"mix\"\nseries = \"540\"\nduration = \"1s\"\nlate = \"1%\"\n",
    )
    .unwrap();
    let by_file = output_of(&["run", "--print-plan", "--plan", path.to_str().unwrap()]);
    let by_flags = output_of(&[
        "run",
        "--print-plan",
        "--workload",
        "mix",
        "--series",
        "540",
        "--duration",
        "1s",
        "--late",
        "1%",
    ]);
    assert_eq!(code(&by_file), Some(0));
    assert_eq!(by_file.stdout, by_flags.stdout);
}

#[test]
fn csv_has_a_line_an_interval() {
    let output = output_of(&[
        "run",
        "--quiet",
        "--format",
        "csv",
        "--no-calibrate",
        "--workload",
        "mix",
        "--series",
        "540",
        "--duration",
        "1s",
        "--report-interval",
        "200ms",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("run,store,end_s,sent,accepted,"), "{text}");
    assert!(text.lines().count() >= 4, "{text}");
}

#[test]
fn an_interval_log_is_read_by_the_public_reader() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.hlog");
    run(&["--hdr-log", path.to_str().unwrap(), "--transport", "inproc"]);
    let log = std::fs::read(&path).unwrap();
    let entries = hdrhistogram::serialization::interval_log::IntervalLogIterator::new(&log);
    let tags: Vec<String> = entries
        .filter_map(|entry| match entry.unwrap() {
            hdrhistogram::serialization::interval_log::LogEntry::Interval(interval) => {
                interval.tag().map(|tag| tag.as_str().to_owned())
            }
            _ => None,
        })
        .collect();
    for tag in ["response", "service", "lag"] {
        assert!(tags.iter().any(|found| found == tag), "{tag} is missing in {tags:?}");
    }
}

fn refused(arguments: &[&str], exit: i32, words: &[&str]) {
    let output = output_of(arguments);
    let text = stderr(&output);
    assert_eq!(code(&output), Some(exit), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?} does not say {word:?}: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn bad_usage_names_the_place_and_ends_with_2() {
    refused(&["run", "--store", "memry:"], 2, &["memry", "memory"]);
    refused(
        &["run", "--store", "memory:?retntion=7d"],
        2,
        &["retntion", "retention"],
    );
    refused(&["run", "--store", "mongo:/x"], 2, &["mongo"]);
    refused(&["run", "--workload", "mixx"], 2, &["--workload mixx", "mix"]);
    refused(&["run", "--rate", "fast"], 2, &["--rate fast"]);
    refused(&["run", "--duration", "10"], 2, &["--duration 10"]);
    refused(&["run", "--duration", "0s"], 2, &["no time at all"]);
    refused(&["run", "--schedule", "ramp:1..x/60s"], 2, &["--schedule", "column"]);
    refused(&["run", "--late", "2"], 2, &["--late 2"]);
    refused(&["run", "--late", "60%", "--missing", "60%"], 2, &["disorder"]);
    refused(&["run", "--churn", "wave:1m"], 2, &["--churn wave:1m", "steady"]);
    refused(&["run", "--workers", "0"], 2, &["--workers"]);
    refused(
        &[
            "run",
            "--interval",
            "1ms",
            "--transport",
            "tcp",
            "--protocol",
            "graphite",
        ],
        2,
        &["interval"],
    );
    refused(
        &["run", "--out", "/no/such/dir/report.json"],
        2,
        &["/no/such/dir/report.json", "nothing was run"],
    );
    refused(&["run", "--workload", "trace:/no/such/file"], 2, &["/no/such/file"]);
    refused(
        &["ingest", "--listen", "graphite+tcp://0.0.0.0:0"],
        2,
        &["--allow-remote"],
    );
    refused(&["ingest", "--listen", "carbon://x"], 2, &["PROTOCOL+tcp://HOST:PORT"]);
    refused(
        &["run", "--transport", "udp", "--datagram", "9"],
        2,
        &["--datagram is from 64"],
    );
    refused(&["emit", "--to", "tsb+unix:///nowhere/at.all"], 4, &["/nowhere/at.all"]);
    refused(&["emit", "--to", "tsb+tcp://127.0.0.1:1"], 4, &["127.0.0.1:1"]);
    refused(&["verify", "/no/such/report.json"], 2, &["/no/such/report.json"]);
    refused(&["record", "--out", "/no/such/dir/t.tsbtrace"], 2, &["/no/such/dir"]);
}

#[test]
fn garbage_files_are_errors_with_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let report = serde_json::to_vec(&run(&["--transport", "inproc"])).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut noise = vec![0u8; 4096];
    noise.fill_with(|| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (seed >> 56) as u8
    });
    let cut = write("cut.json", &report[..report.len() / 2]);
    let foreign = write("foreign.json", b"{\"a\": 1}");
    let binary = write("noise", &noise);
    let key = write("key.toml", b"rat = \"54k\"\n");
    refused(&["run", "--plan", &cut], 2, &["cut.json", "line"]);
    refused(&["run", "--plan", &foreign], 2, &["foreign.json"]);
    refused(&["run", "--plan", &binary], 2, &["noise"]);
    refused(&["run", "--plan", &key], 2, &["key.toml", "rat", "line 1"]);
    refused(&["verify", &cut], 2, &["cut.json", "line"]);
    refused(&["verify", &foreign], 2, &["schema_version"]);
    let whole = write("whole.json", &report);
    refused(&["verify", &whole], 2, &["memory", "keeps nothing"]);
    refused(&["run", "--fleet-file", &binary], 2, &["noise"]);
    refused(&["run", "--fleet-file", &key], 2, &["key.toml"]);
    for trace in [&binary, &cut, &key] {
        let workload = format!("trace:{trace}");
        let output = output_of(&["run", "--duration", "100ms", "--workload", &workload]);
        assert_eq!(code(&output), Some(2), "{}", stderr(&output));
    }
}

/// A listener in a process of its own, and the address it got.
fn ingest(more: &[&str]) -> (Child, String) {
    let arguments = ["ingest", "--format", "json", "--quiet", "--once", "--duration", "60s"];
    listening(tsb(&arguments).args(more))
}

fn result(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn emit_and_ingest_are_two_programs_that_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ingest.sock");
    let path = path.to_str().unwrap();
    for (scheme, place) in [
        ("tsb+tcp", "127.0.0.1:0"),
        ("graphite+tcp", "127.0.0.1:0"),
        ("tsb+udp", "127.0.0.1:0"),
        // Nobody says when a sender of lines over datagrams is done.
        ("graphite+udp", "127.0.0.1:0?idle=1s"),
        ("tsb+unix", path),
        ("graphite+unix", path),
        ("tsb+unixgram", path),
        ("influx+http", "127.0.0.1:0"),
        ("kairosdb-json+http", "127.0.0.1:0"),
    ] {
        let listen = format!("{scheme}://{place}");
        let (listener, address) = ingest(&["--listen", &listen]);
        let to = format!("{scheme}://{address}");
        let sent = output_of(&[
            "emit",
            "--quiet",
            "--format",
            "json",
            "--to",
            &to,
            "--workload",
            "mix",
            "--series",
            "540",
            "--rate",
            "20k",
            "--duration",
            "300ms",
        ]);
        assert_eq!(code(&sent), Some(0), "{}", stderr(&sent));
        let sent: Value = serde_json::from_slice(&sent.stdout).unwrap();
        let received = result(listener);
        assert_eq!(sent["ledger"]["sent"], received["ledger"]["accepted"], "{received:#}");
        assert_eq!(sent["verdict"]["status"], "UNVERIFIED");
        assert_eq!(received["ledger"]["balanced"], true);
        assert_eq!(received["listeners"][0]["missing_samples"], 0);
        if scheme.ends_with("http") {
            assert_eq!(sent["ledger"]["confirmed"], received["ledger"]["accepted"]);
            assert_eq!(sent["ledger"]["balanced"], true);
        }
        if sent["datagrams"].is_object() {
            // The end is said five times; a listener may leave with the first.
            let sent = sent["datagrams"]["sent"].as_u64().unwrap();
            let heard = received["listeners"][0]["datagrams"].as_u64().unwrap();
            assert!(heard <= sent && heard + 4 >= sent, "{heard} of {sent} datagrams");
        }
    }
}

#[test]
fn dalmatiner_runs_over_thirty_sockets() {
    for protocol in ["dalmatiner-july", "dalmatiner-august"] {
        let fleet = ["--workload", "kstat", "--series", "5400", "--rate", "natural"];
        let wire = [
            "--transport",
            "udp",
            "--sockets",
            "30",
            "--datagram",
            "4200",
            "--protocol",
            protocol,
        ];
        let mut arguments = vec![
            "run",
            "--quiet",
            "--format",
            "json",
            "--no-calibrate",
            "--duration",
            "1s",
        ];
        arguments.extend(fleet.iter().chain(&wire));
        let output = output_of(&arguments);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let ledger = &report["ledger"];
        assert_eq!(
            (&ledger["verified"], &ledger["balanced"]),
            (&ledger["due"], &true.into()),
            "{ledger:#}"
        );
        let sent = report["listener"]["datagrams"]["sent"].as_u64();
        assert!(sent.is_some_and(|sent| sent >= 30), "{sent:?}");
    }
}

#[test]
fn a_run_over_http_counts_what_was_confirmed() {
    let report = run(&["--transport", "http", "--protocol", "influx"]);
    let ledger = &report["ledger"];
    for count in ["sent", "confirmed", "received", "accepted", "verified"] {
        assert_eq!(ledger[count], ledger["due"], "{count}: {ledger:#}");
    }
    assert_eq!((&ledger["unknown"], &ledger["balanced"]), (&0.into(), &true.into()));
    let latency = &report["latency"];
    assert!(latency["response"]["count"].as_u64() > Some(50), "{latency:#}");
    assert!(latency["done"].as_str().unwrap().contains("answer"), "{latency:#}");
}

#[test]
fn a_listener_survives_garbage_and_counts_it() {
    for protocol in ["tsb", "graphite"] {
        let listen = format!("{protocol}+tcp://127.0.0.1:0");
        let (listener, address) = ingest(&["--listen", &listen]);
        let mut socket = TcpStream::connect(&address).unwrap();
        // A listener may close on us while we still write.
        let _ = socket.write_all(b"not a record\n\xff\xfe\x00\x00 1 2\nname 1 nan\n");
        let _ = socket.write_all(&vec![0x80; 100_000]);
        drop(socket);
        let received = result(listener);
        let malformed = received["ledger"]["malformed"].as_u64().unwrap();
        let closed = received["listeners"][0]["fatal_closes"].as_u64().unwrap();
        assert!(malformed + closed > 0, "{received:#}");
        assert_eq!(received["ledger"]["accepted"], 0);
        assert_eq!(received["ledger"]["balanced"], true);
    }
}

#[test]
fn a_flood_of_new_names_is_stopped_and_counted() {
    let (listener, address) = ingest(&["--listen", "graphite+tcp://127.0.0.1:0", "--max-series", "100"]);
    let mut socket = TcpStream::connect(&address).unwrap();
    for number in 0..5_000 {
        writeln!(socket, "flood.{number} 1 1404770400").unwrap();
    }
    drop(socket);
    let received = result(listener);
    assert_eq!(received["series"]["admitted"], 100);
    assert_eq!(received["ledger"]["accepted"], 100);
    assert_eq!(received["ledger"]["rejected_by_reason"]["series_limit"], 4_900);
    assert_eq!(received["ledger"]["balanced"], true);
}

#[test]
fn an_interrupted_run_ends_with_a_partial_report_that_balances() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.json");
    let mut child = tsb(&[
        "run",
        "--format",
        "json",
        "--no-calibrate",
        "--workload",
        "mix",
        "--series",
        "540",
        "--duration",
        "60s",
        "--out",
        path.to_str().unwrap(),
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    // The first progress line: it is on its way.
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["ledger"]["balanced"], true);
    assert!(report["duration_ns"].as_u64().unwrap() < 30_000_000_000);
    assert_eq!(
        serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap()["interrupted"],
        true
    );
}

#[test]
fn a_machine_is_recorded_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.tsbtrace");
    let recorded = output_of(&[
        "record",
        "--quiet",
        "--out",
        path.to_str().unwrap(),
        "--duration",
        "300ms",
        "--every",
        "50ms",
    ]);
    assert_eq!(code(&recorded), Some(0), "{}", stderr(&recorded));
    let again = output_of(&[
        "record",
        "--quiet",
        "--out",
        path.to_str().unwrap(),
        "--duration",
        "100ms",
    ]);
    assert_eq!(code(&again), Some(2), "a trace is never overwritten");
    let workload = format!("trace:{}", path.to_str().unwrap());
    let replayed = output_of(&[
        "run",
        "--quiet",
        "--format",
        "json",
        "--no-calibrate",
        "--workload",
        &workload,
        "--series",
        "2000",
        "--transport",
        "inproc",
        "--duration",
        "300ms",
    ]);
    let report: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(report["ledger"]["balanced"], true);
    assert_eq!(report["ledger"]["lost"], 0);
    assert!(Path::new(&path).exists());
}

#[test]
fn the_other_commands_print_what_they_promise() {
    let stores = output_of(&["stores", "--format", "json"]);
    let stores: Value = serde_json::from_slice(&stores.stdout).unwrap();
    let schemes: Vec<&str> = stores["stores"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|store| store["scheme"].as_str())
        .collect();
    for scheme in ["null", "memory", "ring", "throttle"] {
        assert!(schemes.contains(&scheme), "{schemes:?}");
    }
    let doctor = output_of(&["doctor", "--format", "json"]);
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(doctor["findings"].as_array().unwrap().len() > 5);
    let completions = output_of(&["completions", "bash"]);
    assert!(String::from_utf8_lossy(&completions.stdout).contains("--store"));
    let man = output_of(&["man"]);
    assert!(String::from_utf8_lossy(&man.stdout).contains(".TH tsb"));
    let help = output_of(&["run", "--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("coordinated omission") || help.stdout.len() > 2_000);
}
