//! The answer to a query, a chunk at a time: a series after the other, each by one pipeline.

use std::sync::Arc;

use mongodb::Cursor;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use tsb_core::{SeriesId, Timestamp};

use super::connection::Connection;
use super::consolidate::stages;
use super::layout::{Layout, ticks};
use super::options::LayoutKind;
use crate::{Answer, Chunk};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

/// Rows of a chunk, at the most; those of a series in the ticks layout are one chunk.
const ROWS_MAX: usize = 4_096;
const ACTION: &str = "read samples";

/// What has not been read yet.
#[derive(Debug)]
pub struct MongoAnswer {
    question: Question,
    asked: std::vec::IntoIter<(SeriesId, u32)>,
    current: Option<(SeriesId, Cursor<RawDocumentBuf>)>,
}

/// What is asked of each series, and whom. Apart from the cursor, which only one may use.
#[derive(Debug)]
struct Question {
    connection: Arc<Connection>,
    layout: Arc<Layout>,
    range: TimeRange,
    resample: Option<Resample>,
}

impl MongoAnswer {
    pub(super) fn new(
        connection: &Arc<Connection>,
        layout: &Arc<Layout>,
        query: &Query<'_>,
        numbers: Vec<u32>,
    ) -> Self {
        let asked = query.series.iter().copied().zip(numbers);
        // Nothing is in a range that ends before it starts, and nobody has to be asked.
        let asked: Vec<_> = asked.filter(|_| query.range.start < query.range.end).collect();
        Self {
            question: Question {
                connection: Arc::clone(connection),
                layout: Arc::clone(layout),
                range: query.range,
                resample: query.resample,
            },
            asked: asked.into_iter(),
            current: None,
        }
    }
}

impl Question {
    async fn begin(&self, number: u32) -> Result<Cursor<RawDocumentBuf>> {
        let mut reading = self.layout.samples(number, self.range);
        let is_ours = self.layout.kind() != LayoutKind::Ticks;
        if let Some(resample) = self.resample.filter(|_| is_ours) {
            reading.pipeline.extend(stages(resample));
        }
        self.connection
            .aggregate(ACTION, &reading.collection, reading.pipeline)
            .await
    }

    /// Rows as the server sends them, until there are enough or no more.
    async fn rows(&self, series: SeriesId, cursor: &mut Cursor<RawDocumentBuf>) -> Result<Chunk> {
        let mut chunk = Chunk {
            series,
            times: Vec::new(),
            values: Vec::new(),
        };
        while chunk.times.len() < ROWS_MAX && self.connection.advance(ACTION, cursor).await? {
            let (at, value) = row(cursor.current()).map_err(|what| self.connection.failed(ACTION, what))?;
            chunk.times.push(at);
            chunk.values.push(value);
        }
        Ok(chunk)
    }

    /// All rows of a series out of columns: documents may overlap in time, so that the first
    /// row is known when the last document has come.
    async fn columns(&self, series: SeriesId, number: u32, mut cursor: Cursor<RawDocumentBuf>) -> Result<Chunk> {
        let mut cells: Vec<(Timestamp, u64, f64)> = Vec::new();
        while self.connection.advance(ACTION, &mut cursor).await? {
            let document = cursor.current();
            let failed = |what: String| self.connection.failed(ACTION, what);
            let key = ticks::Key::of(document);
            let order = key
                .ok_or_else(|| failed("a document has no key of ours".to_owned()))?
                .order;
            ticks::read(document, |cell| {
                if cell.number == number && self.range.contains(cell.at) {
                    cells.push((cell.at, order, cell.value));
                }
            })
            .map_err(failed)?;
        }
        // Stable: within a document the order is that of writing.
        cells.sort_by_key(|(at, order, _)| (*at, *order));
        let (times, values) = match self.resample {
            None => cells.iter().map(|(at, _, value)| (*at, *value)).unzip(),
            Some(resample) => {
                let mut resampler = Resampler::new(resample);
                for (at, _, value) in &cells {
                    resampler.push(*at, *value);
                }
                resampler.finish()
            }
        };
        Ok(Chunk { series, times, values })
    }
}

impl Answer for MongoAnswer {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let chunk = if let Some((series, mut cursor)) = self.current.take() {
                let chunk = self.question.rows(series, &mut cursor).await?;
                if chunk.times.len() == ROWS_MAX {
                    self.current = Some((series, cursor));
                }
                chunk
            } else {
                let Some((series, number)) = self.asked.next() else {
                    return Ok(None);
                };
                let cursor = self.question.begin(number).await?;
                if self.question.layout.kind() != LayoutKind::Ticks {
                    self.current = Some((series, cursor));
                    continue;
                }
                self.question.columns(series, number, cursor).await?
            };
            if !chunk.times.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }
}

/// A document `{n, v}`. A step that starts before all timestamps is a double there, and one
/// without numbers has no value.
fn row(document: &RawDocument) -> std::result::Result<(Timestamp, f64), String> {
    let at = match document.get("n") {
        Ok(Some(RawBsonRef::Int64(at))) => at,
        Ok(Some(RawBsonRef::Int32(at))) => i64::from(at),
        Ok(Some(RawBsonRef::Double(at))) => at as i64,
        _ => return Err("a row without a timestamp came".to_owned()),
    };
    let value = match document.get("v") {
        Ok(Some(RawBsonRef::Double(value))) => value,
        Ok(Some(RawBsonRef::Null) | None) => f64::NAN,
        _ => return Err("a row whose value is no double came".to_owned()),
    };
    Ok((Timestamp(at), value))
}
