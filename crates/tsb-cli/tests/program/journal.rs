//! Runs that are killed: their journal says what had been acknowledged, and `tsb verify` says
//! what of it is not there.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tsb_core::Durability;
use tsb_run::journal;

use crate::ingest;
use crate::output::output_of;
use crate::program;
use crate::running::{Running, until};

/// Operations that survive a kill, by the last record.
fn survive(path: &Path) -> u64 {
    let Ok(contents) = journal::read(path) else { return 0 };
    let Some(section) = contents.sections.last() else {
        return 0;
    };
    let levels = &section.reached.levels;
    let claim = levels.iter().find(|claim| claim.level >= Durability::Buffered);
    claim.or(levels.last()).map_or(0, |claim| claim.operations.iter().sum())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a run that would last, with a report in the folder.
fn begun(folder: &Path, store: &str, more: &[&str]) -> (Running, PathBuf) {
    let out = folder.join("r.json");
    let arguments = ["run", "--quiet", "--no-calibrate", "--store", store];
    let mut command = program::tsb(&arguments);
    command
        .args(["--duration", "10m", "--series", "540", "--interval", "100ms"])
        .args(["--out", text(&out)])
        .args(more);
    (Running::silent(&mut command), journal::beside(&out))
}

/// Kills a run once at least `operations` operations would survive it.
fn killed(folder: &Path, store: &str, operations: u64, more: &[&str]) -> PathBuf {
    let (mut child, journal) = begun(folder, store, more);
    until("an acknowledged operation", || survive(&journal) >= operations);
    child.kill();
    assert!(!folder.join("r.json").exists(), "a killed run leaves no report");
    journal
}

fn verified(journal: &Path, more: &[&str]) -> (Option<i32>, Vec<Value>) {
    let mut arguments = vec!["verify", text(journal), "--format", "json"];
    arguments.extend(more);
    let output = output_of(&arguments);
    let words = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {words}"));
    (output.status.code(), result["stores"].as_array().cloned().unwrap())
}

fn number(store: &Value, pointer: &str) -> u64 {
    let found = store.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no {pointer} in {store}"))
}

/// Nothing that was acknowledged is lost, and there was something.
fn assert_whole(journal: &Path) -> Value {
    let (exit, stores) = verified(journal, &[]);
    let store = stores.last().unwrap();
    assert_eq!(exit, Some(0), "{store}");
    assert!(
        store["ledger"]["lost"] == 0 && store["ledger"]["balanced"] == true,
        "{store}"
    );
    let levels = store["journal"]["levels"].as_array().unwrap();
    let must: Vec<_> = levels.iter().filter(|level| level["must_be_there"] == true).collect();
    assert!(number(must[0], "/acknowledged") > 0, "{store}");
    for level in must {
        assert_eq!(level["acknowledged"], level["found"], "{store}");
    }
    store.clone()
}

fn sqlite(folder: &Path, options: &str) -> (PathBuf, String) {
    let path = folder.join("x.db");
    let spec = format!("sqlite:{}{options}", path.display());
    (path, spec)
}

#[test]
fn samples_gone_after_a_kill_are_counted_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let (path, spec) = sqlite(folder.path(), "?layout=rows");
    let journal = killed(folder.path(), &spec, 100, &["--transport", "inproc"]);
    let whole = assert_whole(&journal);
    assert_eq!(whole["verdict"]["status"], "VALID", "{whole}");
    let database = rusqlite::Connection::open(path).unwrap();
    let first = "SELECT min(at) FROM sample WHERE series = 7";
    let gone = format!("DELETE FROM sample WHERE series = 7 AND at < ({first}) + 500000000");
    let gone = database.execute(&gone, []).unwrap() as u64;
    assert_eq!(gone, 5);
    database.close().unwrap();
    let (exit, stores) = verified(&journal, &[]);
    assert_eq!(
        (exit, number(&stores[0], "/ledger/lost")),
        (Some(3), gone),
        "{}",
        stores[0]
    );
    let named = stores[0]["ledger"]["losses"].as_array().unwrap();
    assert_eq!(named.len() as u64, gone);
    assert_eq!(named[0]["series"], 7, "{}", named[0]);
    // A value that nobody sent is no better.
    let path = folder.path().join("x.db");
    let database = rusqlite::Connection::open(path).unwrap();
    database
        .execute("UPDATE sample SET value = value + 1 WHERE series = 9", [])
        .unwrap();
    database.close().unwrap();
    let (exit, stores) = verified(&journal, &[]);
    assert!(
        exit == Some(3) && number(&stores[0], "/ledger/altered") > 3,
        "{}",
        stores[0]
    );
}

#[test]
fn a_log_that_was_lost_after_a_kill_is_said_and_its_samples_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, spec) = sqlite(folder.path(), "");
    let journal = killed(folder.path(), &spec, 100, &["--transport", "inproc"]);
    let wal = folder.path().join("x.db-wal");
    std::fs::remove_file(&wal).unwrap();
    let output = output_of(&["verify", text(&journal)]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert!(words.contains("x.db-wal is not complete: it is gone"), "{words}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("INVALID") && text.contains(": lost, sent"), "{text}");
}

#[test]
fn another_process_does_not_write_the_same_file_by_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, spec) = sqlite(folder.path(), "");
    let (link, hard) = (folder.path().join("link.db"), folder.path().join("hard.db"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let (mut child, journal) = begun(folder.path(), &spec, &["--transport", "inproc"]);
    until("an acknowledged operation", || survive(&journal) > 0);
    let other = |name: &Path| {
        let spec = format!("sqlite:{}", name.display());
        let output = output_of(&[
            "run",
            "--quiet",
            "--no-calibrate",
            "--duration",
            "200ms",
            "--store",
            &spec,
        ]);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (exit, words) = other(&link);
    assert!(exit == Some(4) && words.contains("has it open"), "{words}");
    std::fs::hard_link(&path, &hard).unwrap();
    let (exit, words) = other(&hard);
    assert!(exit == Some(4) && words.contains("2 names"), "{words}");
    std::fs::remove_file(hard).unwrap();
    child.kill();
    assert_whole(&journal);
}

#[test]
fn samples_over_sockets_are_journaled_once_accepted() {
    for (transport, workers) in [("tcp", "1"), ("unix", "3"), ("http", "2")] {
        let folder = tempfile::tempdir().unwrap();
        let (_, spec) = sqlite(folder.path(), "");
        let mut more = vec!["--transport", transport, "--workers", workers];
        if transport == "http" {
            more.extend(["--protocol", "influx"]);
        }
        let journal = killed(folder.path(), &spec, 100, &more);
        assert_whole(&journal);
    }
}

#[test]
fn of_datagrams_it_is_bounded_what_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (path, spec) = sqlite(folder.path(), "?layout=rows");
    let journal = killed(folder.path(), &spec, 100, &["--transport", "udp"]);
    let (exit, stores) = verified(&journal, &[]);
    assert_eq!(
        (exit, number(&stores[0], "/ledger/lost")),
        (Some(0), 0),
        "{}",
        stores[0]
    );
    // More than were on the way.
    let database = rusqlite::Connection::open(path).unwrap();
    let gone = database.execute("DELETE FROM sample WHERE series % 2 = 0", []).unwrap() as u64;
    database.close().unwrap();
    let (exit, stores) = verified(&journal, &[]);
    let lost = number(&stores[0], "/ledger/lost");
    assert!(exit == Some(3) && lost > 0 && lost <= gone, "{}", stores[0]);
}

#[test]
fn each_level_has_what_had_reached_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, spec) = sqlite(folder.path(), "?commit=300ms");
    let journal = killed(folder.path(), &spec, 100, &["--transport", "inproc"]);
    let whole = assert_whole(&journal);
    let levels = whole["journal"]["levels"].as_array().unwrap();
    let names: Vec<_> = levels.iter().map(|level| level["level"].as_str().unwrap()).collect();
    assert_eq!(names, ["volatile", "buffered", "synced"]);
    let acknowledged: Vec<_> = levels.iter().map(|level| number(level, "/acknowledged")).collect();
    assert!(acknowledged.is_sorted_by(|low, high| low >= high), "{whole}");
    assert_eq!(levels[0]["must_be_there"], false);
    // After a power cut, less must be there.
    let (exit, stores) = verified(&journal, &["--after", "power-cut"]);
    assert_eq!(exit, Some(0), "{}", stores[0]);
    let must = stores[0]["journal"]["levels"].as_array().unwrap().iter();
    let must: Vec<_> = must.map(|level| level["must_be_there"].as_bool().unwrap()).collect();
    assert_eq!(must, [false, false, true]);
}

#[test]
fn rows_that_a_killed_run_left_are_those_of_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let cache = folder.path().join("journal");
    let plain = format!("rrd:{}?step=1s", files.display());
    let journal = killed(
        folder.path(),
        &plain,
        200,
        &["--transport", "inproc", "--duplicate", "20%"],
    );
    let store = assert_whole(&journal);
    assert!(number(&store, "/ledger/rejected") > 100, "{store}");
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let cached = format!(
        "write-cache+rrd:{}?step=1s&write-cache.journal={}",
        files.display(),
        cache.display()
    );
    let journal = killed(folder.path(), &cached, 200, &["--transport", "inproc"]);
    assert_whole(&journal);
}

#[test]
fn a_journal_that_is_torn_or_damaged_claims_less() {
    let folder = tempfile::tempdir().unwrap();
    let (_, spec) = sqlite(folder.path(), "");
    let journal = killed(folder.path(), &spec, 300, &["--transport", "inproc"]);
    let whole = number(&assert_whole(&journal), "/journal/levels/0/acknowledged");
    let bytes = std::fs::read(&journal).unwrap();
    let ends: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at] == b'\n').collect();
    assert!(ends.len() > 3, "{} records", ends.len());
    // Torn in its third record.
    std::fs::write(&journal, &bytes[..ends[2] - 5]).unwrap();
    let (exit, stores) = verified(&journal, &[]);
    assert_eq!(exit, Some(0), "{}", stores[0]);
    assert!(number(&stores[0], "/journal/torn_bytes") > 0);
    assert!(number(&stores[0], "/journal/levels/0/acknowledged") < whole);
    assert!(number(&stores[0], "/journal/undecided_found") > 0);
    // Damaged in the middle, with records behind.
    let mut damaged = bytes.clone();
    damaged[ends[1] - 5] ^= 4;
    std::fs::write(&journal, &damaged).unwrap();
    let (exit, stores) = verified(&journal, &[]);
    assert_eq!(exit, Some(0), "{}", stores[0]);
    assert_eq!(number(&stores[0], "/journal/damaged_records"), 1);
    assert_eq!(number(&stores[0], "/journal/levels/0/acknowledged"), whole);
    // Nothing whole: nothing is claimed, and that is said.
    std::fs::write(&journal, &bytes[..20]).unwrap();
    let output = output_of(&["verify", text(&journal)]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(0) && words.contains("nothing is known"),
        "{words}"
    );
}

#[test]
fn a_report_that_is_whole_supersedes_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (_, spec) = sqlite(folder.path(), "?layout=rows");
    let out = folder.path().join("r.json");
    let (named, beside) = (folder.path().join("named.journal"), journal::beside(&out));
    let run = |more: &[&str]| {
        let mut arguments = vec![
            "run",
            "--quiet",
            "--no-calibrate",
            "--transport",
            "inproc",
            "--store",
            &spec,
        ];
        arguments.extend([
            "--series",
            "54",
            "--rate",
            "5400",
            "--duration",
            "400ms",
            "--out",
            text(&out),
        ]);
        arguments.extend(more);
        let output = output_of(&arguments);
        // A busy machine may be the limit.
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{words}");
    };
    run(&[]);
    assert!(!beside.exists() && out.exists());
    std::fs::remove_file(folder.path().join("x.db")).unwrap();
    run(&["--journal", text(&named)]);
    assert!(named.exists() && !beside.exists());
    let (exit, stores) = verified(&named, &[]);
    assert_eq!((exit, &stores[0]["journal"]["is_over"]), (Some(0), &Value::Bool(true)));
    let report: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(stores[0]["ledger"]["verified"], report["ledger"]["verified"]);
    let levels = &stores[0]["journal"]["levels"];
    assert_eq!(levels[0]["acknowledged"], report["ledger"]["accepted"], "{levels}");
    // What is meant for a journal does nothing with a report.
    let output = output_of(&["verify", text(&out), "--after", "kill"]);
    assert_eq!(output.status.code(), Some(2));
    // Two results do not go into one file.
    let output = output_of(&["run", "--journal", text(&out), "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_journal_is_named_where_the_report_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.json");
    std::fs::write(journal::beside(&out), "x").unwrap();
    let output = output_of(&["verify", text(&out)]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && words.contains("r.json.journal"),
        "{words}"
    );
}

#[test]
fn an_emitter_that_is_killed_leaves_what_its_server_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, spec) = sqlite(folder.path(), "?layout=rows");
    let listen = ["ingest", "--listen", "influx+http://127.0.0.1:0", "--store", &spec];
    let (server, address) = ingest::listening(&mut program::tsb(&listen));
    let mut server = Running(server);
    let (to, journal) = (format!("influx+http://{address}"), folder.path().join("e.journal"));
    let mut emitter = program::tsb(&["emit", "--to", &to, "--quiet", "--series", "540", "--interval", "100ms"]);
    emitter.args(["--duration", "10m", "--journal", text(&journal)]);
    let mut emitter = Running::silent(&mut emitter);
    until("a confirmed operation", || survive(&journal) >= 100);
    emitter.kill();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server.0),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    server.0.wait().unwrap();
    let (exit, stores) = verified(&journal, &["--store", &spec]);
    assert_eq!(exit, Some(0), "{}", stores[0]);
    let confirmed = number(&stores[0], "/journal/levels/0/acknowledged");
    assert!(
        confirmed > 1_000 && stores[0]["journal"]["levels"][0]["found"] == confirmed,
        "{}",
        stores[0]
    );
    let database = rusqlite::Connection::open(path).unwrap();
    let gone = database
        .execute(
            "DELETE FROM sample WHERE series = 3 AND at <= (SELECT min(at) FROM sample WHERE series = 3)",
            [],
        )
        .unwrap();
    assert_eq!(gone, 1);
    database.close().unwrap();
    let (exit, stores) = verified(&journal, &["--store", &spec]);
    assert_eq!(
        (exit, number(&stores[0], "/ledger/lost")),
        (Some(3), 1),
        "{}",
        stores[0]
    );
}
