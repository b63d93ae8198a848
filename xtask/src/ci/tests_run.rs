//! Tests, benches in test mode and examples, with their results counted.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::shell::{capture, cargo, root, run, run_seen, target_folder};

/// Sums of the closing lines of test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
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

    fn note(&self) -> String {
        let ignored = if self.ignored == 0 {
            String::new()
        } else {
            format!(", {} ignored", self.ignored)
        };
        format!("{} passed{ignored}", self.passed)
    }
}

fn counted(arguments: &[&str]) -> Result<Outcome> {
    let mut count = Count::default();
    run_seen(&mut cargo(arguments), |line| count.add(line))?;
    if count.passed == 0 {
        bail!("no test ran");
    }
    Ok(Outcome::Passed(count.note()))
}

/// Every unit, integration and documentation test, with the conformance suite on every
/// store that can run here.
pub(super) fn workspace() -> Result<Outcome> {
    counted(&["test", "--workspace", "--all-features", "--no-fail-fast"])
}

/// Every benchmark once, as a test: each verifies its result before it would time it.
/// In release, as a debug build would take longer to run than a release takes to build.
pub(super) fn benches() -> Result<Outcome> {
    let targets = targets("bench")?;
    if targets.is_empty() {
        return Ok(Outcome::NotRun("there is no benchmark".to_owned()));
    }
    let mut ran = 0_u64;
    let arguments = ["test", "--release", "--all-features", "--benches"];
    run_seen(&mut cargo(&arguments), |line| ran += u64::from(line == "Success"))?;
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
];

/// Every example is run; each checks its own result and fails if it is wrong.
pub(super) fn examples() -> Result<Outcome> {
    let examples = targets("example")?;
    if examples.is_empty() {
        return Ok(Outcome::NotRun("there is no example".to_owned()));
    }
    // All at once, so that they share what they build with each other and the benches.
    run(&mut cargo(&["build", "--release", "--all-features", "--examples"]))?;
    let folder = target_folder()?;
    for example in &examples {
        let scratch = folder.join("xtask-scratch").join(example);
        if scratch.exists() {
            fs::remove_dir_all(&scratch).with_context(|| format!("cannot empty {}", scratch.display()))?;
        }
        fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
        let mut command = Command::new(folder.join("release/examples").join(example));
        command
            .args(arguments(example, &scratch.to_string_lossy()))
            .current_dir(root());
        run(&mut command)?;
    }
    Ok(Outcome::Passed(format!("{} run", examples.len())))
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
