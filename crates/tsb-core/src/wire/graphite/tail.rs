//! The end of a line: a space, the seconds, a line feed.
//!
//! The samples of one tick end alike, so the bytes of the last timestamp are kept and
//! compared before any digit is looked at.

use crate::time::{SECOND_NS, Timestamp};
use crate::wire::number::{Window, load, read_decimal};

/// The last timestamp and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    text: [u64; 2],
    mask: [u64; 2],
    // In [3, 16], or 0 as long as there was no line.
    length: usize,
    at: Timestamp,
}

impl Tail {
    /// No timestamp is known yet.
    pub(super) fn new() -> Self {
        Self {
            // Not a text that a window can begin with: see `matches`.
            text: [u64::MAX; 2],
            mask: [u64::MAX; 2],
            length: 0,
            at: Timestamp(0),
        }
    }

    /// The timestamp that stands at `start` of a window, when the line ends with it, and
    /// where the next line begins.
    #[inline(always)]
    pub(super) fn read(&mut self, window: &Window, start: usize) -> Option<(Timestamp, usize)> {
        let low = (load(window, start) ^ self.text[0]) & self.mask[0];
        let high = (load(window, start + 8) ^ self.text[1]) & self.mask[1];
        if low | high == 0 && self.length != 0 {
            return Some((self.at, start + self.length));
        }
        self.learn(window, start)
    }

    #[inline(never)]
    fn learn(&mut self, window: &Window, start: usize) -> Option<(Timestamp, usize)> {
        if window[start] != b' ' {
            return None;
        }
        let (seconds, end) = if start < 48 {
            let decimal = read_decimal(window, start + 1)?;
            (decimal.value, decimal.end)
        } else {
            let mut shifted = [0; crate::wire::number::WINDOW];
            shifted[..16].copy_from_slice(&window[start + 1..start + 17]);
            let decimal = read_decimal(&shifted, 0)?;
            (decimal.value, decimal.end + start + 1)
        };
        let length = end + 1 - start;
        // All other timestamps, among them -1 and fractions, are for the slow way.
        let usual = seconds >= 0.0 && seconds.fract() == 0.0 && seconds < (i64::MAX / SECOND_NS as i64) as f64;
        if window[end] != b'\n' || length > 16 || !usual {
            return None;
        }
        self.at = Timestamp::from_secs(seconds as i64);
        self.length = length;
        self.text = [load(window, start), load(window, start + 8)];
        let unused = 16 - length;
        let mask = u128::MAX >> (8 * unused);
        self.mask = [mask as u64, (mask >> 64) as u64];
        Some((self.at, end + 1))
    }
}
