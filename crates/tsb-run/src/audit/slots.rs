//! Compares what was sent to one series of a store of slots with what its archives hold. Pure: no
//! I/O, no clock.
//!
//! The finest archive is compared with what was sent: of each slot, the last sample that arrived or
//! the one with the latest timestamp. A slot of a coarser archive is computed from the slots that
//! the archive before it returned, where those can still be read, and otherwise from what was sent.

use std::collections::BTreeMap;

use tsb_core::Timestamp;
use tsb_stores::{Consolidation, SlotArchive, SlotArchives};

use super::compare::{Columns, Difference, Tally};

/// The known slots of an archive, by their start in seconds.
pub(super) type KnownSlots = BTreeMap<i64, f64>;

/// What a store returned of one series.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotAnswer {
    /// The known slots of each archive, those of earlier runs included.
    pub archives: Vec<KnownSlots>,
    /// Slots of each archive that begin before this time, in seconds, may be overwritten.
    pub keeps_from_s: Vec<i64>,
    /// Slots that end before this time are of earlier runs; absent: there were none.
    pub since_s: Option<i64>,
}

/// The largest relative error of a consolidated value: archives are summed in another order.
const ROUNDING: f64 = 1e-9;

/// Compares the archives with `sent`, which is in sending order. If `may_be_absent`, any sample may
/// never have arrived: an earlier one of its slot is then as right as the last.
pub(super) fn compare(
    rule: &SlotArchives,
    sent: &Columns,
    may_be_absent: bool,
    answer: &SlotAnswer,
    note: &mut dyn FnMut(Difference),
) -> Tally {
    let archives: Vec<SlotArchive> = rule.archives().collect();
    let mut comparison = SlotComparison {
        rule,
        archives: &archives,
        answer,
        sent: by_slot(sent, archives.first().map_or(1, |archive| archive.slot_s)),
        may_be_absent,
        wrong_rows: Vec::new(),
        tally: Tally::default(),
    };
    for level in 1..archives.len() {
        comparison.coarser(level, note);
    }
    comparison.finest(note);
    comparison.tally
}

/// The samples of each slot, in sending order, by the slot's start in seconds.
fn by_slot(sent: &Columns, slot_s: i64) -> BTreeMap<i64, Vec<(Timestamp, f64)>> {
    let mut slots: BTreeMap<i64, Vec<(Timestamp, f64)>> = BTreeMap::new();
    for (&at, &value) in sent.times.iter().zip(&sent.values) {
        slots
            .entry(start_of(at.as_secs(), slot_s))
            .or_default()
            .push((at, value));
    }
    slots
}

const fn start_of(second: i64, slot_s: i64) -> i64 {
    second.div_euclid(slot_s) * slot_s
}

struct SlotComparison<'a> {
    rule: &'a SlotArchives,
    archives: &'a [SlotArchive],
    answer: &'a SlotAnswer,
    sent: BTreeMap<i64, Vec<(Timestamp, f64)>>,
    may_be_absent: bool,
    /// Start and end, in seconds, of each slot of a coarser archive that is not as it must be.
    wrong_rows: Vec<(i64, i64)>,
    tally: Tally,
}

impl SlotComparison<'_> {
    fn found(&self, level: usize, start_s: i64) -> Option<f64> {
        self.answer.archives.get(level)?.get(&start_s).copied()
    }

    fn is_kept(&self, level: usize, start_s: i64) -> bool {
        self.answer
            .keeps_from_s
            .get(level)
            .is_some_and(|from_s| start_s >= *from_s)
    }

    /// The value that a slot of an archive must have, from the archive before it.
    fn expected(&self, level: usize, start_s: i64) -> Option<f64> {
        let archive = self.archives[level];
        let Some(finer) = level.checked_sub(1).map(|finer| (finer, self.archives[finer])) else {
            return self.sent.get(&start_s)?.last().map(|(_, value)| *value);
        };
        let (below, finer) = finer;
        let is_kept = self.is_kept(below, start_s);
        let starts = (0..archive.slot_s / finer.slot_s).map(|index| start_s + index * finer.slot_s);
        let value = |start_s: i64| {
            if is_kept {
                self.found(below, start_s)
            } else {
                self.expected(below, start_s)
            }
        };
        let known: Vec<f64> = starts.filter_map(value).collect();
        let needed = archive.slot_s / finer.slot_s * i64::from(self.rule.known_permille_min);
        if known.is_empty() || (known.len() as i64) * 1_000 < needed {
            return None;
        }
        Some(consolidate(self.rule.consolidation, &known))
    }

    /// Compares the slots of a coarser archive that samples of this run are in.
    fn coarser(&mut self, level: usize, note: &mut dyn FnMut(Difference)) {
        let slot_s = self.archives[level].slot_s;
        let mut starts: Vec<i64> = self.sent.keys().map(|start_s| start_of(*start_s, slot_s)).collect();
        starts.dedup();
        for start_s in starts {
            // From what was sent it can be computed only if all of it came.
            let is_computable =
                self.is_kept(level - 1, start_s) || !self.may_be_absent && self.answer.since_s.is_none();
            if !is_computable || !self.is_kept(level, start_s) {
                continue;
            }
            let at = Timestamp::from_secs(start_s);
            let (expected, found) = (self.expected(level, start_s), self.found(level, start_s));
            match (expected, found) {
                (None, None) => continue,
                (Some(expected), Some(found)) if is_near(expected, found) => continue,
                (None, Some(found)) => note(Difference::Invented { at, found }),
                (Some(expected), found) => note(Difference::Altered {
                    at,
                    expected,
                    found: found.unwrap_or(f64::NAN),
                }),
            }
            self.wrong_rows.push((start_s, start_s + slot_s));
        }
    }

    fn is_in_wrong_row(&self, start_s: i64) -> bool {
        self.wrong_rows
            .iter()
            .any(|(from_s, to_s)| (*from_s..*to_s).contains(&start_s))
    }

    /// Counts every sample by its slot of the finest archive, and names the slots that nothing was
    /// sent to.
    fn finest(&mut self, note: &mut dyn FnMut(Difference)) {
        let sent = std::mem::take(&mut self.sent);
        for (start_s, samples) in &sent {
            self.slot(*start_s, samples, note);
        }
        let slot_s = self.archives.first().map_or(1, |archive| archive.slot_s);
        for (&start_s, &found) in self.answer.archives.first().into_iter().flatten() {
            let is_earlier = self.answer.since_s.is_some_and(|since_s| start_s + slot_s <= since_s);
            if !is_earlier && !sent.contains_key(&start_s) {
                self.tally.duplicated += 1;
                let at = Timestamp::from_secs(start_s);
                note(Difference::Invented { at, found });
            }
        }
    }

    fn slot(&mut self, start_s: i64, samples: &[(Timestamp, f64)], note: &mut dyn FnMut(Difference)) {
        let Some((last, before)) = samples.split_last() else {
            return;
        };
        let Some(found) = self.found(0, start_s) else {
            self.empty_slot(start_s, samples, note);
            return;
        };
        let of_value = |(_, value): &(Timestamp, f64)| value.to_bits() == found.to_bits();
        // The server keeps the last that arrived, or the latest of those that it held together.
        let kept = samples.iter().rposition(of_value).and_then(|index| {
            let after = samples[index + 1..].iter().copied();
            let later: Vec<_> = after.filter(|(at, _)| *at >= samples[index].0).collect();
            (self.may_be_absent || later.is_empty()).then_some(later)
        });
        let is_right = kept.is_some() && !self.is_in_wrong_row(start_s);
        let count = if is_right {
            &mut self.tally.verified
        } else {
            &mut self.tally.altered
        };
        *count += 1;
        // Those that would have replaced the one that is there did not come.
        let absent = kept.as_deref().unwrap_or_default();
        self.tally.superseded += (before.len() - absent.len()) as u64;
        self.missing(absent, note);
        if kept.is_none() {
            note(Difference::Altered {
                at: last.0,
                expected: last.1,
                found,
            });
        }
    }

    /// A slot without a value: too old, or its samples are missing.
    fn empty_slot(&mut self, start_s: i64, samples: &[(Timestamp, f64)], note: &mut dyn FnMut(Difference)) {
        let count = samples.len() as u64;
        if self.is_kept(0, start_s) {
            let first = if self.may_be_absent { 0 } else { samples.len() - 1 };
            self.tally.superseded += first as u64;
            self.missing(&samples[first..], note);
            return;
        }
        let coarser = (1..self.archives.len()).find(|&level| {
            let row_s = start_of(start_s, self.archives[level].slot_s);
            self.is_kept(level, row_s)
        });
        let count_of = match coarser {
            None => &mut self.tally.expired,
            Some(_) if self.may_be_absent || self.answer.since_s.is_some() => &mut self.tally.uncompared,
            Some(_) if self.is_in_wrong_row(start_s) => &mut self.tally.altered,
            Some(level) => {
                let row_s = start_of(start_s, self.archives[level].slot_s);
                match self.found(level, row_s) {
                    Some(_) => &mut self.tally.verified,
                    None => &mut self.tally.unrepresented,
                }
            }
        };
        *count_of += count;
    }

    fn missing(&mut self, samples: &[(Timestamp, f64)], note: &mut dyn FnMut(Difference)) {
        self.tally.missing += samples.len() as u64;
        for &(at, expected) in samples {
            note(Difference::Missing { at, expected });
        }
    }
}

fn is_near(expected: f64, found: f64) -> bool {
    (expected - found).abs() <= ROUNDING * expected.abs().max(found.abs())
}

/// The value of known slots, of which there is at least one, in the order of time.
fn consolidate(consolidation: Consolidation, known: &[f64]) -> f64 {
    let sum: f64 = known.iter().sum();
    match consolidation {
        Consolidation::Average => sum / known.len() as f64,
        Consolidation::Sum => sum,
        Consolidation::Count => known.len() as f64,
        Consolidation::Min => known.iter().copied().fold(f64::INFINITY, f64::min),
        Consolidation::Max => known.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Consolidation::First => known.first().copied().unwrap_or(f64::NAN),
        Consolidation::Last => known.last().copied().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests;
