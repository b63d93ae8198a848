//! Lines of the usual kind, read within a window: no digit of a time that came before is
//! looked at again, and names are left to who knows them.

use std::ops::Range;

use super::Dialect;
use super::line::time_of;
use crate::time::Timestamp;
use crate::wire::names::find_end_from;
use crate::wire::number::{Window, find_from, read_decimal};
use crate::wire::stamp::Stamp;

/// What a line begins with.
const COMMAND: &[u8; 4] = b"put ";

/// A line whose metric and tags may be anything; whether they are known is to be seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Usual {
    /// Where they stand in the window.
    pub(super) metric: Range<usize>,
    /// With the space before them.
    pub(super) tags: Range<usize>,
    pub(super) at: Timestamp,
    pub(super) value: f64,
    /// Where the next line begins.
    pub(super) next: usize,
}

/// The line that a window begins with; `None` when it is to be read exactly.
#[inline(always)]
pub(super) fn read(window: &Window, dialect: Dialect, stamp: &mut Stamp) -> Option<Usual> {
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
    // To both receivers -0 is an integer, and -0.0 is none.
    if !is_ended || (decimal.value == 0.0 && decimal.value.is_sign_negative()) {
        return None;
    }
    let end = find_from(window, decimal.end, b'\n')?;
    Some(Usual {
        metric: COMMAND.len()..space,
        tags: decimal.end..end,
        at: stamp.at(),
        value: decimal.value,
        next: end + 1,
    })
}
