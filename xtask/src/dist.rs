//! `cargo xtask dist`: makes the files for users without a Rust toolchain: an archive, and a
//! Debian package made by `dpkg-deb`, each with the program, its manual pages, completions and
//! licences.

mod bare;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{capture, cargo, empty_folder, root, run, target_folder};

pub(crate) use bare::check;

/// Shells, and where a Debian system looks for their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tsb"),
    ("zsh", "usr/share/zsh/vendor-completions/_tsb"),
    ("fish", "usr/share/fish/vendor_completions.d/tsb.fish"),
];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// What was made.
pub(crate) struct DistFiles {
    pub(crate) archive: PathBuf,
    pub(crate) package: PathBuf,
}

/// `dist [--out FOLDER]`.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    let out = match arguments {
        [] => target_folder()?.join("dist"),
        ["--out", folder] => PathBuf::from(folder),
        _ => bail!("usage: cargo xtask dist [--out FOLDER]"),
    };
    let made = make(&out)?;
    println!("{}\n{}", made.archive.display(), made.package.display());
    Ok(())
}

/// Builds the program, and both files into `out`.
pub(crate) fn make(out: &Path) -> Result<DistFiles> {
    run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    let program = target_folder()?.join("release/tsb");
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("tsb-{version}-{}-linux", std::env::consts::ARCH);
    Ok(DistFiles {
        archive: archive(out, &name, &program)?,
        package: package(out, version, &program)?,
    })
}

/// Writes a file that anybody may read, and makes the folders above it.
fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = path.parent().context("a file in a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// One folder that holds everything, as a compressed archive.
fn archive(out: &Path, name: &str, program: &Path) -> Result<PathBuf> {
    let folder = empty_folder(out.join(name))?;
    put(&folder.join("tsb"), &fs::read(program)?, 0o755)?;
    run(Command::new(program).args(["man", "--dir"]).arg(folder.join("man")))?;
    for (shell, path) in COMPLETIONS {
        let file = Path::new(path).file_name().context("a name")?;
        let script = capture(Command::new(program).args(["completions", shell]))?;
        put(&folder.join("completions").join(file), script.as_bytes(), 0o644)?;
    }
    for document in DOCUMENTS {
        put(&folder.join(document), &fs::read(root().join(document))?, 0o644)?;
    }
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "-czf"]);
    run(tar.arg(&archive).arg("-C").arg(out).arg(name))?;
    fs::remove_dir_all(&folder)?;
    Ok(archive)
}

/// A Debian package.
fn package(out: &Path, version: &str, program: &Path) -> Result<PathBuf> {
    let architecture = capture(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let folder = empty_folder(out.join("deb"))?;
    put(&folder.join("usr/bin/tsb"), &fs::read(program)?, 0o755)?;
    let pages = folder.join("usr/share/man/man1");
    run(Command::new(program).args(["man", "--dir"]).arg(&pages))?;
    for (shell, path) in COMPLETIONS {
        let script = capture(Command::new(program).args(["completions", shell]))?;
        put(&folder.join(path), script.as_bytes(), 0o644)?;
    }
    let documents = folder.join("usr/share/doc/tsb");
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| fs::read_to_string(root().join(name)));
    let [mit, apache] = licences;
    put(
        &documents.join("copyright"),
        format!("{}\n\n{}", mit?, apache?).as_bytes(),
        0o644,
    )?;
    put(
        &documents.join("README.md"),
        &fs::read(root().join("README.md"))?,
        0o644,
    )?;
    let control = control(version, architecture, &fs::read(program)?);
    put(&folder.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
    let package = out.join(format!("tsb_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]);
    run(build.arg(&folder).arg(&package))?;
    fs::remove_dir_all(&folder)?;
    Ok(package)
}

/// The control file of the package.
fn control(version: &str, architecture: &str, program: &[u8]) -> String {
    let mut text = format!("Package: tsb\nVersion: {version}\nArchitecture: {architecture}\n");
    let (major, minor) = newest_glibc(program);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "Maintainer: tsb <https://github.com/tsb-bench/tsb>\nSection: utils\nPriority: optional\n\
         Depends: libc6 (>= {major}.{minor}), libgcc-s1\n\
         Homepage: https://github.com/tsb-bench/tsb\n\
         Description: how many metrics per second can this store really take?\n \
         Simulates a fleet that reports at a fixed rate, drives it at a metric store,\n \
         times it from when each operation was due, and reads every sample back.\n"
    );
    text
}

/// The newest version of glibc's symbols that a program names: what it needs to start.
fn newest_glibc(program: &[u8]) -> (u32, u32) {
    const MARK: &[u8] = b"GLIBC_";
    let mut newest = (2, 17);
    for at in 0..program.len().saturating_sub(MARK.len()) {
        if program.get(at..at + MARK.len()) != Some(MARK) {
            continue;
        }
        let rest = &program[at + MARK.len()..program.len().min(at + MARK.len() + 8)];
        let text: String = rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
            .map(|byte| char::from(*byte))
            .collect();
        let mut parts = text.split('.').map(str::parse::<u32>);
        if let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) {
            newest = newest.max((major, minor));
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_is_what_a_package_depends_on() {
        let program = b"\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.9.1\0GLIBC_PRIVATE\0GLIBC_2";
        assert_eq!(newest_glibc(program), (2, 34));
        let control = control("0.1.0", "amd64", program);
        assert!(control.contains("Depends: libc6 (>= 2.34), libgcc-s1\n"), "{control}");
        assert!(
            control.ends_with(".\n") && control.contains("\n Simulates"),
            "{control}"
        );
    }
}
