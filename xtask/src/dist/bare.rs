//! The CI step `dist`: installs the package into a root that contains only the libraries it
//! depends on, and runs the program there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::make;
use crate::ci::Outcome;
use crate::shell::{capture, empty_folder, has, run, target_folder};

/// Makes both files, installs the package into a bare root, and runs what it holds.
pub(crate) fn check() -> Result<Outcome> {
    if !has("dpkg-deb", "--version") {
        return Ok(Outcome::NotRun(
            "dpkg-deb makes the package, and is not here".to_owned(),
        ));
    }
    let out = target_folder()?.join("dist");
    let made = make(&out)?;
    let list = capture(Command::new("tar").arg("-tzf").arg(&made.archive))?;
    for wanted in [
        "/tsb",
        "/man/tsb-run.1",
        "/completions/_tsb",
        "/LICENSE-MIT",
        "/README.md",
    ] {
        if !list.lines().any(|line| line.ends_with(wanted)) {
            bail!("the archive lacks {wanted}");
        }
    }
    if !rustix::process::getuid().is_root() {
        return Ok(Outcome::Passed("made; it takes root to install it".to_owned()));
    }
    let bare = empty_folder(out.join("root"))?;
    install(&bare, &made.package)?;
    let ran = runs_in(&bare);
    fs::remove_dir_all(&bare)?;
    ran?;
    Ok(Outcome::Passed("installed and run in a bare root".to_owned()))
}

/// Installs the package into a root with an empty database of packages.
fn install(bare: &Path, package: &Path) -> Result<()> {
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp"] {
        fs::create_dir_all(bare.join(folder))?;
    }
    fs::write(bare.join("var/lib/dpkg/status"), "")?;
    fs::write(bare.join("var/lib/dpkg/available"), "")?;
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", bare.display()));
    // What it depends on is put there by hand: a whole system would hide what is missing.
    run(dpkg.args(["--force-depends", "--install"]).arg(package))?;
    for library in libraries(&bare.join("usr/bin/tsb"))? {
        let to = bare.join(library.strip_prefix("/").unwrap_or(&library));
        fs::create_dir_all(to.parent().context("a library in a folder")?)?;
        fs::copy(&library, &to).with_context(|| format!("cannot copy {}", library.display()))?;
    }
    Ok(())
}

/// The libraries that a program is linked with, and what loads them. They are to belong to what
/// the package depends on.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    const KNOWN: [&str; 4] = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];
    let printed = capture(Command::new("ldd").arg(program))?;
    let paths = printed
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from);
    let paths: Vec<PathBuf> = paths.collect();
    let stranger = paths.iter().find(|path| {
        let path = path.display().to_string();
        !KNOWN.iter().any(|known| path.contains(known))
    });
    match stranger {
        Some(path) => bail!(
            "the program needs {}, which the package does not depend on",
            path.display()
        ),
        None => Ok(paths),
    }
}

/// Runs the installed program, and looks at its report.
fn runs_in(bare: &Path) -> Result<()> {
    let in_root = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(bare).args(words);
        command
    };
    run(&mut in_root(&["/usr/bin/tsb", "--version"]))?;
    run(&mut in_root(&[
        "/usr/bin/tsb",
        "run",
        "--duration",
        "1s",
        "--quiet",
        "--out",
        "/tmp/r.json",
    ]))?;
    let report: serde_json::Value = serde_json::from_slice(&fs::read(bare.join("tmp/r.json"))?)?;
    let counts = &report["ledger"];
    if counts["verified"].as_u64().unwrap_or(0) == 0 || counts["verified"] != counts["accepted"] {
        bail!("the installed program did not read back what it had accepted: {counts}");
    }
    for page in ["usr/share/man/man1/tsb.1", "usr/share/doc/tsb/copyright"] {
        let file = fs::metadata(bare.join(page)).with_context(|| format!("{page} is not installed"))?;
        if file.len() == 0 || file.uid() != 0 {
            bail!("{page} is empty, or not root's");
        }
    }
    Ok(())
}
