//! Where a point is: the arithmetic of mstore. Pure.

use tsb_core::{SeriesKey, Timestamp};

use crate::store::TimeRange;

/// Bytes of a point, since December 2014.
pub(super) const POINT_BYTES: u64 = 8;

/// Between the parts of a key in an index: no byte of UTF-8.
const SEPARATOR: u8 = 0xff;

/// The division of time into points and of points into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    // at least 1,000
    pub(super) step_ns: i64,
    // in [1, 2^31]
    pub(super) points_per_file: i64,
}

impl Geometry {
    /// The number of the point of a time: whole steps since 1970, negative before.
    #[inline]
    pub(super) fn point(self, at: Timestamp) -> i64 {
        at.0.div_euclid(self.step_ns)
    }

    /// The time at which a point begins.
    pub(super) fn time(self, point: i64) -> Timestamp {
        Timestamp(point.saturating_mul(self.step_ns))
    }

    /// The first point of the file of a point: also the name of the file.
    pub(super) fn offset(self, point: i64) -> i64 {
        point - point.rem_euclid(self.points_per_file)
    }

    /// Bytes of the part of a file that belongs to one metric.
    pub(super) fn stride(self) -> u64 {
        self.points_per_file as u64 * POINT_BYTES
    }

    /// The byte at which a point of metric number `metric` is, in the file that begins at `offset`.
    pub(super) fn position(self, metric: u32, point: i64, offset: i64) -> u64 {
        u64::from(metric) * self.stride() + (point - offset) as u64 * POINT_BYTES
    }

    /// The points that begin within a range of times: from the first to one past the last.
    pub(super) fn points(self, range: TimeRange) -> std::ops::Range<i64> {
        // Rounded up: a point counts if its beginning does.
        let up = |at: Timestamp| self.point(at) + i64::from(at.0.rem_euclid(self.step_ns) != 0);
        up(range.start)..up(range.end)
    }
}

/// The name of a series in an index: the metric's, and labels behind it if there are any.
pub(super) fn name_of(key: &SeriesKey) -> Vec<u8> {
    let mut name = key.name().as_bytes().to_vec();
    for (label, value) in key.labels() {
        for part in [label, value] {
            name.push(SEPARATOR);
            name.extend_from_slice(part.as_bytes());
        }
    }
    name
}

/// The series of a name in an index; `None` if it is not UTF-8, or a label has no value.
pub(super) fn key_of(name: &[u8]) -> Option<SeriesKey> {
    let mut parts = name.split(|byte| *byte == SEPARATOR).map(std::str::from_utf8);
    let metric = parts.next()?.ok()?;
    let mut labels = Vec::new();
    while let Some(label) = parts.next() {
        labels.push((label.ok()?, parts.next()?.ok()?));
    }
    Some(SeriesKey::with_labels(metric, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: Geometry = Geometry {
        step_ns: 1_000_000_000,
        points_per_file: 604_800,
    };

    /// A week of seconds at 8 bytes is 4,838,400 bytes a metric.
    #[test]
    fn a_point_is_where_mstore_puts_it() {
        assert_eq!(WEEK.stride(), 4_838_400);
        let point = WEEK.point(Timestamp::from_secs(1_404_770_400));
        assert_eq!((point, WEEK.offset(point)), (1_404_770_400, 2_322 * 604_800));
        assert_eq!(WEEK.position(0, point, WEEK.offset(point)), 424_800 * 8);
        assert_eq!(
            WEEK.position(14_999, point, WEEK.offset(point)),
            14_999 * 4_838_400 + 3_398_400
        );
        assert_eq!(WEEK.time(point), Timestamp::from_secs(1_404_770_400));
        assert_eq!((WEEK.point(Timestamp(-1)), WEEK.point(Timestamp(999_999_999))), (-1, 0));
        assert_eq!(WEEK.position(0, -1, WEEK.offset(-1)), 604_799 * 8);
    }

    #[test]
    fn a_range_has_the_points_that_begin_in_it() {
        let points = |start, end| {
            let (start, end) = (Timestamp(start), Timestamp(end));
            WEEK.points(TimeRange { start, end })
        };
        assert_eq!(points(0, 1), 0..1);
        assert_eq!(points(1, 1_000_000_000), 1..1);
        assert_eq!(points(1, 1_000_000_001), 1..2);
        assert_eq!(points(-1_000_000_000, -5), -1..0);
        let all = WEEK.points(TimeRange::ALL);
        assert!(WEEK.time(all.start) < Timestamp::from_secs(-9_000_000_000));
        assert!(WEEK.time(all.end - 1) > Timestamp::from_secs(9_000_000_000));
    }

    #[test]
    fn names_and_keys_go_both_ways() {
        let keys = [
            SeriesKey::new("cloud.zones.cpu.usage"),
            SeriesKey::with_labels("cpu", [("host", "a b{}"), ("id", "\u{e9},=\u{ff}")]),
            SeriesKey::with_labels("cpu", [("", "")]),
            SeriesKey::new(""),
        ];
        for key in keys {
            assert_eq!(key_of(&name_of(&key)), Some(key));
        }
        assert_eq!(name_of(&SeriesKey::new("a.b")), b"a.b");
        for not_a_name in [&b"a\xffb"[..], b"a\xfe", b"a\xffb\xff\xc3"] {
            assert_eq!(key_of(not_a_name), None);
        }
    }
}
