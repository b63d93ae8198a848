//! rrdtool's own tests, from the source package of the distribution.
//!
//! They are fetched, run and never committed. The system's list of package sources stays as it
//! is: source packages are looked up in a list of our own that names the same places.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::run;

/// Where the system keeps its package sources.
const LISTS: &str = "/etc/apt/sources.list.d";
const LIST: &str = "/etc/apt/sources.list";

/// Unpacks the source of rrdtool into `folder`, unless it is there.
pub(super) fn fetch(folder: &Path) -> Result<()> {
    if folder.join("tests").is_dir() {
        return Ok(());
    }
    let apt = folder.with_extension("apt");
    fs::create_dir_all(apt.join("parts")).context("cannot make a folder for source packages")?;
    fs::create_dir_all(apt.join("lists/partial"))?;
    source_lists(&apt.join("parts"))?;
    run(get(&apt).args(["--quiet", "update"]))?;
    run(get(&apt)
        .args(["--quiet", "source", "--download-only", "rrdtool"])
        .current_dir(&apt))?;
    let archive = archive(&apt)?;
    fs::create_dir_all(folder)?;
    run(Command::new("tar")
        .args(["--extract", "--strip-components=1", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(folder))
}

/// apt-get with package sources of our own.
fn get(apt: &Path) -> Command {
    let mut command = Command::new("apt-get");
    let option = |name: &str, place: PathBuf| format!("{name}={}", place.display());
    command.args(["-o", "Dir::Etc::sourcelist=/dev/null", "-o"]);
    command.arg(option("Dir::Etc::sourceparts", apt.join("parts")));
    command.arg("-o").arg(option("Dir::State::lists", apt.join("lists")));
    command
}

/// The package sources of the system, of source packages.
fn source_lists(into: &Path) -> Result<()> {
    let mut paths = vec![PathBuf::from(LIST)];
    if let Ok(entries) = fs::read_dir(LISTS) {
        paths.extend(entries.flatten().map(|entry| entry.path()));
    }
    for path in paths {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let Some(extension @ ("list" | "sources")) = extension else {
            continue;
        };
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        fs::write(into.join(format!("{name}.{extension}")), of_sources(&text))?;
    }
    Ok(())
}

/// A list of package sources, with source packages in the place of built ones.
fn of_sources(text: &str) -> String {
    let line = |line: &str| match line.trim_start() {
        words if words.starts_with("deb ") => words.replacen("deb ", "deb-src ", 1),
        words if words.starts_with("Types:") => "Types: deb-src".to_owned(),
        words if words.starts_with("deb-src ") => String::new(),
        _ => line.to_owned(),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

fn archive(apt: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(apt)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("rrdtool_") && name.contains(".orig.tar") {
            return Ok(path);
        }
    }
    bail!("the source package of rrdtool has no archive of the original")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_package_sources_name_source_packages() {
        let check = |text: &str, expected: &str| assert_eq!(of_sources(text), expected);
        check(
            "Types: deb\nURIs: x\nSuites: a b\n",
            "Types: deb-src\nURIs: x\nSuites: a b\n",
        );
        check("Types: deb deb-src\n", "Types: deb-src\n");
        check(
            "# deb x\ndeb [a=b] x main\ndeb-src x main\n",
            "# deb x\ndeb-src [a=b] x main\n\n",
        );
    }
}
