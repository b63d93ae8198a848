//! The bytes of a connection that are read but not yet decoded.
//!
//! One large buffer serves all connections of an ingest thread in turn; between two
//! turns a connection keeps only the beginning of its unfinished record. However the
//! bytes trickle in, each is moved a bounded number of times.

use std::mem;

/// A rest up to this size is copied in and out; a larger one takes the buffer with it.
const SMALL: usize = 16 << 10;

/// What a connection keeps between two turns: the beginning of a record.
#[derive(Debug, Default)]
pub(super) struct Rest {
    bytes: Vec<u8>,
    // Invariant: start <= end <= bytes.len()
    start: usize,
    end: usize,
}

/// The buffer of an ingest thread, of which `start..end` is waiting to be decoded.
#[derive(Debug)]
pub(super) struct Window {
    // Invariant: at least 2 * SMALL long
    bytes: Vec<u8>,
    // Invariant: start <= end <= bytes.len()
    start: usize,
    end: usize,
    // Replaces `bytes` when a connection takes it along. Empty or as long as `bytes` once was.
    spare: Vec<u8>,
}

impl Window {
    /// An empty window of `size` bytes, or a little more where that is too small.
    pub(super) fn with_size(size: usize) -> Self {
        Self {
            bytes: vec![0; size.max(2 * SMALL)],
            start: 0,
            end: 0,
            spare: Vec::new(),
        }
    }

    /// What is waiting to be decoded.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// `count` more bytes have been read into the room.
    pub(super) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// `count` bytes have been decoded.
    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.clear();
        }
    }

    /// Forgets what is waiting.
    pub(super) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Where to read next, at least a quarter of the buffer; `None` when `max_record`
    /// bytes are waiting and still make no record.
    pub(super) fn room(&mut self, max_record: usize) -> Option<&mut [u8]> {
        let unread = self.end - self.start;
        if unread >= max_record {
            return None;
        }
        let size = self.bytes.len();
        // Moving is paid for by what was decoded before (eight times as much), or by what
        // was read since the last move (a quarter of the buffer): linear in any case.
        let is_cheap = unread * 8 <= self.start;
        if self.start > 0 && (is_cheap || size - self.end < size / 4) {
            self.bytes.copy_within(self.start..self.end, 0);
            self.start = 0;
            self.end = unread;
        }
        // In a full window this record is longer than half of it: later moves get rarer.
        if self.end > size / 2 && size - self.end < size / 4 {
            self.bytes.resize(size * 2, 0);
        }
        self.bytes.get_mut(self.end..)
    }

    /// Takes over what a connection kept. The window must be empty.
    pub(super) fn adopt(&mut self, rest: &mut Rest) {
        let kept = &rest.bytes[rest.start..rest.end];
        if kept.len() > SMALL {
            self.spare = mem::replace(&mut self.bytes, mem::take(&mut rest.bytes));
            self.start = rest.start;
            self.end = rest.end;
        } else {
            self.bytes[..kept.len()].copy_from_slice(kept);
            self.start = 0;
            self.end = kept.len();
        }
        rest.start = 0;
        rest.end = 0;
    }

    /// Leaves what is unread with the connection, and this window empty.
    pub(super) fn leave(&mut self, rest: &mut Rest) {
        let unread = self.end - self.start;
        if unread > SMALL {
            let mut other = mem::take(&mut self.spare);
            if other.is_empty() {
                other = vec![0; self.bytes.len()];
            }
            rest.bytes = mem::replace(&mut self.bytes, other);
            rest.start = self.start;
            rest.end = self.end;
        } else {
            rest.bytes.clear();
            rest.bytes.extend_from_slice(&self.bytes[self.start..self.end]);
            rest.start = 0;
            rest.end = unread;
        }
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    /// What all connections send.
    static STREAM: LazyLock<Vec<u8>> = LazyLock::new(|| (0..5_000_000u32).map(|at| (at % 251) as u8).collect());

    /// Reads up to `bytes` of `stream` from `at` on, as a socket would.
    fn read(window: &mut Window, stream: &[u8], at: usize, bytes: usize) -> usize {
        let room = window.room(1 << 20).unwrap();
        let count = room.len().min(bytes).min(stream.len() - at);
        room[..count].copy_from_slice(&stream[at..at + count]);
        window.filled(count);
        count
    }

    #[test]
    fn a_record_beyond_the_limit_finds_no_room() {
        let mut window = Window::with_size(32 << 10);
        let mut read_bytes = 0;
        while let Some(room) = window.room(100_000) {
            let count = room.len();
            assert!(count >= 8 << 10);
            window.filled(count);
            read_bytes += count;
        }
        assert!((100_000..200_000).contains(&read_bytes));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Two connections take turns; whatever is read and consumed, each sees its own
        /// stream whole and in order.
        #[test]
        fn streams_pass_unharmed(
            steps in prop::collection::vec((any::<bool>(), 1usize..60_000, 0usize..60_000), 1..80),
        ) {
            let stream = &*STREAM;
            let mut window = Window::with_size(32 << 10);
            let mut rests = [Rest::default(), Rest::default()];
            let mut read_to = [0usize; 2];
            let mut consumed_to = [0usize; 2];
            for (which, bytes, consume) in steps {
                let which = usize::from(which);
                window.adopt(&mut rests[which]);
                // What no decoder would leave: more than half a megabyte undecoded.
                if window.unread().len() < 1 << 19 {
                    read_to[which] += read(&mut window, stream, read_to[which], bytes);
                }
                prop_assert_eq!(window.unread(), &stream[consumed_to[which]..read_to[which]]);
                let consume = consume.min(window.unread().len());
                window.consume(consume);
                consumed_to[which] += consume;
                window.leave(&mut rests[which]);
                prop_assert!(window.unread().is_empty());
            }
        }
    }
}
