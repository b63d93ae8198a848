//! Counts the outcomes of trials and prints them as one table.

use std::collections::BTreeMap;

use super::judge::Outcome;
use crate::table::Table;

/// Sentences kept of what must not happen, for each kind of fault and store.
const KEPT: usize = 20;
/// Characters kept of what the program said.
const SENTENCE_MAX: usize = 400;

/// Trials of one kind of fault on one store.
#[derive(Debug, Default)]
pub(super) struct Tally {
    attempts: u64,
    whole: u64,
    whole_and_said: u64,
    within: u64,
    said: u64,
    refused: u64,
    unseen: u64,
    silent: u64,
    panicked: u64,
    hung: u64,
    /// How to repeat what must not happen.
    pub(super) wrong: Vec<String>,
    /// One sentence of the program for each kind of outcome that comes with one.
    pub(super) examples: BTreeMap<&'static str, String>,
}

impl Tally {
    /// Counts a trial; `how` repeats it.
    pub(super) fn add(&mut self, outcome: &Outcome, how: &str) {
        self.attempts += 1;
        let (count, why) = match outcome {
            Outcome::Whole => (&mut self.whole, None),
            Outcome::WholeAndSaid(why) => (&mut self.whole_and_said, Some(("all there, said", why))),
            Outcome::Within => (&mut self.within, None),
            Outcome::Said(why) => (&mut self.said, Some(("lost, said", why))),
            Outcome::Refused(why) => (&mut self.refused, Some(("refused", why))),
            Outcome::Unseen => (&mut self.unseen, None),
            Outcome::Silent(why) => (&mut self.silent, Some(("silent loss", why))),
            Outcome::Panicked(why) => (&mut self.panicked, Some(("panic", why))),
            Outcome::Hung(why) => (&mut self.hung, Some(("hang", why))),
        };
        *count += 1;
        let Some((what, why)) = why else { return };
        let sentence = format!("{what}, {how}: {}", why.chars().take(SENTENCE_MAX).collect::<String>());
        if matches!(outcome, Outcome::Silent(_) | Outcome::Panicked(_) | Outcome::Hung(_)) {
            if self.wrong.len() < KEPT {
                self.wrong.push(sentence);
            }
        } else {
            self.examples.entry(what).or_insert(sentence);
        }
    }

    /// Takes in what another thread counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.whole += other.whole;
        self.whole_and_said += other.whole_and_said;
        self.within += other.within;
        self.said += other.said;
        self.refused += other.refused;
        self.unseen += other.unseen;
        self.silent += other.silent;
        self.panicked += other.panicked;
        self.hung += other.hung;
        for (what, sentence) in &other.examples {
            self.examples.entry(what).or_insert_with(|| sentence.clone());
        }
        let room = KEPT.saturating_sub(self.wrong.len());
        self.wrong.extend(other.wrong.iter().take(room).cloned());
    }

    /// Trials that lost data silently, panicked or hung.
    pub(super) const fn failures(&self) -> u64 {
        self.silent + self.panicked + self.hung
    }
}

/// Tallies by fault and store, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Results {
    rows: Vec<(&'static str, &'static str, Tally)>,
}

const HEADINGS: [&str; 12] = [
    "fault",
    "store",
    ">attempts",
    ">all there",
    ">all there, said",
    ">lost, not covered",
    ">lost, said",
    ">refused",
    ">unseen",
    ">silent losses",
    ">panics",
    ">hangs",
];

impl Results {
    /// Adds a row.
    pub(super) fn add(&mut self, fault: &'static str, store: &'static str, tally: Tally) {
        self.rows.push((fault, store, tally));
    }

    /// The table.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&HEADINGS);
        let mut all = Tally::default();
        for (fault, store, tally) in &self.rows {
            row(&mut table, fault, store, tally);
            all.merge(tally);
        }
        row(&mut table, "all", "", &all);
        table
    }

    /// Trials that lost data silently, panicked or hung.
    pub(super) fn failures(&self) -> u64 {
        self.rows.iter().map(|(_, _, tally)| tally.failures()).sum()
    }

    /// How to repeat them, as far as they were kept.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.rows.iter().flat_map(|(_, _, tally)| tally.wrong.clone()).collect()
    }
}

fn row(table: &mut Table, fault: &str, store: &str, tally: &Tally) {
    let counts = [
        tally.attempts,
        tally.whole,
        tally.whole_and_said,
        tally.within,
        tally.said,
        tally.refused,
        tally.unseen,
        tally.silent,
        tally.panicked,
        tally.hung,
    ];
    let counts = counts.map(|count| count.to_string());
    let mut cells = vec![fault, store];
    cells.extend(counts.iter().map(String::as_str));
    table.row(&cells);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_outcomes_are_counted_and_repeatable() {
        let mut one = Tally::default();
        one.add(&Outcome::Whole, "seed 1");
        one.add(&Outcome::Silent("2 are gone".to_owned()), "seed 2");
        let mut other = Tally::default();
        other.add(&Outcome::Hung("no answer".to_owned()), "seed 3");
        other.add(&Outcome::Refused("in use".to_owned()), "seed 4");
        one.merge(&other);
        let mut results = Results::default();
        results.add("kill", "rrd", one);
        assert_eq!(results.failures(), 2);
        assert_eq!(
            results.wrong(),
            ["silent loss, seed 2: 2 are gone", "hang, seed 3: no answer"]
        );
        let last = results.table().render();
        let last = last
            .lines()
            .last()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>();
        assert_eq!(last, ["all", "4", "1", "0", "0", "0", "1", "0", "1", "0", "1"]);
    }
}
