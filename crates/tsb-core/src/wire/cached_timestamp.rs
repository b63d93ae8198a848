//! The text of a timestamp within a record, between two fixed bytes.
//!
//! The samples of a tick have the same time, so the last one's text is kept and compared before
//! any digit is parsed.

use crate::time::Timestamp;
use crate::wire::number::{LAST_START, Window, bytes16, read_decimal};
use crate::wire::simd::{Bytes16, digit_run, same16};

/// The last time and its text, including the bytes before and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedTimestamp {
    text: Bytes16,
    // In [3, 16]; 17, which never matches, before the first time.
    length: usize,
    at: Timestamp,
}

impl CachedTimestamp {
    /// No time is known yet.
    pub(crate) fn new() -> Self {
        Self {
            text: [0; 16],
            length: 17,
            at: Timestamp(0),
        }
    }

    /// The time of samples with this text.
    #[inline(always)]
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// End of the text at `start` of a window, if it equals the last one. `start` is at most 240.
    #[inline(always)]
    pub(crate) fn again(&self, window: &Window, start: usize) -> Option<usize> {
        same16(bytes16(window, start), &self.text, self.length).then_some(start + self.length)
    }

    /// The same for any number of up to fourteen digits between `ends`, which is then remembered
    /// with the time that `time` returns for it. All others need the exact path.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        window: &Window,
        start: usize,
        ends: [u8; 2],
        time: impl FnOnce(i64) -> Option<Timestamp>,
    ) -> Option<usize> {
        match self.again(window, start) {
            Some(next) => Some(next),
            None => self.learn(window, start, ends, time),
        }
    }

    #[inline(never)]
    fn learn(
        &mut self,
        window: &Window,
        start: usize,
        [before, behind]: [u8; 2],
        time: impl FnOnce(i64) -> Option<Timestamp>,
    ) -> Option<usize> {
        let first = start + 1;
        if start >= LAST_START || window[start] != before {
            return None;
        }
        let length = digit_run(bytes16(window, first)) + 2;
        let decimal = read_decimal(window, first)?;
        if decimal.end + 1 != start + length || window[decimal.end] != behind || length > 16 {
            return None;
        }
        *self = Self {
            at: time(decimal.value as i64)?,
            text: *bytes16(window, start),
            length,
        };
        Some(start + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::number::WINDOW;

    fn read(stamp: &mut CachedTimestamp, text: &str) -> Option<(usize, i64)> {
        let mut window = [b'7'; WINDOW];
        window[5..5 + text.len()].copy_from_slice(text.as_bytes());
        let next = stamp.read(&window, 5, [b'[', b','], |number| {
            (number < 1_000).then_some(Timestamp(number))
        });
        next.map(|next| (next, stamp.at().0))
    }

    #[test]
    fn a_time_is_digits_between_two_bytes() {
        let mut stamp = CachedTimestamp::new();
        assert_eq!(read(&mut stamp, "[12,"), Some((9, 12)));
        assert_eq!(read(&mut stamp, "[12,5"), Some((9, 12)));
        for other in [
            "[1000,",
            "(12,",
            "[12]",
            "[-12,",
            "[1.2,",
            "[,",
            "[1e2,",
            "[000000000000012,",
        ] {
            assert_eq!(read(&mut stamp, other), None, "{other}");
        }
        assert_eq!(read(&mut stamp, "[00000000000012,"), Some((21, 12)));
        assert_eq!(read(&mut stamp, "[123,"), Some((10, 123)));
    }
}
