//! The release build that later steps need, made at the lowest priority while the tests before
//! them wait for programs that run in real time.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::tests_run;

/// A build in the background; dropped, it ends.
///
/// What fails here fails again, and is reported, in the step that needs it: cargo builds there
/// what is missing.
#[derive(Debug)]
pub(super) struct BuildAhead(Child);

impl BuildAhead {
    /// Starts to build benchmarks and examples.
    pub(super) fn start() -> Result<Self> {
        let build = tests_run::release("build", &["--benches", "--examples", "--bins"])?;
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
        Ok(Self(quiet.spawn().context("cannot start nice")?))
    }
}

impl Drop for BuildAhead {
    fn drop(&mut self) {
        // By now it has mostly ended by itself.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}
