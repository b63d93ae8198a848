//! Signals to the real program, whose store does not return, or whose stderr nobody reads.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use crate::program::tsb;

/// One write takes most of a minute.
const STUCK: &str = "throttle+memory:?throttle.rate=1";

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

/// The end of a child, and how long it took from now on.
fn ended(mut child: Child) -> (Option<i32>, u64) {
    let clock = MonotonicClock::new();
    let code = child.wait().unwrap().code();
    (code, clock.now())
}

/// Reads until a line has `words`, and then in the background, so that the pipe never fills.
fn read_until(child: &mut Child, words: &str) -> (String, JoinHandle<String>) {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(words) {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        rest
    });
    (said, rest)
}

/// A run whose first write does not return.
fn stuck_run(folder: &Path, more: &[&str]) -> Child {
    let report = folder.join("r.json");
    fs::write(&report, "an old report").unwrap();
    let mut run = tsb(&["run", "--no-calibrate", "--transport", "inproc", "--progress", "lines"]);
    run.args(["--rate", "1k", "--duration", "1h", "--series", "540", "--store", STUCK]);
    run.args(["--out", report.to_str().unwrap()]).args(more);
    run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn is_partial(report: &Value, words: &str) {
    assert_eq!(report["verdict"]["status"], "UNVERIFIED", "{}", report["verdict"]);
    assert!(
        report["verdict"]["reasons"].to_string().contains(words),
        "{}",
        report["verdict"]
    );
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["ledger"]["balanced"], true, "{}", report["ledger"]);
    assert!(report["ledger"]["unknown"].as_u64() > Some(0), "{}", report["ledger"]);
}

#[test]
fn a_signal_gives_a_stuck_store_up_and_reports_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("p.html");
    let more = ["--store-timeout", "500ms", "--html", page.to_str().unwrap()];
    let mut child = stuck_run(folder.path(), &more);
    let (_, rest) = read_until(&mut child, "sent");
    terminate(&child);
    let mut shown = child.stdout.take().unwrap();
    let (code, taken_ns) = ended(child);
    assert_eq!(code, Some(130), "{}", rest.join().unwrap());
    assert!((SECOND_NS / 2..5 * SECOND_NS).contains(&taken_ns), "{taken_ns}");
    let report = json(&folder.path().join("r.json"));
    is_partial(&report, "did not return from write within 0.5 s");
    let mut text = String::new();
    shown.read_to_string(&mut text).unwrap();
    assert!(
        text.contains("UNVERIFIED") && text.contains("did not return from write"),
        "{text}"
    );
    assert!(fs::read_to_string(page).unwrap().contains("</html>"));
}

#[test]
fn a_second_signal_ends_at_once_with_the_report_of_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = stuck_run(folder.path(), &[]);
    let (_, rest) = read_until(&mut child, "sent");
    terminate(&child);
    // It answers the first before it gets the second.
    MonotonicClock::new().wait_until(SECOND_NS / 2);
    assert!(child.try_wait().unwrap().is_none(), "the first waits for the store");
    terminate(&child);
    let (code, taken_ns) = ended(child);
    let said = rest.join().unwrap();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("once more to end at once"), "{said}");
    assert!(taken_ns < 3 * SECOND_NS, "{taken_ns}");
    let report = json(&folder.path().join("r.json"));
    is_partial(&report, "had not returned from write");
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "nothing else is left");
}

#[test]
fn a_third_signal_waits_for_nothing_at_all() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody reads the result: it cannot be written within a second, nor ever.
    let mut child = stuck_run(folder.path(), &["--format", "json"]);
    let (_, rest) = read_until(&mut child, "sent");
    for _ in 0..3 {
        terminate(&child);
        MonotonicClock::new().wait_until(SECOND_NS / 20);
    }
    let (code, taken_ns) = ended(child);
    assert_eq!(code, Some(130), "{}", rest.join().unwrap());
    assert!(taken_ns < SECOND_NS, "{taken_ns}");
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    assert!(report == "an old report" || report.ends_with("}\n"), "{report}");
}

#[test]
fn the_journal_of_a_run_whose_store_was_left_behind_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!(
        "throttle+sqlite:{}?throttle.rate=20",
        folder.path().join("x.db").display()
    );
    let report = folder.path().join("r.json");
    let mut run = tsb(&["run", "--no-calibrate", "--transport", "inproc", "--progress", "lines"]);
    // An operation of 540 samples takes 27 s.
    run.args([
        "--rate",
        "100k",
        "--duration",
        "1h",
        "--series",
        "540",
        "--batch",
        "tick",
        "--store",
        &store,
    ]);
    run.args(["--out", report.to_str().unwrap()]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (_, rest) = read_until(&mut child, "     2 s");
    terminate(&child);
    MonotonicClock::new().wait_until(SECOND_NS / 10);
    terminate(&child);
    let (code, _) = ended(child);
    assert_eq!(code, Some(130), "{}", rest.join().unwrap());
    assert_eq!(json(&report)["verdict"]["status"], "UNVERIFIED");
    let journal = folder.path().join("r.json.journal");
    assert!(
        journal.is_file(),
        "the journal says more than the report of a run that was given up"
    );
}

/// A listener, and the address that it says on stderr.
fn listening(more: &[&str], stderr: Stdio) -> Child {
    let mut ingest = tsb(&["ingest", "--listen", "graphite+tcp://127.0.0.1:0", "--format", "json"]);
    ingest.args(more).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap()
}

fn address(said: &str) -> &str {
    let rest = said.split("graphite+tcp://").nth(1).unwrap();
    rest.split([' ', ',']).next().unwrap().trim()
}

fn result(child: &mut Child) -> Value {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_listener_leaves_a_stuck_store_behind() {
    let mut child = listening(&["--store", STUCK, "--store-timeout", "500ms"], Stdio::piped());
    let (said, rest) = read_until(&mut child, "listening on");
    let mut client = TcpStream::connect(address(&said)).unwrap();
    let mut lines = Vec::new();
    for index in 0..100 {
        writeln!(lines, "s{index} 1 1700000000").unwrap();
    }
    client.write_all(&lines).unwrap();
    client.flush().unwrap();
    MonotonicClock::new().wait_until(SECOND_NS / 2);
    terminate(&child);
    let clock = MonotonicClock::new();
    let result = result(&mut child);
    let taken_ns = clock.now();
    assert_eq!(ended(child).0, Some(130), "{}", rest.join().unwrap());
    assert!((SECOND_NS / 2..5 * SECOND_NS).contains(&taken_ns), "{taken_ns}");
    assert_eq!(result["verdict"]["status"], "UNVERIFIED");
    let reasons = result["verdict"]["reasons"].to_string();
    assert!(reasons.contains("did not return from write within 0.5 s"), "{reasons}");
    assert_eq!(result["ledger"]["balanced"], true, "{}", result["ledger"]);
    assert_eq!(result["interrupted"], true);
}

/// A pipe that is full, and stays so: its reader does not read.
fn full_pipe() -> (PipeReader, Stdio) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while poll(&mut [PollFd::new(&writer, PollFlags::OUT)], Some(&now)).unwrap() > 0 {
        writer.write_all(&[b'.'; 4096]).unwrap();
    }
    (reader, writer.into())
}

#[test]
fn a_full_stderr_holds_up_neither_a_run_nor_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let run = |duration: &str, report: &Path| {
        let (reader, stderr) = full_pipe();
        let mut run = tsb(&[
            "run",
            "--no-calibrate",
            "--series",
            "540",
            "--workload",
            "mix",
            "--progress",
            "lines",
        ]);
        run.args(["--duration", duration, "--out", report.to_str().unwrap()]);
        (reader, run.stdout(Stdio::null()).stderr(stderr).spawn().unwrap())
    };
    let whole = folder.path().join("whole.json");
    let (_reader, child) = run("2500ms", &whole);
    let (code, taken_ns) = ended(child);
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    assert!(taken_ns < 20 * SECOND_NS, "{taken_ns}");
    assert!(json(&whole)["ledger"]["verified"].as_u64() > Some(0));
    let stopped = folder.path().join("stopped.json");
    let (_reader, child) = run("1h", &stopped);
    MonotonicClock::new().wait_until(3 * SECOND_NS);
    terminate(&child);
    let (code, taken_ns) = ended(child);
    assert_eq!(code, Some(130));
    assert!(taken_ns < 10 * SECOND_NS, "{taken_ns}");
    assert_eq!(json(&stopped)["interrupted"], true);
}

#[test]
fn a_reader_of_progress_that_leaves_a_listener_costs_nothing() {
    let mut child = listening(&[], Stdio::piped());
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    lines.read_line(&mut said).unwrap();
    drop(lines);
    let mut client = TcpStream::connect(address(&said)).unwrap();
    for second in 0..3 {
        client
            .write_all(format!("a 1 {}\n", 1_700_000_000 + second).as_bytes())
            .unwrap();
        MonotonicClock::new().wait_until(SECOND_NS);
    }
    drop(client);
    terminate(&child);
    let result = result(&mut child);
    assert_eq!(ended(child).0, Some(0));
    assert_eq!(result["ledger"]["accepted"], 3, "{}", result["ledger"]);
}

#[test]
fn a_full_stderr_holds_up_no_listener() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s.sock");
    let (_reader, stderr) = full_pipe();
    let listen = format!("graphite+unix://{}", socket.display());
    let mut child = tsb(&["ingest", "--listen", &listen, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let clock = MonotonicClock::new();
    while !socket.exists() {
        clock.wait_until(clock.now() + SECOND_NS / 100);
        assert!(clock.now() < 20 * SECOND_NS, "it never listened");
    }
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    for second in 0..3 {
        client
            .write_all(format!("a 1 {}\n", 1_700_000_000 + second).as_bytes())
            .unwrap();
        clock.wait_until(clock.now() + SECOND_NS);
    }
    drop(client);
    terminate(&child);
    let clock = MonotonicClock::new();
    let result = result(&mut child);
    assert!(clock.now() < 5 * SECOND_NS, "{}", clock.now());
    assert_eq!(ended(child).0, Some(0));
    assert_eq!(result["ledger"]["accepted"], 3, "{}", result["ledger"]);
}
