//! Builds third-party programs from the Go module proxy, on first use.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{capture, run, target_folder};

/// A module with programs in it.
pub(crate) struct Module {
    /// What its copy is called.
    name: &'static str,
    /// With its exact version.
    path: &'static str,
}

impl Module {
    /// The exact version.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.path.split_once('@').map(|(_, version)| version)
    }
}

/// MIT licence, last commit of 2023-09-21.
pub(crate) const TSBS: Module = Module {
    name: "tsbs",
    path: "github.com/timescale/tsbs@v0.0.0-20230921131859-37fced794d56",
};

/// MIT licence, last commit of 2022-03-25.
pub(crate) const INFLUX_STRESS: Module = Module {
    name: "influx-stress",
    path: "github.com/influxdata/influx-stress@v0.0.0-20220325165603-2b2bbb9eb9d0",
};

/// MIT licence.
pub(crate) const GO_CARBON: Module = Module {
    name: "go-carbon",
    path: "github.com/go-graphite/go-carbon@v0.19.1",
};

const FLAGS: &str = "-modcacherw -buildvcs=false -mod=mod";

/// Where programs of others are kept.
pub(crate) fn folder() -> Result<PathBuf> {
    Ok(target_folder()?.join("peers"))
}

/// The program of a module in its folder `cmd`, built if it is not there yet.
pub(crate) fn program(module: &Module, name: &str) -> Result<PathBuf> {
    built(module, name, &format!("./cmd/{name}"))
}

/// The program that is a module itself, built if it is not there yet.
pub(crate) fn root_program(module: &Module) -> Result<PathBuf> {
    built(module, module.name, ".")
}

fn built(module: &Module, name: &str, package: &str) -> Result<PathBuf> {
    let folder = folder()?;
    let program = folder.join(name);
    if !program.is_file() {
        let source = source(module)?;
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(&program).arg(package);
        run(build.env("GOFLAGS", FLAGS).current_dir(source))?;
    }
    Ok(program)
}

/// A copy of a module: `go install` refuses modules whose name and dependencies it wants to
/// be a main module's, and a copy of their folder builds.
fn source(module: &Module) -> Result<PathBuf> {
    // Away from the programs, which may be called as their module is.
    let folder = folder()?.join("source");
    let source = folder.join(module.name);
    if source.is_dir() {
        return Ok(source);
    }
    let mut download = Command::new("go");
    download
        .args(["mod", "download", "-json", module.path])
        .env("GOFLAGS", FLAGS);
    println!("$ go mod download {}", module.path);
    let answer: Value = serde_json::from_str(&capture(&mut download)?).context("go mod download printed no JSON")?;
    let cached = answer["Dir"].as_str().context("go mod download names no folder")?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    run(Command::new("cp")
        .args(["-r", "--no-preserve=mode", cached])
        .arg(&source))?;
    Ok(source)
}
