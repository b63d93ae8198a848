//! Places through the real program: a killed run leaves one that the next run names and does not
//! overwrite; `--append` goes on there, and the printed command removes it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tsb_core::Durability;
use tsb_run::journal;

use crate::output::stderr;
use crate::program;
use crate::running::{Running, until};
use crate::server;

/// How often a run is repeated of which nothing was verified.
const ATTEMPTS: usize = 5;

/// A run of 540 series into a store of a folder.
struct Runs {
    folder: tempfile::TempDir,
    store: String,
}

impl Runs {
    /// `{}` in the spec stands for the folder.
    fn into(spec: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = spec.replace("{}", folder.path().to_str().unwrap());
        Self { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, duration: &str, report: &str, more: &[&str]) -> Command {
        let out = self.path(report);
        let mut command = program::tsb(&["run", "--quiet", "--no-calibrate", "--store", &self.store]);
        command.args(["--transport", "inproc", "--series", "540", "--interval", "100ms"]);
        command.args(["--duration", duration]);
        command.args(["--out", out.to_str().unwrap()]).args(more);
        command
    }

    /// A whole run; its output.
    fn run(&self, report: &str, more: &[&str]) -> Output {
        self.command("2500ms", report, more).output().unwrap()
    }

    fn report(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// Starts a run that would last, and waits until something is acknowledged.
    fn begun(&self, report: &str, more: &[&str]) -> Running {
        let mut command = self.command("10m", report, more);
        let running = Running::silent(&mut command);
        let journal = journal::beside(&self.path(report));
        until("an acknowledged sample", || acknowledged(&journal) >= 20);
        running
    }

    /// Kills a run in the middle; its process and its journal.
    fn killed(&self, report: &str, more: &[&str]) -> (u32, PathBuf) {
        let mut running = self.begun(report, more);
        let pid = running.0.id();
        running.kill();
        (pid, journal::beside(&self.path(report)))
    }

    fn verify(&self, document: &Path) {
        let output = program::tsb(&["verify", document.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}: {output:?}", self.store);
    }
}

/// Operations that survive a kill, by the last record of a journal.
fn acknowledged(path: &Path) -> u64 {
    let Ok(contents) = journal::read(path) else { return 0 };
    let levels = contents.sections.last().map(|section| section.reached.levels.clone());
    let mut claims = levels.unwrap_or_default().into_iter();
    let claim = claims.find(|claim| claim.level >= Durability::Buffered);
    claim.map_or(0, |claim| claim.operations.iter().sum())
}

/// The command after these words in a hint.
fn command_of(words: &str) -> String {
    let (_, command) = words.split_once("remove all that it holds: ").unwrap();
    command.lines().next().unwrap().to_owned()
}

fn is_refused(runs: &Runs, more: &[&str], words: &[&str]) -> String {
    let output = runs.run("refused.json", more);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{}: {text}", runs.store);
    for word in words {
        assert!(text.contains(word), "{}: {word:?} is not in {text}", runs.store);
    }
    text
}

/// The report of a run that was told to append.
fn appended(runs: &Runs, report: &str) -> Value {
    // RRD files keep whole seconds, of which a busy machine may leave a run none.
    let mut attempts = 0;
    let (output, found) = loop {
        let output = runs.run(report, &["--append"]);
        let found = runs.report(report);
        attempts += 1;
        if found["ledger"]["verified"] != 0 || attempts == ATTEMPTS {
            break (output, found);
        }
    };
    assert_ne!(
        found["verdict"]["status"], "INVALID",
        "{}: {output:?}",
        found["verdict"]
    );
    assert_eq!(found["ledger"]["balanced"], true, "{}", found["ledger"]);
    assert!(found["ledger"]["verified"].as_u64().unwrap() > 0, "{}", found["ledger"]);
    assert!(found["place"]["earlier"]["before_ns"].is_i64(), "{}", found["place"]);
    assert_eq!(
        (&found["size"], &found["plan"]["append"]),
        (&Value::Null, &Value::Bool(true))
    );
    found
}

#[test]
fn a_killed_run_leaves_a_place_that_the_next_one_names_and_does_not_overwrite() {
    let mut specs = vec!["write-cache+rrd:{}/my files?step=1s&write-cache.journal={}/its journal"];
    if cfg!(feature = "sqlite") {
        specs.push("sqlite:{}/it's.db");
    }
    for spec in specs {
        let runs = Runs::into(spec);
        let (pid, journal) = runs.killed("killed.json", &[]);
        let named = [format!("process {pid}"), journal.display().to_string()];
        let words = ["already holds", "was killed there", "--append", &named[0], &named[1]];
        is_refused(&runs, &[], &words);
        // Everything that was acknowledged is still there.
        runs.verify(&journal);
        let words = is_refused(&runs, &[], &words);
        appended(&runs, "appended.json");
        runs.verify(&runs.path("appended.json"));
        // That run has ended in order: it is not named as a killed one.
        let text = is_refused(&runs, &[], &["already holds"]);
        assert!(!text.contains("was killed"), "{text}");

        let (_, journal) = runs.killed("again.json", &["--append"]);
        runs.verify(&journal);

        let command = command_of(&words);
        let status = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(status.success(), "{command}");
        let output = runs.run("fresh.json", &[]);
        let fresh = runs.report("fresh.json");
        assert_ne!(fresh["verdict"]["status"], "INVALID", "{output:?}");
        assert_eq!(fresh["place"]["earlier"], Value::Null);
        assert_eq!(fresh["place"]["remove"], Value::String(command));
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn the_report_of_the_earlier_run_cannot_be_told_apart_from_a_later_one_and_verify_says_so() {
    let runs = Runs::into("sqlite:{}/x.db");
    runs.run("first.json", &[]);
    runs.verify(&runs.path("first.json"));
    appended(&runs, "second.json");
    let first = runs.path("first.json");
    let output = program::tsb(&["verify", first.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("if a later run was told to --append here"), "{text}");
    runs.verify(&runs.path("second.json"));
}

#[test]
fn the_files_of_a_daemon_are_a_place_by_their_prefix() {
    let server = server::Server::start(tempfile::tempdir().unwrap(), "");
    let runs = |prefix: &str| Runs::into(&format!("rrdcached:{}?step=1s&prefix={prefix}", server.address()));
    let own = runs("a-");
    let output = own.run("r.json", &[]);
    let first = own.report("r.json");
    assert_ne!(first["verdict"]["status"], "INVALID", "{output:?}");
    assert_eq!(
        (&first["place"]["kind"], &first["place"]["remove"]),
        (&"files".into(), &Value::Null)
    );
    is_refused(&own, &[], &["already holds 540 series", "--append"]);
    let second = appended(&own, "second.json");
    assert_eq!(second["place"]["earlier"]["series"], 540);
    // Another prefix is another place.
    let other = runs("b-");
    let output = other.run("r.json", &[]);
    assert_ne!(other.report("r.json")["verdict"]["status"], "INVALID", "{output:?}");
    server.stop();
}

#[test]
fn two_runs_do_not_write_into_one_place() {
    let runs = Runs::into("rrd:{}/files?step=1s");
    let first = runs.begun("first.json", &[]);
    let process = format!("process {}", first.0.id());
    let words = ["goes on there", &process];
    is_refused(&runs, &[], &words);
    is_refused(&runs, &["--append"], &words);
}

#[test]
fn the_result_names_the_place_and_how_to_remove_it() {
    let runs = Runs::into("rrd:{}/files?step=1s");
    let page = runs.path("page.html");
    let output = runs.run("r.json", &["--html", page.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let folder = runs.path("files").display().to_string();
    let line = text.lines().find(|line| line.contains(&format!("folder {folder}")));
    let line = line.unwrap_or_else(|| panic!("no place in {text}"));
    let command = runs.report("r.json")["place"]["remove"].as_str().unwrap().to_owned();
    assert!(line.ends_with(&format!("to remove it: {command}")), "{line}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<h3 class=\"sub\">Place</h3>"));
    assert!(page.contains(&folder));
}

#[test]
fn a_store_that_keeps_nothing_cannot_be_appended_to() {
    let output = program::tsb(&["run", "--append", "--store", "memory:"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("always empty"), "{}", stderr(&output));
    let output = program::tsb(&["emit", "--append", "--to", "graphite+tcp://127.0.0.1:9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--append"), "{}", stderr(&output));
}
