//! Sends the rows of a batch: divides them into requests, and has many of them in flight.

use std::ops::Range;

use futures_util::StreamExt;
use scylla::errors::ExecutionError;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::connection::{Answered, CassandraConnection, Effect, Outcome, outcome};
use super::options::{CassandraOptions, RequestShape};
use crate::sorted_rows::SortedRows;
use tsb_stores::error::Result;

const ACTION: &str = "write samples";

/// Number of the bucket that a time is in.
pub(super) const fn bucket(at: i64, bucket_ns: i64) -> i64 {
    at.div_euclid(bucket_ns)
}

/// Writes rows by prepared inserts.
pub(super) struct RowWriter {
    insert: PreparedStatement,
    /// As many inserts as a request may have.
    batch: Batch,
    shape: RequestShape,
    bucket_ns: i64,
    rows_max: usize,
    in_flight: usize,
}

impl RowWriter {
    pub(super) fn new(mut insert: PreparedStatement, options: &CassandraOptions) -> Self {
        let level = options.consistency.level();
        insert.set_consistency(level);
        let rows_max = match options.write {
            RequestShape::Row => 1,
            RequestShape::Partition | RequestShape::Batch => options.rows.clamp(1, usize::from(u16::MAX)),
        };
        let statements = vec![insert.clone().into(); rows_max];
        let mut batch = Batch::new_with_statements(BatchType::Unlogged, statements);
        batch.set_consistency(level);
        Self {
            insert,
            batch,
            shape: options.write,
            bucket_ns: options.bucket_ns,
            rows_max,
            in_flight: options.requests.max(1),
        }
    }

    pub(super) const fn shape(&self) -> RequestShape {
        self.shape
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// [`Unknown`](tsb_stores::Error::Unknown) unless it is certain that no row was written.
    pub(super) async fn write(&self, connection: &CassandraConnection, rows: &SortedRows) -> Result<()> {
        let requests = requests(rows, self.shape, self.rows_max, self.bucket_ns);
        let sent = futures_util::stream::iter(requests)
            .map(|range| self.send(connection, rows, range))
            .buffer_unordered(self.in_flight)
            .fold(Sent::default(), async |mut sent, result| {
                sent.add(result);
                sent
            });
        let sent = connection.within_deadline(ACTION, Effect::Writes, sent).await?;
        match sent.error {
            None => Ok(()),
            Some(error) if sent.nothing_was_done => Err(connection.classify(ACTION, Effect::Writes, &error)),
            Some(error) => Err(connection.no_answer(ACTION, Effect::Writes, error.to_string())),
        }
    }

    async fn send(&self, connection: &CassandraConnection, rows: &SortedRows, range: Range<usize>) -> Answered<()> {
        let row = |index: usize| {
            let at = rows.times[index];
            (rows.series[index], bucket(at, self.bucket_ns), at, rows.values[index])
        };
        if range.len() == 1 {
            return connection.execute(&self.insert, row(range.start)).await;
        }
        let values: Vec<_> = range.map(row).collect();
        let shorter = (values.len() < self.rows_max).then(|| {
            let mut batch = self.batch.clone();
            batch.statements.truncate(values.len());
            batch
        });
        let batch = shorter.as_ref().unwrap_or(&self.batch);
        connection.execute_batch(batch, &values).await
    }
}

/// What became of the requests of one write.
struct Sent {
    nothing_was_done: bool,
    /// The first error.
    error: Option<ExecutionError>,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            nothing_was_done: true,
            error: None,
        }
    }
}

impl Sent {
    fn add(&mut self, result: Answered<()>) {
        match result {
            Ok(()) => self.nothing_was_done = false,
            Err(error) => {
                self.nothing_was_done &= outcome(&error) != Outcome::Unknown;
                self.error.get_or_insert(error);
            }
        }
    }
}

/// The rows of each request.
fn requests(rows: &SortedRows, shape: RequestShape, rows_max: usize, bucket_ns: i64) -> Vec<Range<usize>> {
    let partition = |index: usize| (rows.series[index], bucket(rows.times[index], bucket_ns));
    let mut requests = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let most = rows.len().min(start + rows_max);
        let end = match shape {
            RequestShape::Partition => (start + 1..most)
                .find(|index| partition(*index) != partition(start))
                .unwrap_or(most),
            RequestShape::Row | RequestShape::Batch => most,
        };
        requests.push(start..end);
        start = end;
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of series 1 in one bucket of ten, one in the next, and two of series 2.
    fn rows() -> SortedRows {
        SortedRows {
            series: vec![1, 1, 1, 2, 2],
            times: vec![1, 9, 10, -1, 0],
            values: vec![0.5; 5],
        }
    }

    fn lengths(shape: RequestShape, rows_max: usize) -> Vec<usize> {
        let requests = requests(&rows(), shape, rows_max, 10);
        assert!(requests.windows(2).all(|pair| pair[0].end == pair[1].start));
        requests.into_iter().map(|range| range.len()).collect()
    }

    #[test]
    fn rows_are_divided_by_partition_or_by_number() {
        assert_eq!(lengths(RequestShape::Row, 1), [1; 5]);
        assert_eq!(lengths(RequestShape::Partition, 100), [2, 1, 1, 1]);
        assert_eq!(lengths(RequestShape::Partition, 1), [1; 5]);
        assert_eq!(lengths(RequestShape::Batch, 100), [5]);
        assert_eq!(lengths(RequestShape::Batch, 2), [2, 2, 1]);
    }

    #[test]
    fn buckets_before_1970_have_numbers_below_zero() {
        assert_eq!([-11, -10, -1, 0, 9, 10].map(|at| bucket(at, 10)), [-2, -1, -1, 0, 0, 1]);
    }
}
