//! The samples of a query: many series per request while each fits into one answer, otherwise one.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::SeriesId;

use super::connection::{Asked, KairosDbConnection, Wanted};
use crate::paged_series::{Page, PagedSeries};
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
    series: PagedSeries<Asked>,
}

impl KairosDbCursor {
    pub(super) fn new(
        connection: &Arc<KairosDbConnection>,
        range: TimeRange,
        series: VecDeque<(SeriesId, Asked)>,
    ) -> Self {
        Self {
            connection: Arc::clone(connection),
            series: PagedSeries::new(range, series, SERIES_MAX),
        }
    }
}

fn page(samples: Vec<(i64, f64)>) -> Page {
    let last = (samples.len() >= SAMPLES_MAX).then(|| samples.last()).flatten();
    Page {
        resumes_ms: last.map(|(ms, _)| ms.saturating_add(1)),
        samples,
    }
}

impl QueryCursor for KairosDbCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.series.pop() {
                return Ok(Some(chunk));
            }
            let Some((asked, range)) = self.series.ask() else {
                return Ok(None);
            };
            let wanted = Wanted::First(SAMPLES_MAX);
            let found = self.connection.query::<f64>(ACTION, &asked, range, wanted).await?;
            self.series.take(found.into_iter().map(page).collect());
        }
    }
}
