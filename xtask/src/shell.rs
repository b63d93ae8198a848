//! Child processes: run them in the open, capture them, and count what they cost.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // At run time cargo says where the manifest is now; the folder may have been moved
    // since the build.
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// `cargo` with these arguments, in the root, by the toolchain that built this program.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    // What cargo set for this program must not reach the builds that it starts: a build script that
    // looks at it would run again, and with it all that rests on its package.
    for (name, _) in std::env::vars_os() {
        let is_of_package = ["CARGO_MANIFEST_", "CARGO_PKG_"]
            .iter()
            .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
        if is_of_package {
            command.env_remove(&name);
        }
    }
    command
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = capture(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let folder = metadata["target_directory"].as_str();
    Ok(folder.map_or_else(|| root().join("target"), PathBuf::from))
}

/// Makes a folder that holds nothing: what an earlier run left there is removed.
pub(crate) fn empty_folder(folder: PathBuf) -> Result<PathBuf> {
    remove_folder(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Removes a folder with all that it holds, if it is there.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    Ok(())
}

/// A command as one would type it.
pub(crate) fn spell(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// Says what runs, runs it with its output in the open, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let spelled = spell(command);
    println!("$ {spelled}");
    std::io::stdout().flush()?;
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {spelled}"))?;
    if !status.success() {
        bail!("{spelled} failed: {status}");
    }
    Ok(())
}

/// Like [`run`], and shows each line of standard output to `see` as it passes.
pub(crate) fn run_seen(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    let spelled = spell(command);
    println!("$ {spelled}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot start {spelled}"))?;
    let output = child.stdout.take().context("the child has no output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.with_context(|| format!("cannot read what {spelled} prints"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        see(&line);
    }
    let status = child.wait().with_context(|| format!("cannot wait for {spelled}"))?;
    if !status.success() {
        bail!("{spelled} failed: {status}");
    }
    Ok(())
}

/// Runs a command and gives its standard output; its errors stay in the open.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let (code, text) = capture_any(command)?;
    if code != Some(0) {
        bail!("{} failed with exit code {code:?}", spell(command));
    }
    Ok(text)
}

/// Runs a command and gives its exit code and standard output, whatever the code is.
pub(crate) fn capture_any(command: &mut Command) -> Result<(Option<i32>, String)> {
    let spelled = spell(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {spelled}"))?;
    let text =
        String::from_utf8(output.stdout).with_context(|| format!("{spelled} printed bytes that are not text"))?;
    Ok((output.status.code(), text))
}

/// Whether this is root.
pub(crate) fn is_root() -> Result<bool> {
    Ok(capture(Command::new("id").arg("-u"))?.trim() == "0")
}

/// Whether a program can be started at all.
pub(crate) fn has(program: &str, probe: &str) -> bool {
    succeeds(Command::new(program).arg(probe))
}

/// Whether a command ends well; what it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

/// A stopwatch for the steps of a job; never a measurement of `tsb`.
#[derive(Debug)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "xtask does not depend on tsb-core, whose clock it would be"
    )]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_spelled_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--workspace"]);
        assert_eq!(spell(&command), "cargo test --workspace");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = run(&mut Command::new("false")).expect_err("false fails");
        assert!(error.to_string().starts_with("false failed"), "{error}");
        let error = run(&mut Command::new("no-such-program-here")).expect_err("it does not exist");
        assert!(
            error.to_string().contains("cannot start no-such-program-here"),
            "{error}"
        );
    }

    #[test]
    fn every_line_is_seen_once() {
        let mut lines = Vec::new();
        let outcome = run_seen(Command::new("printf").arg("a\\nb\\n"), |line| {
            lines.push(line.to_owned());
        });
        assert!(outcome.is_ok());
        assert_eq!(lines, ["a", "b"]);
        assert!(has("true", "--version"));
        assert!(!has("no-such-program-here", "--version"));
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join("xtask/Cargo.toml").is_file());
    }
}
