//! The samples of a query: many series per request while each fits into one answer, otherwise one.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::SeriesId;

use super::connection::{HawkularConnection, Id};
use super::rules::Rules;
use crate::paged_series::PagedSeries;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::store::TimeRange;

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct HawkularCursor {
    connection: Arc<HawkularConnection>,
    series: PagedSeries<Id>,
}

impl HawkularCursor {
    pub(super) fn new(
        connection: &Arc<HawkularConnection>,
        range: TimeRange,
        series: VecDeque<(SeriesId, Id)>,
    ) -> Self {
        let series = if Rules::bounds(range).is_some() {
            series
        } else {
            VecDeque::new()
        };
        Self {
            series: PagedSeries::new(range, series, connection.rules().series_max()),
            connection: Arc::clone(connection),
        }
    }
}

impl QueryCursor for HawkularCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.series.pop() {
                return Ok(Some(chunk));
            }
            let Some((ids, range)) = self.series.ask() else {
                return Ok(None);
            };
            // What remains of a range has samples: a page goes on within its bounds.
            let Some(range) = Rules::bounds(range) else {
                return Ok(None);
            };
            self.series.take(self.connection.pages(&ids, range).await?);
        }
    }
}
