//! The rows of a query, read by remote read, some series at a time.

use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::message::{Matcher, ReadQuery, TimeSeries};
use super::server::PrometheusServer;
use crate::admission::MILLI_NS;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample};

/// Maximum number of series of a request.
pub(super) const SERIES_MAX: usize = 64;
/// Number of samples that a request is to bring, if the series go on as they were.
const SAMPLES: usize = 200_000;

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct PrometheusCursor {
    server: Arc<PrometheusServer>,
    resample: Option<Resample>,
    start_ms: i64,
    end_ms: i64,
    /// Series with their matchers, the next one last.
    remaining: Vec<(SeriesId, Vec<Matcher>)>,
    /// Chunks of the last answer, the next one last.
    ready: Vec<Chunk>,
    /// Number of series of the next request.
    series_max: usize,
}

impl PrometheusCursor {
    pub(super) fn new(server: &Arc<PrometheusServer>, query: &Query<'_>, matchers: Vec<Vec<Matcher>>) -> Self {
        // Samples were cut to milliseconds, so the first that belongs is the next whole one.
        let bounds_ms = query.range.whole_units(MILLI_NS);
        let mut remaining: Vec<_> = query.series.iter().copied().zip(matchers).collect();
        remaining.reverse();
        if bounds_ms.is_none() {
            remaining.clear();
        }
        let (start_ms, end_ms) = bounds_ms.unwrap_or_default();
        Self {
            server: Arc::clone(server),
            resample: query.resample,
            start_ms,
            end_ms,
            remaining,
            ready: Vec::new(),
            series_max: SERIES_MAX,
        }
    }

    async fn read(&mut self) -> Result<()> {
        let at = self.remaining.len().saturating_sub(self.series_max);
        let asked: Vec<_> = self.remaining.split_off(at).into_iter().rev().collect();
        let query = |(_, matchers): &(SeriesId, Vec<Matcher>)| ReadQuery {
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            matchers: matchers.clone(),
        };
        let results = self.server.read(asked.iter().map(query).collect()).await?;
        let mut samples = 0;
        for ((series, matchers), result) in asked.iter().zip(&results) {
            if let Some(found) = of_series(result, matchers) {
                samples += found.samples.len();
                self.ready.push(self.chunk(*series, found));
            }
        }
        self.ready.reverse();
        let each = (samples / asked.len().max(1)).max(1);
        self.series_max = (SAMPLES / each).clamp(1, SERIES_MAX);
        Ok(())
    }

    fn chunk(&self, series: SeriesId, found: &TimeSeries) -> Chunk {
        let samples = found.samples.iter();
        let rows = samples.map(|sample| (Timestamp(sample.at_ms * MILLI_NS), sample.value));
        let (times, values) = match self.resample {
            Some(resample) => {
                let mut resampler = Resampler::new(resample);
                rows.for_each(|(at, value)| resampler.push(at, value));
                resampler.finish()
            }
            None => rows.unzip(),
        };
        Chunk { series, times, values }
    }
}

/// The series with exactly the labels that were asked for: matchers also match series with more.
pub(super) fn of_series<'a>(result: &'a [TimeSeries], matchers: &[Matcher]) -> Option<&'a TimeSeries> {
    let is_it = |series: &&TimeSeries| {
        let is_same = |name: &str, value: &str| matchers.iter().any(|one| one.name == name && one.value == value);
        series.labels.len() == matchers.len() && series.labels.iter().all(|label| is_same(&label.name, &label.value))
    };
    result.iter().find(is_it)
}

impl QueryCursor for PrometheusCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            while let Some(chunk) = self.ready.pop() {
                if !chunk.times.is_empty() {
                    return Ok(Some(chunk));
                }
            }
            if self.remaining.is_empty() {
                return Ok(None);
            }
            self.read().await?;
        }
    }
}
