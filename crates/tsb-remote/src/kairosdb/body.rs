//! The JSON of a batch.
//!
//! <https://kairosdb.github.io/docs/restapi/AddDataPoints.html>

use tsb_core::wire::number::push_i64;

use crate::json_samples::push_value;
use crate::sorted_rows::SortedRows;

/// Nanoseconds of the server's unit of time.
pub(super) const MS_NS: i64 = 1_000_000;

/// The body of a request with all rows, one part for each series; `beginnings` are those of the series
/// by number.
pub(super) fn body(rows: &SortedRows, beginnings: &[Box<str>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 96);
    let mut current = None;
    for ((number, at), value) in rows.series.iter().zip(&rows.times).zip(&rows.values) {
        if current == Some(*number) {
            out.push(b',');
        } else {
            out.extend_from_slice(if current.is_some() { b"]}," } else { b"[" });
            out.extend_from_slice(beginnings[*number as usize].as_bytes());
            current = Some(*number);
        }
        out.push(b'[');
        push_i64(at / MS_NS, &mut out);
        out.push(b',');
        push_value(*value, &mut out);
        out.push(b']');
    }
    out.extend_from_slice(if current.is_some() { b"]}]" } else { b"[]" });
    out
}

#[cfg(test)]
mod tests {
    use tsb_core::SeriesKey;

    use super::super::names::{beginning, tagged};
    use super::*;

    #[test]
    fn samples_of_one_series_stand_together() {
        let rows = SortedRows {
            series: vec![0, 0, 1],
            times: vec![1_000_000, 2_000_000, 1_000_000],
            values: vec![1.0, -0.0, 1e300],
        };
        let beginnings = ["a", "b"].map(|name| Box::from(beginning(&tagged("p", 0, &SeriesKey::new(name)))));
        let body_of_all = body(&rows, &beginnings);
        let text = String::from_utf8(body_of_all.clone()).unwrap();
        assert!(text.contains("[1,1],[2,-0.0]]},{"), "{text}");
        let parsed: serde_json::Value = serde_json::from_slice(&body_of_all).unwrap();
        assert_eq!(parsed[0]["datapoints"], serde_json::json!([[1, 1], [2, -0.0]]));
        assert_eq!(parsed[1]["name"], "p.b");
        assert_eq!(parsed[1]["datapoints"][0][1], 1e300);
        assert_eq!(body(&SortedRows::default(), &[]), b"[]");
    }
}
