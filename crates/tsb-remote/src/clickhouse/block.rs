//! A batch as a block of the native format, and rows of fixed length out of answers.
//!
//! The formats `Native` and `RowBinary`: <https://clickhouse.com/docs/en/interfaces/formats>.

use tsb_core::Batch;

/// Bytes of a row of a batch in all columns.
const ROW_BYTES: usize = 4 + 8 + 8;

/// The samples of a batch whose ids are numbers: the columns `series`, `time` and `value`, each with
/// its name, its type and all of its values.
pub(super) fn native_block(batch: &Batch<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + ROW_BYTES * batch.len());
    push_length(3, &mut out);
    push_length(batch.len(), &mut out);
    push_column("series", "UInt32", &mut out);
    for (number, _, _) in batch.iter() {
        out.extend_from_slice(&number.0.to_le_bytes());
    }
    push_column("time", "Int64", &mut out);
    for (_, at, _) in batch.iter() {
        out.extend_from_slice(&at.0.to_le_bytes());
    }
    push_column("value", "Float64", &mut out);
    for (_, _, value) in batch.iter() {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out
}

fn push_column(name: &str, kind: &str, out: &mut Vec<u8>) {
    for text in [name, kind] {
        push_length(text.len(), out);
        out.extend_from_slice(text.as_bytes());
    }
}

/// A length: seven bits per byte, the lowest first.
fn push_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// A row of a query for samples, in `RowBinary`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// Number of the series.
    pub(super) series: u32,
    /// A timestamp, or the number of a step.
    pub(super) time: i64,
    pub(super) value: f64,
}

impl Row {
    /// Bytes of a row.
    pub(super) const BYTES: usize = ROW_BYTES;

    pub(super) fn read(bytes: &[u8; Self::BYTES]) -> Self {
        let [s0, s1, s2, s3, rest @ ..] = *bytes;
        let [t0, t1, t2, t3, t4, t5, t6, t7, value @ ..] = rest;
        Self {
            series: u32::from_le_bytes([s0, s1, s2, s3]),
            time: i64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            value: f64::from_le_bytes(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::{BatchBuf, SeriesId, Timestamp};

    use super::*;

    #[test]
    fn a_batch_is_three_columns() {
        let mut batch = BatchBuf::default();
        batch.push(SeriesId(1), Timestamp(-2), 1.5);
        batch.push(SeriesId(256), Timestamp(3), -0.0);
        let expected = [
            &b"\x03\x02\x06series\x06UInt32"[..],
            &[1, 0, 0, 0, 0, 1, 0, 0],
            b"\x04time\x05Int64",
            &(-2_i64).to_le_bytes(),
            &3_i64.to_le_bytes(),
            b"\x05value\x07Float64",
            &1.5_f64.to_le_bytes(),
            &(-0.0_f64).to_le_bytes(),
        ];
        assert_eq!(native_block(&batch.as_batch()), expected.concat());
    }

    #[test]
    fn a_length_has_seven_bits_per_byte() {
        let mut out = Vec::new();
        for length in [0, 127, 128, 54_000] {
            push_length(length, &mut out);
        }
        assert_eq!(out, [0, 0x7f, 0x80, 1, 0xf0, 0xa5, 3]);
    }

    #[test]
    fn a_row_is_read_to_the_bit() {
        let value = f64::from_bits(0x7ff8_dead_beef_0001);
        let bytes = [&7_u32.to_le_bytes()[..], &i64::MIN.to_le_bytes(), &value.to_le_bytes()].concat();
        let row = Row::read(bytes.first_chunk().unwrap());
        assert_eq!((row.series, row.time), (7, i64::MIN));
        assert_eq!(row.value.to_bits(), value.to_bits());
    }
}
