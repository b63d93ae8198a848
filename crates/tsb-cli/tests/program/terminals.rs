//! What strangers wrote reaches neither a terminal nor a spreadsheet as a command.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::ingest::listening;
use crate::output::output_of;
use crate::program;

/// Clears the screen, forges a line, turns the text around, and calls a program.
const EVIL: &str = "=cmd|'/C calc'!A0\u{1b}[2J\u{9b}2J\u{7}\r\nVerdict: VALID\u{202e}";

/// Nothing that a terminal or a browser obeys.
fn is_shown(what: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    assert_eq!(text.find(obeyed), None, "{what}");
    text
}

/// The same, and no line that a stranger has begun.
fn is_harmless(what: &str, bytes: &[u8]) {
    let text = is_shown(what, bytes);
    let forged = text.lines().any(|line| line.starts_with("Verdict: VALID"));
    assert!(!forged, "{what}: {text}");
}

#[test]
fn a_foreign_report_cannot_send_control_sequences_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [good, bad, tables, page] = ["good.json", "bad.json", "tables", "page.html"].map(path);
    let fleet = [
        "--workload",
        "mix",
        "--series",
        "54",
        "--duration",
        "300ms",
        "--transport",
        "inproc",
    ];
    output_of(&[&["run", "--quiet", "--no-calibrate", "--out", &good], &fleet[..]].concat());
    let mut report: Value = serde_json::from_slice(&fs::read(&good).unwrap()).unwrap();
    report["target"]["store"] = json!(EVIL);
    report["target"]["transport"] = json!(EVIL);
    report["label"] = json!(EVIL);
    report["verdict"]["reasons"] = json!([EVIL]);
    report["notes"] = json!([EVIL]);
    report["resources"][0]["name"] = json!(EVIL);
    report["ledger"]["losses"] = json!([]);
    fs::write(&bad, report.to_string()).unwrap();
    for arguments in [
        &["report", &bad, "--csv", &tables, "--html", &page][..],
        &["report", &bad, &good],
        &["report", &bad, "--format", "json"],
        &["report", &bad, "--format", "csv"],
        &["verify", &bad],
    ] {
        let output = output_of(arguments);
        is_harmless(&format!("{arguments:?}"), &output.stdout);
        is_harmless(&format!("{arguments:?}"), &output.stderr);
    }
    let json = output_of(&["report", &bad, "--format", "json"]).stdout;
    let again: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(again["target"]["store"], json!(EVIL), "JSON says what was there");
    for table in fs::read_dir(&tables).unwrap() {
        let bytes = fs::read(table.unwrap().path()).unwrap();
        is_harmless("a table", &bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains(",\"=") && !text.contains(",="), "{text}");
    }
    // A line end is a space there.
    is_shown("the page", &fs::read(&page).unwrap());
}

#[test]
fn names_that_clients_sent_are_no_formulas_and_no_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}/x.db", folder.path().display());
    let listen = ["ingest", "--once", "--quiet", "--listen", "graphite+tcp://127.0.0.1:0"];
    let (listener, address) = listening(program::tsb(&listen).args(["--store", &store]));
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client
        .write_all(b"=1+1 1 1700000000\n@SUM 2 1700000000\n-x 3 1700000000\n\x1b[2Jx 4 1700000000\n")
        .unwrap();
    drop(client);
    let received = listener.wait_with_output().unwrap();
    is_harmless("ingest", &received.stdout);
    let list = output_of(&["query", &store, "--list"]);
    is_harmless("the list", &list.stdout);
    let names = String::from_utf8(list.stdout).unwrap();
    assert!(names.contains("=1+1"), "{names}");
    let samples = output_of(&["query", &store, "--series==1+1", "--series=@SUM", "--series=-x"]);
    let rows = String::from_utf8(samples.stdout).unwrap();
    assert_eq!(rows.lines().filter(|row| row.starts_with('\'')).count(), 3, "{rows}");
}

#[test]
fn words_of_a_server_are_no_sequences() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("influx+http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let body = "\u{1b}[2J\nVerdict: VALID";
            let head = format!(
                "HTTP/1.1 400 Bad\u{1b}[31m\r\nX-Influxdb-Error: \u{1b}[2Jno\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = connection
                .write_all(head.as_bytes())
                .and_then(|()| connection.write_all(body.as_bytes()));
        }
    });
    let fleet = ["--quiet", "--workload", "mix", "--series", "54", "--duration", "300ms"];
    let output = output_of(&[&["emit", "--to", &to], &fleet[..]].concat());
    is_harmless("emit", &output.stdout);
    is_harmless("emit", &output.stderr);
}
