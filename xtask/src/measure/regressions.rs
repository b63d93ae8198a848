//! Runs the script of `examples/ci` as a user's job would, on a store that is as it was and on one that takes
//! a tenth longer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, empty_folder, remove_folder, root, run, target_folder};
use crate::table::Table;

/// How the page shows it.
pub(super) const COMMAND: &str = "sh examples/ci/regression.sh";
/// How often each is run.
const TIMES: usize = 10;
/// How much longer the worse store takes, in percent.
const WORSE: u32 = 10;
/// The load; the conditions are those of the script.
const LOAD: &str = "--rate 54k --duration 5s --transport inproc";
/// A file system in memory: what is compared is the store and not the disk.
const MEMORY: &str = "/dev/shm";

/// Builds the program and returns the table.
pub(super) fn table() -> Result<String> {
    run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    let program = target_folder()?.join("release/tsb");
    let folder = empty_folder(Path::new(MEMORY).join("tsb-regressions"))?;
    let mut table = Table::new(&["new store", ">run", ">exit code", "what the script says"]);
    let made = (1..=TIMES).try_for_each(|number| {
        for (name, percent) in [("as it was", 0), ("10 % slower", WORSE)] {
            let (code, said) = script(&program, &folder.join(format!("{number}-{percent}")), percent)?;
            println!("{name}  {number}  {code}  {said}");
            table.row(&[name, &number.to_string(), &code.to_string(), &said]);
        }
        Ok(())
    });
    remove_folder(&folder)?;
    made.map(|()| table.render())
}

/// One run of the script, in a folder of its own: its exit code and the thresholds that it names.
fn script(program: &Path, folder: &Path, percent: u32) -> Result<(i32, String)> {
    let folder: PathBuf = empty_folder(folder.to_owned())?;
    let store = |percent: u32| format!("throttle+sqlite:bench-ROUND.db?throttle.slower_percent={percent}");
    let mut command = Command::new("sh");
    command
        .arg(root().join("examples/ci/regression.sh"))
        .current_dir(&folder);
    command.env("OLD_TSB", program).env("LOAD", LOAD);
    command.env("OLD_STORE", store(0)).env("NEW_STORE", store(percent));
    let output = command.output().context("cannot start sh")?;
    let code = output.status.code().context("the script was ended by a signal")?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let crossed = text.lines().filter_map(|line| line.split_once("threshold crossed: "));
    let crossed: Vec<&str> = crossed.map(|(_, what)| what).collect();
    if code != 0 && crossed.is_empty() {
        bail!("the script ended with exit code {code}: {text}");
    }
    remove_folder(&folder)?;
    Ok((code, crossed.join("; ")))
}
