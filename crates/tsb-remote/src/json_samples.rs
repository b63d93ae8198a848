//! What KairosDB and Hawkular share: samples as numbers of JSON, and which samples it cannot carry.

use tsb_core::Batch;
use tsb_core::wire::number::push_f64;
use tsb_stores::store::{Reason, TimeRange};

const NEGATIVE_ZERO: u64 = (-0.0_f64).to_bits();

/// The samples of a batch by their indices that are refused: NaN and infinities, which JSON does not
/// have, and times outside of `times` or that are no whole multiples of `unit_ns`, in [1, ..).
pub(crate) fn unwritable(batch: &Batch<'_>, times: TimeRange, unit_ns: i64) -> Vec<(u32, Reason)> {
    let is_carried = |index: usize| {
        let at = batch.time(index);
        batch.values()[index].is_finite() && times.contains(at) && at.0 % unit_ns == 0
    };
    let refused = (0..batch.len()).filter(|index| !is_carried(*index));
    refused.map(|index| (index as u32, Reason::Unrepresentable)).collect()
}

/// Appends a finite value, which reads back to the same bits.
pub(crate) fn push_value(value: f64, out: &mut Vec<u8>) {
    // Java reads -0 as a whole number, which has no sign.
    if value.to_bits() == NEGATIVE_ZERO {
        out.extend_from_slice(b"-0.0");
    } else {
        push_f64(value, out);
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::{SeriesId, Timestamp};

    use super::*;

    const MS_NS: i64 = 1_000_000;

    #[test]
    fn what_json_or_the_unit_cannot_hold_is_refused() {
        let times = TimeRange {
            start: Timestamp(0),
            end: Timestamp(5 * MS_NS),
        };
        let refused =
            |at, value| !unwritable(&Batch::tick(SeriesId(0), Timestamp(at), &[value]), times, MS_NS).is_empty();
        assert!(!refused(0, 5e-324));
        for (at, value) in [
            (1, 1.0),
            (-MS_NS, 1.0),
            (5 * MS_NS, 1.0),
            (0, f64::NAN),
            (0, f64::INFINITY),
        ] {
            assert!(refused(at, value), "{at} {value}");
        }
    }

    #[test]
    fn every_finite_value_comes_back() {
        for value in [
            0.0,
            -0.0,
            0.1,
            f64::from_bits(1),
            f64::MAX,
            f64::MIN,
            1e21,
            9_007_199_254_740_993.0,
        ] {
            let mut text = Vec::new();
            push_value(value, &mut text);
            let read: f64 = serde_json::from_slice(&text).unwrap();
            assert_eq!(read.to_bits(), value.to_bits(), "{value}");
        }
    }
}
