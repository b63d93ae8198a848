//! `tsb verify` through the program: what the run's own audit was satisfied with is verified
//! later, what has gone since is lost, and every store of a report is looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tsb_cli::args::RunOptions;
use tsb_cli::output;
use tsb_core::Batch;
use tsb_core::ledger::Counter;
use tsb_core::report::{Report, Run, SCHEMA_VERSION};
use tsb_run::spec::Spec;
use tsb_stores::{Ack, Error, Reason, Refusals, Result, Store};

use crate::faulty_store::{Fault, FaultyStore};
use crate::output::{output_of, stderr};
use crate::runs::run_into;

/// Runs the program into stores of a folder, and keeps the report there.
fn filled(folder: &Path, arguments: &[&str]) -> Value {
    let out = folder.join("report.json");
    let mut whole = vec!["run", "--quiet", "--no-calibrate", "--out", out.to_str().unwrap()];
    whole.extend(arguments);
    let output = output_of(&whole);
    let words = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{words}");
    serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap()
}

/// Verifies the report of a folder: the exit code and the stores.
fn verified(folder: &Path) -> (Option<i32>, Vec<Value>) {
    let report = folder.join("report.json");
    let output = output_of(&["verify", report.to_str().unwrap(), "--format", "json"]);
    let words = stderr(&output);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {words}"));
    assert_eq!(result["schema_version"].as_u64(), Some(u64::from(SCHEMA_VERSION)));
    (
        output.status.code(),
        result["stores"].as_array().cloned().unwrap_or_default(),
    )
}

/// What a failing test shows of stores.
fn brief(stores: &[Value]) -> String {
    let all = stores.iter().map(|store| store["verdict"].to_string());
    all.collect::<Vec<_>>().join("\n")
}

fn count(store: &Value, name: &str) -> u64 {
    let count = store["ledger"][name].as_u64();
    count.unwrap_or_else(|| panic!("no {name} beside {}", store["verdict"]))
}

/// Of ten writes, one is not sent, one is taken and not answered, one is neither, and of the
/// others every seventh sample is refused.
#[derive(Debug, Default)]
struct MixedAnswers {
    writes: AtomicU64,
}

fn silence() -> Error {
    Error::Unknown {
        action: "write".to_owned(),
        source: "nobody answers".into(),
    }
}

impl Fault for MixedAnswers {
    fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        match self.writes.fetch_add(1, Ordering::Relaxed) % 10 {
            2 => Err(Error::Unreachable {
                action: "write".to_owned(),
                source: "nobody listens".into(),
            }),
            5 => {
                let _ = inner.write(batch, refused)?;
                Err(silence())
            }
            8 => Err(silence()),
            _ => {
                let mut kept = tsb_core::BatchBuf::with_capacity(batch.len());
                let mut rejected = 0;
                for (index, (id, at, value)) in batch.iter().enumerate() {
                    if index % 7 == 3 {
                        refused.push(index, Reason::Refused);
                        rejected += 1;
                    } else {
                        kept.push(id, at, value);
                    }
                }
                let mut ack = inner.write(&kept.as_batch(), &mut Refusals::new())?;
                ack.rejected += rejected;
                Ok(ack)
            }
        }
    }
}

/// A run into a store of moods over an SQLite file, with its report in the folder.
fn mixed_answers(folder: &Path) -> (Run, PathBuf) {
    let path = folder.join("moody.db");
    let spec = format!("sqlite:{}?layout=rows", path.display());
    let options = RunOptions {
        store: vec![spec.as_str().into()],
        workload: Some("mix".to_owned()),
        // Eleven hosts, so that each of them meets every mood.
        series: Some("594".to_owned()),
        interval: Some("100ms".to_owned()),
        duration: Some("1s".to_owned()),
        transport: Some("inproc".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    let inner: Arc<dyn Store> = Arc::from(spec.parse::<Spec>().unwrap().open().unwrap());
    let store: Arc<dyn Store> = FaultyStore::new(inner, MixedAnswers::default());
    let mut run = run_into(&store, &options).run;
    store.close().unwrap();
    // What it wrote is there without its moods.
    run.plan["stores"] = serde_json::json!([spec]);
    save(folder, &run);
    (run, path)
}

fn save(folder: &Path, run: &Run) {
    let report = Report::new(vec![run.clone()]);
    std::fs::write(folder.join("report.json"), output::json(&report).unwrap()).unwrap();
}

#[test]
fn unsent_unanswered_and_refused_samples_are_no_loss_to_a_later_verify() {
    let folder = tempfile::tempdir().unwrap();
    let (run, path) = mixed_answers(folder.path());
    let ledger = &run.ledger;
    assert!(ledger.violated.is_empty() && ledger.counts.is_balanced(), "{ledger:?}");
    for counter in [
        Counter::Shed,
        Counter::Unknown,
        Counter::LostInTransport,
        Counter::Rejected,
    ] {
        assert!(ledger.counts.count(counter) > 100, "{counter}: {ledger:?}");
    }
    assert_eq!(ledger.counts.get(Counter::Lost), Some(0));
    let (exit, stores) = verified(folder.path());
    assert_eq!(exit, Some(0), "{}", brief(&stores));
    assert_eq!(stores[0]["verdict"]["status"], "VALID", "{}", brief(&stores));
    assert_eq!(stores[0]["ledger"]["balanced"], true, "{}", brief(&stores));
    for (counter, samples) in ledger.counts.counts() {
        assert_eq!(count(&stores[0], counter.name()), samples, "{}", brief(&stores));
    }
    // What goes away later is lost, to the sample and by its key.
    let database = rusqlite::Connection::open(path).unwrap();
    let gone = database.execute("DELETE FROM sample WHERE series = 7", []).unwrap() as u64;
    assert!(gone > 0);
    database.close().unwrap();
    let (exit, stores) = verified(folder.path());
    assert_eq!(exit, Some(3), "{}", brief(&stores));
    assert_eq!(count(&stores[0], "lost"), gone, "{}", brief(&stores));
    assert!(
        stores[0]["ledger"]["losses"][0]["key"]["name"].is_string(),
        "{}",
        brief(&stores)
    );
}

#[test]
fn a_report_that_names_nothing_gives_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let (mut run, _) = mixed_answers(folder.path());
    run.exceptions = None;
    save(folder.path(), &run);
    let (exit, stores) = verified(folder.path());
    assert_eq!(exit, Some(0), "{}", brief(&stores));
    assert_eq!(stores[0]["verdict"]["status"], "UNVERIFIED", "{}", brief(&stores));
    assert_eq!(count(&stores[0], "lost"), 0, "{}", brief(&stores));
    assert!(count(&stores[0], "lost_at_most") > 100, "{}", brief(&stores));
}

#[test]
fn datagrams_that_the_kernel_dropped_are_no_loss_to_a_later_verify() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("x.db").display());
    let report = filled(
        folder.path(),
        &[
            "--store",
            &store,
            "--transport",
            "udp",
            "--protocol",
            "tsb",
            "--receive-buffer",
            "4KiB",
            "--batch",
            "tick",
            "--series",
            "20k",
            "--rate",
            "100k",
            "--duration",
            "1s",
        ],
    );
    assert!(
        report["ledger"]["kernel_dropped"].as_u64() > Some(1_000),
        "{}",
        report["ledger"]
    );
    let (exit, stores) = verified(folder.path());
    assert_eq!(exit, Some(0), "{}", brief(&stores));
    for name in ["verified", "lost", "kernel_dropped", "accepted"] {
        assert_eq!(
            count(&stores[0], name),
            report["ledger"][name].as_u64().unwrap(),
            "{name}"
        );
    }
    assert_eq!(count(&stores[0], "lost"), 0, "{}", brief(&stores));
}

#[test]
fn files_that_were_deleted_are_lost_whatever_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let store = format!("rrd:{}?step=1s", files.display());
    // Each duplicate is refused: more of them than samples in the files that go.
    let report = filled(
        folder.path(),
        &[
            "--store",
            &store,
            "--transport",
            "inproc",
            "--series",
            "54",
            "--interval",
            "1s",
            "--rate",
            "540",
            "--duration",
            "2s",
            "--duplicate",
            "30%",
        ],
    );
    let refused = report["ledger"]["rejected"].as_u64().unwrap();
    assert!(refused > 200, "{}", report["ledger"]);
    let (exit, stores) = verified(folder.path());
    assert_eq!((exit, count(&stores[0], "lost")), (Some(0), 0), "{}", brief(&stores));
    assert_eq!(
        count(&stores[0], "verified"),
        report["ledger"]["verified"].as_u64().unwrap()
    );
    let mut gone = 0;
    remove_files(&files, &mut gone, 5);
    assert_eq!(gone, 5);
    let (exit, stores) = verified(folder.path());
    assert_eq!(exit, Some(3), "{}", brief(&stores));
    // Twenty samples of each, but for those whose step is unknown.
    let lost = count(&stores[0], "lost");
    assert!((85..=100).contains(&lost), "{}", brief(&stores));
    assert!(lost < refused);
}

/// Removes some of the files below a folder.
fn remove_files(folder: &Path, gone: &mut usize, most: usize) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            remove_files(&path, gone, most);
        } else if *gone < most && path.extension().is_some_and(|end| end == "rrd") {
            std::fs::remove_file(path).unwrap();
            *gone += 1;
        }
    }
}

#[test]
fn every_store_of_a_report_is_verified_and_the_worst_decides() {
    let folder = tempfile::tempdir().unwrap();
    let spec = |name: &str| format!("sqlite:{}?layout=rows", folder.path().join(name).display());
    let (first, second, third) = (spec("1.db"), spec("2.db"), spec("3.db"));
    filled(
        folder.path(),
        &[
            "--store",
            &first,
            "--store",
            &second,
            "--store",
            &third,
            "--transport",
            "inproc",
            "--series",
            "54",
            "--rate",
            "540",
            "--duration",
            "500ms",
        ],
    );
    let statuses = |stores: &[Value]| -> Vec<String> {
        let all = stores.iter().map(|store| store["verdict"]["status"].as_str().unwrap());
        all.map(str::to_owned).collect()
    };
    let (exit, stores) = verified(folder.path());
    assert_eq!((exit, statuses(&stores)), (Some(0), vec!["VALID".to_owned(); 3]));
    // The first cannot be read: that is said, and the others are verified.
    std::fs::rename(folder.path().join("1.db"), folder.path().join("gone.db")).unwrap();
    let (exit, stores) = verified(folder.path());
    assert_eq!(
        (exit, statuses(&stores)),
        (Some(4), ["UNVERIFIED", "VALID", "VALID"].map(str::to_owned).to_vec())
    );
    assert!(
        stores[0]["verdict"]["reasons"][0]
            .as_str()
            .unwrap()
            .contains("no such file"),
        "{}",
        brief(&stores)
    );
    assert!(
        stores[0]["store"].as_str().unwrap().starts_with("sqlite"),
        "{}",
        brief(&stores)
    );
    // Lost data is worse than a store that is not there.
    let database = rusqlite::Connection::open(folder.path().join("3.db")).unwrap();
    let gone = database.execute("DELETE FROM sample WHERE series = 7", []).unwrap() as u64;
    database.close().unwrap();
    let (exit, stores) = verified(folder.path());
    assert_eq!(
        (exit, statuses(&stores)),
        (Some(3), ["UNVERIFIED", "VALID", "INVALID"].map(str::to_owned).to_vec())
    );
    assert_eq!(count(&stores[2], "lost"), gone);
    let report = folder.path().join("report.json");
    let text = output_of(&["verify", report.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for status in ["UNVERIFIED", "VALID", "INVALID"] {
        assert!(text.contains(&format!(": {status}\n")), "{text}");
    }
    // One other store for three runs says nothing.
    let other = output_of(&["verify", report.to_str().unwrap(), "--store", &second]);
    let words = String::from_utf8_lossy(&other.stderr);
    assert_eq!(other.status.code(), Some(2), "{words}");
    assert!(words.contains("of 3 stores"), "{words}");
}
