//! System packages that the tests need: one table, installed where that is possible.

use std::process::Command;

use anyhow::Result;

use super::Outcome;
use crate::shell::{capture, has, run};

/// A program that some check needs and a Debian package that brings it.
struct Package {
    name: &'static str,
    /// The program, and an argument with which it does nothing and succeeds.
    probe: (&'static str, &'static str),
    needed_by: &'static str,
}

/// Everything that the checks need beyond the Rust toolchain and a C compiler.
const PACKAGES: &[Package] = &[Package {
    name: "git",
    probe: ("git", "--version"),
    needed_by: "tidy, which asks git for the list of files",
}];

/// What to do about missing packages.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Nothing,
    Install(Vec<&'static str>),
    /// They cannot be installed here; say so and go on.
    Tell(String),
}

/// Installs what is missing, or says what somebody else has to install.
pub(super) fn install() -> Result<Outcome> {
    for package in PACKAGES {
        println!("{}: for {}", package.name, package.needed_by);
    }
    let missing: Vec<&Package> = PACKAGES
        .iter()
        .filter(|package| !has(package.probe.0, package.probe.1))
        .collect();
    let is_root = capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    match decide(&missing, is_root, has("apt-get", "--version")) {
        Action::Nothing => Ok(Outcome::Passed(format!("{} present", PACKAGES.len()))),
        Action::Tell(why) => Ok(Outcome::NotRun(why)),
        Action::Install(names) => {
            run(Command::new("apt-get").args(["update", "--quiet"]))?;
            let mut command = Command::new("apt-get");
            command
                .args(["install", "--yes", "--no-install-recommends"])
                .args(&names);
            run(command.env("DEBIAN_FRONTEND", "noninteractive"))?;
            Ok(Outcome::Passed(format!("installed {}", names.join(" "))))
        }
    }
}

fn decide(missing: &[&Package], is_root: bool, has_apt: bool) -> Action {
    let names: Vec<&'static str> = missing.iter().map(|package| package.name).collect();
    if names.is_empty() {
        return Action::Nothing;
    }
    if is_root && has_apt {
        return Action::Install(names);
    }
    let why = if has_apt {
        "this is not root"
    } else {
        "there is no apt-get"
    };
    let needs: Vec<String> = missing
        .iter()
        .map(|package| format!("{} (for {})", package.name, package.needed_by))
        .collect();
    Action::Tell(format!("{why}; install {}", needs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_only_by_root_with_apt() {
        let git = &PACKAGES[0];
        assert_eq!(decide(&[], true, true), Action::Nothing);
        assert_eq!(decide(&[git], true, true), Action::Install(vec!["git"]));
        let told = decide(&[git], false, true);
        assert!(
            matches!(&told, Action::Tell(why) if why.starts_with("this is not root; install git")),
            "{told:?}"
        );
        let told = decide(&[git], true, false);
        assert!(
            matches!(&told, Action::Tell(why) if why.starts_with("there is no apt-get")),
            "{told:?}"
        );
    }
}
