//! The lines of a batch, and which samples no line can carry.
//!
//! The ingest protocol, version 2, which has values in binary:
//! <https://questdb.com/docs/reference/api/ilp/advanced-settings/>.

use tsb_core::wire::number::push_i64;
use tsb_core::{Batch, Timestamp};
use tsb_stores::store::Reason;

/// The times that a table takes, both included.
pub(super) const FIRST_TIME: Timestamp = Timestamp(0);
pub(super) const LAST_TIME: Timestamp = Timestamp(9_214_646_399_999_999_999);
/// What stands before the eight bytes of a value, the lowest first.
const BINARY_DOUBLE: &[u8] = b"=\x10";
/// Bytes of a line without the name of its table, at most.
const LINE_BYTES: usize = 64;

/// The samples of a batch by their indices that no line can carry: NaN and infinities, of which the
/// server answers null, and times that it refuses.
pub(super) fn unwritable(batch: &Batch<'_>) -> Vec<(u32, Reason)> {
    let is_carried =
        |index: usize| batch.values()[index].is_finite() && (FIRST_TIME..=LAST_TIME).contains(&batch.time(index));
    let refused = (0..batch.len()).filter(|index| !is_carried(*index));
    refused.map(|index| (index as u32, Reason::Unrepresentable)).collect()
}

/// The lines of a batch whose ids are numbers, without the samples of `refused`, which is in order.
pub(super) fn lines(table: &str, batch: &Batch<'_>, refused: &[(u32, Reason)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(batch.len() * (table.len() + LINE_BYTES));
    let mut refused = refused.iter().map(|(index, _)| *index as usize).peekable();
    for (index, (number, at, value)) in batch.iter().enumerate() {
        if refused.next_if_eq(&index).is_some() {
            continue;
        }
        out.extend_from_slice(table.as_bytes());
        out.extend_from_slice(b" series=");
        push_i64(i64::from(number.0), &mut out);
        out.extend_from_slice(b"i,value=");
        out.extend_from_slice(BINARY_DOUBLE);
        out.extend_from_slice(&value.to_le_bytes());
        out.push(b' ');
        push_i64(at.0, &mut out);
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use tsb_core::SeriesId;

    use super::*;

    #[test]
    fn samples_become_lines_unless_no_line_carries_them() {
        let batch = Batch::tick(SeriesId(8), Timestamp(7), &[-0.0, f64::NAN, 1.5]);
        let refused = unwritable(&batch);
        assert_eq!(refused, [(1, Reason::Unrepresentable)]);
        let expected = [
            &b"r_samples series=8i,value==\x10"[..],
            &(-0.0_f64).to_le_bytes(),
            b" 7\nr_samples series=10i,value==\x10",
            &1.5_f64.to_le_bytes(),
            b" 7\n",
        ];
        assert_eq!(lines("r_samples", &batch, &refused), expected.concat());
    }

    #[test]
    fn times_have_bounds() {
        let carries = |at| unwritable(&Batch::tick(SeriesId(0), at, &[1.0])).is_empty();
        assert!(carries(FIRST_TIME) && carries(LAST_TIME));
        assert!(!carries(Timestamp(FIRST_TIME.0 - 1)) && !carries(Timestamp(LAST_TIME.0 + 1)));
    }
}
