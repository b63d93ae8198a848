//! Lines of the common form, parsed within a window. A time equal to the last one is not parsed
//! again. Names are not validated here; the caller looks them up.

use std::ops::Range;

use super::Dialect;
use super::line::time_of;
use crate::time::Timestamp;
use crate::wire::cached_timestamp::CachedTimestamp;
use crate::wire::names::find_end_from;
use crate::wire::number::{Window, find_from, read_decimal};

/// The beginning of a line.
const COMMAND: &[u8; 4] = b"put ";

/// A line of the common form, whose names are not validated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommonLine {
    /// Range of the metric in the window.
    pub(super) metric: Range<usize>,
    /// With the space that precedes them.
    pub(super) tags: Range<usize>,
    pub(super) at: Timestamp,
    pub(super) value: f64,
    /// Start of the next line.
    pub(super) next: usize,
}

/// The line at the beginning of a window; `None` if it needs the exact path.
#[inline(always)]
pub(super) fn read(window: &Window, dialect: Dialect, stamp: &mut CachedTimestamp) -> Option<CommonLine> {
    if !window.starts_with(COMMAND) {
        return None;
    }
    let space = find_end_from(window, COMMAND.len(), b' ')?;
    let time = |number: i64| time_of(&number.to_string(), dialect).ok();
    let start = stamp.read(window, space, [b' '; 2], time)?;
    let decimal = read_decimal(window, start)?;
    let is_ended = match window[decimal.end] {
        b' ' => true,
        b'\n' => dialect == Dialect::Kairosdb,
        _ => false,
    };
    // Both receivers treat -0 as an integer, but not -0.0.
    if !is_ended || (decimal.value == 0.0 && decimal.value.is_sign_negative()) {
        return None;
    }
    let end = find_from(window, decimal.end, b'\n')?;
    Some(CommonLine {
        metric: COMMAND.len()..space,
        tags: decimal.end..end,
        at: stamp.at(),
        value: decimal.value,
        next: end + 1,
    })
}
