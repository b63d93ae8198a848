//! The rows of a query: many series per request, read as they arrive.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::connection::QuestDbConnection;
use super::tables::{aggregate, listed};
use crate::http::LineReader;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

const ACTION: &str = "read samples";
/// Maximum number of series per request.
const SERIES_MAX: usize = 100;
/// Rows after which a chunk is handed on.
const CHUNK_ROWS: usize = 4_096;

/// A row: number of the series, a timestamp or the number of a step, and the value.
type Row = (u32, i64, f64);

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct QuestDbCursor {
    connection: Arc<QuestDbConnection>,
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
    answer: Option<LineReader>,
    ready: VecDeque<Chunk>,
}

impl QuestDbCursor {
    pub(super) fn new(connection: &Arc<QuestDbConnection>, query: &Query<'_>, numbers: Vec<u32>) -> Self {
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
            remaining: query.series.iter().copied().zip(numbers).collect(),
            asked: VecDeque::new(),
            answer: None,
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
        let list = listed(self.asked.iter().map(|(_, number)| *number));
        let statement = self.connection.tables().samples(&list, self.range, self.steps);
        let Some(statement) = statement.filter(|_| !self.asked.is_empty()) else {
            self.remaining.clear();
            return Ok(false);
        };
        let answer = self.connection.stream(ACTION, &statement).await?;
        self.answer = Some(LineReader::new(answer));
        Ok(true)
    }

    /// Reads the next part of the answer; whether there was one.
    async fn read(&mut self) -> Result<bool> {
        let Some(mut answer) = self.answer.take() else {
            return Ok(false);
        };
        for _ in 0..CHUNK_ROWS {
            let Some(line) = answer.next().await? else {
                self.finish();
                return Ok(true);
            };
            let Some(row) = parsed(&line) else {
                let line = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                return Err(self.garbled(&format!("{line:?} is no row")));
            };
            self.pass(row)?;
        }
        self.answer = Some(answer);
        Ok(true)
    }

    fn pass(&mut self, (number, time, value): Row) -> Result<()> {
        while self.asked.front().is_some_and(|(_, asked)| *asked < number) {
            self.asked.pop_front();
        }
        let series = match self.asked.front() {
            Some((series, asked)) if *asked == number => *series,
            _ => return Err(self.garbled(&format!("series {number} was not asked for here"))),
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

/// A line of an answer, such as `3,1700000000000000000,1.5`.
fn parsed(line: &[u8]) -> Option<Row> {
    let line = std::str::from_utf8(line).ok()?.trim_ascii_end();
    let (series, rest) = line.split_once(',')?;
    let (time, value) = rest.split_once(',')?;
    Some((series.parse().ok()?, time.parse().ok()?, value.parse().ok()?))
}

impl QueryCursor for QuestDbCursor {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_row_or_nothing() {
        assert_eq!(
            parsed(b"3,1700000000000000000,1.5\r"),
            Some((3, 1_700_000_000_000_000_000, 1.5))
        );
        assert_eq!(
            parsed(b"0,0,5.762452218729324E34"),
            Some((0, 0, 5.762_452_218_729_324e34))
        );
        for bad in [&b"3,4"[..], b",4,1.0", b"3,4,", b"{\"error\":\"x\"}", b"\xff,1,1"] {
            assert_eq!(parsed(bad), None);
        }
    }
}
