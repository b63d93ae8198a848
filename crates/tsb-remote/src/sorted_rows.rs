//! The rows of a batch in ascending order of series and time, one for each pair.

use tsb_core::Batch;
use tsb_stores::store::Reason;

/// Columns of rows, in ascending order of series and time without two equal ones. Statements that
/// write in one order wait for each other, and never in a circle.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SortedRows {
    pub(crate) series: Vec<i32>,
    pub(crate) times: Vec<i64>,
    pub(crate) values: Vec<f64>,
}

impl SortedRows {
    /// From a batch whose ids are numbers, without the samples of `refused`, which is in order. Of samples
    /// with one series and timestamp, the last is taken.
    pub(crate) fn of(batch: &Batch<'_>, refused: &[(u32, Reason)]) -> Self {
        let mut refused = refused.iter().map(|(index, _)| *index as usize).peekable();
        let samples = batch.iter().enumerate();
        let written = samples.filter(|(index, _)| refused.next_if_eq(index).is_none());
        let mut rows: Vec<(i32, i64, f64)> = written.map(|(_, (id, at, value))| (id.0 as i32, at.0, value)).collect();
        let key = |row: &(i32, i64, f64)| (row.0, row.1);
        if !rows.is_sorted_by(|left, right| key(left) < key(right)) {
            // The sort is stable, so the last of equal keys is the one written last.
            rows.sort_by_key(key);
            rows.reverse();
            rows.dedup_by_key(|row| key(row));
            rows.reverse();
        }
        let mut columns = Self {
            series: Vec::with_capacity(rows.len()),
            times: Vec::with_capacity(rows.len()),
            values: Vec::with_capacity(rows.len()),
        };
        for (series, at, value) in rows {
            columns.series.push(series);
            columns.times.push(at);
            columns.values.push(value);
        }
        columns
    }

    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::{Ids, SeriesId, Times, Timestamp};

    use super::*;

    #[test]
    fn rows_are_in_order_and_the_last_of_equal_keys_stays() {
        let ids: Vec<SeriesId> = [2, 1, 2, 1].map(SeriesId).into();
        let times: Vec<Timestamp> = [5, 7, 5, 6].map(Timestamp).into();
        let values = [1.0, 2.0, 3.0, 4.0];
        let batch = Batch::new(Ids::Each(&ids), Times::Each(&times), &values);
        let rows = SortedRows::of(&batch, &[]);
        assert_eq!(rows.series, [1, 1, 2]);
        assert_eq!(rows.times, [6, 7, 5]);
        assert_eq!(rows.values, [4.0, 2.0, 3.0]);
        let rows = SortedRows::of(&batch, &[(1, Reason::Unrepresentable), (2, Reason::Unrepresentable)]);
        assert_eq!(rows.values, [4.0, 1.0]);
    }
}
