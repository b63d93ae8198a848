//! Measures what `tsb compare` says where the truth is known: of equal sides, and of a store that is slowed
//! by a stated share.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::folder;
use crate::shell::{capture, cargo, empty_folder, remove_folder, run, target_folder};
use crate::table::Table;

/// How the page shows the comparisons of equal sides.
pub(super) const EQUAL_COMMAND: &str =
    "target/release/tsb compare SIDE SIDE --rounds 6 --transport inproc --duration 1s";
/// How it shows those of a slowed store.
pub(super) const SLOWED_COMMAND: &str =
    "target/release/tsb compare SIDE SLOWED --rounds 8 --transport inproc --duration 1s --rate max";

/// Comparisons of equal sides, for each store.
const EQUAL: usize = 10;
/// The figures that end a comparison, and the median.
const FIGURES: [&str; 5] = ["held", "response.p50", "response.p99", "staleness.p99", "cost.store"];
/// How much longer the slowed store takes, in percent, once for each comparison.
const SLOWER: [u32; 6] = [5, 5, 5, 1, 1, 1];
/// A file system in memory: what is compared is the store and not the disk.
const MEMORY: &str = "/dev/shm";

/// Compares memory and SQLite with themselves.
pub(super) fn equal_table() -> Result<String> {
    let program = built()?;
    let database = folder("known-ratios-data")?.join("tsb.db");
    equal_sides(
        &program,
        &[
            ("memory", "memory:"),
            ("sqlite", &format!("sqlite:{}", database.display())),
        ],
    )
}

/// Compares SQLite with the same behind a throttle that makes each write take longer.
pub(super) fn slowed_table() -> Result<String> {
    let program = built()?;
    let folder = empty_folder(Path::new(MEMORY).join("tsb-known-ratios"))?;
    let table = slowed_store(&program, &folder.join("tsb.db"));
    remove_folder(&folder)?;
    table
}

fn built() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    Ok(target_folder()?.join("release/tsb"))
}

/// A ratio as `tsb compare` states it.
struct Ratio {
    metric: String,
    value: f64,
    low: f64,
    high: f64,
    detectable: f64,
    outcome: String,
}

impl Ratio {
    fn of(value: &Value) -> Result<Self> {
        let number = |key: &str| value[key].as_f64().with_context(|| format!("a ratio has no {key}"));
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            metric: text("metric"),
            value: number("ratio")?,
            low: number("ratio_low")?,
            high: number("ratio_high")?,
            detectable: number("detectable")?,
            outcome: text("outcome"),
        })
    }

    fn contains(&self, truth: f64) -> bool {
        (self.low..=self.high).contains(&truth)
    }

    fn interval(&self) -> String {
        format!("{:.4}..{:.4}", self.low, self.high)
    }
}

/// Compares each store with itself.
fn equal_sides(program: &Path, stores: &[(&str, &str)]) -> Result<String> {
    let mut headings = vec!["equal sides"];
    headings.extend(FIGURES);
    let mut table = Table::new(&headings);
    let (mut stated, mut right) = (0, 0);
    for &(name, spec) in stores {
        for number in 1..=EQUAL {
            let ratios = compare(program, EQUAL_COMMAND, &[spec, spec])?;
            let cells = FIGURES.map(|figure| match ratios.iter().find(|ratio| ratio.metric == figure) {
                Some(ratio) if ratio.contains(1.0) => ratio.interval(),
                Some(ratio) => format!("{} *", ratio.interval()),
                None => "-".to_owned(),
            });
            let named = ratios.iter().filter(|ratio| FIGURES.contains(&ratio.metric.as_str()));
            stated += named.clone().count();
            right += named.filter(|ratio| ratio.contains(1.0)).count();
            let label = format!("{name} {number}");
            let cells: Vec<&str> = std::iter::once(label.as_str())
                .chain(cells.iter().map(String::as_str))
                .collect();
            println!("{}", cells.join("  "));
            table.row(&cells);
        }
    }
    Ok(format!(
        "{}{right} of {stated} intervals of 95 % contain 1; those that do not have a star.\n",
        table.render()
    ))
}

/// Compares SQLite, as fast as it goes, with the same when each write takes longer.
fn slowed_store(program: &Path, database: &Path) -> Result<String> {
    // Both sides have the same wrapper, which looks at the clock.
    let slowed_by = |percent: u32| {
        format!(
            "throttle+sqlite:{}?throttle.slower_percent={percent}",
            database.display()
        )
    };
    let mut table = Table::new(&[
        "slower by",
        ">true ratio",
        ">held: ratio",
        "interval",
        ">could have seen",
        "outcome",
    ]);
    for percent in SLOWER {
        let ratios = compare(program, SLOWED_COMMAND, &[&slowed_by(0), &slowed_by(percent)])?;
        let held = ratios.iter().find(|ratio| ratio.metric == "held");
        let held = held.context("a comparison states the held rate")?;
        let cells = [
            format!("{percent} %"),
            format!("{:.4}", 100.0 / (100.0 + f64::from(percent))),
            format!("{:.4}", held.value),
            held.interval(),
            format!("{:.1} %", held.detectable * 100.0),
            held.outcome.clone(),
        ];
        println!("{}", cells.join("  "));
        table.row(&cells.each_ref().map(String::as_str));
    }
    Ok(table.render())
}

/// Compares `sides` by the options of `command`.
fn compare(program: &Path, command: &str, sides: &[&str]) -> Result<Vec<Ratio>> {
    let options = command.split(' ').skip_while(|word| !word.starts_with("--"));
    let mut compare = Command::new(program);
    compare.arg("compare").args(sides).args(options);
    compare.args(["--quiet", "--format", "json"]);
    let result: Value = serde_json::from_str(&capture(&mut compare)?).context("tsb compare prints JSON")?;
    let ratios = result["comparisons"].as_array().context("a comparison has ratios")?;
    if ratios.is_empty() {
        bail!("tsb compare found no ratio: {}", result["notes"]);
    }
    ratios.iter().map(Ratio::of).collect()
}
