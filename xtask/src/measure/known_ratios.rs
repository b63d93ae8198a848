//! Measures what `tsb compare` says where the truth is known: of equal sides, and of a store that is slowed
//! by a stated share.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::folder;
use crate::shell::{capture, cargo, run, target_folder};
use crate::table::Table;

/// How the page shows it: the options that all comparisons share.
pub(super) const COMMAND: &str = "target/release/tsb compare SIDE SIDE --rounds 6 --transport inproc --duration 2s";
/// The rounds of a comparison; the first look at the ratios comes after as many.
const ROUNDS: &str = "6";

/// Comparisons of equal sides, for each store.
const EQUAL: usize = 10;
/// The figures that end a comparison, and the median.
const FIGURES: [&str; 5] = ["held", "response.p50", "response.p99", "staleness.p99", "cost.store"];
/// How much longer the slowed store takes for a sample, in percent, once for each comparison.
const SLOWER: [u32; 6] = [5, 5, 5, 1, 1, 1];

/// Builds the program and returns both tables.
pub(super) fn table() -> Result<String> {
    run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    let program = target_folder()?.join("release/tsb");
    let database = folder("known-ratios-data")?.join("tsb.db");
    let sqlite = format!("sqlite:{}", database.display());
    let slowed = slowed_store(&program, &database)?;
    println!("{slowed}");
    let equal = equal_sides(&program, &[("memory", "memory:"), ("sqlite", &sqlite)])?;
    Ok(format!("{equal}\n{slowed}"))
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
            let ratios = compare(program, &[spec, spec])?;
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

/// Compares SQLite, as fast as it goes, with the same behind a service rate that makes each sample take longer.
fn slowed_store(program: &Path, database: &Path) -> Result<String> {
    let throttled = |rate: f64| format!("throttle+sqlite:{}?throttle.rate={rate:.0}", database.display());
    // A rate that never makes a write wait: both sides have the same wrapper.
    let unslowed = throttled(1e15);
    let mut table = Table::new(&[
        "slower by",
        ">true ratio",
        ">held: ratio",
        "interval",
        ">could have seen",
        "outcome",
    ]);
    for percent in SLOWER {
        let per_sample_s = 1.0 / held(program, &unslowed)?;
        let slowed = throttled(100.0 / (f64::from(percent) * per_sample_s));
        let ratios = compare(program, &[&unslowed, &slowed, "--rate", "max"])?;
        let held = ratios.iter().find(|ratio| ratio.metric == "held");
        let held = held.context("a comparison states the held rate")?;
        table.row(&[
            &format!("{percent} %"),
            &format!("{:.4}", 100.0 / (100.0 + f64::from(percent))),
            &format!("{:.4}", held.value),
            &held.interval(),
            &format!("{:.1} %", held.detectable * 100.0),
            &held.outcome,
        ]);
    }
    Ok(table.render())
}

/// The mean of the highest rate that a store holds.
fn held(program: &Path, store: &str) -> Result<f64> {
    let result = result(program, &[store, "--repeat", "3", "--rate", "max"])?;
    let mean = &result["sides"][0]["figures"]["held"]["value"];
    mean.as_f64().context("a repeated run states the held rate")
}

fn compare(program: &Path, arguments: &[&str]) -> Result<Vec<Ratio>> {
    let result = result(program, &[arguments, &["--rounds", ROUNDS]].concat())?;
    let ratios = result["comparisons"].as_array().context("a comparison has ratios")?;
    if ratios.is_empty() {
        bail!("tsb compare found no ratio: {}", result["notes"]);
    }
    ratios.iter().map(Ratio::of).collect()
}

/// What `tsb compare` prints as JSON.
fn result(program: &Path, arguments: &[&str]) -> Result<Value> {
    let mut command = Command::new(program);
    command.arg("compare").args(arguments);
    command.args(COMMAND.split(' ').skip_while(|word| *word != "--transport"));
    command.args(["--quiet", "--format", "json"]);
    serde_json::from_str(&capture(&mut command)?).context("tsb compare prints JSON")
}
