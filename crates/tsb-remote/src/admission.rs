//! Which samples may be sent: of each series only those behind all that were sent before. What
//! Prometheus and two backends of Mohawk share.
//!
//! Prometheus judges a sample by what was stored before its request, so it may acknowledge two
//! samples of one request and drop the second; Mohawk acknowledges what it does not keep. What is
//! admitted here, they store.

use tsb_core::{Batch, Timestamp};
use tsb_stores::store::Reason;

/// Nanoseconds of the servers' resolution.
pub(crate) const MILLI_NS: i64 = 1_000_000;

/// No sample.
const NONE: i64 = i64::MIN;

/// A timestamp in milliseconds, cut.
pub(crate) const fn millis(at: Timestamp) -> i64 {
    at.0.div_euclid(MILLI_NS)
}

/// The newest samples of each series, by its number, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// Sent, whatever became of it.
    sent: Vec<i64>,
    /// Acknowledged, by this opening or an earlier one.
    accepted: Vec<i64>,
}

/// The samples of a batch that may be sent.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// Index in the batch, series number, milliseconds, and what the series had sent before.
    samples: Vec<(u32, u32, i64, i64)>,
    /// Those that may not, by index.
    pub(crate) refused: Vec<(u32, Reason)>,
}

impl Admission {
    fn grow(&mut self, number: usize) {
        if self.sent.len() <= number {
            self.sent.resize(number + 1, NONE);
            self.accepted.resize(number + 1, NONE);
        }
    }

    /// Takes the newest sample of a series that an earlier opening wrote.
    pub(crate) fn seed(&mut self, number: u32, at_ms: i64) {
        let number = number as usize;
        self.grow(number);
        self.sent[number] = self.sent[number].max(at_ms);
        self.accepted[number] = self.accepted[number].max(at_ms);
    }

    /// Admits what is later than all before, and counts it as sent. Samples that cannot be sent for
    /// another reason are in `refused`, in order of their indices, and stay refused.
    pub(crate) fn admit(&mut self, batch: &Batch<'_>, refused: Vec<(u32, Reason)>) -> Admitted {
        let mut admitted = Admitted::default();
        let mut unsendable = refused.into_iter().peekable();
        for (index, (id, at, _)) in batch.iter().enumerate() {
            let (index, number, at_ms) = (index as u32, id.0, millis(at));
            if let Some(refusal) = unsendable.next_if(|(refused, _)| *refused == index) {
                admitted.refused.push(refusal);
                continue;
            }
            self.grow(id.index());
            let before = self.sent[id.index()];
            if at_ms > before {
                self.sent[id.index()] = at_ms;
                admitted.samples.push((index, number, at_ms, before));
            } else {
                let reason = if at_ms == before {
                    Reason::Duplicate
                } else {
                    Reason::Late
                };
                admitted.refused.push((index, reason));
            }
        }
        admitted
    }

    /// They are stored.
    pub(crate) fn stored(&mut self, admitted: &Admitted) {
        for &(_, number, at_ms, _) in &admitted.samples {
            let newest = &mut self.accepted[number as usize];
            *newest = (*newest).max(at_ms);
        }
    }

    /// None of them is stored: they may be sent again, unless later ones were sent meanwhile.
    pub(crate) fn not_stored(&mut self, admitted: &Admitted) {
        for &(_, number, at_ms, before) in admitted.samples.iter().rev() {
            let newest = &mut self.sent[number as usize];
            if *newest == at_ms {
                *newest = before;
            }
        }
    }

    /// The newest acknowledged sample of a series, or its beginning, and the newest that was sent;
    /// `None` if nothing was.
    #[cfg(feature = "prometheus")]
    pub(crate) fn newest_span(&self, number: u32) -> Option<(i64, i64)> {
        let sent = self.sent.get(number as usize).copied();
        let sent = sent.filter(|at_ms| *at_ms != NONE)?;
        Some((self.newest(number).unwrap_or(i64::MIN / MILLI_NS), sent))
    }

    /// The newest acknowledged sample of a series.
    pub(crate) fn newest(&self, number: u32) -> Option<i64> {
        let newest = self.accepted.get(number as usize).copied();
        newest.filter(|at_ms| *at_ms != NONE)
    }
}

impl Admitted {
    /// Whether nothing may be sent.
    #[cfg(feature = "prometheus")]
    pub(crate) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Indices of the samples to send, in order.
    #[cfg(any(test, feature = "prometheus"))]
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> {
        self.samples.iter().map(|(index, ..)| *index)
    }

    /// The refusals of the whole batch when the server has refused what was sent.
    #[cfg(any(test, feature = "prometheus"))]
    pub(crate) fn all_refused(&self, reason: Reason) -> Vec<(u32, Reason)> {
        let mut refused: Vec<_> = self.indices().map(|index| (index, reason)).collect();
        refused.extend(&self.refused);
        refused.sort_unstable_by_key(|(index, _)| *index);
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::{BatchBuf, SeriesId};

    fn batch(samples: &[(u32, i64)]) -> BatchBuf {
        let mut buffer = BatchBuf::new();
        for (id, ms) in samples {
            buffer.push(SeriesId(*id), Timestamp(ms * MILLI_NS + 7), 1.0);
        }
        buffer
    }

    #[test]
    fn only_later_samples_are_admitted_and_refused_ones_may_come_again() {
        let mut admission = Admission::default();
        admission.seed(1, 50);
        let buffer = batch(&[(0, 10), (1, 50), (0, 20), (0, 15), (0, 20), (1, 60)]);
        let admitted = admission.admit(&buffer.as_batch(), Vec::new());
        assert_eq!(admitted.indices().collect::<Vec<_>>(), [0, 2, 5]);
        let refused = [(1, Reason::Duplicate), (3, Reason::Late), (4, Reason::Duplicate)];
        assert_eq!(admitted.refused, refused);
        assert_eq!((admission.newest(0), admission.newest(1)), (None, Some(50)));
        admission.not_stored(&admitted);
        let again = admission.admit(&buffer.as_batch(), Vec::new());
        assert_eq!(again.indices().collect::<Vec<_>>(), [0, 2, 5]);
        admission.stored(&again);
        assert_eq!((admission.newest(0), admission.newest(1)), (Some(20), Some(60)));
        let all = again.all_refused(Reason::Late);
        assert_eq!(all.len(), 6);
        assert!(all.is_sorted_by_key(|(index, _)| *index));
        let late = admission.admit(&batch(&[(0, 19), (2, -5)]).as_batch(), Vec::new());
        assert_eq!(late.refused, [(0, Reason::Late)]);
    }

    #[test]
    fn what_cannot_be_sent_does_not_count_as_sent() {
        let mut admission = Admission::default();
        let buffer = batch(&[(0, 10), (0, 30), (0, 20), (0, 15)]);
        let unsendable = vec![(1, Reason::Unrepresentable)];
        let admitted = admission.admit(&buffer.as_batch(), unsendable);
        assert_eq!(admitted.indices().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(admitted.refused, [(1, Reason::Unrepresentable), (3, Reason::Late)]);
    }
}
