//! Peers that are many, silent, long-winded or hostile, in front of the real program: what is
//! kept of them is bounded, and what is not taken is said. (Issue 15.)

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::ingest::listening;
use crate::interrupt::interrupted;
use crate::program::tsb;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// `tsb ingest` in a process of its own.
struct Listener {
    child: Child,
    address: String,
}

impl Listener {
    fn start(arguments: &[&str]) -> Self {
        Self::spawn(&mut tsb(&[]), arguments)
    }

    fn spawn(command: &mut Command, arguments: &[&str]) -> Self {
        command.args(["ingest", "--format", "json", "--quiet", "--duration", "120s"]);
        let (child, address) = listening(command.args(arguments));
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends lines, and waits until the listener has taken them and closed in turn.
    fn send(&self, lines: &[u8]) {
        let mut stream = self.connect();
        stream.write_all(lines).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }

    /// The most memory that it has taken so far, in bytes.
    fn peak_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Ends it in order; what it says then.
    fn stop(self) -> Value {
        let result = interrupted(self.child);
        assert_eq!(result["ledger"]["balanced"], true, "{result:#}");
        result
    }
}

fn signal(child: &Child, which: &str) {
    let asked = Command::new("kill").args([which, &child.id().to_string()]).status();
    assert!(asked.unwrap().success());
}

#[test]
fn every_sender_of_datagrams_is_heard() {
    const SENDERS: u64 = 1_500;
    let listener = Listener::start(&["--listen", "graphite+udp://127.0.0.1:0?receive-buffer=16MiB"]);
    for sender in 0..SENDERS {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let line = format!("a.b {sender} {}\n", 1_700_000_000 + sender);
        socket.send_to(line.as_bytes(), &listener.address).unwrap();
    }
    let received = listener.stop();
    assert_eq!(received["ledger"]["received"], SENDERS, "{received:#}");
    assert_eq!(received["ledger"]["accepted"], SENDERS);
    let count = |name: &str| received["listeners"][0][name].as_u64().unwrap();
    // The kernel gives some ports out twice.
    assert!(count("connections") > 1_024 && count("refused_connections") == 0);
    assert_eq!(count("forgotten_senders"), count("connections") - 1_024);
}

#[test]
fn long_names_are_bounded_by_their_bytes() {
    const NAMES: u64 = 4_000;
    let limits = ["--max-name-bytes", "4MiB"];
    let listener = Listener::start(&[&["--listen", "influx+tcp://127.0.0.1:0"], &limits[..]].concat());
    let tail = "x".repeat(30_000);
    let mut stream = listener.connect();
    for name in 0..NAMES {
        writeln!(stream, "m{name}{tail} v=1 1700000000000000000").unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    let peak_bytes = listener.peak_bytes();
    let received = listener.stop();
    let (ledger, series) = (&received["ledger"], &received["series"]);
    assert_eq!(ledger["received"], NAMES);
    let accepted = ledger["accepted"].as_u64().unwrap();
    assert!((100..140).contains(&accepted), "{accepted}");
    assert_eq!(ledger["rejected_by_reason"]["name_bytes"], NAMES - accepted);
    assert!(series["name_bytes"].as_u64().unwrap() <= 4 << 20, "{series}");
    // The names alone are 120 MB, and took five times as much.
    assert!(peak_bytes < 100 << 20, "{peak_bytes}");
}

#[test]
fn a_store_bounds_its_names_by_their_bytes() {
    let store = ["--store", "memory:?max_bytes=4MiB"];
    let listener = Listener::start(&[&["--listen", "influx+tcp://127.0.0.1:0"], &store[..]].concat());
    let tail = "x".repeat(30_000);
    let lines: Vec<String> = (0..400)
        .map(|name| format!("m{name}{tail} v=1 1700000000000000000\n"))
        .collect();
    listener.send(lines.concat().as_bytes());
    let received = listener.stop();
    let (ledger, admitted) = (&received["ledger"], received["series"]["admitted"].as_u64().unwrap());
    assert!((60..140).contains(&admitted), "{received:#}");
    assert_eq!(ledger["rejected_by_reason"]["name_bytes"], 400 - admitted);
    assert!(
        received["size"]["bytes"].as_u64().unwrap() <= 5 << 20,
        "{}",
        received["size"]
    );
}

#[cfg(feature = "sqlite")]
#[test]
fn a_series_that_a_store_cannot_define_is_no_limit() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}?layout=mohawk", folder.path().join("m.db").display());
    let listener = Listener::start(&["--listen", "graphite+tcp://127.0.0.1:0", "--store", &store]);
    listener.send(b"load 1 1700000000\nLOAD 2 1700000000\nLOAD 3 1700000060\n");
    let received = listener.stop();
    assert_eq!(received["ledger"]["accepted"], 1, "{received:#}");
    let reasons = &received["ledger"]["rejected_by_reason"];
    assert_eq!(
        (&reasons["not_defined"], &reasons["series_limit"]),
        (&2.into(), &Value::Null)
    );
    let error = received["series"]["first_error"].as_str().unwrap();
    assert!(error.contains("cannot tell from"), "{error}");
}

#[test]
fn a_socket_left_by_a_kill_does_not_block_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    for (scheme, name) in [("graphite+unix", "stream"), ("graphite+unixgram", "datagram")] {
        let path = folder.path().join(name);
        let url = format!("{scheme}://{}", path.display());
        let mut killed = Listener::start(&["--listen", &url]);
        let second = tsb(&["ingest", "--listen", &url, "--duration", "1s"]).output().unwrap();
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(second.status.code(), Some(4), "{said}");
        assert!(said.contains("another process listens on this socket"), "{said}");
        assert!(said.contains("hint: stop the process that listens there"), "{said}");
        killed.child.kill().unwrap();
        killed.child.wait().unwrap();
        assert!(path.exists(), "a kill leaves it");
        Listener::start(&["--listen", &url]).stop();
    }
}

/// A server that does `what` with each connection, until the test is over.
fn server(what: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let what = what.clone();
            std::thread::spawn(move || what(connection));
        }
    });
    address
}

/// Never reads, and never closes.
fn mute(connection: TcpStream) {
    std::thread::park_timeout(2 * PATIENCE);
    drop(connection);
}

fn emit(to: &str, more: &[&str]) -> Command {
    let mut command = tsb(&["emit", "--to", to, "--format", "json", "--quiet", "--series", "100"]);
    command.args(more);
    command
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn failures(report: &Value) -> String {
    report["failures"].to_string()
}

#[test]
fn a_server_that_says_continue_for_ever_is_given_up() {
    let address = server(
        |mut connection| {
            while connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {}
        },
    );
    let output = emit(&format!("kairosdb-json+http://{address}"), &["--duration", "1s"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    let report = report(&output);
    assert!(failures(&report).contains("100 again and again"), "{report:#}");
    assert!(report["ledger"]["unknown"].as_u64().unwrap() > 0);
}

#[test]
fn a_server_that_never_reads_is_a_failure_with_its_reason() {
    let to = format!("graphite+tcp://{}?timeout=1s", server(mute));
    let output = emit(&to, &["--duration", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let report = report(&output);
    assert_eq!(report["closing"]["timed_out"], 1, "{report:#}");
    assert!(
        failures(&report).contains("did not read to their end within 1 s"),
        "{report:#}"
    );
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time() {
    let to = format!("kairosdb-json+http://{}?timeout=300ms", server(mute));
    let output = emit(&to, &["--duration", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let report = report(&output);
    assert!(failures(&report).contains("300 ms"), "{report:#}");
}

#[test]
fn a_stop_ends_the_wait_for_a_server() {
    for scheme in ["kairosdb-json+http", "graphite+tcp"] {
        // Without the signal it would wait for a minute, or half of one behind its last byte.
        let (accepted, has_come) = std::sync::mpsc::sync_channel(1);
        let address = server(move |connection| {
            accepted.send(()).unwrap();
            mute(connection);
        });
        let mut child = emit(&format!("{scheme}://{address}?timeout=10m"), &["--duration", "1s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        has_come.recv_timeout(PATIENCE).unwrap();
        signal(&child, "-TERM");
        let mut waited = Duration::ZERO;
        while child.try_wait().unwrap().is_none() {
            assert!(waited < PATIENCE, "{scheme}: the signal is ignored");
            std::thread::park_timeout(Duration::from_millis(50));
            waited += Duration::from_millis(50);
        }
        let output = child.wait_with_output().unwrap();
        assert!(
            matches!(output.status.code(), Some(0 | 130)),
            "{scheme}: {:?}",
            output.status
        );
        assert_eq!(failures(&report(&output)), "[]");
    }
}

/// The clock of the machine, an hour back once a file exists.
const STEP: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *to) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, to);
    if (id == CLOCK_REALTIME && access(getenv("TSB_TEST_STEP"), F_OK) == 0) to->tv_sec -= 3600;
    return result;
}
"#;

#[cfg(all(feature = "sqlite", target_env = "gnu"))]
#[test]
fn samples_without_a_time_follow_the_machine_s_clock_behind_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    fs::write(place("step.c"), STEP).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &place("step.so"), &place("step.c"), "-ldl"]);
    let built = compiler.status().unwrap();
    assert!(
        built.success(),
        "the C compiler that links this program makes a library"
    );
    let store = format!("sqlite:{}", place("m.db"));
    let mut command = tsb(&[]);
    command
        .env("LD_PRELOAD", place("step.so"))
        .env("TSB_TEST_STEP", place("now"));
    let listener = Listener::spawn(
        &mut command,
        &["--listen", "graphite+tcp://127.0.0.1:0", "--store", &store],
    );
    listener.send(b"before 1 -1\n");
    fs::write(place("now"), "").unwrap();
    listener.send(b"behind 2 -1\n");
    listener.stop();
    let time = |series: &str| {
        let output = tsb(&["query", &store, "--series", series]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let cell = text.lines().last().and_then(|line| line.split(',').find_map(seconds));
        cell.unwrap_or_else(|| panic!("{text}"))
    };
    let stepped = time("before") - time("behind");
    assert!((3_400.0..=3_600.0).contains(&stepped), "{stepped}");
}

/// A time of this century, in seconds since the epoch.
fn seconds(cell: &str) -> Option<f64> {
    let number: f64 = cell.trim().parse().ok()?;
    let scaled = [1.0, 1e-3, 1e-6, 1e-9].map(|scale| number * scale);
    scaled.into_iter().find(|at| (1e9..1e10).contains(at))
}
