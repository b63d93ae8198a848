//! What a store found damaged in its files: a bounded list that goes into its [`Stats`].
//!
//! The list of `Stats` is the one channel for damage that does not end a call: `tsb` prints it
//! on stderr and puts it into reports. Damage that does end a call is
//! [`Error::Corrupt`](crate::Error::Corrupt).
//!
//! [`Stats`]: crate::Stats

use std::path::PathBuf;
use std::sync::Mutex;

pub use tsb_core::report::{Damage, DamageKind};

use crate::locks::lock;

/// Number of findings that are listed; further ones are only counted.
const NAMED_MAX: usize = 100;

/// The findings of one store, in the order in which it made them. Bounded: a folder of a
/// million damaged files does not become a million sentences.
///
/// ```
/// use tsb_stores::{Damage, DamageKind, DamageLog};
///
/// let log = DamageLog::new();
/// log.note(Damage::new(DamageKind::Missing, "/x", "segment 3 is gone"));
/// assert_eq!(log.list().len(), 1);
/// ```
#[derive(Debug, Default)]
pub struct DamageLog(Mutex<Findings>);

#[derive(Debug, Default)]
struct Findings {
    named: Vec<Damage>,
    unnamed: u64,
    // The path of the last unlisted finding.
    last: PathBuf,
}

impl DamageLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding. A finding that is listed already is not added again.
    pub fn note(&self, damage: Damage) {
        let mut findings = lock(&self.0);
        if findings.named.contains(&damage) {
            return;
        }
        if findings.named.len() < NAMED_MAX {
            findings.named.push(damage);
        } else {
            findings.unnamed += 1;
            findings.last = damage.path;
        }
    }

    /// All findings so far. If there were too many, the last entry says how many more.
    pub fn list(&self) -> Vec<Damage> {
        let findings = lock(&self.0);
        let mut list = findings.named.clone();
        if findings.unnamed > 0 {
            let what = format!(
                "it is the last of {} more findings that are not listed",
                findings.unnamed
            );
            list.push(Damage::new(DamageKind::Unreadable, &findings.last, what));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_damage_is_counted_and_a_repeated_entry_is_one() {
        let log = DamageLog::new();
        for file in 0..NAMED_MAX + 20 {
            let found = || Damage::new(DamageKind::Unreadable, format!("/x/{file}"), "it has no header");
            log.note(found());
            if file < NAMED_MAX {
                log.note(found());
            }
        }
        let list = log.list();
        assert_eq!(list.len(), NAMED_MAX + 1);
        let last = list.last().unwrap().to_string();
        assert!(
            last.starts_with("/x/119 is damaged: it is the last of 20 more findings"),
            "{last}"
        );
    }
}
