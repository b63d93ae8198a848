//! Checks what the libraries must not depend on: a program that embeds `tsb-core`, or only the
//! memory store, gets no async runtime and no C code.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::shell::{capture, cargo};

/// Packages that stay lean without their features.
const LEAN: &[&str] = &["tsb-core", "tsb-rrd", "tsb-stores"];

/// Drivers of servers: they take minutes to compile, and most users do not need them.
const DRIVERS: &[&str] = &["mongodb", "tonic", "tokio-postgres", "scylla"];

/// Dependencies that only the program may have: an embedding program has its own interface.
const TERMINAL: &[&str] = &["clap", "ratatui", "crossterm", "anstream", "ctrlc"];

/// What only clients of servers and connections need.
const RUNTIMES: &[&str] = &["tokio", "mio", "async-std", "smol", "socket2"];

/// Checks the dependency trees of the lean packages, and of those that are embedded.
pub(super) fn check() -> Result<Outcome> {
    let with_c = packages_with_c()?;
    let mut notes = Vec::new();
    if let Some(driver) = tree("tsb-cli")?.iter().find(|name| DRIVERS.contains(&name.as_str())) {
        bail!("the default build of tsb-cli has {driver} in it, which only a feature may bring");
    }
    if let Some(terminal) = tree("tsb-run")?
        .iter()
        .find(|name| TERMINAL.iter().chain(DRIVERS).any(|other| other == name))
    {
        bail!("tsb-run has {terminal} in it, which only the program may need");
    }
    if let Some(runtime) = tree_of("tsb-stores", &["--features", "conformance,sqlite"])?
        .iter()
        .find(|name| RUNTIMES.contains(&name.as_str()))
    {
        bail!("tsb-stores has {runtime} in it, which only tsb-core's net and tsb-remote may need");
    }
    for package in LEAN {
        let names = tree(package)?;
        let offenders = offenders(&names, &with_c);
        if !offenders.is_empty() {
            bail!("{package} without features depends on {}", offenders.join(", "));
        }
        println!("{package}: {} packages, none of them tokio or C", names.len());
        notes.push(format!("{package} {}", names.len()));
    }
    Ok(Outcome::Passed(format!("no tokio, no C in {}", notes.join(", "))))
}

/// The packages that one is built with, without more features than its default ones.
fn tree(package: &str) -> Result<Vec<String>> {
    tree_of(package, &[])
}

/// The same with more features.
fn tree_of(package: &str, features: &[&str]) -> Result<Vec<String>> {
    let arguments = [
        "tree",
        "--package",
        package,
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ];
    Ok(names(&capture(
        cargo(&arguments).args(features).args(["--format", "{p}"]),
    )?))
}

/// The distinct package names of a `cargo tree`.
fn names(tree: &str) -> Vec<String> {
    let first_words = tree.lines().filter_map(|line| line.split(' ').next());
    let mut names: Vec<String> = first_words.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Those that are an async runtime, or bring C code or a foreign library.
fn offenders<'a>(names: &'a [String], with_c: &[String]) -> Vec<&'a str> {
    let builders = ["cc", "cmake", "bindgen", "pkg-config", "vcpkg"];
    let is_bad = |name: &str| {
        // The kernel's own constants in Rust: it links nothing. Nor is `libc` a foreign
        // library: it declares what std is linked with anyway, and compiles no C.
        let is_foreign = name.ends_with("-sys") && name != "linux-raw-sys";
        let is_named = RUNTIMES.contains(&name) || builders.contains(&name);
        is_named || is_foreign || with_c.iter().any(|c| c == name)
    };
    names.iter().map(String::as_str).filter(|name| is_bad(name)).collect()
}

/// Every package of the lock file that links a foreign library, by its own manifest.
fn packages_with_c() -> Result<Vec<String>> {
    let metadata = capture(&mut cargo(&["metadata", "--format-version", "1", "--all-features"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    // `links` names a native library; pure Rust packages use it too, to be unique.
    let pure = ["rayon-core", "prettyplease"];
    let linked = packages.iter().filter(|package| package["links"].is_string());
    let names = linked.filter_map(|package| package["name"].as_str());
    Ok(names.filter(|name| !pure.contains(name)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_and_c_are_found_in_a_tree() {
        let names = names("a v1.0.0\nlinux-raw-sys v0.12.1\ntokio v1.0.0\nb v0.1.0 (*)\nzstd-sys v2.0.0\nb v0.1.0\n");
        assert_eq!(names, ["a", "b", "linux-raw-sys", "tokio", "zstd-sys"]);
        assert_eq!(offenders(&names, &["b".to_owned()]), ["b", "tokio", "zstd-sys"]);
        assert!(offenders(&names[..1], &[]).is_empty());
    }
}
