//! The lines of some samples, and which samples no line can carry.

use tsb_core::wire::number::{push_f64, push_i64};
use tsb_core::{Batch, Timestamp};
use tsb_stores::store::Reason;

use super::names::InfluxSeries;

/// The times that InfluxDB takes.
pub(super) const FIRST_TIME: Timestamp = Timestamp(i64::MIN + 2);
pub(super) const LAST_TIME: Timestamp = Timestamp(i64::MAX - 1);
/// Maximum length of a request: a server accepts 25 MB unless it was started with another
/// `max-body-size`.
const BYTES_MAX: usize = 8 << 20;

/// Samples by their indices in a batch that can be written, and those that cannot.
pub(super) fn writable(batch: &Batch<'_>) -> (Vec<u32>, Vec<(u32, Reason)>) {
    let (mut which, mut refused) = (Vec::with_capacity(batch.len()), Vec::new());
    for index in 0..batch.len() {
        let is_carried = batch.values()[index].is_finite() && (FIRST_TIME..=LAST_TIME).contains(&batch.time(index));
        if is_carried {
            which.push(index as u32);
        } else {
            refused.push((index as u32, Reason::Unrepresentable));
        }
    }
    (which, refused)
}

/// The lines of samples of a batch whose ids are numbers: as many as fit into a request, at least
/// one. Returns how many there are.
pub(super) fn lines(
    series: &[InfluxSeries],
    batch: &Batch<'_>,
    which: &[u32],
    most: usize,
    out: &mut Vec<u8>,
) -> usize {
    let mut count = 0;
    for &index in which.iter().take(most) {
        let index = index as usize;
        let start = series[batch.id(index).index()].start.as_bytes();
        if count > 0 && out.len() + start.len() + 64 > BYTES_MAX {
            break;
        }
        out.extend_from_slice(start);
        push_f64(batch.values()[index], out);
        out.push(b' ');
        push_i64(batch.time(index).0, out);
        out.push(b'\n');
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use tsb_core::{SeriesId, SeriesKey};

    use super::*;

    #[test]
    fn samples_become_lines_unless_no_line_carries_them() {
        let series = [SeriesKey::new("a"), SeriesKey::new("b")].map(|key| InfluxSeries::new(&key, None).unwrap());
        let batch = Batch::tick(SeriesId(0), Timestamp(7), &[0.1, f64::NAN]);
        let (which, refused) = writable(&batch);
        assert_eq!(
            (which.as_slice(), refused.as_slice()),
            (&[0][..], &[(1, Reason::Unrepresentable)][..])
        );
        let mut out = Vec::new();
        assert_eq!(lines(&series, &batch, &which, 10, &mut out), 1);
        assert_eq!(out, b"a value=0.1 7\n");
        let late = Batch::tick(SeriesId(0), Timestamp::MAX, &[1.0]);
        assert!(writable(&late).0.is_empty());
        out.clear();
        let two = Batch::tick(SeriesId(0), Timestamp(-1), &[1.0, -0.0]);
        assert_eq!(lines(&series, &two, &[0, 1], 1, &mut out), 1);
        assert_eq!(lines(&series, &two, &[1], 1, &mut out), 1);
        assert_eq!(String::from_utf8(out).unwrap(), "a value=1 -1\nb value=-0 -1\n");
    }
}
