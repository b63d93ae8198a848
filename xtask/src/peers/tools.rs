//! How each contestant is built, and the command that it runs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Contestant;
use crate::shell::{capture, cargo, run, target_folder};

/// The peer as the Go module proxy carries it: MIT licence, last commit of 2023-09-21.
const TSBS: &str = "github.com/timescale/tsbs@v0.0.0-20230921131859-37fced794d56";

/// Hosts of the peer's fleet, each with ten fields.
const TSBS_HOSTS: &str = "1000";

/// Samples that tsb writes: as many values as the peer (1,440 rows of ten for each host).
const TSB_SAMPLES: &str = "14400000";

/// `tsbs_generate_data`, built from the module proxy on first use.
pub(super) fn tsbs() -> Result<Contestant> {
    let folder = target_folder()?.join("peers");
    let program = folder.join("tsbs_generate_data");
    if !program.is_file() {
        build_tsbs(&folder, &program)?;
    }
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

/// `go install` refuses the module, whose name and dependencies it wants to be a main
/// module's; a copy of its folder builds.
fn build_tsbs(folder: &Path, program: &Path) -> Result<()> {
    let flags = "-modcacherw -buildvcs=false -mod=mod";
    let mut download = Command::new("go");
    download.args(["mod", "download", "-json", TSBS]).env("GOFLAGS", flags);
    println!("$ go mod download {TSBS}");
    let answer: Value = serde_json::from_str(&capture(&mut download)?).context("go mod download printed no JSON")?;
    let module = answer["Dir"].as_str().context("go mod download names no folder")?;
    let source = folder.join("tsbs");
    if source.exists() {
        std::fs::remove_dir_all(&source).with_context(|| format!("cannot remove {}", source.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    run(Command::new("cp")
        .args(["-r", "--no-preserve=mode", module])
        .arg(&source))?;
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(program).arg("./cmd/tsbs_generate_data");
    run(build.env("GOFLAGS", flags).current_dir(&source))
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
