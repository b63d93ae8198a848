//! RRD files that are damaged or gone, by the real program: each costs its own series, is
//! counted and named, and all others go on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock};

use crate::program::tsb;

const START_S: i64 = 1_700_000_000;

/// A listener of lines that ends with its only connection.
struct Listener {
    child: Child,
    socket: TcpStream,
    errors: JoinHandle<String>,
}

impl Listener {
    fn into(store: &str) -> Self {
        let listen = ["--listen", "graphite+tcp://127.0.0.1:0", "--store", store];
        let limits = ["--format", "json", "--quiet", "--once", "--duration", "120s"];
        let mut command = tsb(&[&["ingest"], &listen[..], &limits].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("listening") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let address = line.split("://").nth(1).unwrap().split(' ').next().unwrap();
        let socket = TcpStream::connect(address).unwrap();
        let errors = std::thread::spawn(move || {
            let mut said = String::new();
            lines.read_to_string(&mut said).unwrap();
            said
        });
        Self { child, socket, errors }
    }

    fn send(&mut self, names: &[&str], tick: i64) {
        for name in names {
            writeln!(self.socket, "{name} {tick}.5 {}", START_S + tick * 10).unwrap();
        }
    }

    /// The report, the exit code, and what it has said.
    fn end(self) -> (Value, Option<i32>, String) {
        drop(self.socket);
        let output = self.child.wait_with_output().unwrap();
        let said = self.errors.join().unwrap();
        let report = serde_json::from_slice(&output.stdout);
        (report.unwrap_or_else(|_| panic!("{said}")), output.status.code(), said)
    }

    /// Ends well, with one damaged file and these counts of samples; what it said.
    fn ends_without(self, file: &Path, accepted: u64, damaged: u64) -> String {
        let (report, code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
        let ledger = &report["ledger"];
        assert_eq!(
            (&ledger["accepted"], &ledger["balanced"]),
            (&accepted.into(), &true.into()),
            "{ledger}"
        );
        assert_eq!(ledger["rejected_by_reason"]["damaged"], damaged, "{ledger}");
        assert_eq!(damage(&report), [file]);
        said
    }
}

/// Waits for what another process does.
fn until(is: impl Fn() -> bool) {
    let clock = MonotonicClock::new();
    while !is() {
        assert!(clock.now() < 60_000_000_000, "it never happened");
        clock.wait_until(clock.now() + 1_000_000);
    }
}

fn cut(path: &Path, length: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

/// The last value that a query prints of a series.
fn last(store: &str, series: &str) -> Option<f64> {
    let output = tsb(&["query", store, "--series", series]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().last()?.split([' ', ',', '\t']).next_back()?.parse().ok()
}

fn damage(report: &Value) -> Vec<PathBuf> {
    let found = report["damage"].as_array().unwrap().iter();
    found.map(|one| PathBuf::from(one["path"].as_str().unwrap())).collect()
}

/// Before, the id of the series that could not be defined stayed taken, so that every further
/// name was refused, too: nothing at all was accepted.
#[test]
fn a_listener_refuses_the_series_of_a_truncated_file_and_takes_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("a.rrd"), b"RRD\0 cut").unwrap();
    let store = format!("rrd:{}?step=10s", files.display());
    let mut listener = Listener::into(&store);
    for tick in 0..5 {
        listener.send(&["a", "b", "c"], tick);
    }
    let said = listener.ends_without(&files.join("a.rrd"), 10, 5);
    assert!(said.contains("a.rrd is damaged: too short to be an RRD file"), "{said}");
    for name in ["b", "c"] {
        assert_eq!(last(&store, name), Some(4.5), "{name}");
    }
    assert_eq!(fs::read(files.join("a.rrd")).unwrap(), b"RRD\0 cut", "it was changed");
}

/// Before, the write that met the file failed as a whole, and the listener ended.
#[test]
fn a_file_that_is_truncated_under_a_listener_costs_its_series_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("rrd:{}?step=10s", folder.path().display());
    let mut listener = Listener::into(&store);
    listener.send(&["a", "b", "c"], 0);
    until(|| folder.path().join("c.rrd").exists());
    cut(&folder.path().join("b.rrd"), 1_000);
    for tick in 1..5 {
        listener.send(&["a", "b", "c"], tick);
    }
    let said = listener.ends_without(&folder.path().join("b.rrd"), 11, 4);
    assert!(said.contains("b.rrd is damaged: "), "{said}");
    for name in ["a", "c"] {
        assert_eq!(last(&store, name), Some(4.5), "{name}");
    }
}

/// What was accepted for a damaged file before that was known is lost, and said; the others
/// are written.
#[test]
fn a_write_cache_over_a_truncated_file_writes_the_others_and_says_what_it_lost() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("b.rrd"), b"").unwrap();
    let store = format!("rrd:{}?step=10s", files.display());
    let mut listener = Listener::into(&format!("write-cache+{store}&write-cache.timeout=1h"));
    for tick in 0..5 {
        listener.send(&["a", "b", "c"], tick);
    }
    let (report, code, said) = listener.end();
    assert_eq!(code, Some(3), "what was accepted is not all there: {said}");
    assert!(said.contains("refused a sample as damaged"), "{said}");
    assert_eq!(damage(&report), [files.join("b.rrd")]);
    for name in ["a", "c"] {
        assert_eq!(last(&store, name), Some(4.5), "{name}");
    }
}

fn query(store: &str, series: &[&str]) -> Output {
    let mut command = tsb(&["query", store]);
    for series in series {
        command.args(["--series", series]);
    }
    command.output().unwrap()
}

#[test]
fn a_query_prints_what_can_be_read_and_names_what_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("rrd:{}?step=10s", folder.path().display());
    let mut listener = Listener::into(&store);
    for tick in 0..5 {
        listener.send(&["a", "b", "c"], tick);
    }
    assert_eq!(listener.end().1, Some(0));
    cut(&folder.path().join("b.rrd"), 300);
    for store in [store.clone(), format!("write-cache+{store}")] {
        let output = query(&store, &["a", "b", "c"]);
        let (rows, said) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("b.rrd is damaged: ends within its header"), "{said}");
        assert_eq!(rows.lines().filter(|line| line.ends_with("4.5")).count(), 2, "{rows}");
        assert_eq!(query(&store, &["a", "c"]).status.code(), Some(0), "b is not asked for");
    }
}

/// 540 files of a run, of which one is cut short and one is gone.
#[test]
fn verify_counts_what_damage_has_cost_and_names_the_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let (store, out) = (
        format!("rrd:{}?step=1s", files.display()),
        folder.path().join("report.json"),
    );
    let report = out.to_str().unwrap();
    let run = ["run", "--quiet", "--no-calibrate", "--series", "54", "--store", &store];
    let amount = [
        "--transport",
        "inproc",
        "--rate",
        "max",
        "--fleet-time",
        "60s",
        "--out",
        report,
    ];
    let filled = tsb(&[&run[..], &amount].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&filled.stderr).into_owned();
    assert!(matches!(filled.status.code(), Some(0 | 3)), "{said}");
    let whole = tsb(&["verify", report]).output().unwrap();
    assert_eq!(
        whole.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&whole.stderr)
    );
    let mut paths: Vec<PathBuf> = fs::read_dir(&files)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    cut(&paths[3], 900);
    fs::remove_file(&paths[5]).unwrap();
    let output = tsb(&["verify", report, "--format", "json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let store = &result["stores"][0];
    assert_eq!(store["verdict"]["status"], "INVALID", "{result:#}");
    assert!(store["ledger"]["lost"].as_u64() > Some(50), "{result:#}");
    assert!(store["ledger"]["verified"].as_u64() > Some(52 * 50), "{result:#}");
    assert_eq!(damage(store), [paths[3].clone()], "{result:#}");
}
