//! The newest samples of series: one request where many are asked for, because where to look is
//! known from what was acknowledged.

use tsb_core::Timestamp;

use super::super::cursor::{SERIES_MAX, of_series};
use super::super::message::{ReadQuery, TimeSeries};
use super::super::server::key_of;
use super::PrometheusClient;
use crate::admission::{Admission, MILLI_NS};
use tsb_stores::error::Result;
use tsb_stores::parts::{lock, read};

/// The longest span that is read of all series of the place, in milliseconds.
const SPAN_MS: i64 = 60_000;
/// Maximum number of such spans in a request.
const SPANS_MAX: usize = 16;

impl PrometheusClient {
    pub(super) async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        // From the acknowledged to the newest that was sent: it may be there without an ack yet.
        let expected: Vec<Option<(i64, i64)>> = {
            let admission = lock(&self.admission);
            numbers.iter().map(|number| admission.newest_span(*number)).collect()
        };
        let mut found = vec![None; numbers.len()];
        let ends = expected.iter().flatten().flat_map(|(first, last)| [*first, *last]);
        if numbers.len() > SERIES_MAX
            && let Some(spans) = spans(ends)
        {
            self.newest_in_spans(numbers, spans, &mut found).await?;
        } else {
            self.newest_each(numbers, &expected, &mut found).await?;
        }
        // What is not where it was acknowledged may be gone: look for what is left.
        let gone: Vec<usize> = (0..numbers.len())
            .filter(|place| found[*place].is_none() && expected[*place].is_some())
            .collect();
        if !gone.is_empty() {
            let again: Vec<u32> = gone.iter().map(|place| numbers[*place]).collect();
            for (place, newest) in gone.into_iter().zip(self.newest_ever(&again).await?) {
                found[place] = newest;
            }
        }
        for (slot, newest) in into.iter_mut().zip(found) {
            *slot = newest.map(|at_ms| Timestamp(at_ms * MILLI_NS));
        }
        Ok(())
    }

    /// Asks each series for what is there from its acknowledged sample on.
    async fn newest_each(
        &self,
        numbers: &[u32],
        expected: &[Option<(i64, i64)>],
        found: &mut [Option<i64>],
    ) -> Result<()> {
        let known: Vec<(usize, (i64, i64))> = expected
            .iter()
            .enumerate()
            .filter_map(|(place, span)| span.map(|span| (place, span)))
            .collect();
        for known in known.chunks(SERIES_MAX) {
            let asked: Vec<u32> = known.iter().map(|(place, _)| numbers[*place]).collect();
            let matchers = self.matchers(&asked)?;
            let query = |(matchers, (_, (start_ms, end_ms))): (&Vec<_>, &(usize, (i64, i64)))| ReadQuery {
                start_ms: *start_ms,
                end_ms: *end_ms,
                matchers: matchers.clone(),
            };
            let queries = matchers.iter().zip(known).map(query).collect();
            let results = self.server.read(queries).await?;
            for (((place, _), result), matchers) in known.iter().zip(&results).zip(&matchers) {
                found[*place] = last(result, matchers);
            }
        }
        Ok(())
    }

    /// Asks all series of the place for their samples in spans.
    async fn newest_in_spans(&self, numbers: &[u32], spans: Vec<(i64, i64)>, found: &mut [Option<i64>]) -> Result<()> {
        let query = |(start_ms, end_ms)| ReadQuery {
            start_ms,
            end_ms,
            matchers: vec![self.server.of_place()],
        };
        let results = self.server.read(spans.into_iter().map(query).collect()).await?;
        let series = read(&self.series);
        let mut newest = Admission::default();
        for one in results.iter().flatten() {
            let number = key_of(one).ok().and_then(|key| series.numbers.get(&key).copied());
            if let Some((number, sample)) = number.zip(one.samples.last()) {
                newest.seed(number, sample.at_ms);
            }
        }
        for (slot, number) in found.iter_mut().zip(numbers) {
            *slot = newest.newest(*number);
        }
        Ok(())
    }

    /// Reads series from their beginning.
    async fn newest_ever(&self, numbers: &[u32]) -> Result<Vec<Option<i64>>> {
        let mut newest = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(SERIES_MAX) {
            let matchers = self.matchers(numbers)?;
            let query = |matchers: &Vec<_>| ReadQuery {
                start_ms: i64::MIN / MILLI_NS,
                end_ms: i64::MAX / MILLI_NS,
                matchers: matchers.clone(),
            };
            let results = self.server.read(matchers.iter().map(query).collect()).await?;
            newest.extend(
                results
                    .iter()
                    .zip(&matchers)
                    .map(|(result, matchers)| last(result, matchers)),
            );
        }
        Ok(newest)
    }

    /// Learns the newest samples of the series that are there.
    pub(super) async fn seed(&self) -> Result<()> {
        let numbers: Vec<u32> = (0..read(&self.keys).count()).collect();
        let newest = self.newest_ever(&numbers).await?;
        let mut admission = lock(&self.admission);
        for (number, at_ms) in numbers.into_iter().zip(newest) {
            if let Some(at_ms) = at_ms {
                admission.seed(number, at_ms);
            }
        }
        Ok(())
    }
}

/// The time of the last sample of the series with exactly these labels.
fn last(result: &[TimeSeries], matchers: &[super::Matcher]) -> Option<i64> {
    of_series(result, matchers)?.samples.last().map(|sample| sample.at_ms)
}

/// Spans that hold all of these times; `None` if they would be too many.
fn spans(times: impl Iterator<Item = i64>) -> Option<Vec<(i64, i64)>> {
    let mut times: Vec<i64> = times.collect();
    times.sort_unstable();
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for at_ms in times {
        match spans.last_mut() {
            Some((start, end)) if at_ms - *start < SPAN_MS => *end = at_ms,
            _ => spans.push((at_ms, at_ms)),
        }
    }
    (spans.len() <= SPANS_MAX).then_some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_near_share_a_span() {
        assert_eq!(
            spans([5, 1, 59_999, 60_001, 7].into_iter()),
            Some(vec![(1, 59_999), (60_001, 60_001)])
        );
        assert_eq!(spans(std::iter::empty()), Some(Vec::new()));
        let apart: Vec<i64> = (0..17).map(|index| index * SPAN_MS).collect();
        assert_eq!(spans(apart.iter().copied()), None);
        assert_eq!(spans(apart[1..].iter().copied()).map(|spans| spans.len()), Some(16));
    }
}
