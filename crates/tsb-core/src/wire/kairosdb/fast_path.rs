//! Metrics of the common form, parsed within a window: one point, no blanks, and no escapes in the
//! parsed parts. Name and tags are not validated here; the caller looks them up.

use std::ops::Range;

use crate::time::Timestamp;
use crate::wire::cached_timestamp::CachedTimestamp;
use crate::wire::number::{Window, find_from, read_decimal};

const NAME: &[u8] = br#"{"name":""#;
const POINTS: &[u8] = br#"","datapoints":["#;
const TAGS: &[u8] = br#"]],"tags":{"#;
const END: &[u8] = b"}}";

/// A metric as it stands in a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommonMetric {
    /// Range of its name in the window, without the quotes.
    pub(super) name: Range<usize>,
    /// Range of its tags, without the braces.
    pub(super) tags: Range<usize>,
    pub(super) at: Timestamp,
    pub(super) value: f64,
    /// Its end.
    pub(super) end: usize,
}

/// The metric at the beginning of a window; `None` if it needs the exact path.
#[inline(always)]
pub(super) fn read(window: &Window, stamp: &mut CachedTimestamp) -> Option<CommonMetric> {
    let name = expect(window, 0, NAME)?;
    let quote = find_from(window, name, b'"')?;
    let points = expect(window, quote, POINTS)?;
    if begins_with_zero(window, points + 1) {
        return None;
    }
    let millis = |number: i64| number.checked_mul(1_000_000).map(Timestamp);
    let start = stamp.read(window, points, [b'[', b','], millis)?;
    let decimal = read_decimal(window, start)?;
    if begins_with_zero(window, start + usize::from(window[start] == b'-')) {
        return None;
    }
    let tags = expect(window, decimal.end, TAGS)?;
    let brace = find_from(window, tags, b'}')?;
    Some(CommonMetric {
        name: name..quote,
        tags: tags..brace,
        at: stamp.at(),
        value: decimal.value,
        end: expect(window, brace, END)?,
    })
}

/// End of the text that must be at `at`.
#[inline(always)]
fn expect(window: &Window, at: usize, text: &[u8]) -> Option<usize> {
    let end = at + text.len();
    (window.get(at..end)? == text).then_some(end)
}

/// Whether digits have a leading zero, which JSON forbids.
#[inline(always)]
fn begins_with_zero(window: &Window, at: usize) -> bool {
    matches!(window.get(at..at + 2), Some([b'0', b'0'..=b'9']))
}
