//! The rows of a query: many series per request, read as they arrive.

use std::sync::Arc;

use super::block::Row;
use super::connection::ClickHouseConnection;
use super::tables::aggregate;
use crate::http::BodyChunks;
use crate::numbered_rows::NumberedRows;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::{Query, TimeRange};

const ACTION: &str = "read samples";

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct ClickHouseCursor {
    connection: Arc<ClickHouseConnection>,
    range: TimeRange,
    rows: NumberedRows,
    answer: Option<BodyChunks>,
    /// The beginning of a row.
    partial: Vec<u8>,
}

impl ClickHouseCursor {
    pub(super) fn new(connection: &Arc<ClickHouseConnection>, query: &Query<'_>, numbers: Vec<u32>) -> Self {
        Self {
            connection: Arc::clone(connection),
            range: query.range,
            rows: NumberedRows::new(query, numbers, aggregate),
            answer: None,
            partial: Vec::new(),
        }
    }

    /// Asks for the next series; whether there are any.
    async fn ask(&mut self) -> Result<bool> {
        let Some(list) = self.rows.ask() else {
            return Ok(false);
        };
        let statement = self.connection.tables().samples(&list, self.range, self.rows.steps());
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
            self.rows.finish();
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
                self.push(row)?;
            }
        }
        let (rows, rest) = bytes.as_chunks();
        for row in rows {
            self.push(Row::read(row))?;
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    fn push(&mut self, row: Row) -> Result<()> {
        let pushed = self.rows.push((row.series, row.time, row.value));
        pushed.map_err(|why| self.garbled(&why))
    }

    fn garbled(&self, why: &str) -> Error {
        let why = format!("the answer cannot be read: {why}");
        self.connection.server().unanswered(ACTION, why)
    }
}

impl QueryCursor for ClickHouseCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.rows.pop() {
                return Ok(Some(chunk));
            }
            if !self.read().await? && !self.ask().await? {
                return Ok(None);
            }
        }
    }
}
