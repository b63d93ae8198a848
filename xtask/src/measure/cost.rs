//! Measures the parts of a sample's cost by store and batch size: as `tsb run` reports them, and
//! for the store alone.

use anyhow::{Result, bail};

use super::{Wish, folder, page};
use crate::servers;
use crate::shell::{capture, cargo, run, target_folder};

const ROUNDS: usize = 5;

const NOTES: &str = "\
Each row is the median of several runs of each way, in turn, each on a fresh store: `tsb run --transport inproc --rate max`, and a loop that makes the same batches and writes them, less the same loop without the store.
Figures are nanoseconds of CPU per sample; `sum` adds the parts, and `process` is the clock of the whole process over the same time.
`run / alone` divides the store's part of a run (`write`, its own threads, and the flush) by the store alone; `newest`, which a run asks ten times per second, is in neither.

Where `run / alone` is far from 1:

- `null` does less than the two readings of the clock that a run needs for each operation: about 20 ns per operation, whatever its size.
- With one sample per batch, store and generator push each other's data out of the caches.
  The loop alone counts all of that as the store's; a run counts on each side what that side waits for.
- `write-cache+rrd` makes a file at the first sample of a series.
  In a run, the first question for the newest row does so (docs/adr/101-newest-row-without-a-write.md) and, in runs as short as these, writes most of what has come meanwhile: what is `threads` alone is `newest` in the run.
  Compare `store + threads + flush + newest` with the whole of the store alone.
- The threads of MongoDB's driver also carry the questions for `newest`, which a run of ten ticks of 54,000 series feels.
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
