//! The parts of a sample's cost by store and size of batch: as `tsb run` reports them, and the
//! store alone.

use anyhow::{Result, bail};

use super::{Wish, folder, page};
use crate::servers;
use crate::shell::{capture, cargo, run, target_folder};

const ROUNDS: usize = 5;

const NOTES: &str = "\
Each row is the median of several runs of each way, in turn, each on a fresh store: `tsb run --transport inproc --rate max`, and a loop that makes the same batches and writes them, less the same loop without the store.
Figures are nanoseconds of CPU per sample; `sum` adds the parts, and `process` is the clock of the whole process over the same time.
`run / alone` divides the store's part of a run (`write`, its own threads, and the flush) by the store alone; `newest`, which a run asks ten times per second, is in neither.
";

/// Builds what it needs, starts mongod, and prints the table.
pub(super) fn measure(arguments: &[&str]) -> Result<()> {
    let wish = Wish::parse(arguments, ROUNDS)?;
    if !wish.only.is_empty() {
        bail!("measure cost: there is one table, so --only has no effect");
    }
    let build = ["build", "--release", "--package"];
    run(cargo(&build).args(["tsb-cli", "--features", "mongo"]))?;
    run(cargo(&build).args(["tsb-bench", "--features", "mongo", "--example", "cost_table"]))?;
    servers::up(&["mongod"])?;
    let mongo = servers::store_of("mongod")?;
    let address = mongo
        .trim_start_matches("mongo://")
        .split('/')
        .next()
        .unwrap_or_default();
    let folder = folder("cost")?;
    let release = target_folder()?.join("release");
    let mut table = std::process::Command::new(release.join("examples/cost_table"));
    table.arg(release.join("tsb")).arg(&folder);
    let table = capture(table.args([&wish.rounds.to_string(), address]))?;
    println!("{table}");
    let command = format!("cargo xtask measure cost --rounds {}", wish.rounds);
    let rest = format!("```text\n{table}```\n\n{NOTES}");
    wish.save(&page(
        "What a sample costs, by store and size of batch",
        &command,
        &rest,
    )?)
}
