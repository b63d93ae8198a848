//! What `tsb emit` and `tsb ingest` write are reports: `tsb report` shows them, `tsb verify`
//! reads a store back against them, and what they cannot know is absent.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Output};

use serde_json::Value;

use crate::ingest::listening;
use crate::program::tsb;

const FLEET: [&str; 7] = ["--quiet", "--workload", "mix", "--series", "540", "--duration", "500ms"];

fn ends(arguments: &[&str], code: i32) -> Output {
    let output = tsb(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn ingest(more: &[&str]) -> (Child, String) {
    listening(tsb(&["ingest", "--quiet", "--once", "--duration", "60s"]).args(more))
}

/// What `tsb emit` and `tsb ingest` wrote of one and the same transfer into a SQLite file.
struct Transfer {
    folder: tempfile::TempDir,
    store: String,
}

impl Transfer {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}/x.db", folder.path().display());
        let new = Self { folder, store };
        let [sent, got, log] = ["sent.json", "got.json", "sent.hlog"].map(|name| new.path(name));
        let [sent_page, got_page] = ["sent.html", "got.html"].map(|name| new.path(name));
        let listen = ["--listen", "graphite+tcp://127.0.0.1:0", "--store", &new.store];
        let (listener, address) = ingest(&[&listen[..], &["--out", &got, "--html", &got_page]].concat());
        let to = format!("graphite+tcp://{address}");
        let outputs = ["--out", &sent, "--html", &sent_page, "--hdr-log", &log];
        ends(&[&["emit", "--to", &to], &outputs[..], &FLEET[..]].concat(), 0);
        assert_eq!(listener.wait_with_output().unwrap().status.code(), Some(0));
        new
    }

    fn json(&self, name: &str) -> Value {
        json(&self.folder.path().join(name))
    }
}

#[test]
fn figures_that_one_end_cannot_know_are_absent() {
    let transfer = Transfer::make();
    let (emitted, received) = (transfer.json("sent.json"), transfer.json("got.json"));
    assert_eq!(emitted["ledger"]["sent"], received["ledger"]["accepted"]);
    let of_a_sender = [
        "/ledger/verified",
        "/ledger/confirmed",
        "/latency/response",
        "/staleness",
        "/cost/bytes_per_sample",
    ];
    let of_a_receiver = [
        "/plan/workload",
        "/seed",
        "/fingerprint",
        "/ledger/due",
        "/latency/lag",
        "/rate/asked_per_second",
    ];
    for (report, absent) in [(&emitted, &of_a_sender[..]), (&received, &of_a_receiver[..])] {
        let there = absent.iter().find(|name| report.pointer(name).is_some());
        assert_eq!(there, None, "it cannot be known");
        assert_eq!(report["verdict"]["status"], "UNVERIFIED");
    }
    assert!(received.pointer("/offered/entropy_bits").is_none());
}

#[test]
fn reports_of_emit_and_ingest_are_shown_by_report() {
    let transfer = Transfer::make();
    let [sent, got, both] = ["sent.json", "got.json", "both.html"].map(|name| transfer.path(name));
    let text = stdout(&ends(&["report", &sent], 0));
    assert!(text.contains("UNVERIFIED") && text.contains("fingerprint"), "{text}");
    let text = stdout(&ends(&["report", &got], 0));
    assert!(
        text.contains("sqlite") && text.contains("not known: others sent the samples"),
        "{text}"
    );
    assert!(!text.contains("fingerprint") && !text.contains("closed loop"), "{text}");
    ends(&["report", &sent, &got, "--html", &both], 0);
    for page in ["sent.html", "got.html", "both.html"] {
        let page = fs::read_to_string(transfer.path(page)).unwrap();
        assert!(page.contains("UNVERIFIED") && page.contains("</html>"));
    }
    assert!(
        fs::read_to_string(transfer.path("sent.hlog"))
            .unwrap()
            .contains("Tag=lag")
    );
}

#[test]
fn a_store_is_read_back_against_the_report_of_emit() {
    let transfer = Transfer::make();
    let [sent, got] = ["sent.json", "got.json"].map(|name| transfer.path(name));
    let store = transfer.store.as_str();
    let verified = stdout(&ends(&["verify", &sent, "--store", store, "--format", "json"], 0));
    let verified: Value = serde_json::from_str(&verified).unwrap();
    assert_eq!(
        verified["stores"][0]["ledger"]["verified"],
        transfer.json("sent.json")["ledger"]["sent"],
        "{verified:#}"
    );
    let unnamed = ends(&["verify", &sent], 2);
    assert!(String::from_utf8_lossy(&unnamed.stderr).contains("--store"));
    let strangers = ends(&["verify", &got, "--store", store], 2);
    assert!(String::from_utf8_lossy(&strangers.stderr).contains("tsb ingest"));
}

/// A server that takes a request each 20 ms.
fn slow() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let clock = tsb_core::time::MonotonicClock::new();
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut lines = BufReader::new(connection.try_clone().unwrap());
            while let Some(length) = request(&mut lines) {
                let mut body = vec![0; length];
                if lines.read_exact(&mut body).is_err() {
                    break;
                }
                tsb_core::time::Clock::wait_until(&clock, tsb_core::time::Clock::now(&clock) + 20_000_000);
                if connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
                    break;
                }
            }
        }
    });
    address
}

/// Reads the head of a request: the length of its body.
fn request(lines: &mut impl BufRead) -> Option<usize> {
    let (mut length, mut line) = (0, String::new());
    while lines.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    line.ends_with('\n').then_some(length)
}

#[test]
fn operations_shed_before_a_slow_server_are_reported_and_flatter_no_quantile() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.json");
    let to = format!("influx+http://{}", slow());
    let fleet = [
        "--quiet",
        "--workload",
        "mix",
        "--series",
        "5400",
        "--rate",
        "54000",
        "--duration",
        "1s",
    ];
    let emit = [&["emit", "--to", &to, "--out", out.to_str().unwrap()], &fleet[..]].concat();
    let text = stdout(&ends(&emit, 0));
    let report = json(&out);
    let count = |name: &str| report["ledger"][name].as_u64().unwrap();
    let (due, shed) = (count("due"), count("shed"));
    assert!(shed * 2 > due, "the server is slow: {shed} of {due}");
    assert_eq!(due, shed + count("sent"));
    let share = format!("{:.1} % never sent", shed as f64 * 100.0 / due as f64);
    assert!(text.contains("shed") && text.contains(&share), "{text}");
    // The quantiles say of which operations they are, and how many are in none.
    let missing = report["latency"]["missing"].as_u64().unwrap();
    assert!(missing > report["latency"]["response"]["count"].as_u64().unwrap());
    let note = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|note| note.as_str().unwrap().contains("infinitely late"));
    assert!(text.contains(note.unwrap().as_str().unwrap()), "{text}");
    assert!(text.contains("response of those"), "{text}");
}
