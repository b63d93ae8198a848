//! Results on full disks, full pipes and closed ones: each output fails alone, an old report
//! is never emptied, and the exit code says what happened.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::output::stderr;
use crate::program::tsb;

const SHORT: [&str; 11] = [
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
    "300ms",
];

fn short(more: &[&str]) -> Command {
    let mut command = tsb(&SHORT);
    command.args(["--transport", "inproc"]).args(more);
    command
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn code(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let text = stderr(&output);
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code(), text)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A writer that nobody reads any more.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_full_stdout_takes_no_file_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let [report, page, log] = ["r.json", "p.html", "l.hlog"].map(|name| folder.path().join(name));
    let mut run = short(&["--out", report.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    run.args(["--hdr-log", log.to_str().unwrap()]).stdout(full());
    let (exit, text) = code(&mut run);
    assert_eq!(exit, Some(6), "{text}");
    assert!(text.contains("cannot write to stdout"), "{text}");
    assert!(json(&report)["ledger"]["verified"].as_u64() > Some(0));
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
    assert!(fs::read_to_string(&log).unwrap().contains("Tag=response"));
}

#[test]
fn a_full_file_takes_nothing_else_with_it() {
    for flag in ["--out", "--html", "--hdr-log"] {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("r.json");
        let mut run = short(&[flag, "/dev/full"]);
        if flag != "--out" {
            run.args(["--out", report.to_str().unwrap()]);
        }
        let output = run.output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(6), "{flag}: {text}");
        assert!(text.contains("cannot write /dev/full"), "{flag}: {text}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict:"), "{flag}");
        assert!(flag == "--out" || json(&report)["verdict"].is_object(), "{flag}");
    }
}

#[test]
fn each_output_of_emit_and_ingest_fails_alone() {
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("graphite+tcp://{}?timeout=1s", sink.local_addr().unwrap());
    let reading = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = sink.accept().unwrap();
            std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        }
    });
    let emit = ["emit", "--quiet", "--to", &to, "--series", "540", "--duration", "200ms"];
    let ingest = [
        "ingest",
        "--quiet",
        "--listen",
        "graphite+tcp://127.0.0.1:0",
        "--duration",
        "200ms",
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments, word) in [("emit", &emit[..], "sent"), ("ingest", &ingest[..], "received")] {
        let output = tsb(arguments).args(["--out", "/dev/full"]).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(6), "{name}: {text}");
        assert!(text.contains("cannot write /dev/full"), "{name}: {text}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(word), "{name}");
        let report = folder.path().join(format!("{name}.json"));
        let mut full_stdout = tsb(arguments);
        full_stdout.args(["--out", report.to_str().unwrap()]).stdout(full());
        let (exit, text) = code(&mut full_stdout);
        assert_eq!(exit, Some(6), "{name}: {text}");
        assert!(text.contains("cannot write to stdout"), "{name}: {text}");
        assert!(json(&report)["ledger"].is_object(), "{name}");
    }
    reading.join().unwrap();
}

#[test]
fn a_result_that_cannot_be_written_hides_no_failure_of_closing() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let store = format!("write-cache+rrd:{}", files.display());
    let mut ingest = tsb(&["ingest", "--quiet", "--listen", "rrdcached+tcp://127.0.0.1:0"]);
    ingest.args(["--store", &store, "--out", "/dev/full"]);
    let mut child = ingest.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    let rest = first.split("rrdcached+tcp://").nth(1).unwrap();
    let mut client = TcpStream::connect(rest.split(' ').next().unwrap()).unwrap();
    let mut answers = BufReader::new(client.try_clone().unwrap());
    for command in [
        "CREATE a.rrd -s 1 -b 1700000000 DS:x:GAUGE:10:U:U RRA:AVERAGE:0.5:1:10",
        "UPDATE a.rrd 1700000050:1 1700000051:2",
    ] {
        client.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.starts_with('0'), "{command}: {answer}");
    }
    // What waits for its file cannot be written any more.
    fs::remove_dir_all(&files).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{text}");
    for words in ["cannot write /dev/full", "cannot close the files"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(String::from_utf8_lossy(&output.stdout).contains("accepted 2"), "{text}");
}

#[test]
fn each_table_of_a_report_fails_alone_and_none_is_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let (report, tables) = (folder.path().join("r.json"), folder.path().join("tables"));
    let page = folder.path().join("p.html");
    let (exit, text) = code(&mut short(&["--out", report.to_str().unwrap()]));
    assert!(matches!(exit, Some(0 | 3)), "{text}");
    fs::create_dir(&tables).unwrap();
    fs::write(tables.join("latency-cells.csv"), "an old table").unwrap();
    // The first and the second table cannot be written, the third would be emptied.
    for name in ["intervals.csv", "processes.csv"] {
        std::os::unix::fs::symlink("/dev/full", tables.join(name)).unwrap();
    }
    let show = ["report", report.to_str().unwrap(), "--csv", tables.to_str().unwrap()];
    let output = tsb(&show).args(["--html", page.to_str().unwrap()]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(6), "{text}");
    for name in ["intervals.csv", "processes.csv"] {
        assert!(text.contains(name), "{name} is not said: {text}");
    }
    assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict:"), "{text}");
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
    let cells = fs::read_to_string(tables.join("latency-cells.csv")).unwrap();
    assert!(cells.starts_with("run,store,end_s,lowest_ns"), "{cells}");
    assert!(tables.join("latency-quantiles.csv").is_file());
    // With no file larger than this, none of the tables is written, and the old one stays.
    fs::write(tables.join("latency-cells.csv"), "an old table").unwrap();
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
    let mut limited = Command::new("bash");
    limited
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_tsb")])
        .args(show);
    let output = limited.stdout(closed_pipe()).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert_eq!(
        fs::read_to_string(tables.join("latency-cells.csv")).unwrap(),
        "an old table"
    );
}

#[test]
fn a_disk_that_is_full_during_the_run_leaves_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let (data, report) = (folder.path().join("x.db"), folder.path().join("r.json"));
    // No file may grow beyond 4 MiB: the kernel refuses the write, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$@\"";
    let mut limited = Command::new("bash");
    limited.args(["-c", script, "bash", env!("CARGO_BIN_EXE_tsb")]);
    limited.args([
        "run",
        "--quiet",
        "--no-calibrate",
        "--transport",
        "inproc",
        "--workload",
        "mix",
    ]);
    limited.args([
        "--rate",
        "2M",
        "--duration",
        "2s",
        "--format",
        "json",
        "--out",
        report.to_str().unwrap(),
    ]);
    let store = format!("sqlite:{}", data.display());
    let output = limited
        .args(["--store", &store, "--store", "memory:"])
        .output()
        .unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    let kept = json(&report);
    assert_eq!(kept, serde_json::from_slice::<Value>(&output.stdout).unwrap());
    let runs = kept["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["verdict"]["status"], "INVALID");
    assert!(runs[0]["ledger"]["sent"].as_u64() > Some(0));
    assert!(
        runs[0]["verdict"]["reasons"].to_string().contains("x.db"),
        "{}",
        runs[0]["verdict"]
    );
    assert_ne!(runs[1]["verdict"]["status"], "INVALID");
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let (exit, text) = code(short(&[]).stdout(closed_pipe()));
    assert!(matches!(exit, Some(0 | 3)), "{exit:?}: {text}");
    for arguments in [&["stores"][..], &["--help"], &["man"], &["completions", "bash"]] {
        let (exit, text) = code(tsb(arguments).stdout(closed_pipe()));
        assert_eq!(exit, Some(0), "{arguments:?}: {text}");
    }
    // Progress and failures without a reader, and onto a full disk.
    for lost in [closed_pipe(), full().into()] {
        let mut run = tsb(&[
            "run",
            "--no-calibrate",
            "--workload",
            "mix",
            "--duration",
            "1200ms",
            "--series",
            "540",
        ]);
        let output = run.stderr(lost).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}", output.status);
        assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict:"));
    }
    let status = tsb(&["run", "--rate", "fast"]).stderr(closed_pipe()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn each_way_to_end_has_its_exit_code() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let listen = format!("graphite+tcp://{port}");
    let folder = tempfile::tempdir().unwrap();
    let later = format!("sqlite:{}/no/such/dir/x.db", folder.path().display());
    let table: [(&[&str], i32); 12] = [
        (&["--version"], 0),
        (&["stores"], 0),
        (&["rnu"], 2),
        (&["run", "--rate", "fast"], 2),
        (&["run", "--out", "/no/such/dir/r.json"], 2),
        (&["report", "/no/such/r.json"], 2),
        (&["ingest", "--listen", &listen], 4),
        (&["run", "--expose", &port, "--duration", "1s"], 4),
        (&["emit", "--to", "tsb+tcp://127.0.0.1:1"], 4),
        (&["query", "--store", &later, "--series", "a"], 4),
        (&["run", "--rate", "1e15", "--duration", "1s"], 2),
        (&["run", "--rate", "1e15", "--duration", "1s", "--no-calibrate"], 2),
    ];
    for (arguments, expected) in table {
        let (exit, text) = code(&mut tsb(arguments));
        assert_eq!(exit, Some(expected), "{arguments:?}: {text}");
    }
    let (exit, text) = code(&mut short(&["--no-verify", "--store", "memory:", "--store", &later]));
    assert_eq!(
        exit,
        Some(4),
        "the first store is done, the second cannot be opened: {text}"
    );
    for arguments in [
        &["stores"][..],
        &["--help"],
        &["--version"],
        &["man"],
        &["completions", "bash"],
        &["doctor"],
    ] {
        let (exit, text) = code(tsb(arguments).stdout(full()));
        assert_eq!(exit, Some(6), "{arguments:?}: {text}");
    }
    let lossy = "throttle+memory:?throttle.lose_one_in=100";
    assert_eq!(code(&mut short(&["--store", lossy])).0, Some(3));
}
