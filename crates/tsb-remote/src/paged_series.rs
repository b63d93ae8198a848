//! What KairosDB and Hawkular share: the part of a query that has not been read yet, many series per
//! request while each fits into one page, otherwise one. It makes no requests.

use std::collections::VecDeque;

use tsb_core::{SeriesId, Timestamp};

use crate::Chunk;
use tsb_stores::store::TimeRange;

const MS_NS: i64 = 1_000_000;

/// The samples of one series in one answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    /// Milliseconds in ascending order, and values.
    pub(crate) samples: Vec<(i64, f64)>,
    /// The millisecond from which on there may be more; `None`: these are all.
    pub(crate) resumes_ms: Option<i64>,
}

/// What remains to be read. `K` is what a request says of a series.
#[derive(Debug)]
pub(crate) struct PagedSeries<K> {
    range: TimeRange,
    remaining: VecDeque<(SeriesId, K)>,
    per_request: usize,
    /// Where the first of the remaining series goes on.
    resumes: Option<Timestamp>,
    ready: VecDeque<Chunk>,
}

impl<K: Clone> PagedSeries<K> {
    /// A query of series, of which a request has at most `per_request`, in [1, ..).
    pub(crate) fn new(range: TimeRange, series: VecDeque<(SeriesId, K)>, per_request: usize) -> Self {
        Self {
            range,
            remaining: series,
            per_request,
            resumes: None,
            ready: VecDeque::new(),
        }
    }

    /// The series to ask for next, and their range: the next series, or more of the first. `None` at the
    /// end.
    pub(crate) fn ask(&self) -> Option<(Vec<K>, TimeRange)> {
        let count = if self.resumes.is_some() { 1 } else { self.per_request };
        let asked: Vec<K> = self.remaining.iter().take(count).map(|(_, key)| key.clone()).collect();
        let range = TimeRange {
            start: self.resumes.unwrap_or(self.range.start),
            end: self.range.end,
        };
        (!asked.is_empty()).then_some((asked, range))
    }

    /// Takes the pages of the series that were asked for, in their order.
    pub(crate) fn take(&mut self, pages: Vec<Page>) {
        self.resumes = None;
        for page in pages {
            let Some((series, key)) = self.remaining.pop_front() else {
                break;
            };
            self.keep(series, page.samples);
            if let Some(ms) = page.resumes_ms {
                // What was found of the others is asked for again: they are as long, most likely.
                self.remaining.push_front((series, key));
                self.resumes = Some(at(ms));
                self.per_request = 1;
                break;
            }
        }
    }

    fn keep(&mut self, series: SeriesId, samples: Vec<(i64, f64)>) {
        if !samples.is_empty() {
            let (times, values) = samples.into_iter().map(|(ms, value)| (at(ms), value)).unzip();
            self.ready.push_back(Chunk { series, times, values });
        }
    }

    /// A chunk that is ready.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp(ms.saturating_mul(MS_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(samples: &[i64], resumes_ms: Option<i64>) -> Page {
        Page {
            samples: samples.iter().map(|ms| (*ms, 0.5)).collect(),
            resumes_ms,
        }
    }

    #[test]
    fn a_series_of_many_pages_is_read_alone_and_the_others_one_by_one() {
        let series = (0..3).map(|id| (SeriesId(id), id)).collect();
        let mut paged = PagedSeries::new(TimeRange::ALL, series, 20);
        assert_eq!(paged.ask(), Some((vec![0, 1, 2], TimeRange::ALL)));
        paged.take(vec![page(&[], None), page(&[1, 2], Some(3)), page(&[7], None)]);
        let rest = TimeRange {
            start: at(3),
            ..TimeRange::ALL
        };
        assert_eq!(paged.ask(), Some((vec![1], rest)));
        paged.take(vec![page(&[3], None)]);
        assert_eq!(paged.ask(), Some((vec![2], TimeRange::ALL)));
        paged.take(vec![page(&[7], None)]);
        assert_eq!(paged.ask(), None);
        let chunks: Vec<_> = std::iter::from_fn(|| paged.pop()).collect();
        let found: Vec<_> = chunks.iter().map(|chunk| (chunk.series.0, chunk.times.len())).collect();
        assert_eq!(found, [(1, 2), (1, 1), (2, 1)]);
    }
}
