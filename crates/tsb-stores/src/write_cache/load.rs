//! The samples of some series that one thread writes in one call, and the outcome for each
//! series.

use std::ops::Range;

use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::chunk::Sample;
use crate::error::{Error, Result};
use crate::store::{Reason, Refusal, Refusals, Store};

/// Number of samples from which on a load is written.
const SAMPLES_MAX: usize = 8_192;
/// Number of series from which on a load is written: each series may cost an access to a file.
const SERIES_MAX: usize = 256;

/// Columns of samples, series after series. The buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Load {
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    parts: Vec<Part>,
    refused: Refusals,
}

/// The samples of one series in a load.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) id: SeriesId,
    pub(super) range: Range<usize>,
    /// The journal record of its newest sample.
    pub(super) last_record: u64,
    /// An earlier write failed halfway: the store may have accepted some of these samples.
    pub(super) is_unsure: bool,
    /// Number of samples that replace the one before them.
    pub(super) repeats: u32,
}

/// The outcome of writing a part.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) written: u64,
    pub(super) failed: u64,
    pub(super) expired: u64,
    /// Samples to retry.
    pub(super) left: Vec<Sample>,
    /// The store may have accepted some of `left`.
    pub(super) is_unsure: bool,
    /// The store refused samples because the file of the series is damaged.
    pub(super) is_damaged: bool,
    /// Why samples are left or failed.
    pub(super) trouble: Option<Error>,
}

impl Load {
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
        self.parts.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the load should be written now.
    pub(super) fn is_full(&self) -> bool {
        self.values.len() >= SAMPLES_MAX || self.parts.len() >= SERIES_MAX
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn begin(&mut self, mut part: Part) {
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

    /// Writes the load to `store`, and calls `done` with the outcome of each part.
    pub(super) fn write<S: Store>(&mut self, store: &S, mut done: impl FnMut(&Part, Outcome)) {
        let mut refused = std::mem::take(&mut self.refused);
        match self.refusals(0..self.values.len(), store, &mut refused) {
            Ok(list) => {
                for part in &self.parts {
                    done(part, self.judge(part, 0, &list, store));
                }
            }
            // A single series may have caused the error: write each alone. The store may have
            // accepted some samples already.
            Err(_) if self.parts.len() > 1 => {
                for part in &self.parts {
                    let part = Part {
                        is_unsure: true,
                        ..part.clone()
                    };
                    let outcome = match self.refusals(part.range.clone(), store, &mut refused) {
                        Ok(list) => self.judge(&part, part.range.start, &list, store),
                        Err(error) => self.all_left(&part, error),
                    };
                    done(&part, outcome);
                }
            }
            Err(error) => {
                if let [part] = self.parts.as_slice() {
                    done(part, self.all_left(part, error));
                }
            }
        }
        self.refused = refused;
    }

    /// Writes some samples. Returns the refusals in order; their indexes count from the start of
    /// `range`.
    fn refusals<S: Store>(&self, range: Range<usize>, store: &S, refused: &mut Refusals) -> Result<Vec<Refusal>> {
        refused.clear();
        store.write(&self.batch(range), refused).map(drop)?;
        let mut list = refused.as_slice().to_vec();
        list.sort_unstable_by_key(|refusal| refusal.index);
        Ok(list)
    }

    fn batch(&self, range: Range<usize>) -> Batch<'_> {
        Batch::new(
            Ids::Each(&self.ids[range.clone()]),
            Times::Each(&self.times[range.clone()]),
            &self.values[range],
        )
    }

    fn all_left(&self, part: &Part, error: Error) -> Outcome {
        let range = part.range.clone();
        Outcome {
            left: range.map(|index| self.sample(index)).collect(),
            is_unsure: true,
            trouble: Some(error),
            ..Outcome::default()
        }
    }

    fn sample(&self, index: usize) -> Sample {
        (self.times[index].0, self.values[index])
    }

    /// The outcome of a part, from the refusals; their indexes count from `first`.
    fn judge<S: Store>(&self, part: &Part, first: usize, refused: &[Refusal], store: &S) -> Outcome {
        let from = refused.partition_point(|refusal| first + (refusal.index as usize) < part.range.start);
        let of_part = refused[from..]
            .iter()
            .take_while(|refusal| first + (refusal.index as usize) < part.range.end);
        let mut outcome = Outcome {
            written: part.range.len() as u64,
            ..Outcome::default()
        };
        // Samples that the store accepted in an earlier attempt come first in the part: a late or
        // duplicate refusal there is no failure.
        let mut taken_before = part.is_unsure.then_some(part.range.start);
        for refusal in of_part {
            let index = first + refusal.index as usize;
            let is_in_order = matches!(refusal.reason, Reason::Late | Reason::Duplicate);
            if is_in_order && taken_before == Some(index) {
                taken_before = Some(index + 1);
                continue;
            }
            outcome.written -= 1;
            outcome.is_damaged |= refusal.reason == Reason::Damaged;
            match refusal.reason {
                Reason::Expired => outcome.expired += 1,
                Reason::Full => outcome.left.push(self.sample(index)),
                _ => outcome.failed += 1,
            }
            if refusal.reason != Reason::Expired {
                outcome
                    .trouble
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
