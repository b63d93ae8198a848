//! Exceptions: the issued operations and samples that need not be in the store. Together with the
//! plan and the issued ticks they define exactly what must be there.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::emit::ExceptionKind;
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Maximum number of stretches by which rejected samples are named in a report; further ones are
/// only counted.
pub const REJECTED_MAX: usize = 1 << 16;

/// The operations and samples that need not be in the store, by name as far as possible, and the
/// number of those without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exceptions {
    /// Issued operations that were not sent, not answered, or lost on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ExceptedTicks>,
    /// Number of such operations that are not in the list.
    #[serde(default)]
    pub operations_unnamed: u64,
    /// Samples that the store rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedStretch>,
    /// Number of rejected samples that are not in the list.
    #[serde(default)]
    pub rejected_unnamed: u64,
    /// Samples that never became part of a write: lost on the way, malformed, or refused by the
    /// listener. Those lost on the way belong to operations in the list above, if all such
    /// operations are in it; the others cannot be named.
    #[serde(default)]
    pub never_arrived: u64,
    /// Of these, samples that belong to no operation in the list; absent in reports of earlier
    /// versions, which named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_arrived_unnamed: Option<u64>,
}

/// Ticks of consecutive groups that were issued but not sent, not answered, or lost on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExceptedTicks {
    /// Which of the three it was.
    pub kind: ExceptionKind,
    /// The first group.
    pub first_group: u32,
    /// Number of consecutive groups.
    pub groups: u32,
    /// The first tick.
    pub first_tick: u64,
    /// The tick after the last.
    pub end_tick: u64,
}

/// Rejected samples of one series at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RejectedStretch {
    /// The series.
    pub series: SeriesId,
    /// The first timestamp.
    pub first_ns: Timestamp,
    /// Distance of two timestamps, in nanoseconds; 0 for several samples with one timestamp.
    pub step_ns: i64,
    /// Number of samples.
    pub samples: u64,
}

impl Exceptions {
    /// Number of samples that may be missing in the store although no list names them: a lower
    /// bound, since an operation without a name counts as one sample.
    pub fn unnamed(&self) -> u64 {
        self.never_arrived_unnamed.unwrap_or(self.never_arrived) + self.rejected_unnamed + self.operations_unnamed
    }

    /// Adds operations: consecutive groups with the same ticks become one entry.
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

    /// The operations of a kind as (group, ticks).
    pub fn operations_of(&self, kind: ExceptionKind) -> Vec<(u32, Range<u64>)> {
        let of_kind = self.operations.iter().filter(|one| one.kind == kind);
        of_kind
            .flat_map(|one| {
                let groups = one.first_group..one.first_group.saturating_add(one.groups);
                groups.map(|group| (group, one.first_tick..one.end_tick))
            })
            .collect()
    }

    /// Adds rejected samples, each as often as it was rejected.
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

    /// The rejected samples that are in the list.
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
    /// Extends the stretch by `at`, if it is as far from the last sample as that is from the one
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
    fn entries_beyond_capacity_are_counted() {
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
