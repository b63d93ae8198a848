//! The rows of a query: many series per request, one statement each, read in chunks.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::connection::InfluxConnection;
use super::lines::{FIRST_TIME, LAST_TIME};
use super::names::InfluxSeries;
use super::reply::Rows;
use crate::http::LineReader;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Consolidation, Query, Resample};

const ACTION: &str = "read samples";
/// Maximum number of series per request.
const STATEMENTS: usize = 100;

/// A row: a time, and a value if there is one.
type Row = (i64, Option<f64>);

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct InfluxCursor {
    connection: Arc<InfluxConnection>,
    /// The condition on time, and what follows the conditions.
    range: String,
    tail: String,
    /// The function around the field, if rows are resampled.
    function: Option<&'static str>,
    /// Sums and means are made here: the server cannot write one that is infinite.
    resample: Option<Resample>,
    /// The series whose rows are being resampled.
    resampling: Option<(SeriesId, Resampler)>,
    remaining: VecDeque<(SeriesId, InfluxSeries)>,
    /// The series of the request whose answer is being read.
    asked: Vec<(SeriesId, InfluxSeries)>,
    answer: Option<LineReader>,
    ready: VecDeque<Chunk>,
}

impl InfluxCursor {
    pub(super) fn new(connection: &Arc<InfluxConnection>, query: &Query<'_>, series: Vec<InfluxSeries>) -> Self {
        let is_empty = query.range.start >= query.range.end;
        let series = query.series.iter().copied().zip(series).filter(|_| !is_empty);
        let last = Timestamp(query.range.end.0.saturating_sub(1)).min(LAST_TIME);
        let is_local =
            |resample: &Resample| matches!(resample.consolidation, Consolidation::Average | Consolidation::Sum);
        let by_server = query.resample.filter(|resample| !is_local(resample));
        Self {
            connection: Arc::clone(connection),
            range: format!(
                "time >= {} AND time <= {}",
                query.range.start.max(FIRST_TIME).0,
                last.max(FIRST_TIME).0
            ),
            tail: tail(by_server),
            function: by_server.map(|resample| function(resample.consolidation)),
            resample: query.resample.filter(is_local),
            resampling: None,
            remaining: series.collect(),
            asked: Vec::new(),
            answer: None,
            ready: VecDeque::new(),
        }
    }

    fn statement(&self, series: &InfluxSeries) -> String {
        let field = series.field();
        let what = match self.function {
            None => field,
            Some(function) => format!("{function}({field})"),
        };
        let (from, conditions) = (series.measurement(), series.conditions());
        format!(
            "SELECT {what} FROM {from} WHERE {}{conditions} {}",
            self.range, self.tail
        )
    }

    /// Asks for the next series; whether there are any.
    async fn ask(&mut self) -> Result<bool> {
        let count = self.remaining.len().min(STATEMENTS);
        self.asked = self.remaining.drain(..count).collect();
        if self.asked.is_empty() {
            return Ok(false);
        }
        let statements: Vec<String> = self.asked.iter().map(|(_, series)| self.statement(series)).collect();
        let answer = self.connection.stream(ACTION, &statements.join("; ")).await?;
        self.answer = Some(LineReader::new(answer));
        Ok(true)
    }

    /// Reads the next part of the answer; whether there was one.
    async fn read(&mut self) -> Result<bool> {
        let Some(answer) = &mut self.answer else {
            return Ok(false);
        };
        if let Some(part) = answer.next().await? {
            self.take(&part)?;
        } else {
            self.answer = None;
            self.finish();
        }
        Ok(true)
    }

    fn take(&mut self, part: &[u8]) -> Result<()> {
        let reply = self.connection.parsed::<Row>(ACTION, part)?;
        for result in reply.results {
            let Some((id, series)) = self.asked.get(result.statement_id) else {
                let why = format!("it answers statement {}, which was not asked", result.statement_id);
                return Err(self.connection.server().failed(ACTION, why));
            };
            let own = result.series.into_iter().filter(|rows| series.has_tags(&rows.tags));
            let chunks: Vec<Chunk> = own.map(|rows| chunk(*id, rows)).collect();
            for chunk in chunks {
                self.pass(chunk);
            }
        }
        Ok(())
    }

    /// Makes rows ready, or resamples them first.
    fn pass(&mut self, chunk: Chunk) {
        let Some(resample) = self.resample else {
            if !chunk.times.is_empty() {
                self.ready.push_back(chunk);
            }
            return;
        };
        if self
            .resampling
            .as_ref()
            .is_none_or(|(series, _)| *series != chunk.series)
        {
            self.finish();
        }
        let (_, resampler) = self
            .resampling
            .get_or_insert_with(|| (chunk.series, Resampler::new(resample)));
        let rows = chunk.times.iter().zip(&chunk.values);
        rows.for_each(|(at, value)| resampler.push(*at, *value));
    }

    /// Makes the resampled rows of a series ready.
    fn finish(&mut self) {
        if let Some((series, resampler)) = self.resampling.take() {
            let (times, values) = resampler.finish();
            if !times.is_empty() {
                self.ready.push_back(Chunk { series, times, values });
            }
        }
    }
}

fn chunk(series: SeriesId, rows: Rows<Row>) -> Chunk {
    let rows = rows
        .values
        .into_iter()
        .filter_map(|(at, value)| Some((Timestamp(at), value?)));
    let (times, values) = rows.unzip();
    Chunk { series, times, values }
}

/// What follows the conditions: all tags, so that each series has its own rows.
fn tail(resample: Option<Resample>) -> String {
    match resample {
        None => "GROUP BY *".to_owned(),
        Some(resample) => format!("GROUP BY time({}ns), * fill(none)", resample.step_ns),
    }
}

const fn function(consolidation: Consolidation) -> &'static str {
    match consolidation {
        Consolidation::Min => "min",
        Consolidation::Max => "max",
        Consolidation::Average => "mean",
        Consolidation::Sum => "sum",
        Consolidation::Count => "count",
        Consolidation::First => "first",
        Consolidation::Last => "last",
    }
}

impl QueryCursor for InfluxCursor {
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
