//! The samples of a query: many series per request while each fits into one answer, otherwise one.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::body::MS_NS;
use super::connection::{Asked, KairosDbConnection, Wanted};
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::store::TimeRange;

const ACTION: &str = "read samples";
/// Maximum number of series per request.
const SERIES_MAX: usize = 20;
/// Maximum number of samples of a series in one answer: a few hundred kilobytes of text.
const SAMPLES_MAX: usize = 10_000;

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct KairosDbCursor {
    connection: Arc<KairosDbConnection>,
    range: TimeRange,
    remaining: VecDeque<(SeriesId, Asked)>,
    per_request: usize,
    /// Where the first of the remaining series goes on.
    resumes: Option<Timestamp>,
    ready: VecDeque<Chunk>,
}

impl KairosDbCursor {
    pub(super) fn new(
        connection: &Arc<KairosDbConnection>,
        range: TimeRange,
        series: VecDeque<(SeriesId, Asked)>,
    ) -> Self {
        Self {
            connection: Arc::clone(connection),
            range,
            remaining: series,
            per_request: SERIES_MAX,
            resumes: None,
            ready: VecDeque::new(),
        }
    }

    /// Asks for the next series, or for more of the first.
    async fn ask(&mut self) -> Result<()> {
        let count = if self.resumes.is_some() { 1 } else { self.per_request };
        let count = count.min(self.remaining.len());
        let asked: Vec<Asked> = self
            .remaining
            .iter()
            .take(count)
            .map(|(_, asked)| asked.clone())
            .collect();
        let range = TimeRange {
            start: self.resumes.take().unwrap_or(self.range.start),
            end: self.range.end,
        };
        let found = self
            .connection
            .query::<f64>(ACTION, &asked, range, Wanted::First(SAMPLES_MAX))
            .await?;
        for samples in found {
            let Some((series, asked)) = self.remaining.pop_front() else {
                break;
            };
            let next = (samples.len() >= SAMPLES_MAX).then(|| samples.last()).flatten();
            let next = next.map(|(ms, _)| Timestamp((ms + 1).saturating_mul(MS_NS)));
            if !samples.is_empty() {
                let (times, values) = samples
                    .into_iter()
                    .map(|(ms, value)| (Timestamp(ms.saturating_mul(MS_NS)), value))
                    .unzip();
                self.ready.push_back(Chunk { series, times, values });
            }
            if next.is_some() {
                // What was found of the others is asked for again: they are as long, most likely.
                self.remaining.push_front((series, asked));
                self.resumes = next;
                self.per_request = 1;
                break;
            }
        }
        Ok(())
    }
}

impl QueryCursor for KairosDbCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.remaining.is_empty() {
                return Ok(None);
            }
            self.ask().await?;
        }
    }
}
