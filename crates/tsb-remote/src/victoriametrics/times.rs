//! Times in whole milliseconds, and which of them the server keeps.

use tsb_core::Timestamp;
use tsb_stores::store::{Reason, TimeRange};

/// Nanoseconds of a millisecond: the resolution.
pub(super) const MS_NS: i64 = 1_000_000;
const DAY_MS: i64 = 86_400_000;
/// How far ahead of its clock the server takes samples.
const AHEAD_MS: i64 = 2 * DAY_MS;
/// Distance from the bounds within which a sample is refused here: clocks differ.
const MARGIN_MS: i64 = 60_000;

/// The times that a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptTimes {
    first_ms: i64,
    last_ms: i64,
}

impl KeptTimes {
    /// Those of a server with this retention in milliseconds.
    pub(super) fn new(now: Timestamp, retention_ms: i64) -> Self {
        let now_ms = now.0.div_euclid(MS_NS);
        Self {
            // 0 means no timestamp on this wire.
            first_ms: now_ms.saturating_sub(retention_ms).saturating_add(MARGIN_MS).max(1),
            last_ms: now_ms + AHEAD_MS - MARGIN_MS,
        }
    }

    /// Why a sample of this time is refused, if it is.
    pub(super) fn refusal(self, at: Timestamp) -> Option<Reason> {
        match at.0.div_euclid(MS_NS) {
            ..1 => Some(Reason::Unrepresentable),
            ms if ms < self.first_ms => Some(Reason::Expired),
            ms if ms > self.last_ms => Some(Reason::Unrepresentable),
            _ => None,
        }
    }

    /// The part of a range that can hold samples, as parameters of a request; `None` if none can
    /// be there.
    pub(super) fn parameters(self, range: TimeRange) -> Option<(String, String)> {
        let (first, last) = range.whole_units(MS_NS)?;
        let (first, last) = (first.max(1), last.min(self.last_ms + MARGIN_MS));
        (first <= last).then(|| (seconds(first), seconds(last)))
    }
}

/// Milliseconds as seconds with three decimals.
fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// The retention that `-retentionPeriod` states, in milliseconds: a number of months, or with a
/// unit of hours, days, weeks or years.
pub(super) fn retention_ms(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "h" => 3_600_000,
        "d" => DAY_MS,
        "w" => 7 * DAY_MS,
        "" => 31 * DAY_MS,
        "y" => 365 * DAY_MS,
        _ => return None,
    };
    let ms = digits.parse::<f64>().ok()? * unit_ms as f64;
    (ms > 0.0).then_some(ms as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_have_units() {
        let parsed = ["1", "100y", "2d", "1.5h", "3w", "0", "x", "5m", ""].map(retention_ms);
        let day = Some(DAY_MS);
        assert_eq!(
            parsed[..5],
            [
                day.map(|day| 31 * day),
                day.map(|day| 36_500 * day),
                day.map(|day| 2 * day),
                Some(5_400_000),
                day.map(|day| 21 * day)
            ]
        );
        assert_eq!(parsed[5..], [None; 4]);
    }

    #[test]
    fn what_a_server_drops_in_silence_is_refused() {
        let now = Timestamp::from_secs(1_700_000_000);
        let kept = KeptTimes::new(now, DAY_MS);
        let day_ns = DAY_MS * MS_NS;
        assert_eq!(kept.refusal(now), None);
        assert_eq!(kept.refusal(now + day_ns), None);
        assert_eq!(kept.refusal(now + 2 * day_ns), Some(Reason::Unrepresentable));
        assert_eq!(kept.refusal(now + -day_ns), Some(Reason::Expired));
        assert_eq!(kept.refusal(Timestamp(0)), Some(Reason::Unrepresentable));
        let all = KeptTimes::new(now, i64::MAX);
        assert_eq!(all.refusal(Timestamp(MS_NS)), None);
    }

    #[test]
    fn a_range_has_whole_milliseconds_within_it() {
        let kept = KeptTimes::new(Timestamp::from_secs(1_700_000_000), DAY_MS);
        let of = |start: i64, end: i64| {
            kept.parameters(TimeRange {
                start: Timestamp(start),
                end: Timestamp(end),
            })
        };
        let pair = |first: &str, last: &str| Some((first.to_owned(), last.to_owned()));
        assert_eq!(of(5_000_000, 7_000_001), pair("0.005", "0.007"));
        assert_eq!(of(5_000_001, 7_000_000), pair("0.006", "0.006"));
        assert_eq!(of(5_000_001, 5_000_002), None);
        assert_eq!(of(7, 7), None);
        assert_eq!(of(i64::MIN, i64::MAX), pair("0.001", "1700172800.000"));
    }
}
