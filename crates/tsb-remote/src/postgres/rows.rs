//! The rows of a batch: in the order of the primary key, and one for each key.

use tsb_core::Batch;

/// The first bytes of a binary `COPY`: the signature, no flags, no extension.
const COPY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Bytes of a row in it: the number of columns, and each column with its length.
const COPY_ROW_BYTES: usize = 2 + (4 + 4) + (4 + 8) + (4 + 8);

/// Columns of rows, in ascending order of series and time without two equal ones. Statements that
/// write in one order wait for each other, and never in a circle.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rows {
    pub(super) series: Vec<i32>,
    pub(super) times: Vec<i64>,
    pub(super) values: Vec<f64>,
}

impl Rows {
    /// From a batch whose ids are numbers. Of samples with one series and timestamp, the last is
    /// taken.
    pub(super) fn of(batch: &Batch<'_>) -> Self {
        let mut rows: Vec<(i32, i64, f64)> = batch.iter().map(|(id, at, value)| (id.0 as i32, at.0, value)).collect();
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

    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// As the contents of a binary `COPY`.
    pub(super) fn as_copy(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(COPY_HEAD.len() + self.len() * COPY_ROW_BYTES + 2);
        bytes.extend_from_slice(COPY_HEAD);
        for ((series, at), value) in self.series.iter().zip(&self.times).zip(&self.values) {
            let mut row = [0; COPY_ROW_BYTES];
            row[..2].copy_from_slice(&3_i16.to_be_bytes());
            row[2..6].copy_from_slice(&4_i32.to_be_bytes());
            row[6..10].copy_from_slice(&series.to_be_bytes());
            row[10..14].copy_from_slice(&8_i32.to_be_bytes());
            row[14..22].copy_from_slice(&at.to_be_bytes());
            row[22..26].copy_from_slice(&8_i32.to_be_bytes());
            row[26..34].copy_from_slice(&value.to_be_bytes());
            bytes.extend_from_slice(&row);
        }
        bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        bytes
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
        let rows = Rows::of(&batch);
        assert_eq!(rows.series, [1, 1, 2]);
        assert_eq!(rows.times, [6, 7, 5]);
        assert_eq!(rows.values, [4.0, 2.0, 3.0]);
    }

    #[test]
    fn a_copy_has_the_documented_form() {
        let batch = Batch::tick(SeriesId(258), Timestamp(-2), &[1.0]);
        let mut expected = COPY_HEAD.to_vec();
        assert_eq!(expected.len(), 11 + 4 + 4);
        expected.extend([0, 3, 0, 0, 0, 4, 0, 0, 1, 2, 0, 0, 0, 8]);
        expected.extend([0xff; 7]);
        expected.extend([0xfe, 0, 0, 0, 8, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(Rows::of(&batch).as_copy(), expected);
    }
}
