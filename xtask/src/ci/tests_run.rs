//! Tests, benches in test mode and examples, with their results counted.

use anyhow::{Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::shell::{capture, cargo, run, run_seen};

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

/// Every unit, integration and documentation test, with default features.
pub(super) fn workspace() -> Result<Outcome> {
    counted(&["test", "--workspace", "--no-fail-fast"])
}

/// The public conformance suite on every store that can run here.
pub(super) fn conformance() -> Result<Outcome> {
    counted(&[
        "test",
        "--package",
        "tsb-stores",
        "--features",
        "conformance",
        "--no-fail-fast",
    ])
}

/// Every benchmark once, as a test: each verifies its result before it would time it.
pub(super) fn benches() -> Result<Outcome> {
    let targets = targets("bench")?;
    let mut ran = 0_u64;
    let arguments = ["test", "--release", "--package", "tsb-bench", "--benches"];
    run_seen(&mut cargo(&arguments), |line| {
        ran += u64::from(line.ends_with("Success"));
    })?;
    if targets.is_empty() {
        return Ok(Outcome::NotRun("there is no benchmark".to_owned()));
    }
    if ran == 0 {
        bail!("{} bench programs ran no benchmark", targets.len());
    }
    Ok(Outcome::Passed(format!(
        "{ran} benchmarks in {} programs",
        targets.len()
    )))
}

/// Every example is run; each checks its own result and fails if it is wrong.
pub(super) fn examples() -> Result<Outcome> {
    let examples = targets("example")?;
    if examples.is_empty() {
        return Ok(Outcome::NotRun("there is no example".to_owned()));
    }
    for example in &examples {
        let mut arguments = vec![
            "run",
            "--release",
            "--package",
            &example.package,
            "--example",
            &example.name,
        ];
        if !example.features.is_empty() {
            arguments.extend(["--features", &example.features]);
        }
        run(&mut cargo(&arguments))?;
    }
    Ok(Outcome::Passed(format!("{} run", examples.len())))
}

/// A target of the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    package: String,
    name: String,
    /// Its required features, joined by commas.
    features: String,
}

fn targets(kind: &str) -> Result<Vec<Target>> {
    let metadata = capture(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    Ok(targets_in(&serde_json::from_str(&metadata)?, kind))
}

/// The targets of one kind in the output of `cargo metadata`.
fn targets_in(metadata: &Value, kind: &str) -> Vec<Target> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| {
        let targets = package["targets"].as_array().into_iter().flatten();
        targets.map(move |target| (package, target))
    });
    let chosen = targets.filter(|(_, target)| target["kind"].as_array().into_iter().flatten().any(|word| word == kind));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let features = |target: &Value| {
        let features = target["required-features"].as_array().into_iter().flatten();
        features.map(text).collect::<Vec<_>>().join(",")
    };
    let made = chosen.map(|(package, target)| Target {
        package: text(&package["name"]),
        name: text(&target["name"]),
        features: features(target),
    });
    made.collect()
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
    fn targets_are_found_with_their_features() {
        let metadata = serde_json::json!({"packages": [{
            "name": "p",
            "targets": [
                {"name": "p", "kind": ["lib"]},
                {"name": "e", "kind": ["example"], "required-features": ["a", "b"]},
            ],
        }]});
        let expected = Target {
            package: "p".to_owned(),
            name: "e".to_owned(),
            features: "a,b".to_owned(),
        };
        assert_eq!(targets_in(&metadata, "example"), [expected]);
        assert!(targets_in(&metadata, "bench").is_empty());
    }
}
