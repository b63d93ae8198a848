//! What of the issued operations does not have to be in the store: with the plan and the
//! issued ticks, exactly what must be there.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::emit::ExceptionKind;
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Rejected samples are named in a report by up to this many stretches; beyond it they are
/// only counted.
pub const REJECTED_MAX: usize = 1 << 16;

/// What does not have to be there, by name, and how much of it has no name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceptions {
    /// Issued operations that were not sent, never answered, or lost on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ExceptedTicks>,
    /// Operations of that kind that are not in the list.
    #[serde(default)]
    pub operations_unnamed: u64,
    /// Samples that the store refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedStretch>,
    /// Samples that the store refused and that are not in the list.
    #[serde(default)]
    pub rejected_unnamed: u64,
    /// Samples that never became part of a write: lost on the way, malformed, or refused by
    /// the listener. Those lost on the way are among the samples of the operations that say so,
    /// where all of these are named; nobody can name the others.
    #[serde(default)]
    pub never_arrived: u64,
    /// Of these, samples that are in no operation of the list; absent in reports of earlier
    /// programs, which named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_arrived_unnamed: Option<u64>,
}

/// Ticks of some groups that were issued and not sent, not answered, or lost on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceptedTicks {
    /// What became of them.
    pub kind: ExceptionKind,
    /// The first of the groups.
    pub first_group: u32,
    /// How many groups in a row.
    pub groups: u32,
    /// Their first tick.
    pub first_tick: u64,
    /// The tick behind their last.
    pub end_tick: u64,
}

/// Refused samples of one series at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedStretch {
    /// Which series.
    pub series: SeriesId,
    /// The first timestamp.
    pub first_ns: Timestamp,
    /// From one to the next, in nanoseconds; 0 for one timestamp several times.
    pub step_ns: i64,
    /// How many samples.
    pub samples: u64,
}

impl Exceptions {
    /// Samples that may be missing in the store although no list here names them. Operations
    /// without a name are counted as one sample each, at the least.
    pub fn unnamed(&self) -> u64 {
        self.never_arrived_unnamed.unwrap_or(self.never_arrived) + self.rejected_unnamed + self.operations_unnamed
    }

    /// Names operations: groups in a row with the same ticks are one entry.
    pub fn add_operations(&mut self, operations: &[(u32, Range<u64>, ExceptionKind)]) {
        let mut sorted: Vec<_> = operations.iter().collect();
        sorted.sort_by_key(|(group, ticks, kind)| (ticks.start, ticks.end, *kind, *group));
        for (group, ticks, kind) in sorted {
            let one = ExceptedTicks {
                kind: *kind,
                first_group: *group,
                groups: 1,
                first_tick: ticks.start,
                end_tick: ticks.end,
            };
            match self.operations.last_mut() {
                Some(last)
                    if last.first_group + last.groups == *group
                        && (last.kind, last.first_tick, last.end_tick) == (*kind, ticks.start, ticks.end) =>
                {
                    last.groups += 1;
                }
                _ => self.operations.push(one),
            }
        }
    }

    /// The operations of a kind: (group, ticks).
    pub fn operations_of(&self, kind: ExceptionKind) -> Vec<(u32, Range<u64>)> {
        let of_kind = self.operations.iter().filter(|one| one.kind == kind);
        of_kind
            .flat_map(|one| {
                let groups = one.first_group..one.first_group.saturating_add(one.groups);
                groups.map(|group| (group, one.first_tick..one.end_tick))
            })
            .collect()
    }

    /// Names refused samples, each as often as it was refused.
    pub fn add_rejected(&mut self, mut samples: Vec<(SeriesId, Timestamp)>) {
        samples.sort_unstable();
        for (series, at) in samples {
            let last = self.rejected.last_mut().filter(|last| last.series == series);
            if last.is_some_and(|last| last.takes(at)) {
                continue;
            }
            if self.rejected.len() >= REJECTED_MAX {
                self.rejected_unnamed += 1;
                continue;
            }
            self.rejected.push(RejectedStretch {
                series,
                first_ns: at,
                step_ns: 0,
                samples: 1,
            });
        }
    }

    /// The refused samples that have names.
    pub fn rejected_samples(&self) -> Vec<(SeriesId, Timestamp)> {
        let stretches = self.rejected.iter();
        stretches
            .flat_map(|one| {
                let at = |index: u64| one.first_ns + one.step_ns.saturating_mul(index as i64);
                (0..one.samples).map(move |index| (one.series, at(index)))
            })
            .collect()
    }
}

impl RejectedStretch {
    /// Makes `at` a part of it, where it lies as far behind the last as that behind the one
    /// before.
    fn takes(&mut self, at: Timestamp) -> bool {
        let last = self.first_ns + self.step_ns.saturating_mul(self.samples as i64 - 1);
        if self.samples == 1 {
            self.step_ns = at - last;
        } else if at - last != self.step_ns {
            return false;
        }
        self.samples += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_in_a_row_with_the_same_ticks_are_one_entry() {
        let (shed, unknown) = (ExceptionKind::Shed, ExceptionKind::Unknown);
        let operations = [
            (2, 5..9, shed),
            (0, 5..9, shed),
            (1, 5..9, shed),
            (3, 5..9, unknown),
            (4, 0..1, shed),
        ];
        let mut exceptions = Exceptions::default();
        exceptions.add_operations(&operations);
        assert_eq!(exceptions.operations.len(), 3, "{exceptions:?}");
        assert_eq!(
            exceptions.operations_of(shed),
            [(4, 0..1), (0, 5..9), (1, 5..9), (2, 5..9)]
        );
        assert_eq!(exceptions.operations_of(unknown), [(3, 5..9)]);
        let json = serde_json::to_string(&exceptions.operations[0]).unwrap();
        assert_eq!(
            json,
            r#"{"kind":"shed","first_group":4,"groups":1,"first_tick":0,"end_tick":1}"#
        );
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        // No two distances of a series are equal, so each pair is a stretch.
        let samples: Vec<_> = (0..3 * REJECTED_MAX as i64)
            .map(|n| (SeriesId(0), Timestamp(n * n * n)))
            .collect();
        let mut exceptions = Exceptions::default();
        exceptions.add_rejected(samples.clone());
        assert_eq!(exceptions.rejected.len(), REJECTED_MAX);
        let named = exceptions.rejected_samples();
        assert_eq!(named.len() as u64 + exceptions.rejected_unnamed, samples.len() as u64);
        assert_eq!(named, samples[..named.len()]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn refused_samples_come_back_each_as_often_as_it_was(
            samples in prop::collection::vec((0u32..3, 0i64..40), 0..200)
        ) {
            let mut samples: Vec<_> = samples
                .into_iter()
                .map(|(series, at)| (SeriesId(series), Timestamp(at * 10)))
                .collect();
            let mut exceptions = Exceptions::default();
            exceptions.add_rejected(samples.clone());
            let json = serde_json::to_string(&exceptions).unwrap();
            let read: Exceptions = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read, &exceptions);
            samples.sort_unstable();
            prop_assert_eq!(read.rejected_samples(), samples);
        }
    }

    #[test]
    fn a_series_that_was_refused_whole_is_one_entry() {
        let mut exceptions = Exceptions::default();
        let tick = |series, tick: i64| (SeriesId(series), Timestamp::from_secs(tick));
        exceptions.add_rejected((0..2_000).map(|n| tick(n % 2, i64::from(n / 2))).collect());
        assert_eq!(exceptions.rejected.len(), 2);
        assert_eq!(exceptions.rejected[1].samples, 1_000);
    }
}
