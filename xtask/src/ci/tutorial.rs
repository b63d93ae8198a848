//! Runs the commands of the tutorial as a reader would type them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Outcome;
use crate::shell::{cargo, empty_folder, root, run, target_folder};

/// Runs every `sh` block of docs/tutorial.md in an empty directory, in order.
pub(super) fn check() -> Result<Outcome> {
    run(&mut cargo(&["build", "--release", "--bin", "tsb"]))?;
    let text = std::fs::read_to_string(root().join("docs/tutorial.md")).context("cannot read the tutorial")?;
    let blocks = blocks(&text);
    if blocks.len() < 5 {
        bail!("the tutorial has only {} blocks of commands", blocks.len());
    }
    let target = target_folder()?;
    let folder = empty_folder(target.join("tutorial"))?;
    for block in &blocks {
        follow(block, &folder, &target.join("release"))?;
    }
    for page in ["first.html", "stalls.html", "both.html", "mine.html", "own.html"] {
        let length = std::fs::metadata(folder.join(page)).map_or(0, |about| about.len());
        if length < 50_000 {
            bail!("{page} has {length} bytes");
        }
    }
    Ok(Outcome::Passed(format!("{} blocks", blocks.len())))
}

/// The contents of the blocks that begin with ```` ```sh ````.
fn blocks(text: &str) -> Vec<String> {
    let parts = text.split("\n```sh\n").skip(1);
    parts
        .filter_map(|part| part.split("\n```").next())
        .map(str::to_owned)
        .collect()
}

/// A block stops at its first failure. A run whose generator was the limit (exit code 3) is
/// no failure of the tutorial: the machine may be busy.
fn follow(block: &str, folder: &Path, programs: &Path) -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("tsb() {{ command tsb \"$@\" || [ $? -eq 3 ]; }}\nset -e\n{block}\n");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("CI", "true");
    println!("{block}");
    run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_commands_are_run() {
        let text = "a\n```sh\none\ntwo\n```\n```text\nno\n```\n\n```sh\nthree\n```\n";
        assert_eq!(blocks(text), ["one\ntwo", "three"]);
    }
}
