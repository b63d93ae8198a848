//! Reads that were answered wrong: the first ones in full, and how many there were.

use crate::units;

/// Wrong reads that are told in full.
const TOLD: usize = 3;

/// The wrong reads of one run.
#[derive(Debug, Default)]
pub(super) struct WrongReads {
    told: Vec<String>,
    count: u64,
}

impl WrongReads {
    /// Counts a read if it was wrong; `why` is a sentence.
    pub(super) fn note(&mut self, why: Option<String>) {
        let Some(why) = why else { return };
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.push(why);
        }
    }

    /// Adds those of another client.
    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.told.extend(other.told);
        self.told.truncate(TOLD);
    }

    /// The sentences of a report.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = self.told.clone();
        if self.count > self.told.len() as u64 {
            sentences.push(format!("{} reads were wrong in all", units::count(self.count)));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_told_and_all_are_counted() {
        let of = |numbers: std::ops::Range<u32>| {
            let mut wrong = WrongReads::default();
            numbers.for_each(|number| wrong.note(Some(format!("read {number}"))));
            wrong
        };
        assert_eq!(of(0..2).sentences(), ["read 0", "read 1"]);
        let mut both = of(0..2);
        both.merge(of(2..1_234));
        assert_eq!(
            both.sentences(),
            ["read 0", "read 1", "read 2", "1,234 reads were wrong in all"]
        );
        let mut right = WrongReads::default();
        right.note(None);
        assert!(right.sentences().is_empty());
    }
}
