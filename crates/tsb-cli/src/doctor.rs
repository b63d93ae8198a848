//! `tsb doctor`: what on this machine would spoil a measurement, and what to do about it.
//!
//! Facts are read or measured here and judged by pure functions beside them. It changes
//! nothing but one small file that it writes, syncs and removes; it is no benchmark of
//! the disk, only a warning before one.

mod clock;
mod disk;
mod limits;
mod machine;
mod table;

use std::path::Path;

use serde::Serialize;
use tsb_core::resource::{Machine, Steal};

use crate::args::{DoctorArgs, Format};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::render::lines::terminal_width;

pub use table::table;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be, or of no consequence.
    Ok,
    /// Results will be less exact, or need a word of explanation.
    Warn,
    /// Results will be wrong or worthless.
    Bad,
}

impl Level {
    /// The word in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// One thing about this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: a short name, unique in an examination.
    pub name: &'static str,
    /// What was found, with its unit.
    pub value: String,
    /// What that means for a measurement.
    pub meaning: &'static str,
    /// What to do, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// How much it matters.
    pub level: Level,
}

impl Finding {
    fn ok(name: &'static str, value: impl Into<String>, meaning: &'static str) -> Self {
        Self {
            name,
            value: value.into(),
            meaning,
            advice: None,
            level: Level::Ok,
        }
    }

    /// The system does not tell.
    fn unknown(name: &'static str, what: impl std::fmt::Display) -> Self {
        Self::ok(
            name,
            format!("unknown ({what})"),
            "cannot be read here, so it cannot be judged",
        )
    }

    fn advise(mut self, level: Level, advice: impl Into<String>) -> Self {
        self.level = level;
        self.advice = Some(advice.into());
        self
    }

    fn advise_if(self, applies: bool, level: Level, advice: &str) -> Self {
        if applies { self.advise(level, advice) } else { self }
    }
}

/// Runs the command.
pub fn command(args: &DoctorArgs) -> Result<Exit, Failure> {
    let findings = examine(&args.dir);
    let text = match args.format {
        Format::Text => table(&findings, terminal_width()),
        Format::Json => format!(
            "{:#}\n",
            serde_json::json!({ "schema_version": 1, "findings": findings })
        ),
        Format::Csv => return Err(Failure::usage("cannot write findings as CSV").hint("give --format json")),
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// Examines this machine and the disk that `dir` is on. Takes about a second.
pub fn examine(dir: &Path) -> Vec<Finding> {
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

fn build(is_debug: bool) -> Finding {
    let value = if is_debug { "debug" } else { "release" };
    let meaning = "a debug build is many times slower than what is to be measured";
    Finding::ok("build", value, meaning).advise_if(is_debug, Level::Bad, "build with --release")
}

/// A file of the kernel as text, without the end of its last line.
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
        let names: Vec<&str> = findings.iter().map(|finding| finding.name).collect();
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

    #[test]
    fn a_finding_serializes_under_stable_names() {
        let json = serde_json::to_value(build(true)).unwrap();
        assert_eq!(json["level"], "bad");
        assert_eq!(json["advice"], "build with --release");
        assert!(serde_json::to_value(build(false)).unwrap().get("advice").is_none());
    }
}
