//! `cargo xtask peers load`: `tsbs_load_influx` and `tsb emit` in turn send to one listener of
//! ours that discards what it decodes; measures the cost of a value for each sender.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::cpu::{Cost, CpuMeter};
use crate::golang;
use crate::shell::{self, cargo, spell, target_folder};
use crate::table::Table;
use crate::turns;

/// How often A B B A is run when nothing else is asked for.
const ROUNDS: usize = 2;

/// Rows of ten values that the peer puts into a request; ours has as many values in one.
const ROWS: u64 = 1_000;

/// Rows that the peer sends: 100 hosts, every ten seconds for four hours.
const PEER_ROWS: u64 = 144_000;

/// Values that we send: more, as they take less.
const OUR_VALUES: u64 = 4_800_000;

/// How both send.
#[derive(Clone, Copy, Debug)]
struct LoadSettings {
    connections: u64,
    is_gzip: bool,
}

const LOADS: [LoadSettings; 4] = [
    LoadSettings {
        connections: 1,
        is_gzip: false,
    },
    LoadSettings {
        connections: 4,
        is_gzip: false,
    },
    LoadSettings {
        connections: 1,
        is_gzip: true,
    },
    LoadSettings {
        connections: 4,
        is_gzip: true,
    },
];

/// A listener in a process of its own.
struct Listener {
    child: Child,
    address: String,
    /// Open as long as it may say something.
    _said: BufReader<ChildStderr>,
}

impl Listener {
    fn start() -> Result<Self> {
        let mut command = Command::new(tsb()?);
        command.args(["ingest", "--listen", "influx+http://127.0.0.1:0", "--store", "null:"]);
        command.args(["--quiet", "--format", "json", "--duration", "30m"]);
        println!("$ {}", spell(&command));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let said = child.stderr.take().context("the listener has no stderr")?;
        let mut said = BufReader::new(said);
        said.read_line(&mut line)?;
        let behind = line.split("://").nth(1).and_then(|rest| rest.split(' ').next());
        let address = behind
            .with_context(|| format!("the listener said {line:?}"))?
            .to_owned();
        Ok(Self {
            child,
            address,
            _said: said,
        })
    }

    /// Ends it; returns how many samples it took.
    fn stop(mut self) -> Result<u64> {
        shell::run(Command::new("kill").args(["-INT", &self.child.id().to_string()]))?;
        let mut text = String::new();
        let mut printed = self.child.stdout.take().context("the listener has no stdout")?;
        printed.read_to_string(&mut text)?;
        self.child.wait()?;
        let result: Value = serde_json::from_str(&text).context("the listener printed no JSON")?;
        ensure!(
            result["ledger"]["balanced"] == true,
            "the listener's ledger: {}",
            result["ledger"]
        );
        result["ledger"]["accepted"]
            .as_u64()
            .context("the listener accepted no number")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tsb() -> Result<std::path::PathBuf> {
    Ok(target_folder()?.join("release/tsb"))
}

/// Builds, runs and prints.
pub(super) fn run(arguments: &[&str]) -> Result<()> {
    let rounds = turns::rounds("peers load", arguments, ROUNDS)?;
    let folder = golang::folder()?;
    let (generate, load) = ["tsbs_generate_data", "tsbs_load_influx"]
        .map(|name| golang::program(&golang::TSBS, name))
        .into();
    let (mut generate, load) = (Command::new(generate?), load?);
    shell::run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    let file = folder.join("load.influx");
    generate.args([
        "--use-case=cpu-only",
        "--seed=1",
        "--scale=100",
        "--log-interval=10s",
        "--format=influx",
    ]);
    generate.args([
        "--timestamp-start=2016-01-01T00:00:00Z",
        "--timestamp-end=2016-01-01T04:00:00Z",
    ]);
    shell::run(generate.arg("--file").arg(&file))?;
    let listener = Listener::start()?;
    let meter = CpuMeter::new()?;
    let mut table = heading();
    let mut sent = 0;
    for way in LOADS {
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for index in turns::ROUND {
                let address = &listener.address;
                let mut command = if index == 0 {
                    let mut command = Command::new(&load);
                    command.arg("--file").arg(&file);
                    peer(command, address, way)
                } else {
                    ours(Command::new(tsb()?), address, way)
                };
                let (cost, said) = meter.cost_of(&mut command)?;
                let values = if index == 0 { loaded(&said)? } else { confirmed(&said)? };
                println!(
                    "{}: {values} values, {:.2} CPU-s, {:.2} s",
                    spell(&command),
                    cost.cpu_s,
                    cost.wall_s
                );
                sent += values;
                costs[index].push((values, cost));
            }
        }
        rows(&mut table, way, &costs);
    }
    let accepted = listener.stop()?;
    ensure!(
        accepted == sent,
        "{sent} values were sent, and the listener took {accepted}"
    );
    println!("\n{}\n{}", table.render(), notes(sent, 2 * rounds));
    Ok(())
}

fn peer(mut command: Command, address: &str, way: LoadSettings) -> Command {
    command.arg(format!("--workers={}", way.connections));
    command
        .arg(format!("--batch-size={ROWS}"))
        .arg(format!("--gzip={}", way.is_gzip));
    command
        .arg("--reporting-period=0")
        .arg(format!("--urls=http://{address}"));
    command
}

fn ours(mut command: Command, address: &str, way: LoadSettings) -> Command {
    let series = 10 * ROWS * way.connections;
    let gzip = if way.is_gzip { "on" } else { "off" };
    command
        .args(["emit", "--to"])
        .arg(format!("influx+http://{address}?gzip={gzip}"));
    command.args([
        "--workload",
        "mix",
        "--batch",
        "tick",
        "--rate",
        "max",
        "--quiet",
        "--format",
        "json",
    ]);
    command.arg("--series").arg(series.to_string());
    command.arg("--connections").arg(way.connections.to_string());
    // A tick a second.
    command.arg("--fleet-time").arg(format!("{}s", OUR_VALUES / series));
    command
}

/// What the peer says that it loaded: `loaded N metrics in ...`.
fn loaded(said: &str) -> Result<u64> {
    let behind = said.split("loaded ").nth(1).and_then(|rest| rest.split(' ').next());
    let values: u64 = behind.context("the peer does not say what it loaded")?.parse()?;
    ensure!(values == 10 * PEER_ROWS, "the peer loaded {values} values");
    Ok(values)
}

fn confirmed(said: &str) -> Result<u64> {
    let result: Value = serde_json::from_str(said).context("tsb printed no JSON")?;
    let values = result["ledger"]["confirmed"].as_u64().unwrap_or_default();
    ensure!(values == OUR_VALUES, "of {OUR_VALUES} values {values} were confirmed");
    Ok(values)
}

fn heading() -> Table {
    Table::new(&[
        "into one listener",
        ">connections",
        "gzip",
        ">M values/CPU-s",
        ">lowest..highest",
        ">M values/s",
        ">ratio",
    ])
}

fn rows(table: &mut Table, way: LoadSettings, costs: &[Vec<(u64, Cost)>; 2]) {
    let rates = |index: usize, seconds: fn(&Cost) -> f64| {
        let rates = costs[index]
            .iter()
            .map(|(values, cost)| *values as f64 / seconds(cost) / 1e6);
        turns::spread(rates.collect()).unwrap_or_default()
    };
    let [_, peer, _] = rates(0, |cost| cost.cpu_s);
    for (index, name) in ["tsbs_load_influx", "tsb emit"].into_iter().enumerate() {
        let [low, median, high] = rates(index, |cost| cost.cpu_s);
        let [_, wall, _] = rates(index, |cost| cost.wall_s);
        table.row(&[
            name,
            &way.connections.to_string(),
            if way.is_gzip { "on" } else { "off" },
            &format!("{median:.2}"),
            &format!("{low:.2}..{high:.2}"),
            &format!("{wall:.2}"),
            &format!("{:.1}", median / peer),
        ]);
    }
}

fn notes(sent: u64, runs: usize) -> String {
    format!(
        "Medians of {runs} runs each, taken in the order A B B A; every one of {sent} values was confirmed and taken.\n\
         CPU-seconds are user and system time of the sender, start-up included; the listener decodes into a store that forgets,\n\
         on the same cores. A request has {} values. What differs: the peer reads lines of ten fields from a file, which were\n\
         made before, and ours makes every value and line anew, one field a line, with the whole name; the peer compresses at\n\
         level 6, and ours at level 1.",
        10 * ROWS
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_samples_are_read_back() {
        let said = "Summary:\nloaded 1440000 metrics in 1.2sec with 1 workers (mean rate 9 metrics/sec)\n";
        assert_eq!(loaded(said).ok(), Some(1_440_000));
        assert!(loaded("loaded 7 metrics").is_err() && loaded("nothing").is_err());
        let result = |confirmed: u64| format!("{{\"ledger\":{{\"confirmed\":{confirmed}}}}}");
        assert_eq!(confirmed(&result(OUR_VALUES)).ok(), Some(OUR_VALUES));
        assert!(confirmed(&result(OUR_VALUES - 1)).is_err() && confirmed("").is_err());
    }

    #[test]
    fn both_rows_stand_beside_their_ratio() {
        let mut table = heading();
        let cost = |cpu_s| Cost {
            cpu_s,
            wall_s: 2.0 * cpu_s,
        };
        rows(
            &mut table,
            LOADS[1],
            &[vec![(2_000_000, cost(1.0))], vec![(8_000_000, cost(0.5))]],
        );
        let text = table.render();
        assert!(
            text.contains("2.00") && text.contains("16.00") && text.contains("8.0"),
            "{text}"
        );
    }
}
