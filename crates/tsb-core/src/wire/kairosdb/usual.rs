//! Metrics of the usual kind, read within a window: one point, no blank, nothing escaped
//! that would be looked at. Whether a name or its tags mean anything is for who knows them.

use std::ops::Range;

use crate::time::Timestamp;
use crate::wire::number::{Window, find_from, read_decimal};
use crate::wire::stamp::Stamp;

const NAME: &[u8] = br#"{"name":""#;
const POINTS: &[u8] = br#"","datapoints":["#;
const TAGS: &[u8] = br#"]],"tags":{"#;
const END: &[u8] = b"}}";

/// A metric as it stands in a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Usual {
    /// Where its name stands in the window, without the quotes.
    pub(super) name: Range<usize>,
    /// Where its tags stand, without the braces.
    pub(super) tags: Range<usize>,
    pub(super) at: Timestamp,
    pub(super) value: f64,
    /// Where it ends.
    pub(super) end: usize,
}

/// The metric that a window begins with; `None` when it is to be read exactly.
#[inline(always)]
pub(super) fn read(window: &Window, stamp: &mut Stamp) -> Option<Usual> {
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
    Some(Usual {
        name: name..quote,
        tags: tags..brace,
        at: stamp.at(),
        value: decimal.value,
        end: expect(window, brace, END)?,
    })
}

/// Where a text ends that stands at `at`.
#[inline(always)]
fn expect(window: &Window, at: usize, text: &[u8]) -> Option<usize> {
    let end = at + text.len();
    (window.get(at..end)? == text).then_some(end)
}

/// Whether digits are no number in JSON.
#[inline(always)]
fn begins_with_zero(window: &Window, at: usize) -> bool {
    matches!(window.get(at..at + 2), Some([b'0', b'0'..=b'9']))
}
