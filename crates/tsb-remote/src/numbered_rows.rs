//! What clients share whose servers store numbers of series and answer in the order of these: which
//! series a request asks for, rows put together into chunks, and where a search for the newest
//! sample starts.

use std::collections::VecDeque;
use std::sync::RwLock;

use tsb_core::{SeriesId, Timestamp};

use crate::Chunk;
use tsb_stores::parts::{Resampler, read, write};
use tsb_stores::store::{Consolidation, Query, Resample};

/// Maximum number of series per request.
const SERIES_MAX: usize = 100;

/// The part of a query that has not been read yet: many series per request, whose rows come in the
/// order of their numbers and of time.
#[derive(Debug)]
pub(crate) struct NumberedRows {
    /// Length and aggregate function of the steps that the server calculates.
    steps: Option<(i64, &'static str)>,
    /// What is calculated here of the server's rows.
    resample: Option<Resample>,
    /// The series whose rows are being resampled.
    resampling: Option<(SeriesId, Resampler)>,
    remaining: VecDeque<(SeriesId, u32)>,
    /// The series of the request whose answer is being read, in ascending order of their numbers;
    /// those that can have no more rows are gone.
    asked: VecDeque<(SeriesId, u32)>,
    ready: VecDeque<Chunk>,
}

impl NumberedRows {
    /// The rows of a query, whose series have these numbers; `aggregate` is the server's function for
    /// a rule, if it has one.
    pub(crate) fn new(
        query: &Query<'_>,
        numbers: Vec<u32>,
        aggregate: impl Fn(Consolidation) -> Option<&'static str>,
    ) -> Self {
        let is_empty = query.range.start >= query.range.end;
        let series = query.series.iter().copied().zip(numbers).filter(|_| !is_empty);
        let steps = query.resample.and_then(|resample| {
            let function = aggregate(resample.consolidation)?;
            Some((resample.step_ns.max(1), function))
        });
        Self {
            steps,
            resample: query.resample.filter(|_| steps.is_none()),
            resampling: None,
            remaining: series.collect(),
            asked: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Length and aggregate function of the steps that the server is to calculate.
    pub(crate) const fn steps(&self) -> Option<(i64, &'static str)> {
        self.steps
    }

    /// The numbers of the next series to ask for, as a list; `None` at the end. The server answers in
    /// the order of numbers, so a request has series in that order.
    pub(crate) fn ask(&mut self) -> Option<String> {
        let numbers = || self.remaining.iter().map(|(_, number)| *number);
        let ascents = numbers()
            .zip(numbers().skip(1))
            .take_while(|(first, next)| first < next);
        let count = (ascents.take(SERIES_MAX - 1).count() + 1).min(self.remaining.len());
        self.asked = self.remaining.drain(..count).collect();
        (!self.asked.is_empty()).then(|| listed(self.asked.iter().map(|(_, number)| *number)))
    }

    /// Takes a row of the answer: number of the series, a timestamp or the number of a step, and the
    /// value.
    ///
    /// # Errors
    /// What is wrong with it, if its series was not asked for here.
    pub(crate) fn push(&mut self, (number, time, value): (u32, i64, f64)) -> Result<(), String> {
        while self.asked.front().is_some_and(|(_, asked)| *asked < number) {
            self.asked.pop_front();
        }
        let series = match self.asked.front() {
            Some((series, asked)) if *asked == number => *series,
            _ => return Err(format!("series {number} was not asked for here")),
        };
        let step_ns = self.steps.map_or(1, |(step_ns, _)| step_ns);
        let at = Timestamp(time.saturating_mul(step_ns));
        match self.resample {
            None => self.keep(series, at, value),
            Some(resample) => self.resample(resample, series, at, value),
        }
        Ok(())
    }

    fn keep(&mut self, series: SeriesId, at: Timestamp, value: f64) {
        match self.ready.back_mut() {
            Some(chunk) if chunk.series == series => {
                chunk.times.push(at);
                chunk.values.push(value);
            }
            _ => self.ready.push_back(Chunk {
                series,
                times: vec![at],
                values: vec![value],
            }),
        }
    }

    fn resample(&mut self, resample: Resample, series: SeriesId, at: Timestamp, value: f64) {
        if self.resampling.as_ref().is_some_and(|(open, _)| *open != series) {
            self.finish();
        }
        let (_, resampler) = self
            .resampling
            .get_or_insert_with(|| (series, Resampler::new(resample)));
        resampler.push(at, value);
    }

    /// Makes the resampled rows of a series ready: an answer has ended, or another series has begun.
    pub(crate) fn finish(&mut self) {
        if let Some((series, resampler)) = self.resampling.take() {
            let (times, values) = resampler.finish();
            self.ready.push_back(Chunk { series, times, values });
        }
    }

    /// A chunk that is ready.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }
}

/// The newest timestamp seen of each series, by its number: searches start there.
#[derive(Debug)]
pub(crate) struct NewestSeen {
    /// Before every sample that the server can hold.
    first: Timestamp,
    seen: RwLock<Vec<Timestamp>>,
}

impl NewestSeen {
    /// Nothing was seen yet; no sample is before `first`.
    pub(crate) const fn new(first: Timestamp) -> Self {
        Self {
            first,
            seen: RwLock::new(Vec::new()),
        }
    }

    /// Where a search for the newest samples of these series starts; `None` without series.
    pub(crate) fn bound(&self, numbers: &[u32]) -> Option<Timestamp> {
        let seen = read(&self.seen);
        let known = numbers.iter().map(|number| seen.get(*number as usize).copied());
        known.map(|at| at.unwrap_or(self.first)).min()
    }

    /// Takes what the search found, number and timestamp, and answers for each of `numbers`.
    pub(crate) fn answer(&self, mut found: Vec<(u32, Timestamp)>, numbers: &[u32], into: &mut [Option<Timestamp>]) {
        found.sort_unstable();
        for (number, into) in numbers.iter().zip(into) {
            let place = found.binary_search_by_key(number, |(number, _)| *number);
            *into = place.ok().map(|place| found[place].1);
        }
        let mut seen = write(&self.seen);
        for (number, at) in found {
            let number = number as usize;
            if seen.len() <= number {
                seen.resize(number + 1, self.first);
            }
            seen[number] = seen[number].max(at);
        }
    }
}

/// Numbers as a list of SQL.
pub(crate) fn listed(numbers: impl IntoIterator<Item = u32>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use tsb_stores::store::TimeRange;

    use super::*;

    fn rows(numbers: &[u32]) -> NumberedRows {
        let series: Vec<_> = (0..numbers.len() as u32).map(SeriesId).collect();
        let query = Query {
            series: &series,
            range: TimeRange::ALL,
            resample: None,
        };
        NumberedRows::new(&query, numbers.to_vec(), |_| None)
    }

    #[test]
    fn a_request_has_series_in_ascending_order() {
        let mut rows = rows(&[4, 7, 7, 2]);
        let asked: Vec<_> = std::iter::from_fn(|| rows.ask()).collect();
        assert_eq!(asked, ["4,7", "7", "2"]);
    }

    #[test]
    fn rows_become_a_chunk_per_series_and_others_are_refused() {
        let mut rows = rows(&[4, 7]);
        assert_eq!(rows.ask().as_deref(), Some("4,7"));
        for row in [(4, 1, 0.5), (4, 2, 1.5), (7, 1, 2.5)] {
            rows.push(row).unwrap();
        }
        let chunks: Vec<_> = std::iter::from_fn(|| rows.pop()).collect();
        assert_eq!(chunks.iter().map(|chunk| chunk.times.len()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((chunks[0].series, chunks[1].series), (SeriesId(0), SeriesId(1)));
        assert!(rows.push((4, 3, 0.5)).is_err(), "series 4 had ended");
        assert!(rows.push((8, 3, 0.5)).is_err(), "series 8 is none of them");
    }

    #[test]
    fn a_search_starts_at_what_was_seen_of_all_series() {
        let seen = NewestSeen::new(Timestamp(-5));
        assert_eq!((seen.bound(&[]), seen.bound(&[3])), (None, Some(Timestamp(-5))));
        let mut newest = [None; 2];
        seen.answer(vec![(3, Timestamp(9)), (1, Timestamp(4))], &[1, 2], &mut newest);
        assert_eq!(newest, [Some(Timestamp(4)), None]);
        assert_eq!(seen.bound(&[1, 3]), Some(Timestamp(4)));
        assert_eq!(seen.bound(&[1, 2]), Some(Timestamp(-5)));
    }
}
