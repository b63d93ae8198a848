//! Rows as the contents of a binary `COPY`.

use crate::sorted_rows::SortedRows;

/// The first bytes: the signature, no flags, no extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Bytes of a row: the number of columns, and each column with its length.
const ROW_BYTES: usize = 2 + (4 + 4) + (4 + 8) + (4 + 8);

/// The contents of a `COPY` of these rows.
/// <https://www.postgresql.org/docs/current/sql-copy.html>
pub(super) fn binary_copy(rows: &SortedRows) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD.len() + rows.len() * ROW_BYTES + 2);
    bytes.extend_from_slice(HEAD);
    for ((series, at), value) in rows.series.iter().zip(&rows.times).zip(&rows.values) {
        let mut row = [0; ROW_BYTES];
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

#[cfg(test)]
mod tests {
    use tsb_core::{Batch, SeriesId, Timestamp};

    use super::*;

    #[test]
    fn a_copy_has_the_documented_form() {
        let batch = Batch::tick(SeriesId(258), Timestamp(-2), &[1.0]);
        let mut expected = HEAD.to_vec();
        assert_eq!(expected.len(), 11 + 4 + 4);
        expected.extend([0, 3, 0, 0, 0, 4, 0, 0, 1, 2, 0, 0, 0, 8]);
        expected.extend([0xff; 7]);
        expected.extend([0xfe, 0, 0, 0, 8, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(binary_copy(&SortedRows::of(&batch, &[])), expected);
    }
}
