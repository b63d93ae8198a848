//! Compares the installed toolchain with the version that the manifest requires.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Outcome;
use crate::shell::{capture, root};

/// Fails when the manifest states no `rust-version` or the compiler is older.
pub(super) fn check() -> Result<Outcome> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let stated = stated(&manifest).context("Cargo.toml states no rust-version")?;
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = capture(Command::new(compiler).arg("--version").current_dir(root()))?;
    let printed = printed.trim();
    println!("{printed}; the manifest asks for {stated}");
    let at_hand = printed.split(' ').nth(1).unwrap_or_default();
    if version(at_hand) < version(&stated) {
        bail!("{printed} is older than rust-version {stated}; rustup update stable brings a newer one");
    }
    Ok(Outcome::Passed(format!("{at_hand}, asked for {stated}")))
}

/// The `rust-version` of a workspace manifest.
fn stated(manifest: &str) -> Option<String> {
    let lines = manifest.lines().map(str::trim);
    let values = lines.filter_map(|line| line.strip_prefix("rust-version")?.trim_start().strip_prefix('='));
    values.map(|value| value.trim().trim_matches('"').to_owned()).next()
}

/// The numbers of a version, so that they compare as versions do.
fn version(text: &str) -> Vec<u32> {
    let release = text.split('-').next().unwrap_or_default();
    release.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_states_its_rust_version() {
        assert_eq!(stated("[a]\nrust-version = \"1.95\"\n"), Some("1.95".to_owned()));
        assert_eq!(stated("[a]\nedition = \"2024\"\n"), None);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(version("1.100.0") > version("1.95"));
        assert!(version("1.95.0-nightly") >= version("1.95"));
        assert!(version("1.94.1") < version("1.95"));
    }
}
