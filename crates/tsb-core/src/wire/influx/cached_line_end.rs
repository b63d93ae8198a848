//! The end of a line: a space, the timestamp, a line feed.
//!
//! The samples of a tick have equal line ends, so the last one's bytes are kept and compared
//! before any digit is parsed.

use super::Precision;
use crate::time::Timestamp;
use crate::wire::number::{Window, bytes16};
use crate::wire::simd::same16;

/// A length that never matches.
const NEVER: usize = 33;

/// The last timestamp and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedLineEnd {
    text: [[u8; 16]; 2],
    // In [3, 21], or `NEVER` before the first line.
    length: usize,
    at: Timestamp,
    precision: Precision,
}

impl CachedLineEnd {
    /// No line end is known yet.
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            text: [[0; 16]; 2],
            length: NEVER,
            at: Timestamp(0),
            precision,
        }
    }

    /// The unit of timestamps.
    pub(super) fn precision(&self) -> Precision {
        self.precision
    }

    /// The time of samples with this line end.
    #[inline(always)]
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Start of the next line, if the line ends at `start` of a window like the last one did.
    /// `start` is at most 224.
    #[inline(always)]
    pub(super) fn again(&self, window: &Window, start: usize) -> Option<usize> {
        let same = if self.length > 16 {
            *bytes16(window, start) == self.text[0]
                && same16(bytes16(window, start + 16), &self.text[1], self.length - 16)
        } else {
            same16(bytes16(window, start), &self.text[0], self.length)
        };
        same.then_some(start + self.length)
    }

    /// The same for any non-negative number, which is then remembered. All other timestamps need
    /// the exact path.
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
        for (bytes16, bytes) in self.text.iter_mut().zip(text.as_chunks().0) {
            *bytes16 = *bytes;
        }
        Some(start + self.length)
    }
}
