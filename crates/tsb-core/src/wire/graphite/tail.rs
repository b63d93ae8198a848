//! The end of a line: a space, the seconds, a line feed.
//!
//! The samples of one tick end alike, so the bytes of the last timestamp are kept and
//! compared before any digit is looked at.

use crate::time::{SECOND_NS, Timestamp};
use crate::wire::lanes::{Lane, same16};
use crate::wire::number::{Window, lane, read_decimal};

/// The latest timestamp that is read the fast way.
const LAST_SECOND: f64 = (i64::MAX / SECOND_NS as i64) as f64;

/// The last timestamp and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    text: Lane,
    // In [3, 16]; 17, which agrees with nothing, as long as there was no line.
    length: usize,
    at: Timestamp,
}

impl Tail {
    /// No timestamp is known yet.
    pub(super) fn new() -> Self {
        Self {
            text: [0; 16],
            length: 17,
            at: Timestamp(0),
        }
    }

    /// When the samples that end alike were taken.
    #[inline(always)]
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Where the next line begins, when the line ends at `start` of a window as the last
    /// one did.
    #[inline(always)]
    pub(super) fn again(&self, window: &Window, start: usize) -> Option<usize> {
        same16(lane(window, start), &self.text, self.length).then_some(start + self.length)
    }

    /// The same for any timestamp of the usual kind, which is then remembered. All others,
    /// among them -1 and fractions, are for the exact way.
    #[inline(always)]
    pub(super) fn read(&mut self, window: &Window, start: usize) -> Option<usize> {
        match self.again(window, start) {
            Some(next) => Some(next),
            None => self.learn(window, start),
        }
    }

    #[inline(never)]
    fn learn(&mut self, window: &Window, start: usize) -> Option<usize> {
        let digits = start + 1;
        let decimal = read_decimal(window, digits)?;
        let length = decimal.end + 1 - start;
        let usual = decimal.value >= 0.0 && decimal.value.fract() == 0.0 && decimal.value <= LAST_SECOND;
        if window[start] != b' ' || window[decimal.end] != b'\n' || length > 16 || !usual {
            return None;
        }
        *self = Self {
            text: *lane(window, start),
            length,
            at: Timestamp::from_secs(decimal.value as i64),
        };
        Some(decimal.end + 1)
    }
}
