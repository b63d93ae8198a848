//! The rows of a query: many series per request, read as they arrive.

use std::sync::Arc;

use super::connection::QuestDbConnection;
use super::tables::aggregate;
use crate::http::LineReader;
use crate::numbered_rows::NumberedRows;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::{Query, TimeRange};

const ACTION: &str = "read samples";
/// Rows after which a chunk is handed on.
const CHUNK_ROWS: usize = 4_096;

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct QuestDbCursor {
    connection: Arc<QuestDbConnection>,
    range: TimeRange,
    rows: NumberedRows,
    answer: Option<LineReader>,
}

impl QuestDbCursor {
    pub(super) fn new(connection: &Arc<QuestDbConnection>, query: &Query<'_>, numbers: Vec<u32>) -> Self {
        Self {
            connection: Arc::clone(connection),
            range: query.range,
            rows: NumberedRows::new(query, numbers, aggregate),
            answer: None,
        }
    }

    /// Asks for the next series; whether there are any, and samples of them can be.
    async fn ask(&mut self) -> Result<bool> {
        let Some(list) = self.rows.ask() else {
            return Ok(false);
        };
        let Some(statement) = self.connection.tables().samples(&list, self.range, self.rows.steps()) else {
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
                self.rows.finish();
                return Ok(true);
            };
            let Some(row) = parsed(&line) else {
                let line = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                return Err(self.garbled(&format!("{line:?} is no row")));
            };
            self.rows.push(row).map_err(|why| self.garbled(&why))?;
        }
        self.answer = Some(answer);
        Ok(true)
    }

    fn garbled(&self, why: &str) -> Error {
        let why = format!("the answer cannot be read: {why}");
        self.connection.server().unanswered(ACTION, why)
    }
}

/// A line of an answer, such as `3,1700000000000000000,1.5`.
fn parsed(line: &[u8]) -> Option<(u32, i64, f64)> {
    let line = std::str::from_utf8(line).ok()?.trim_ascii_end();
    let (series, rest) = line.split_once(',')?;
    let (time, value) = rest.split_once(',')?;
    Some((series.parse().ok()?, time.parse().ok()?, value.parse().ok()?))
}

impl QueryCursor for QuestDbCursor {
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
