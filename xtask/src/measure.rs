//! `cargo xtask measure NAME`: produces figures for docs/, each with one repeatable command.

mod cost;
mod speed;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::bench;
use crate::shell::target_folder;

/// Measures what is named.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["cost", rest @ ..] => cost::measure(rest),
        ["speed", old, rest @ ..] => speed::measure(old, rest),
        _ => bail!("measure: cost [--rounds N] [--out FILE], or speed COMMIT [--only TABLE] [--rounds N] [--out FILE]"),
    }
}

/// What both are told: how many rounds, where the page goes, and the tables that are wanted.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    rounds: usize,
    out: Option<PathBuf>,
    only: Vec<String>,
}

impl Wish {
    fn parse(arguments: &[&str], rounds: usize) -> Result<Self> {
        let mut wish = Self {
            rounds,
            out: None,
            only: Vec::new(),
        };
        for pair in arguments.chunks(2) {
            match pair {
                ["--rounds", number] => {
                    wish.rounds = match number.parse() {
                        Ok(number) if number > 0 => number,
                        _ => bail!("--rounds needs a number above 0, not {number}"),
                    };
                }
                ["--only", name] => wish.only.push((*name).to_owned()),
                ["--out", file] => wish.out = Some(PathBuf::from(*file)),
                other => bail!("measure: no such argument: {}", other.join(" ")),
            }
        }
        Ok(wish)
    }

    /// Whether a table is wanted: each, where none was named.
    fn wants(&self, table: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == table)
    }

    /// Writes the page, where one was asked for.
    fn save(&self, page: &str) -> Result<()> {
        let Some(path) = &self.out else { return Ok(()) };
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// An empty folder of this job's own below cargo's target folder.
fn folder(name: &str) -> Result<PathBuf> {
    let folder = target_folder()?.join("measure").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// A page of Markdown: its title, the command that makes it, where it ran, and the rest.
fn page(title: &str, command: &str, rest: &str) -> Result<String> {
    let machine = bench::record()?;
    Ok(format!(
        "# {title}\n\nMade by `{command}` on:\n\n```text\n{machine}```\n\n{rest}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_understood_or_refused() {
        let all = ["--rounds", "5", "--out", "x.md", "--only", "wires"];
        let wish = Wish::parse(&all, 3).expect("all are known");
        assert!(wish.wants("wires") && !wish.wants("memory"));
        assert_eq!((wish.rounds, wish.out), (5, Some(PathBuf::from("x.md"))));
        for bad in [&["--rounds", "0"][..], &["--rounds"], &["--fast", "1"]] {
            assert!(Wish::parse(bad, 3).is_err(), "{bad:?}");
        }
    }
}
