//! The end of a line: a space, the nanoseconds, a line feed.
//!
//! The samples of one tick end alike, so the bytes of the last timestamp are kept and
//! compared before any digit is looked at.

use super::Precision;
use crate::time::Timestamp;
use crate::wire::lanes::same16;
use crate::wire::number::{Window, lane};

/// Stands for a length that agrees with nothing.
const NEVER: usize = 33;

/// The last timestamp and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    text: [[u8; 16]; 2],
    // In [3, 21], or `NEVER` as long as there was no line.
    length: usize,
    at: Timestamp,
    precision: Precision,
}

impl Tail {
    /// No timestamp is known yet.
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            text: [[0; 16]; 2],
            length: NEVER,
            at: Timestamp(0),
            precision,
        }
    }

    /// What timestamps count.
    pub(super) fn precision(&self) -> Precision {
        self.precision
    }

    /// When the samples that end alike were taken.
    #[inline(always)]
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Where the next line begins, when the line ends at `start` of a window as the last
    /// one did. `start` is at most 224.
    #[inline(always)]
    pub(super) fn again(&self, window: &Window, start: usize) -> Option<usize> {
        let same = if self.length > 16 {
            *lane(window, start) == self.text[0] && same16(lane(window, start + 16), &self.text[1], self.length - 16)
        } else {
            same16(lane(window, start), &self.text[0], self.length)
        };
        same.then_some(start + self.length)
    }

    /// The same for any whole number of nanoseconds that is not negative, which is then
    /// remembered. All others are for the exact way.
    #[inline(always)]
    pub(super) fn read(&mut self, window: &Window, start: usize) -> Option<usize> {
        match self.again(window, start) {
            Some(next) => Some(next),
            None => self.learn(window, start),
        }
    }

    #[inline(never)]
    fn learn(&mut self, window: &Window, start: usize) -> Option<usize> {
        let text = window.get(start..start + 32)?;
        let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if text[0] != b' ' || !(1..=19).contains(&digits) || text[digits + 1] != b'\n' {
            return None;
        }
        let number = std::str::from_utf8(&text[1..=digits]).ok()?;
        self.at = self.precision.time(number.parse().ok()?)?;
        self.length = digits + 2;
        for (lane, bytes) in self.text.iter_mut().zip(text.as_chunks().0) {
            *lane = *bytes;
        }
        Some(start + self.length)
    }
}
