//! The rows of a query: many series per request, read as they arrive.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::block::Row;
use super::connection::ClickHouseConnection;
use super::tables::{aggregate, listed};
use crate::http::BodyChunks;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

const ACTION: &str = "read samples";
/// Maximum number of series per request.
const SERIES_MAX: usize = 100;

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct ClickHouseCursor {
    connection: Arc<ClickHouseConnection>,
    range: TimeRange,
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
    answer: Option<BodyChunks>,
    /// The beginning of a row.
    partial: Vec<u8>,
    ready: VecDeque<Chunk>,
}

impl ClickHouseCursor {
    pub(super) fn new(connection: &Arc<ClickHouseConnection>, query: &Query<'_>, numbers: Vec<u32>) -> Self {
        let is_empty = query.range.start >= query.range.end;
        let series = query.series.iter().copied().zip(numbers).filter(|_| !is_empty);
        let steps = query.resample.and_then(|resample| {
            let function = aggregate(resample.consolidation)?;
            Some((resample.step_ns.max(1), function))
        });
        Self {
            connection: Arc::clone(connection),
            range: query.range,
            steps,
            resample: query.resample.filter(|_| steps.is_none()),
            resampling: None,
            remaining: series.collect(),
            asked: VecDeque::new(),
            answer: None,
            partial: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Asks for the next series; whether there are any. The server answers in the order of numbers, so
    /// a request has series in that order.
    async fn ask(&mut self) -> Result<bool> {
        let numbers = || self.remaining.iter().map(|(_, number)| *number);
        let ascents = numbers()
            .zip(numbers().skip(1))
            .take_while(|(first, next)| first < next);
        let count = (ascents.take(SERIES_MAX - 1).count() + 1).min(self.remaining.len());
        self.asked = self.remaining.drain(..count).collect();
        if self.asked.is_empty() {
            return Ok(false);
        }
        let list = listed(self.asked.iter().map(|(_, number)| *number));
        let statement = self.connection.tables().samples(&list, self.range, self.steps);
        self.answer = Some(self.connection.stream(ACTION, statement).await?);
        Ok(true)
    }

    /// Reads the next part of the answer; whether there was one.
    async fn read(&mut self) -> Result<bool> {
        let Some(answer) = &mut self.answer else {
            return Ok(false);
        };
        if let Some(bytes) = answer.next().await? {
            self.take(&bytes)?;
        } else {
            self.answer = None;
            self.finish();
            if !self.partial.is_empty() {
                return Err(self.garbled("it ends within a row"));
            }
        }
        Ok(true)
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        if !self.partial.is_empty() {
            let (missing, rest) = bytes.split_at(bytes.len().min(Row::BYTES - self.partial.len()));
            self.partial.extend_from_slice(missing);
            bytes = rest;
            if let Some(whole) = self.partial.first_chunk() {
                let row = Row::read(whole);
                self.partial.clear();
                self.pass(row)?;
            }
        }
        let (rows, rest) = bytes.as_chunks();
        for row in rows {
            self.pass(Row::read(row))?;
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    fn pass(&mut self, row: Row) -> Result<()> {
        while self.asked.front().is_some_and(|(_, number)| *number < row.series) {
            self.asked.pop_front();
        }
        let series = match self.asked.front() {
            Some((series, number)) if *number == row.series => *series,
            _ => return Err(self.garbled(&format!("series {} was not asked for here", row.series))),
        };
        let step_ns = self.steps.map_or(1, |(step_ns, _)| step_ns);
        let at = Timestamp(row.time.saturating_mul(step_ns));
        match self.resample {
            None => self.keep(series, at, row.value),
            Some(resample) => self.resample(resample, series, at, row.value),
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

    /// Makes the resampled rows of a series ready.
    fn finish(&mut self) {
        if let Some((series, resampler)) = self.resampling.take() {
            let (times, values) = resampler.finish();
            self.ready.push_back(Chunk { series, times, values });
        }
    }

    fn garbled(&self, why: &str) -> Error {
        let why = format!("the answer cannot be read: {why}");
        self.connection.server().unanswered(ACTION, why)
    }
}

impl QueryCursor for ClickHouseCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if !self.read().await? && !self.ask().await? {
                return Ok(None);
            }
        }
    }
}
