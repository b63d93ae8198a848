//! The list of checks, from cheap to dear.

use anyhow::Result;

use super::{Outcome, Step, dependencies, packages, tests_run, toolchain, whole_run};
use crate::shell::{cargo, run};

pub(super) const STEPS: &[Step] = &[
    step("toolchain", toolchain::check),
    step("packages", packages::install),
    step("fmt", fmt),
    step("dependencies", dependencies::check),
    step("tidy", tidy),
    step("features", features),
    step("clippy", clippy),
    step("doc", doc),
    step("tests", tests_run::workspace),
    step("benches", tests_run::benches),
    step("examples", tests_run::examples),
    step("run", whole_run::check),
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
    Ok(Outcome::PASSED)
}

fn tidy() -> Result<Outcome> {
    crate::tidy::run()?;
    Ok(Outcome::PASSED)
}

/// Each library with each of its features alone: what one feature needs must not come
/// from another.
fn features() -> Result<Outcome> {
    let combinations: &[&[&str]] = &[
        &["check", "--package", "tsb-core"],
        &["check", "--package", "tsb-core", "--features", "net"],
        &["check", "--package", "tsb-stores"],
        &["check", "--package", "tsb-stores", "--features", "conformance"],
    ];
    for arguments in combinations {
        run(&mut cargo(arguments))?;
    }
    Ok(Outcome::Passed(format!("{} combinations", combinations.len())))
}

fn clippy() -> Result<Outcome> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "--deny",
        "warnings",
    ];
    run(&mut cargo(&arguments))?;
    Ok(Outcome::PASSED)
}

fn doc() -> Result<Outcome> {
    let arguments = ["doc", "--workspace", "--no-deps", "--all-features"];
    run(cargo(&arguments).env("RUSTDOCFLAGS", "--deny warnings"))?;
    Ok(Outcome::PASSED)
}

fn peers() -> Result<Outcome> {
    if let Some(why) = crate::peers::missing() {
        return Ok(Outcome::NotRun(why));
    }
    crate::peers::run(&[])?;
    Ok(Outcome::PASSED)
}
