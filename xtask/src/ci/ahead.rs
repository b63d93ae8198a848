//! The release builds that later steps need, made at the lowest priority while the tests before
//! them wait for programs that run in real time.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::tests_run;
use crate::shell::cargo;

/// Builds in the background; dropped, they end.
///
/// What fails here fails again, and is reported, in the step that needs it: cargo builds there
/// what is missing.
#[derive(Debug)]
pub(super) struct BuildAhead(Vec<Child>);

impl BuildAhead {
    /// Starts to build benchmarks and examples, and the program as a user builds it. Cargo makes the
    /// second wait for the first, as both write to one folder.
    pub(super) fn start() -> Result<Self> {
        let programs = tests_run::release("build", &["--benches", "--examples", "--bins"]);
        let default = cargo(&["build", "--release"]);
        let builds = [programs, default].map(|build| spawn_nice(&build));
        Ok(Self(builds.into_iter().collect::<Result<_>>()?))
    }
}

/// Starts a command at the lowest priority, without its output.
fn spawn_nice(build: &Command) -> Result<Child> {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(build.get_program()).args(build.get_args());
    if let Some(folder) = build.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in build.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    let quiet = nice.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().context("cannot start nice")
}

impl Drop for BuildAhead {
    fn drop(&mut self) {
        // By now they have mostly ended by themselves.
        for child in &mut self.0 {
            let _ended = child.kill();
            let _status = child.wait();
        }
    }
}
