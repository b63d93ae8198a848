//! The samples of some series that one thread writes in one call, and the outcome for each
//! series.

use std::ops::Range;

use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::chunk::Sample;
use crate::error::{Error, Result};
use crate::store::{Reason, Refusal, Refusals, Store};

/// Number of samples from which on a batch is written.
const SAMPLES_MAX: usize = 8_192;
/// Number of series from which on a batch is written: each series may cost an access to a file.
const SERIES_MAX: usize = 256;

/// Columns of samples, series after series. The buffers are reused.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    parts: Vec<SeriesPart>,
    refused: Refusals,
}

/// The samples of one series in a batch.
#[derive(Clone, Debug)]
pub(super) struct SeriesPart {
    pub(super) id: SeriesId,
    pub(super) range: Range<usize>,
    /// The journal record of its newest sample.
    pub(super) last_record: u64,
    /// An earlier write failed halfway: the store may have accepted some of these samples.
    pub(super) is_outcome_unknown: bool,
    /// Number of samples that replace the one before them.
    pub(super) repeats: u32,
}

/// The outcome of writing a part.
#[derive(Debug, Default)]
pub(super) struct SeriesOutcome {
    pub(super) written: u64,
    pub(super) failed: u64,
    pub(super) expired: u64,
    /// Samples to retry.
    pub(super) to_retry: Vec<Sample>,
    /// The store may have accepted some of `to_retry`.
    pub(super) is_outcome_unknown: bool,
    /// The store refused samples because the file of the series is damaged.
    pub(super) is_damaged: bool,
    /// Why samples failed or must be retried.
    pub(super) error: Option<Error>,
}

impl WriteBatch {
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
        self.parts.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the batch should be written now.
    pub(super) fn is_full(&self) -> bool {
        self.values.len() >= SAMPLES_MAX || self.parts.len() >= SERIES_MAX
    }

    pub(super) fn parts(&self) -> &[SeriesPart] {
        &self.parts
    }

    pub(super) fn begin(&mut self, mut part: SeriesPart) {
        let start = self.values.len();
        part.range = start..start;
        self.parts.push(part);
    }

    pub(super) fn extend(&mut self, samples: &[Sample]) {
        self.times.extend(samples.iter().map(|sample| Timestamp(sample.0)));
        self.values.extend(samples.iter().map(|sample| sample.1));
    }

    pub(super) fn end(&mut self) {
        let end = self.values.len();
        if let Some(part) = self.parts.last_mut() {
            part.range.end = end;
            self.ids.resize(end, part.id);
        }
    }

    /// Writes the batch to `store`, and calls `done` with the outcome of each part.
    pub(super) fn write<S: Store>(&mut self, store: &S, mut done: impl FnMut(&SeriesPart, SeriesOutcome)) {
        let mut refused = std::mem::take(&mut self.refused);
        match self.refusals(0..self.values.len(), store, &mut refused) {
            Ok(list) => {
                for part in &self.parts {
                    done(part, self.classify(part, 0, &list, store));
                }
            }
            // A single series may have caused the error: write each alone. The store may have
            // accepted some samples already.
            Err(_) if self.parts.len() > 1 => {
                for part in &self.parts {
                    let part = SeriesPart {
                        is_outcome_unknown: true,
                        ..part.clone()
                    };
                    let outcome = match self.refusals(part.range.clone(), store, &mut refused) {
                        Ok(list) => self.classify(&part, part.range.start, &list, store),
                        Err(error) => self.all_to_retry(&part, error),
                    };
                    done(&part, outcome);
                }
            }
            Err(error) => {
                if let [part] = self.parts.as_slice() {
                    done(part, self.all_to_retry(part, error));
                }
            }
        }
        self.refused = refused;
    }

    /// Writes some samples. Returns the refusals in order; their indexes count from the start of
    /// `range`.
    fn refusals<S: Store>(&self, range: Range<usize>, store: &S, refused: &mut Refusals) -> Result<Vec<Refusal>> {
        refused.clear();
        store.write(&self.view(range), refused).map(drop)?;
        let mut list = refused.as_slice().to_vec();
        list.sort_unstable_by_key(|refusal| refusal.index);
        Ok(list)
    }

    fn view(&self, range: Range<usize>) -> Batch<'_> {
        Batch::new(
            Ids::Each(&self.ids[range.clone()]),
            Times::Each(&self.times[range.clone()]),
            &self.values[range],
        )
    }

    fn all_to_retry(&self, part: &SeriesPart, error: Error) -> SeriesOutcome {
        let range = part.range.clone();
        SeriesOutcome {
            to_retry: range.map(|index| self.sample(index)).collect(),
            is_outcome_unknown: true,
            error: Some(error),
            ..SeriesOutcome::default()
        }
    }

    fn sample(&self, index: usize) -> Sample {
        (self.times[index].0, self.values[index])
    }

    /// The outcome of a part, from the refusals; their indexes count from `first`.
    fn classify<S: Store>(&self, part: &SeriesPart, first: usize, refused: &[Refusal], store: &S) -> SeriesOutcome {
        let from = refused.partition_point(|refusal| first + (refusal.index as usize) < part.range.start);
        let of_part = refused[from..]
            .iter()
            .take_while(|refusal| first + (refusal.index as usize) < part.range.end);
        let mut outcome = SeriesOutcome {
            written: part.range.len() as u64,
            ..SeriesOutcome::default()
        };
        // Samples that the store accepted in an earlier attempt come first in the part: a late or
        // duplicate refusal there is no failure.
        let mut accepted_before = part.is_outcome_unknown.then_some(part.range.start);
        for refusal in of_part {
            let index = first + refusal.index as usize;
            let is_in_order = matches!(refusal.reason, Reason::Late | Reason::Duplicate);
            if is_in_order && accepted_before == Some(index) {
                accepted_before = Some(index + 1);
                continue;
            }
            outcome.written -= 1;
            outcome.is_damaged |= refusal.reason == Reason::Damaged;
            match refusal.reason {
                Reason::Expired => outcome.expired += 1,
                Reason::Full => outcome.to_retry.push(self.sample(index)),
                _ => outcome.failed += 1,
            }
            if refusal.reason != Reason::Expired {
                outcome
                    .error
                    .get_or_insert_with(|| refusal_error(part.id, refusal.reason, store));
            }
        }
        outcome
    }
}

fn refusal_error<S: Store>(id: SeriesId, reason: Reason, store: &S) -> Error {
    Error::Backend {
        action: format!("write series {id}"),
        source: format!("{store} refused a sample as {}", reason.name()).into(),
    }
}
