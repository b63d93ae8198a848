//! Builds each contestant and makes the command that it runs.

use std::process::Command;

use anyhow::Result;

use super::Contestant;
use crate::golang;
use crate::shell::{cargo, run, target_folder};

/// Hosts of the peer's fleet, each with ten fields.
const TSBS_HOSTS: &str = "1000";

/// Samples that tsb writes: as many values as the peer (1,440 rows of ten for each host).
const TSB_SAMPLES: &str = "14400000";

/// `tsbs_generate_data`, built from the module proxy on first use.
pub(super) fn tsbs() -> Result<Contestant> {
    let program = golang::program(&golang::TSBS, "tsbs_generate_data")?;
    let mut command = Command::new(program);
    command.args([
        "--use-case=cpu-only",
        "--seed=1",
        "--log-interval=10s",
        "--format=influx",
    ]);
    command.arg(format!("--scale={TSBS_HOSTS}"));
    command.args([
        "--timestamp-start=2016-01-01T00:00:00Z",
        "--timestamp-end=2016-01-01T04:00:00Z",
    ]);
    Ok(Contestant {
        name: "tsbs_generate_data",
        work: "Influx lines, 10 fields",
        command,
        values_per_line: 10,
    })
}

/// tsb's own generator and Graphite encoder, as a program that writes to standard output.
pub(super) fn tsb() -> Result<Contestant> {
    let example = "generate_text";
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "tsb-bench",
        "--example",
        example,
    ]))?;
    let mut command = Command::new(target_folder()?.join("release/examples").join(example));
    command.arg(TSB_SAMPLES);
    Ok(Contestant {
        name: "tsb",
        work: "Graphite lines, mix fleet",
        command,
        values_per_line: 1,
    })
}

/// What encoding and decoding cost without the making of values.
pub(super) fn wire_table() -> Command {
    cargo(&[
        "run",
        "--release",
        "--quiet",
        "--package",
        "tsb-bench",
        "--example",
        "wire_table",
    ])
}
