//! Fetches Java programs by Maven.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell::run;

const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";

/// Copies one file, named `GROUP:NAME:VERSION`, into a folder.
pub(crate) fn copy(artifact: &str, folder: &Path) -> Result<()> {
    run(maven("copy", folder)
        .arg(format!("-Dartifact={artifact}"))
        .arg(format!("-DoutputDirectory={}", folder.display())))
}

/// Copies programs with everything that they need when they run into the folder `jars` of `folder`;
/// `dependencies` are elements of Maven's description of a project.
pub(crate) fn copy_with_dependencies(dependencies: &str, folder: &Path) -> Result<()> {
    let project = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>tsb</groupId><artifactId>fetched</artifactId>\
         <version>1</version><dependencies>{dependencies}</dependencies></project>\n"
    );
    fs::write(folder.join("pom.xml"), project)?;
    run(maven("copy-dependencies", folder).args(["-DincludeScope=runtime", "-DoutputDirectory=jars"]))
}

/// An element that names a program.
pub(crate) fn dependency(group: &str, name: &str, version: &str) -> String {
    format!(
        "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
    )
}

fn maven(goal: &str, folder: &Path) -> Command {
    let mut command = Command::new("mvn");
    command.args(["--quiet", "--batch-mode", &format!("{PLUGIN}:{goal}")]);
    command.current_dir(folder);
    command
}
