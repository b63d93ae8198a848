//! The list of checks, from cheap to expensive.

use anyhow::Result;

use super::{
    Outcome, Step, clients, dependencies, features, packages, page, published, servers, soak, tests_run, toolchain,
    tutorial, whole_run,
};
use crate::shell::{cargo, run};

pub(super) const STEPS: &[Step] = &[
    step("toolchain", toolchain::check),
    step("packages", packages::install),
    step("fmt", fmt),
    step("dependencies", dependencies::check),
    step("tidy", tidy),
    step("published", published::check),
    step("features", each_feature),
    step("clippy", clippy),
    step("doc", doc),
    step("tests", tests_run::workspace),
    step("crashes", tests_run::crashes),
    step("benches", tests_run::benches),
    step("examples", tests_run::examples),
    step("clients", clients::check),
    step("servers", servers::check),
    step("run", whole_run::check),
    step("faults", faults),
    step("soak", soak::check),
    step("page", page::check),
    step("tutorial", tutorial::check),
    step("dist", crate::dist::check),
    long("properties", tests_run::properties),
    long("drivers", each_driver),
    long("slow-servers", servers::slow),
    long("mutate", mutate),
    long("fuzz", fuzz),
    long("peers", peers),
];

const fn step(name: &'static str, run: fn() -> Result<Outcome>) -> Step {
    Step {
        name,
        is_long: false,
        run,
    }
}

const fn long(name: &'static str, run: fn() -> Result<Outcome>) -> Step {
    Step {
        name,
        is_long: true,
        run,
    }
}

fn fmt() -> Result<Outcome> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    // A workspace of its own.
    run(&mut cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    Ok(Outcome::PASSED)
}

fn tidy() -> Result<Outcome> {
    crate::tidy::run()?;
    Ok(Outcome::PASSED)
}

fn mutate() -> Result<Outcome> {
    crate::mutate::run("")?;
    Ok(Outcome::PASSED)
}

/// Each library with features of its own alone: what one feature needs must not come from
/// another. `clippy` builds all of them together, and [`each_driver`] has the features that would
/// compile dozens of packages once more.
fn each_feature() -> Result<Outcome> {
    let combinations: &[&[&str]] = &[
        &["check", "--package", "tsb-core"],
        &["check", "--package", "tsb-core", "--features", "net"],
        &["check", "--package", "tsb-rrd"],
        &["check", "--package", "tsb-stores"],
        &["check", "--package", "tsb-stores", "--features", "conformance"],
        &["check", "--package", "tsb-stores", "--features", "sqlite"],
        &["check", "--package", "tsb-rrdcached"],
        &["check", "--package", "tsb-rrdcached", "--features", "net"],
        &["check", "--package", "tsb-remote"],
        &["check", "--package", "tsb-remote", "--features", "exec"],
        &["check", "--package", "tsb-remote", "--features", "http"],
        &["check", "--package", "tsb-remote", "--features", "influx"],
        &["check", "--package", "tsb-remote", "--features", "victoriametrics"],
        &["check", "--package", "tsb-remote", "--features", "graphite"],
        &["check", "--package", "tsb-remote", "--features", "clickhouse"],
        &["check", "--package", "tsb-remote", "--features", "questdb"],
        &["check", "--package", "tsb-remote", "--features", "kairosdb"],
        &["check", "--package", "tsb-remote", "--features", "hawkular"],
        &["check", "--package", "tsb-remote", "--features", "dalmatiner"],
        &["check", "--package", "tsb-remote", "--features", "prometheus"],
        &["check", "--package", "tsb-run"],
        &["check", "--package", "tsb-run", "--features", "sqlite"],
        &["check", "--package", "tsb-run", "--features", "exec"],
        &["check", "--package", "tsb-cli", "--no-default-features"],
    ];
    for arguments in combinations {
        run(&mut cargo(arguments))?;
    }
    if !super::packages::has_librrd() {
        return Ok(Outcome::Passed(format!(
            "{} combinations, not librrd",
            combinations.len()
        )));
    }
    run(&mut cargo(&[
        "check",
        "--package",
        "tsb-rrdcached",
        "--features",
        "librrd",
    ]))?;
    Ok(Outcome::Passed(format!("{} combinations", combinations.len() + 1)))
}

/// The clients that bring a driver of their own, each alone.
fn each_driver() -> Result<Outcome> {
    let features = ["mongo", "etcd", "postgres", "cassandra"];
    for feature in features {
        run(&mut cargo(&["check", "--package", "tsb-remote", "--features", feature]))?;
    }
    run(&mut cargo(&["check", "--package", "tsb-run", "--features", "hosts"]))?;
    Ok(Outcome::Passed(format!("{} drivers, and hosts", features.len())))
}

fn clippy() -> Result<Outcome> {
    let mut command = cargo(&["clippy", "--workspace", "--all-targets"]);
    run(command.args(features::every()?).args(["--", "--deny", "warnings"]))?;
    Ok(Outcome::PASSED)
}

fn doc() -> Result<Outcome> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    run(command.args(features::every()?).env("RUSTDOCFLAGS", "--deny warnings"))?;
    Ok(Outcome::PASSED)
}

/// A minute per target, or thousands of rounds where a target counts rounds; the examples step runs each
/// for seconds.
fn fuzz() -> Result<Outcome> {
    let harnesses: [(&str, &str, &[&str]); 5] = [
        ("tsb-core", "fuzz", &["all", "--seconds", "60"]),
        ("tsb-rrd", "fuzz_files", &["60", "1"]),
        // In rounds, which are two journals each.
        ("tsb-rrdcached", "fuzz_journal", &["25000", "1"]),
        ("tsb-run", "fuzz_sqlite", &["3000", "1"]),
        ("tsb-cli", "fuzz_texts", &["60", "1"]),
    ];
    for (package, example, arguments) in harnesses {
        let mut command = cargo(&["run", "--release", "--package", package, "--example", example]);
        run(command.arg("--").args(arguments))?;
    }
    Ok(Outcome::PASSED)
}

/// A small tier of the campaign on every store, in under two minutes of two cores; damage is
/// judged by `tsb verify` here. All kinds, and many rounds, are run by hand.
fn faults() -> Result<Outcome> {
    let missing = super::packages::missing_for_faults();
    if !missing.is_empty() {
        return Ok(Outcome::NotRun(format!("install {}", missing.join(", "))));
    }
    let kinds = ["kills", "cuts", "errors", "runs", "verify"].map(|kind| ["--only", kind]);
    crate::faults::command(&[&["--rounds", "3"][..], &kinds.concat()].concat())?;
    Ok(Outcome::PASSED)
}

fn peers() -> Result<Outcome> {
    if let Some(why) = crate::peers::missing() {
        return Ok(Outcome::NotRun(why));
    }
    crate::peers::run(&[])?;
    Ok(Outcome::PASSED)
}
