//! Runs tests, benches in test mode and examples, and counts their results.

use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use super::{Outcome, features};
use crate::shell::{capture, cargo, empty_folder, root, run, run_seen, target_folder};

mod failures;

use failures::Failures;

/// Sums of the closing lines of test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Count {
    /// Adds a line like `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else {
            return;
        };
        let parts = counts.split(['.', ';']).map(str::trim);
        for (number, word) in parts.filter_map(|part| part.split_once(' ')) {
            let number: u64 = number.parse().unwrap_or(0);
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    pub(crate) fn note(&self) -> String {
        let ignored = if self.ignored == 0 {
            String::new()
        } else {
            format!(", {} ignored", self.ignored)
        };
        format!("{} passed{ignored}", self.passed)
    }
}

/// Runs tests, counts them, and names those that failed with what they said.
pub(crate) fn counted(command: &mut Command) -> Result<Count> {
    let mut count = Count::default();
    let mut failures = Failures::default();
    let ended = run_seen(command, |line| {
        count.add(line);
        failures.add(line);
    });
    if !failures.is_empty() {
        bail!("{failures}");
    }
    ended?;
    if count.passed == 0 {
        bail!("no test ran");
    }
    Ok(count)
}

/// Tests at once: most of them watch a program that runs in real time, and wait.
const THREADS: &str = "4";

/// Every unit, integration and documentation test, with the conformance suite on every
/// store that can run here. Property tests get the same inputs each time, so that what
/// fails was broken by what changed; [`properties`] looks further.
///
/// Examples are not built here: `clippy` checks them, and [`examples`] builds and runs them.
pub(super) fn workspace() -> Result<Outcome> {
    let mut notes = Vec::new();
    for targets in ["--tests", "--doc"] {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast", targets]);
        command.args(features::every()?).env("PROPTEST_RNG_SEED", "1");
        let count = counted(command.env("RUST_TEST_THREADS", THREADS))?;
        notes.push(format!("{targets}: {}", count.note()));
    }
    Ok(Outcome::Passed(notes.join("; ")))
}

/// The property tests with inputs drawn anew, and the unit tests that stand beside them.
pub(super) fn properties() -> Result<Outcome> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast", "--lib"]);
    Ok(Outcome::Passed(counted(command.args(features::every()?))?.note()))
}

/// Accidents, kills and power cuts: of the SQLite store two hundred of each kind, of write
/// caches, which are several times as slow to look at afterwards, twenty-five. The programs are
/// those of the tests, so nothing is built again.
pub(super) fn crashes() -> Result<Outcome> {
    let mut notes = Vec::new();
    for (test, rounds) in [("crash", "200"), ("cache_crash", "25")] {
        let mut command = cargo(&["test", "--workspace", "--test", test]);
        let command = command.args(features::every()?).env("TSB_CRASH_ROUNDS", rounds);
        notes.push(format!("{test}: {}", counted(command)?.note()));
    }
    // The long tier of conformance: a million samples into each store of ours. Mohawk's layout
    // commits each sample, which takes minutes, and so does the example's database unoptimised.
    let mut command = cargo(&["test", "--workspace", "--test", "conformance"]);
    let command = command
        .args(features::every()?)
        .args(["--", "--ignored", "--skip", "mohawk", "--skip", "redb"]);
    notes.push(format!("long tier: {}", counted(command)?.note()));
    Ok(Outcome::Passed(notes.join("; ")))
}

/// A release build or test of all packages but this one, with the features that the program has for
/// a user, so that both share what they build.
pub(super) fn release(verb: &str, targets: &[&str]) -> Command {
    let mut command = cargo(&[verb, "--release", "--workspace", "--exclude", "xtask"]);
    command.args(targets);
    command
}

/// Every benchmark once, as a test: each verifies its result before it would time it.
/// Optimised, as a debug build would take longer to run than an optimised one to build.
pub(super) fn benches() -> Result<Outcome> {
    let targets = targets("bench")?;
    if targets.is_empty() {
        return Ok(Outcome::NotRun("there is no benchmark".to_owned()));
    }
    let mut ran = 0_u64;
    run_seen(&mut release("test", &["--benches"]), |line| {
        ran += u64::from(line == "Success");
    })?;
    if ran == 0 {
        bail!("{} bench programs ran no benchmark", targets.len());
    }
    Ok(Outcome::Passed(format!(
        "{ran} benchmarks in {} programs",
        targets.len()
    )))
}

/// What an example is given; `SCRATCH` stands for an empty folder of its own. One that
/// is not named here runs without arguments.
const EXAMPLE_ARGUMENTS: &[(&str, &[&str])] = &[
    ("record_proc", &["SCRATCH/machine.trace", "2"]),
    ("trace_summary", &["fixtures/traces/busy-build.tsbtrace"]),
    ("trace_replay", &["fixtures/traces/busy-build.tsbtrace"]),
    ("pacing", &["2"]),
    ("sqlite_table", &["SCRATCH"]),
    ("fuzz", &["all", "--seconds", "3"]),
    ("differential", &["1000", "1"]),
    ("udp_table", &["quick"]),
    ("fuzz_files", &["3", "1"]),
    ("fuzz_journal", &["1000", "1"]),
    ("fuzz_sqlite", &["100", "1"]),
    ("fuzz_texts", &["2", "1"]),
];

/// Tables that take minutes, or need a store of gigabytes or a server: they are run by hand,
/// and built here unless a driver would have to be built for them.
const BY_HAND: &[&str] = &["loopback_table", "mongo_table", "wire_table"];

/// Every example is run; each checks its own result and fails if it is wrong.
pub(super) fn examples() -> Result<Outcome> {
    let examples = targets("example")?;
    if examples.is_empty() {
        return Ok(Outcome::NotRun("there is no example".to_owned()));
    }
    // All at once, so that they share what they build with each other and the benches. One is a
    // package and not an example of one, as a stranger's would be.
    run(&mut release("build", &["--examples", "--bin", "own-database"]))?;
    let folder = target_folder()?;
    let run_here: Vec<&String> = examples
        .iter()
        .filter(|example| !BY_HAND.contains(&example.as_str()))
        .collect();
    for example in &run_here {
        let scratch = empty_folder(folder.join("xtask-scratch").join(example))?;
        let mut command = Command::new(folder.join("release/examples").join(example));
        command
            .args(arguments(example, &scratch.to_string_lossy()))
            .current_dir(root());
        run(&mut command)?;
    }
    run(Command::new(folder.join("release/own-database")).current_dir(root()))?;
    Ok(Outcome::Passed(format!(
        "{} run, {} only built",
        run_here.len(),
        examples.len() - run_here.len()
    )))
}

fn arguments(example: &str, scratch: &str) -> Vec<String> {
    let given = EXAMPLE_ARGUMENTS.iter().find(|(name, _)| *name == example);
    let words = given.map_or([].as_slice(), |(_, words)| *words);
    words.iter().map(|word| word.replace("SCRATCH", scratch)).collect()
}

/// The names of the workspace's targets of one kind.
fn targets(kind: &str) -> Result<Vec<String>> {
    let metadata = capture(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    Ok(targets_in(&serde_json::from_str(&metadata)?, kind))
}

fn targets_in(metadata: &Value, kind: &str) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let targets = list(&metadata["packages"])
        .into_iter()
        .flat_map(|package| list(&package["targets"]));
    let chosen = targets.filter(|target| list(&target["kind"]).iter().any(|word| word == kind));
    chosen
        .filter_map(|target| Some(target["name"].as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up() {
        let mut count = Count::default();
        count.add("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        count.add("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        count.add("test x ... ok");
        let expected = Count {
            passed: 7,
            failed: 2,
            ignored: 1,
        };
        assert_eq!(count, expected);
        assert_eq!(count.note(), "7 passed, 1 ignored");
    }

    #[test]
    fn an_example_gets_a_folder_of_its_own() {
        assert_eq!(arguments("record_proc", "/s"), ["/s/machine.trace", "2"]);
        assert!(arguments("another", "/s").is_empty());
        for word in EXAMPLE_ARGUMENTS.iter().flat_map(|(_, words)| *words) {
            assert!(!word.starts_with("fixtures/") || root().join(word).is_file(), "{word}");
        }
    }

    #[test]
    fn targets_are_found_by_kind() {
        let metadata = serde_json::json!({"packages": [{
            "name": "p",
            "targets": [
                {"name": "p", "kind": ["lib"]},
                {"name": "e", "kind": ["example"]},
            ],
        }]});
        assert_eq!(targets_in(&metadata, "example"), ["e"]);
        assert!(targets_in(&metadata, "bench").is_empty());
    }
}
