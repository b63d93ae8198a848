//! Measures the parts of a sample's cost by store and batch size: as `tsb run` reports them, and
//! for the store alone.

use anyhow::Result;

use super::folder;
use crate::servers;
use crate::shell::{capture, cargo, run, target_folder};

pub(super) const ROUNDS: usize = 5;

/// The program that prints the table, as the page shows it.
pub(super) const COMMAND: &str = "target/release/examples/cost_table target/release/tsb FOLDER 5 MONGO";

/// Builds what it needs, starts mongod, and returns the table.
pub(super) fn table(rounds: usize) -> Result<String> {
    let build = ["build", "--release", "--package"];
    run(cargo(&build).args(["tsb-cli", "--features", "mongo"]))?;
    run(cargo(&build).args(["tsb-bench", "--features", "mongo", "--example", "cost_table"]))?;
    servers::up(&["mongod"])?;
    let printed = print_table(rounds);
    servers::down(&["mongod"])?;
    printed
}

/// Runs the program with the server that was started.
fn print_table(rounds: usize) -> Result<String> {
    let mongo = servers::store_of("mongod")?;
    let address = mongo
        .trim_start_matches("mongo://")
        .split('/')
        .next()
        .unwrap_or_default();
    let folder = folder("cost-data")?;
    let release = target_folder()?.join("release");
    let mut table = std::process::Command::new(release.join("examples/cost_table"));
    table.arg(release.join("tsb")).arg(&folder);
    capture(table.args([&rounds.to_string(), address]))
}
