//! Damage in the files of a store, as the store found it.
//!
//! A store that meets damage either refuses to open, or goes on without what it cannot read and
//! reports it with one of these. It is *not* an error: the call that found it succeeded.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One place where data that a store wrote is gone or cannot be read.
///
/// ```
/// use tsb_core::report::{Damage, DamageKind};
///
/// let damage = Damage::new(DamageKind::Unreadable, "/x/tsb.journal.0000000003", "a checksum does not match")
///     .with_bytes(512)
///     .with_samples_at_most(54);
/// assert!(damage.may_lose_samples());
/// assert_eq!(
///     damage.to_string(),
///     "/x/tsb.journal.0000000003 is damaged: a checksum does not match; 512 bytes cannot be read; \
///      at most 54 samples are lost"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Damage {
    /// What kind of damage it is.
    pub kind: DamageKind,
    /// The damaged file, or the folder of a missing file.
    pub path: PathBuf,
    /// What is wrong there, as a lowercase fragment.
    pub what: String,
    /// Bytes that cannot be read; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Upper bound of the samples lost by it; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_at_most: Option<u64>,
    /// Where the damaged file was moved to, if it is not at `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

/// The kind of damage, which decides what may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DamageKind {
    /// The newest file ends in the middle of a record, as after a crash. Samples acknowledged
    /// below the store's highest level may be lost. Damage to the last record cannot be told from
    /// this.
    Torn,
    /// Bytes differ from what was written.
    Unreadable,
    /// A file is missing, or shorter than it was.
    Missing,
    /// An earlier opening found this file damaged and set it aside.
    KeptAside,
}

impl Damage {
    /// Damage of a kind at `path`. `what` is a lowercase fragment that says what is wrong.
    pub fn new(kind: DamageKind, path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.into(),
            what: what.into(),
            bytes: None,
            samples_at_most: None,
            kept: None,
        }
    }

    /// Sets the number of bytes that cannot be read.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets the upper bound of the samples lost: 0 if it is known that none is.
    #[must_use]
    pub const fn with_samples_at_most(mut self, samples: u64) -> Self {
        self.samples_at_most = Some(samples);
        self
    }

    /// Sets the path that the damaged file was moved to.
    #[must_use]
    pub fn kept_as(mut self, path: impl Into<PathBuf>) -> Self {
        self.kept = Some(path.into());
        self
    }

    /// Whether it may lose samples that were acknowledged at the store's highest level. A torn end
    /// loses only what a crash may lose, and a file that was set aside was reported when it was
    /// found.
    pub fn may_lose_samples(&self) -> bool {
        matches!(self.kind, DamageKind::Unreadable | DamageKind::Missing) && self.samples_at_most != Some(0)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            DamageKind::Torn => "ends in the middle of a record",
            DamageKind::Unreadable => "is damaged",
            DamageKind::Missing => "is not complete",
            DamageKind::KeptAside => "was kept aside as damaged",
        };
        write!(f, "{} {verb}: {}", self.path.display(), self.what)?;
        match self.bytes {
            Some(1) => f.write_str("; 1 byte cannot be read")?,
            Some(bytes) => write!(f, "; {bytes} bytes cannot be read")?,
            None => {}
        }
        match (self.samples_at_most, self.kind) {
            (Some(0), _) => f.write_str("; no sample is lost")?,
            (Some(1), _) => f.write_str("; at most 1 sample is lost")?,
            (Some(samples), _) => write!(f, "; at most {samples} samples are lost")?,
            (None, DamageKind::Unreadable | DamageKind::Missing) => {
                f.write_str("; how many samples are lost is not known")?;
            }
            (None, _) => {}
        }
        match &self.kept {
            Some(kept) => write!(f, "; the file is kept as {}", kept.display()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_state_is_reported_and_a_crash_is_no_damage() {
        let torn = Damage::new(DamageKind::Torn, "/j/1", "a record is cut short").with_bytes(1);
        assert!(!torn.may_lose_samples());
        assert_eq!(
            torn.to_string(),
            "/j/1 ends in the middle of a record: a record is cut short; 1 byte cannot be read"
        );
        let missing = Damage::new(DamageKind::Missing, "/j", "segment 3 is gone").kept_as("/j/x");
        assert!(missing.may_lose_samples());
        assert_eq!(
            missing.to_string(),
            "/j is not complete: segment 3 is gone; how many samples are lost is not known; the file is kept as /j/x"
        );
        let none = Damage::new(DamageKind::Unreadable, "/c", "a checksum does not match").with_samples_at_most(0);
        assert!(!none.may_lose_samples() && none.to_string().ends_with("no sample is lost"));
    }

    #[test]
    fn it_is_part_of_the_report_and_comes_back() {
        let damage = Damage::new(DamageKind::KeptAside, "/j/1.damaged", "found earlier").with_bytes(7);
        let text = serde_json::to_string(&damage).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"kept-aside","path":"/j/1.damaged","what":"found earlier","bytes":7}"#
        );
        assert_eq!(serde_json::from_str::<Damage>(&text).unwrap(), damage);
    }
}
