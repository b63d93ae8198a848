//! `tsb doctor`: finds what on this machine would spoil a measurement, with advice.
//!
//! Some functions read or measure facts; pure functions judge them. It times the syncs of a small file,
//! which it removes; `--device` does the same with 64 MiB, and times reads and writes too.

mod clock;
mod device;
mod disk;
mod limits;
mod machine;
mod table;

use std::path::Path;

use tsb_core::report::Written;
use tsb_core::report::examination::{Examination, ExaminationPlan, Level, MachineFinding};
use tsb_core::resource::{Machine, Steal};

use crate::args::{DoctorArgs, DocumentFormat};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{document, print};
use crate::render::lines::terminal_width;

pub(crate) use device::measure as measure_device;
pub use table::table;

/// Runs the command.
pub fn command(args: &DoctorArgs) -> Result<Exit, Failure> {
    let mut findings = examine(&args.dir);
    let device = if args.device {
        let device = device::measure(&args.dir)?;
        findings.extend(device::findings(&device));
        Some(device)
    } else {
        None
    };
    let text = match args.format {
        DocumentFormat::Text => table(&findings, terminal_width()),
        DocumentFormat::Json => document(&Examination {
            written: Written::here(),
            plan: ExaminationPlan {
                dir: args.dir.display().to_string(),
            },
            findings,
            device,
        })?,
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// Examines this machine and the disk that `dir` is on. Takes about a second.
pub fn examine(dir: &Path) -> Vec<MachineFinding> {
    let noise = Steal::read();
    let machine = Machine::examine();
    let mut findings = vec![build(machine.debug_build)];
    findings.extend(machine::examine(&machine));
    findings.extend(clock::examine(&machine));
    findings.extend(limits::examine(&machine));
    findings.extend(disk::examine(dir));
    findings.push(machine::steal(&noise));
    findings
}

fn build(is_debug: bool) -> MachineFinding {
    let value = if is_debug { "debug" } else { "release" };
    let meaning = "a debug build is many times slower than what is to be measured";
    MachineFinding::ok("build", value, meaning).advise_if(is_debug, Level::Bad, "build with --release")
}

/// The contents of a kernel file, without the last line feed.
fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}

/// Bytes with their unit.
fn bytes(count: u64) -> String {
    tsb_run::units::bytes(count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_examination_names_each_thing_once_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let findings = examine(dir.path());
        for finding in &findings {
            let same = findings.iter().filter(|other| other.name == finding.name).count();
            assert_eq!(same, 1, "{}", finding.name);
            assert_eq!(finding.advice.is_some(), finding.level > Level::Ok, "{finding:?}");
            assert!(!finding.value.is_empty() && !finding.meaning.is_empty(), "{finding:?}");
        }
        let names: Vec<&str> = findings.iter().map(|finding| finding.name.as_str()).collect();
        for name in [
            "build",
            "cores",
            "clock",
            "pacing",
            "disk sync",
            "memory",
            "open files",
            "steal",
        ] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_debug_build_is_bad() {
        assert_eq!(build(true).level, Level::Bad);
        assert_eq!(build(false).level, Level::Ok);
    }
}
