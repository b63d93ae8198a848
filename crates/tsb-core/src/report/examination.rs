//! The result of `tsb doctor`: what on a machine would spoil a measurement.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::Written;
use super::device::DeviceProfile;

/// The examination of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// What was asked for.
    pub plan: ExaminationPlan,
    /// The findings, each with a name of its own.
    pub findings: Vec<MachineFinding>,
    /// The disk of the folder, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceProfile>,
}

/// What an examination was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminationPlan {
    /// The folder whose disk was examined.
    pub dir: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be, or without consequence.
    Ok,
    /// Results will be less exact, or need an explanation.
    Warn,
    /// Results will be wrong or worthless.
    Bad,
}

impl Level {
    /// The word shown in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// One finding about a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFinding {
    /// The subject: a short name, unique within an examination.
    pub name: String,
    /// The value found, with its unit.
    pub value: String,
    /// What that means for a measurement.
    pub meaning: String,
    /// What to do, where something can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// The severity.
    pub level: Level,
}

impl MachineFinding {
    /// A finding without consequence.
    pub fn ok(name: &str, value: impl Into<String>, meaning: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
            meaning: meaning.to_owned(),
            advice: None,
            level: Level::Ok,
        }
    }

    /// A finding whose value the system does not provide; counts as ok. `what` says what is
    /// missing.
    pub fn unknown(name: &str, what: impl Display) -> Self {
        Self::ok(
            name,
            format!("unknown ({what})"),
            "cannot be read here, so it cannot be judged",
        )
    }

    /// The same finding with a severity and advice.
    #[must_use]
    pub fn advise(mut self, level: Level, advice: impl Into<String>) -> Self {
        self.level = level;
        self.advice = Some(advice.into());
        self
    }

    /// [`Self::advise`] if it `applies`.
    #[must_use]
    pub fn advise_if(self, applies: bool, level: Level, advice: &str) -> Self {
        if applies { self.advise(level, advice) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_serializes_under_stable_names() {
        let fine = MachineFinding::ok("build", "release", "meaning");
        let bad = fine.clone().advise(Level::Bad, "build with --release");
        let json = serde_json::to_value(&bad).unwrap();
        assert_eq!(json["level"], "bad");
        assert_eq!(json["advice"], "build with --release");
        assert_eq!(serde_json::from_value::<MachineFinding>(json).unwrap(), bad);
        assert!(serde_json::to_value(fine).unwrap().get("advice").is_none());
    }
}
