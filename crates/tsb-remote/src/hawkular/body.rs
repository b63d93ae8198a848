//! The rows of a batch, and their JSON:
//! `[{"id":"tsb:cpu","data":[{"timestamp":1498595805000,"value":53.27}]}]`.

use std::collections::HashSet;

use tsb_core::Batch;
use tsb_core::wire::number::push_i64;
use tsb_stores::store::Reason;

use super::MS_NS;
use crate::json_samples::push_value;

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// The number of its series.
    series: u32,
    at_ms: i64,
    value: f64,
}

/// The samples of a batch whose ids are numbers, without those of `refused`, which is in order. Those of a
/// series stand together in the order of the batch: of the samples of one slot, a server keeps the last that
/// arrives. Of samples with one series and timestamp the last stays, unless the server keeps all copies.
pub(super) fn rows(batch: &Batch<'_>, refused: &[(u32, Reason)], keeps_copies: bool) -> Vec<Row> {
    let mut refused = refused.iter().map(|(index, _)| *index as usize).peekable();
    let samples = batch.iter().enumerate();
    let sent = samples.filter(|(index, _)| refused.next_if_eq(index).is_none());
    let mut rows: Vec<Row> = sent
        .map(|(_, (id, at, value))| Row {
            series: id.0,
            at_ms: at.0 / MS_NS,
            value,
        })
        .collect();
    rows.sort_by_key(|row| row.series);
    if !keeps_copies {
        drop_replaced(&mut rows);
    }
    rows
}

/// Of samples with one series and timestamp, the last stays.
fn drop_replaced(rows: &mut Vec<Row>) {
    let key = |row: &Row| (row.series, row.at_ms);
    if rows.is_sorted_by(|left, right| key(left) < key(right)) {
        return;
    }
    let mut seen = HashSet::with_capacity(rows.len());
    let mut kept: Vec<Row> = rows.drain(..).rev().filter(|row| seen.insert(key(row))).collect();
    kept.reverse();
    *rows = kept;
}

/// The body of a request with some rows; `ids` are those of the series by number, and need no escapes.
pub(super) fn body<S: AsRef<str>>(rows: &[Row], ids: &[S]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 64);
    out.push(b'[');
    for (place, of_series) in rows.chunk_by(|left, right| left.series == right.series).enumerate() {
        out.extend_from_slice(if place > 0 { b",{\"id\":\"" } else { b"{\"id\":\"" });
        out.extend_from_slice(ids[of_series[0].series as usize].as_ref().as_bytes());
        out.extend_from_slice(b"\",\"data\":[");
        for (place, row) in of_series.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            push_row(row, &mut out);
        }
        out.extend_from_slice(b"]}");
    }
    out.push(b']');
    out
}

fn push_row(row: &Row, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"timestamp\":");
    push_i64(row.at_ms, out);
    out.extend_from_slice(b",\"value\":");
    push_value(row.value, out);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use tsb_core::{BatchBuf, SeriesId, Timestamp};

    use super::*;

    fn batch(samples: &[(u32, i64, f64)]) -> BatchBuf {
        let mut buffer = BatchBuf::new();
        for (series, ms, value) in samples {
            buffer.push(SeriesId(*series), Timestamp(ms * MS_NS), *value);
        }
        buffer
    }

    #[test]
    fn samples_of_a_series_stand_together_in_the_order_of_the_batch() {
        let buffer = batch(&[(1, 9, 1.0), (0, 5, 2.0), (1, 3, 3.0), (1, 4, 4.0)]);
        let rows = rows(&buffer.as_batch(), &[(3, Reason::Unrepresentable)], false);
        let body = body(&rows, &["a", "b"]);
        assert_eq!(
            String::from_utf8(body).unwrap(),
            "[{\"id\":\"a\",\"data\":[{\"timestamp\":5,\"value\":2}]},\
             {\"id\":\"b\",\"data\":[{\"timestamp\":9,\"value\":1},{\"timestamp\":3,\"value\":3}]}]"
        );
        assert_eq!(super::body::<&str>(&[], &[]), b"[]");
    }

    #[test]
    fn the_last_of_equal_timestamps_stays_unless_all_do() {
        let buffer = batch(&[(0, 5, 1.0), (0, 7, 2.0), (0, 5, 3.0)]);
        let values = |keeps_copies| -> Vec<f64> {
            let rows = rows(&buffer.as_batch(), &[], keeps_copies);
            rows.iter().map(|row| row.value).collect()
        };
        assert_eq!(values(false), [2.0, 3.0]);
        assert_eq!(values(true), [1.0, 2.0, 3.0]);
    }
}
