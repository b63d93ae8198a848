//! `cargo xtask mutate`: mutation tests of the measuring code and the stores, one change at a
//! time.
//!
//! A measurement can be wrong without any test noticing. Therefore each place on which the
//! figures depend is changed in a copy of the workspace, and the tests of its crate must fail.
//! The lists are in `list` and `sqlite`; `docs/mutations.md` shows them, with the test that
//! caught each.

mod list;
mod sqlite;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{self, Stopwatch, capture, cargo, root};
use crate::table::Table;
use list::{MUTATIONS, Mutation};

/// Breaks each place whose description contains `filter`, and fails if a break survives.
pub(crate) fn run(filter: &str) -> Result<()> {
    let chosen: Vec<&Mutation> = all().filter(|mutation| mutation.what.contains(filter)).collect();
    if chosen.is_empty() {
        bail!("no mutation is described by {filter:?}");
    }
    let copy = Copy::new()?;
    let mut table = Table::new(&["mutation", ">seconds", "caught by"]);
    let mut survivors = 0;
    for mutation in chosen {
        println!("{}", mutation.what);
        let watch = Stopwatch::start();
        let caught = copy.caught_by(mutation)?;
        survivors += usize::from(caught.is_none());
        let seconds = format!("{:.0}", watch.elapsed().as_secs_f64());
        table.row(&[mutation.what, &seconds, caught.as_deref().unwrap_or("NOTHING")]);
    }
    println!("\n{}", table.render());
    if survivors > 0 {
        bail!("{survivors} mutations were caught by no test");
    }
    Ok(())
}

/// Every break: of the instrument, and of stores.
fn all() -> impl Iterator<Item = &'static Mutation> {
    MUTATIONS.iter().chain(sqlite::MUTATIONS)
}

impl Mutation {
    /// The source with the break in it.
    fn apply(&self, source: &str) -> Result<String> {
        let places = source.matches(self.from).count();
        if places != 1 {
            bail!("{}: {places} places in {} read {:?}", self.what, self.file, self.from);
        }
        Ok(source.replacen(self.from, self.to, 1))
    }
}

/// A copy of the workspace as git knows it, with a build folder of its own.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn new() -> Result<Self> {
        let folder = shell::target_folder()?.join("mutations");
        let sources = folder.join("workspace");
        shell::remove_folder(&sources)?;
        let mut git = std::process::Command::new("git");
        let files = capture(git.args(["ls-files", "-z"]).current_dir(root()))?;
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let (from, to) = (root().join(file), sources.join(file));
            if from.is_file() {
                copy_file(&from, &to)?;
            }
        }
        Ok(Self { folder })
    }

    /// The first test that fails with the mutation in place.
    fn caught_by(&self, mutation: &Mutation) -> Result<Option<String>> {
        let path = self.folder.join("workspace").join(mutation.file);
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {}", mutation.file))?;
        fs::write(&path, mutation.apply(&source)?)?;
        let outcome = self.test(mutation);
        fs::write(&path, source)?;
        let (code, output) = outcome?;
        let failed = output.lines().find_map(|line| {
            let test = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(test.to_owned())
        });
        match (code, failed) {
            (Some(0), _) => Ok(None),
            (_, Some(test)) => Ok(Some(test)),
            _ => bail!("{}: the tests did not even run:\n{output}", mutation.what),
        }
    }

    fn test(&self, mutation: &Mutation) -> Result<(Option<i32>, String)> {
        let mut command = cargo(&["test", "--package", mutation.package]);
        command.args(mutation.tests);
        command.current_dir(self.folder.join("workspace"));
        command.env("CARGO_TARGET_DIR", self.folder.join("target"));
        // A break may make a variable superfluous; that is not what is tested.
        command.env("RUSTFLAGS", "-Awarnings");
        shell::capture_any(&mut command)
    }
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_still_finds_its_place_and_is_documented() {
        let page = fs::read_to_string(root().join("docs/mutations.md")).expect("the page");
        for mutation in all() {
            let source = fs::read_to_string(root().join(mutation.file)).expect(mutation.file);
            let broken = mutation.apply(&source).expect("exactly one place");
            assert_ne!(broken, source, "{}", mutation.what);
            assert!(
                page.contains(mutation.what),
                "docs/mutations.md lacks: {}",
                mutation.what
            );
        }
    }
}
