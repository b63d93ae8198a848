//! Compares what was sent to one series with what a query returned. Pure: no I/O, no clock.

use std::collections::HashMap;

use tsb_core::Timestamp;
use tsb_core::workload::{Sent, SentTimes};
use tsb_stores::{Capabilities, Exactness, OnConflict};

/// The samples of one series as columns.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Timestamps.
    pub times: Vec<Timestamp>,
    /// Values.
    pub values: Vec<f64>,
}

impl Columns {
    /// Removes all samples and keeps the allocation.
    pub fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
    }

    /// Appends one sample.
    pub fn push(&mut self, at: Timestamp, value: f64) {
        self.times.push(at);
        self.values.push(value);
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether two neighbours have one timestamp.
    fn has_ties(&self) -> bool {
        self.times.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Sorts the values of each timestamp. The samples are in time order.
    fn order_ties(&mut self) {
        let mut start = 0;
        for run in self.times.chunk_by(|left, right| left == right) {
            let values = &mut self.values[start..start + run.len()];
            values.sort_unstable_by(f64::total_cmp);
            start += run.len();
        }
    }

    /// Appends samples that a replay generated.
    pub fn extend(&mut self, chunk: &Sent<'_>) {
        self.values.extend_from_slice(chunk.values);
        match chunk.times {
            SentTimes::Each(times) => self.times.extend_from_slice(times),
            SentTimes::Regular { first, step_ns } => {
                // Not `extend(.. .map(..))`: in release builds its closure was not inlined here.
                self.times.reserve(chunk.values.len());
                for index in 0..chunk.values.len() as i64 {
                    self.times.push(first + index * step_ns as i64);
                }
            }
        }
    }

    /// Removes samples by timestamp, each as many times as `which` says, the last sent first: a
    /// store that rejects the second of two samples keeps the first. Returns the number removed.
    pub fn remove(&mut self, mut which: HashMap<Timestamp, u32>) -> u64 {
        let before = self.len();
        let mut keep: Vec<bool> = self
            .times
            .iter()
            .rev()
            .map(|at| {
                let left = which.get_mut(at).filter(|left| **left > 0);
                left.map(|left| *left -= 1).is_none()
            })
            .collect();
        keep.reverse();
        let mut kept = keep.iter();
        self.times.retain(|_| kept.next().copied().unwrap_or(true));
        let mut kept = keep.iter();
        self.values.retain(|_| kept.next().copied().unwrap_or(true));
        (before - self.len()) as u64
    }

    fn is_increasing(&self) -> bool {
        self.times.is_sorted_by(|left, right| left < right)
    }
}

/// The outcome of comparing one series, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Found with the value that was sent.
    pub verified: u64,
    /// Replaced by a later write of the same timestamp or slot.
    pub superseded: u64,
    /// Gone, and older than the store's stated retention.
    pub expired: u64,
    /// Not found.
    pub missing: u64,
    /// Found with another value.
    pub altered: u64,
    /// Extra copies, and samples that were never sent.
    pub duplicated: u64,
    /// In a step for which the consolidating store has no row yet.
    pub unconsolidated: u64,
    /// In a step that a consolidating store leaves unknown by its own rules.
    pub unrepresented: u64,
    /// In a row of a consolidating store that depends on samples which may not have arrived;
    /// includes those samples.
    pub uncompared: u64,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.verified += other.verified;
        self.superseded += other.superseded;
        self.expired += other.expired;
        self.missing += other.missing;
        self.altered += other.altered;
        self.duplicated += other.duplicated;
        self.unconsolidated += other.unconsolidated;
        self.unrepresented += other.unrepresented;
        self.uncompared += other.uncompared;
    }
}

/// One sample that differs from what was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// Sent, accepted as far as is known, and not found.
    Missing {
        /// Its timestamp.
        at: Timestamp,
        /// Its value.
        expected: f64,
    },
    /// Found with another value.
    Altered {
        /// Its timestamp.
        at: Timestamp,
        /// The value that was sent.
        expected: f64,
        /// As it was found.
        found: f64,
    },
    /// Found more often than it was sent.
    Copy {
        /// Its timestamp.
        at: Timestamp,
        /// As it was found.
        found: f64,
    },
    /// Found although it was never sent.
    Invented {
        /// Its timestamp.
        at: Timestamp,
        /// As it was found.
        found: f64,
    },
}

/// The rules by which a store is judged.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How exactly a value that is read back must equal the one written.
    pub exactness: Exactness,
    /// What happens to two samples with one timestamp.
    pub duplicate: OnConflict,
    /// What happens to a sample older than the newest of its series.
    pub late: OnConflict,
    /// Samples before this time may have expired.
    pub keeps_from: Timestamp,
}

impl Rules {
    /// The rules that follow from a store's capabilities.
    pub fn of(capabilities: &Capabilities, keeps_from: Timestamp) -> Self {
        Self {
            exactness: capabilities.exactness,
            duplicate: capabilities.duplicate,
            late: capabilities.late,
            keeps_from,
        }
    }

    /// The largest magnitude among the values of a series, where [`Self::is_same`] depends on it;
    /// else 0.
    pub(crate) fn largest(&self, values: &[f64]) -> f64 {
        match self.exactness {
            Exactness::Significant(_) => values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs())),
            _ => 0.0,
        }
    }

    /// Whether a value equals the one that was sent, as exactly as the store keeps it. `largest` is
    /// that of its series.
    pub(crate) fn is_same(&self, sent: f64, found: f64, largest: f64) -> bool {
        match self.exactness {
            Exactness::LastBit => [sent.to_bits(), sent.to_bits() & !1].contains(&found.to_bits()),
            Exactness::Float32 => (sent as f32).to_bits() == (found as f32).to_bits(),
            Exactness::Decimals(n) => (sent - found).abs() <= 0.5 * 10f64.powi(-i32::from(n)) * (1.0 + 1e-9),
            // Half a unit of the last digit.
            Exactness::Significant(n) => (sent - found).abs() <= 0.5 * 10f64.powi(1 - i32::from(n)) * largest,
            Exactness::Exact
            | Exactness::OnePerSlot(_)
            | Exactness::Consolidated(_)
            | Exactness::Slots(_)
            | Exactness::Nothing => sent.to_bits() == found.to_bits(),
        }
    }
}

/// Compares `sent` (in sending order, without rejected samples) with `found` (in time order),
/// and calls `note` for every difference. Afterwards `sent` is in time order, and holds one
/// sample per timestamp or slot where the store keeps only one.
pub fn compare(sent: &mut Columns, found: &Columns, rules: &Rules, note: &mut dyn FnMut(Difference)) -> Tally {
    let mut tally = Tally {
        superseded: supersede(sent, rules),
        ..Tally::default()
    };
    if rules.duplicate == OnConflict::KeptBoth && found.has_ties() {
        // Copies of one timestamp come back in any order.
        let mut found = found.clone();
        found.order_ties();
        sent.order_ties();
        merge(sent, &found, rules, &mut tally, note);
    } else {
        merge(sent, found, rules, &mut tally, note);
    }
    tally
}

/// Puts samples in sending order into time order, with one sample per timestamp or slot where the
/// store keeps only one. Returns how many were replaced.
pub(crate) fn supersede(sent: &mut Columns, rules: &Rules) -> u64 {
    let slot_ns = match rules.exactness {
        Exactness::OnePerSlot(slot_ns) => Some(slot_ns.max(1)),
        _ => None,
    };
    if slot_ns.is_none() && sent.is_increasing() {
        return 0;
    }
    settle(sent, slot_ns.unwrap_or(1), rules.duplicate == OnConflict::KeptBoth)
}

/// Sorts by time and keeps the last sample sent in each slot. Returns how many were replaced.
fn settle(sent: &mut Columns, slot_ns: i64, keeps_both: bool) -> u64 {
    let mut order: Vec<u32> = (0..sent.len() as u32).collect();
    let slot = |at: Timestamp| at.0.div_euclid(slot_ns);
    // The sort must be stable: within a slot, sending order decides which sample wins.
    order.sort_by_key(|&index| slot(sent.times[index as usize]));
    let mut settled = Columns::default();
    for (place, &index) in order.iter().enumerate() {
        let at = sent.times[index as usize];
        let next = order.get(place + 1).map(|&next| sent.times[next as usize]);
        let is_replaced = !keeps_both && next.is_some_and(|next| slot(next) == slot(at));
        if !is_replaced {
            settled.push(at, sent.values[index as usize]);
        }
    }
    let replaced = sent.len() - settled.len();
    *sent = settled;
    replaced as u64
}

/// Walks both lists in time order.
fn merge(sent: &Columns, found: &Columns, rules: &Rules, tally: &mut Tally, note: &mut dyn FnMut(Difference)) {
    let (mut s, mut f) = (0, 0);
    let largest = rules.largest(&sent.values);
    while s < sent.len() || f < found.len() {
        let due = sent.times.get(s).copied();
        let got = found.times.get(f).copied();
        match (due, got) {
            (Some(due), Some(got)) if due == got => {
                let (expected, found) = (sent.values[s], found.values[f]);
                if rules.is_same(expected, found, largest) {
                    tally.verified += 1;
                } else {
                    tally.altered += 1;
                    note(Difference::Altered {
                        at: due,
                        expected,
                        found,
                    });
                }
                (s, f) = (s + 1, f + 1);
            }
            (Some(due), got) if got.is_none_or(|got| due < got) => {
                if due < rules.keeps_from {
                    tally.expired += 1;
                } else {
                    tally.missing += 1;
                    note(Difference::Missing {
                        at: due,
                        expected: sent.values[s],
                    });
                }
                s += 1;
            }
            (_, Some(got)) => {
                tally.duplicated += 1;
                let value = found.values[f];
                let is_copy = f > 0 && found.times[f - 1] == got;
                note(if is_copy {
                    Difference::Copy { at: got, found: value }
                } else {
                    Difference::Invented { at: got, found: value }
                });
                f += 1;
            }
            (_, None) => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(samples: &[(i64, f64)]) -> Columns {
        let mut columns = Columns::default();
        for &(at, value) in samples {
            columns.push(Timestamp(at), value);
        }
        columns
    }

    const EXACT: Rules = Rules {
        exactness: Exactness::Exact,
        duplicate: OnConflict::Accepted,
        late: OnConflict::Accepted,
        keeps_from: Timestamp::MIN,
    };

    fn check(sent: &[(i64, f64)], found: &[(i64, f64)], rules: &Rules) -> (Tally, Vec<Difference>) {
        let mut notes = Vec::new();
        let tally = compare(&mut columns(sent), &columns(found), rules, &mut |difference| {
            notes.push(difference);
        });
        (tally, notes)
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let (tally, notes) = check(&[(1, 1.0), (2, 2.0), (3, 3.0)], &[(1, 1.0), (3, 9.0), (3, 9.0)], &EXACT);
        let expected = Tally {
            verified: 1,
            missing: 1,
            altered: 1,
            duplicated: 1,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
        let at = Timestamp(3);
        let named = vec![
            Difference::Missing {
                at: Timestamp(2),
                expected: 2.0,
            },
            Difference::Altered {
                at,
                expected: 3.0,
                found: 9.0,
            },
            Difference::Copy { at, found: 9.0 },
        ];
        assert_eq!(notes, named);
    }

    #[test]
    fn the_later_of_two_writes_wins_and_the_earlier_is_superseded() {
        let (tally, notes) = check(&[(2, 2.0), (1, 1.0), (2, 5.0)], &[(1, 1.0), (2, 5.0)], &EXACT);
        assert_eq!(
            tally,
            Tally {
                verified: 2,
                superseded: 1,
                ..Tally::default()
            }
        );
        assert!(notes.is_empty());
    }

    #[test]
    fn of_two_copies_the_later_is_the_rejected_one() {
        let mut sent = columns(&[(1, 1.0), (1, 2.0), (2, 3.0)]);
        assert_eq!(sent.remove(HashMap::from([(Timestamp(1), 1), (Timestamp(9), 1)])), 1);
        assert_eq!(
            (sent.times, sent.values),
            (vec![Timestamp(1), Timestamp(2)], vec![1.0, 3.0])
        );
    }

    #[test]
    fn a_slot_keeps_the_last_that_arrived() {
        let rules = Rules {
            exactness: Exactness::OnePerSlot(30),
            ..EXACT
        };
        let (tally, _) = check(
            &[(1, 1.0), (29, 2.0), (5, 3.0), (31, 4.0)],
            &[(5, 3.0), (31, 4.0)],
            &rules,
        );
        assert_eq!(
            tally,
            Tally {
                verified: 2,
                superseded: 2,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn samples_removed_by_retention_are_expired_and_not_lost() {
        let rules = Rules {
            keeps_from: Timestamp(2),
            ..EXACT
        };
        let (tally, _) = check(&[(1, 1.0), (2, 2.0), (3, 3.0)], &[(3, 3.0)], &rules);
        assert_eq!(
            tally,
            Tally {
                verified: 1,
                expired: 1,
                missing: 1,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn values_are_compared_at_the_class_that_the_store_states() {
        let nan = f64::from_bits(0x7ff8_0000_0000_0001);
        assert_eq!(check(&[(1, nan)], &[(1, nan)], &EXACT).0.verified, 1);
        assert_eq!(check(&[(1, 0.0)], &[(1, -0.0)], &EXACT).0.altered, 1);
        let rounded = Rules {
            exactness: Exactness::Decimals(2),
            ..EXACT
        };
        assert_eq!(check(&[(1, 0.123)], &[(1, 0.12)], &rounded).0.verified, 1);
        assert_eq!(check(&[(1, 0.123)], &[(1, 0.13)], &rounded).0.altered, 1);
        let single = Rules {
            exactness: Exactness::Float32,
            ..EXACT
        };
        assert_eq!(check(&[(1, 0.1)], &[(1, f64::from(0.1f32))], &single).0.verified, 1);
        let digits = Rules {
            exactness: Exactness::Significant(3),
            ..EXACT
        };
        assert_eq!(check(&[(1, 0.123_4)], &[(1, 0.123)], &digits).0.verified, 1);
        assert_eq!(check(&[(1, 0.123_4)], &[(1, 0.122)], &digits).0.altered, 1);
        // The digits are those of the largest value.
        let (tally, _) = check(&[(1, 0.123_4), (2, -900.0)], &[(1, 0.0), (2, -900.0)], &digits);
        assert_eq!(tally.verified, 2);
    }

    #[test]
    fn copies_that_are_both_kept_come_back_in_any_order() {
        let both = Rules {
            duplicate: OnConflict::KeptBoth,
            ..EXACT
        };
        let sent = [(1, 5.0), (2, 7.0), (2, 6.0)];
        assert_eq!(check(&sent, &[(1, 5.0), (2, 6.0), (2, 7.0)], &both).0.verified, 3);
        let (tally, _) = check(&sent, &[(1, 5.0), (2, 6.0), (2, 6.0)], &both);
        assert_eq!((tally.verified, tally.altered), (2, 1));
    }
}
