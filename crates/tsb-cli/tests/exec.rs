//! Programs in other languages as stores: the examples keep the contract and pass the audit of a
//! run, and a program that loses samples is found out.
//!
//! Without Python or Go the tests are listed as ignored.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;

#[path = "support/ingest.rs"]
mod ingest;
#[path = "support/program.rs"]
mod program;

use ingest::listening;
use program::tsb;

/// A test of a program, given as the command line of one in a folder of its own.
type Test = fn(&Path) -> Result<(), Failed>;

const TESTS: [(&str, &str, Test); 9] = [
    ("python_keeps_the_contract", "python3", python_keeps_the_contract),
    ("python_passes_the_audit", "python3", |folder| {
        passes_the_audit(folder, &python())
    }),
    ("python_in_memory_passes_the_audit", "python3", in_memory),
    ("a_program_that_loses_samples_is_invalid", "python3", loses_samples),
    ("a_program_may_not_know_its_size", "python3", does_not_know_its_size),
    ("a_program_that_dies_leaves_a_report", "python3", dies),
    (
        "a_reader_verifies_what_was_emitted",
        "python3",
        verifies_what_was_emitted,
    ),
    ("go_keeps_the_contract", "go", |folder| {
        keeps_the_contract(folder, &golang(folder)?)
    }),
    ("go_passes_the_audit", "go", |folder| {
        passes_the_audit(folder, &golang(folder)?)
    }),
];

fn main() -> ExitCode {
    let trials = TESTS.map(|(name, language, test)| {
        Trial::ignorable_test(name, move || {
            let version = if language == "go" { "version" } else { "--version" };
            let found = Command::new(language).arg(version).stdout(Stdio::null()).status();
            if !found.is_ok_and(|status| status.success()) {
                return Ok(Completion::ignored_with(format!("there is no {language}")));
            }
            let folder = tempfile::tempdir()?;
            test(folder.path()).map(|()| Completion::Completed)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/exec");
    examples.join(name).canonicalize().unwrap()
}

fn python() -> String {
    format!("python3 '{}'", example("sqlite.py").display())
}

/// Builds the example in Go.
fn golang(folder: &Path) -> Result<String, Failed> {
    let program = folder.join("program");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    let built = build.current_dir(example("golang")).output()?;
    assert!(built.status.success(), "{}", words(&built));
    Ok(format!("'{}'", program.display()))
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", words(output)))
}

/// In memory, where it waits for no disk; and in a folder, what concerns opening it again.
fn python_keeps_the_contract(folder: &Path) -> Result<(), Failed> {
    let place = format!("exec:{}?place={}/mine", python(), folder.display());
    let in_memory = format!("exec:{}", python());
    for (spec, only, clauses) in [(&in_memory, "c", 2..=9), (&place, "c10_", 10..=10)] {
        let checked = tsb(&["conformance", "--only", only, "--store", spec]).output()?;
        assert_eq!(checked.status.code(), Some(0), "{}", words(&checked));
        for clause in clauses {
            assert!(
                words(&checked).contains(&format!("pass c{clause}_")),
                "{}",
                words(&checked)
            );
        }
    }
    Ok(())
}

fn keeps_the_contract(folder: &Path, program: &str) -> Result<(), Failed> {
    let spec = format!("exec:{program}?place={}/mine", folder.display());
    let checked = tsb(&["conformance", "--format", "json", "--store", &spec]).output()?;
    assert_eq!(checked.status.code(), Some(0), "{}", words(&checked));
    let report = json(&checked);
    let checks = report["checks"].as_array().unwrap();
    let passed = checks.iter().filter(|check| check["outcome"] == "pass");
    assert!(passed.clone().count() > 60, "{checks:?}");
    // Every clause is shown, and what was not shown says why.
    for clause in 2..=11 {
        assert!(passed.clone().any(|check| check["clause"] == clause), "clause {clause}");
    }
    assert!(
        checks
            .iter()
            .all(|check| check["outcome"] == "pass" || check["why"].is_string())
    );
    // Nothing is left of the places of the checks.
    let left = std::fs::read_dir(folder)?.filter_map(Result::ok);
    let left: Vec<_> = left
        .map(|entry| entry.file_name())
        .filter(|name| name != "program")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

/// A run as fast as the program takes it.
fn run(spec: &str, more: &[&str]) -> Command {
    let mut command = tsb(&["run", "--quiet", "--no-calibrate", "--series", "60", "--rate", "max"]);
    command
        .args(["--fleet-time", "40s", "--format", "json", "--store", spec])
        .args(more);
    command
}

fn count(run: &Value, counter: &str) -> u64 {
    run["ledger"][counter].as_u64().unwrap_or_default()
}

fn passes_the_audit(folder: &Path, program: &str) -> Result<(), Failed> {
    let place = folder.join("mine");
    let spec = format!("exec:{program}?place={}", place.display());
    let out = folder.join("r.json").display().to_string();
    let ran = run(&spec, &["--out", &out]).output()?;
    let report = json(&ran);
    let first = report["runs"].get(0).unwrap_or(&report);
    assert_eq!(count(first, "accepted"), 60 * 40, "{}", words(&ran));
    assert_eq!(
        count(first, "verified"),
        count(first, "accepted"),
        "{}",
        first["ledger"]
    );
    assert_ne!(first["verdict"]["status"], "INVALID", "{}", first["verdict"]);
    // The process of the program is watched beside tsb's own.
    assert_eq!(
        first["resources"].as_array().map(Vec::len),
        Some(2),
        "{}",
        first["resources"]
    );
    assert_eq!(first["place"]["kind"], "folder");
    // It is not empty any more.
    let again = run(&spec, &[]).output()?;
    assert_eq!(again.status.code(), Some(2), "{}", words(&again));
    let untrusted = tsb(&["verify", &out]).output()?;
    assert_eq!(untrusted.status.code(), Some(2), "{}", words(&untrusted));
    let verified = tsb(&["verify", &out, "--store", &spec]).output()?;
    assert!(
        verified.status.success() && words(&verified).contains("VALID"),
        "{}",
        words(&verified)
    );
    let remove = first["place"]["remove"].as_str().unwrap();
    assert!(Command::new("sh").args(["-c", remove]).status()?.success());
    assert!(!place.exists(), "{remove}");
    Ok(())
}

fn in_memory(_folder: &Path) -> Result<(), Failed> {
    // In order over a wire, so that queries can be checked beside the writes.
    let more = ["--transport", "tcp", "--queries", "last@20/s"];
    let ran = run(&format!("exec:{}", python()), &more).output()?;
    let report = json(&ran);
    let first = report["runs"].get(0).unwrap_or(&report);
    assert_eq!(count(first, "verified"), 60 * 40, "{}", words(&ran));
    Ok(())
}

/// The example with one of its texts replaced.
fn changed(folder: &Path, from: &str, to: &str) -> Result<String, Failed> {
    let text = std::fs::read_to_string(example("sqlite.py"))?;
    assert!(text.contains(from), "the example has no {from:?} any more");
    let program = folder.join("changed.py");
    std::fs::write(&program, text.replace(from, to))?;
    Ok(format!(
        "exec:python3 '{}'?place={}/mine",
        program.display(),
        folder.display()
    ))
}

/// What nobody knows is not shown as nothing.
fn does_not_know_its_size(folder: &Path) -> Result<(), Failed> {
    let (from, to) = ("page_count * page_size from pragma_page_count, pragma_page_size", "0");
    let out = folder.join("r.json").display().to_string();
    let ran = run(&changed(folder, from, to)?, &["--out", &out]).output()?;
    assert!(ran.status.success(), "{}", words(&ran));
    let shown = words(&tsb(&["report", &out]).output()?);
    assert!(
        shown.contains("not known: the store does not say how many it uses"),
        "{shown}"
    );
    Ok(())
}

fn loses_samples(folder: &Path) -> Result<(), Failed> {
    let (from, to) = (
        "for id, at, value in map(str.split, lines))",
        "for n, (id, at, value) in enumerate(map(str.split, lines)) if n % 3 != 1)",
    );
    let ran = run(&changed(folder, from, to)?, &[]).output()?;
    assert_eq!(ran.status.code(), Some(3), "{}", words(&ran));
    let report = json(&ran);
    let first = report["runs"].get(0).unwrap_or(&report);
    assert_eq!(first["verdict"]["status"], "INVALID");
    let lost = count(first, "lost");
    assert!(
        lost > 40 && lost + count(first, "verified") == 60 * 40,
        "{}",
        first["ledger"]
    );
    // Each is named.
    let named = first["ledger"]["losses"].as_array().unwrap();
    assert!(!named.is_empty(), "{}", first["ledger"]);
    let is_named = |loss: &Value| loss["kind"] == "lost" && loss["key"]["name"].is_string() && loss["at"].is_i64();
    assert!(named.iter().all(is_named), "{named:?}");
    let mut checked = tsb(&[
        "conformance",
        "--only",
        "c4_",
        "--store",
        &changed(folder, from, to)?.replace("/mine", "/c"),
    ]);
    let checked = checked.output()?;
    assert_eq!(checked.status.code(), Some(3), "{}", words(&checked));
    assert!(words(&checked).contains("fail c4_"), "{}", words(&checked));
    Ok(())
}

fn dies(folder: &Path) -> Result<(), Failed> {
    let spec = changed(
        folder,
        "        db.execute(\"begin\")",
        "        if int(number) > 20:\n            sys.exit('the disk is full')\n        db.execute(\"begin\")",
    )?;
    let ran = run(&spec, &[]).output()?;
    let report = json(&ran);
    let first = report["runs"].get(0).unwrap_or(&report);
    assert_ne!(first["verdict"]["status"], "VALID", "{}", words(&ran));
    let said = format!("{} {}", words(&ran), first["verdict"]);
    assert!(
        said.contains("exit code 1") && said.contains("the disk is full"),
        "{said}"
    );
    Ok(())
}

fn verifies_what_was_emitted(folder: &Path) -> Result<(), Failed> {
    let file = folder.join("x.db");
    let store = format!("sqlite:{}?layout=rows", file.display());
    let mut server = tsb(&[
        "ingest",
        "--quiet",
        "--listen",
        "influx+http://127.0.0.1:0",
        "--store",
        &store,
    ]);
    let (mut server, address) = listening(server.args(["--duration", "300s"]));
    let reader = format!("python3 '{}' '{}'", example("read_back.py").display(), file.display());
    let emit = |to: &str, reader: &str| {
        let mut command = tsb(&[
            "emit",
            "--quiet",
            "--series",
            "60",
            "--rate",
            "max",
            "--fleet-time",
            "20s",
        ]);
        command
            .args(["--format", "json", "--to", to, "--verify-with", reader])
            .output()
    };
    let sent = emit(&format!("influx+http://{address}"), &reader)?;
    let report = json(&sent);
    assert_eq!(report["verdict"]["status"], "VALID", "{}", words(&sent));
    assert_eq!(
        report["verified"]["ledger"]["verified"],
        60 * 20,
        "{}",
        report["verified"]
    );
    let lossy = folder.join("lossy.py");
    let text = std::fs::read_to_string(example("read_back.py"))?;
    std::fs::write(&lossy, text.replace("at < ? order by", "at < ? and at % 7 order by"))?;
    let reader = format!("python3 '{}' '{}'", lossy.display(), file.display());
    let missing = emit(&format!("influx+http://{address}"), &reader)?;
    assert_eq!(missing.status.code(), Some(3), "{}", words(&missing));
    assert!(words(&missing).contains("lost"), "{}", words(&missing));
    let none = emit(&format!("influx+http://{address}"), "/no/such/reader")?;
    assert!(
        !none.status.success() && words(&none).contains("/no/such/reader"),
        "{}",
        words(&none)
    );
    server.kill()?;
    server.wait()?;
    Ok(())
}
