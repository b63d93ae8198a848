//! `cargo xtask bench save NAME` and `diff A B`: criterion's baselines, each with a record
//! of the machine and the commit that it was taken on.
//!
//! Baselines are kept in cargo's target folder. A difference between two runs at different times
//! on a shared machine is a hint, not a result; for a result, interleave the runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{capture, cargo, root, run};

/// Runs `save` or `diff`; what follows the names goes to criterion, such as a filter.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["save", name, rest @ ..] => save(checked(name)?, rest),
        ["diff", old, new, rest @ ..] => diff(checked(old)?, checked(new)?, rest),
        _ => bail!("bench: save NAME [FILTER] or diff OLD NEW [FILTER]"),
    }
}

/// Checks that a name is a valid file name everywhere.
fn checked(name: &str) -> Result<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(plain) {
        bail!("bench: {name:?} is no name for a baseline; use letters, digits, '-', '_' and '.'");
    }
    Ok(name)
}

fn save(name: &str, rest: &[&str]) -> Result<()> {
    let mut arguments = vec!["bench", "--package", "tsb-bench", "--", "--save-baseline", name];
    arguments.extend(rest);
    // Written first: it describes the machine as the benchmarks found it.
    let path = record_path(name);
    let folder = path.parent().context("the record has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(&path, record()?).with_context(|| format!("cannot write {}", path.display()))?;
    run(&mut cargo(&arguments))
}

fn diff(old: &str, new: &str, rest: &[&str]) -> Result<()> {
    let read = |name: &str| {
        let path = record_path(name);
        fs::read_to_string(&path).with_context(|| format!("no baseline {name}: cannot read {}", path.display()))
    };
    println!("{}", differences(&read(old)?, &read(new)?));
    let mut arguments = vec!["bench", "--package", "tsb-bench", "--"];
    arguments.extend(["--load-baseline", new, "--baseline", old]);
    arguments.extend(rest);
    run(&mut cargo(&arguments))
}

fn record_path(name: &str) -> PathBuf {
    root().join("target/bench-records").join(format!("{name}.txt"))
}

/// What a reader needs to know of a measurement's commit and machine, as `key: value` lines.
pub(crate) fn record() -> Result<String> {
    let git = |arguments: &[&str]| capture(Command::new("git").args(arguments).current_dir(root()));
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = !git(&["status", "--porcelain"])?.trim().is_empty();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    // The name alone does not tell generations apart: clouds cut it short.
    let fact = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(": ")?.1)
    };
    let model = fact("model name").unwrap_or("unknown");
    let family = fact("cpu family").map(|family| format!(", family {family}"));
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let facts = [
        (
            "commit",
            format!("{}{}", commit.trim(), if changed { ", with changes" } else { "" }),
        ),
        (
            "compiler",
            capture(Command::new("rustc").arg("--version").current_dir(root()))?,
        ),
        ("processor", format!("{cores} of {model}{}", family.unwrap_or_default())),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("governor", governor),
        ("load", read("/proc/loadavg")),
    ];
    let line = |(key, value): &(&str, String)| format!("{key}: {}\n", value.trim());
    Ok(facts.iter().map(line).collect())
}

/// The lines in which two records differ, or a sentence that they do not.
fn differences(old: &str, new: &str) -> String {
    let pairs = old.lines().zip(new.lines()).filter(|(old, new)| old != new);
    let lines: Vec<String> = pairs
        .flat_map(|(old, new)| [format!("- {old}"), format!("+ {new}")])
        .collect();
    if lines.is_empty() {
        "both baselines were taken on the same machine and commit".to_owned()
    } else {
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        assert_eq!(checked("before-2.1").ok(), Some("before-2.1"));
        for bad in ["", "../x", "a/b", "-x", ".x", "a b"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_record_says_what_it_was_taken_on() {
        let record = record().expect("git and rustc answer");
        for key in ["commit: ", "compiler: rustc ", "processor: ", "kernel: ", "load: "] {
            assert!(
                record
                    .lines()
                    .any(|line| line.starts_with(key) && line.len() > key.len()),
                "{key} in {record}"
            );
        }
    }

    #[test]
    fn only_what_differs_is_shown() {
        let old = "commit: a\nload: 1\n";
        assert_eq!(differences(old, "commit: b\nload: 1\n"), "- commit: a\n+ commit: b");
        assert_eq!(
            differences(old, old),
            "both baselines were taken on the same machine and commit"
        );
    }
}
