//! The bytes of a connection that are read but not decoded.
//!
//! One large buffer serves all connections of an ingest thread in turn; between two turns a
//! connection keeps only the beginning of its unfinished record. Each byte is moved a bounded
//! number of times, however small the reads are.

use std::mem;

/// A remainder up to this size is copied in and out of the buffer; for a larger one the connection
/// takes the buffer itself.
const SMALL: usize = 16 << 10;

/// The part of a record that a connection keeps between two turns.
#[derive(Debug, Default)]
pub(super) struct PartialRecord {
    bytes: Vec<u8>,
    // Invariant: start <= end <= bytes.len()
    start: usize,
    end: usize,
}

/// The buffer of an ingest thread. `start..end` is not decoded yet.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    // Invariant: at least 2 * SMALL long
    bytes: Vec<u8>,
    // Invariant: start <= end <= bytes.len()
    start: usize,
    end: usize,
    // Replaces `bytes` when a connection takes that along. Empty, or as long as `bytes` once was.
    spare: Vec<u8>,
}

impl ReadBuffer {
    /// An empty buffer of `size` bytes, or a little more where that is too small.
    pub(super) fn with_size(size: usize) -> Self {
        Self {
            bytes: vec![0; size.max(2 * SMALL)],
            start: 0,
            end: 0,
            spare: Vec::new(),
        }
    }

    /// The bytes that are not decoded yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Records that `count` more bytes were read into the free part.
    pub(super) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Records that `count` bytes were decoded.
    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.clear();
        }
    }

    /// Discards the undecoded bytes.
    pub(super) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// The part to read into, at least a quarter of the buffer; `None` when `max_record` bytes are
    /// waiting and still form no record.
    pub(super) fn room(&mut self, max_record: usize) -> Option<&mut [u8]> {
        let unread = self.end - self.start;
        if unread >= max_record {
            return None;
        }
        let size = self.bytes.len();
        // Moving costs at most an eighth of what was decoded before, or follows reads of a quarter
        // of the buffer since the last move: linear in either case.
        let is_cheap = unread * 8 <= self.start;
        if self.start > 0 && (is_cheap || size - self.end < size / 4) {
            self.bytes.copy_within(self.start..self.end, 0);
            self.start = 0;
            self.end = unread;
        }
        // The unfinished record is longer than half of the buffer here, so later moves get rarer.
        if self.end > size / 2 && size - self.end < size / 4 {
            self.bytes.resize(size * 2, 0);
        }
        self.bytes.get_mut(self.end..)
    }

    /// Takes over the bytes that a connection kept. The buffer must be empty.
    pub(super) fn adopt(&mut self, partial: &mut PartialRecord) {
        let kept = &partial.bytes[partial.start..partial.end];
        if kept.len() > SMALL {
            self.spare = mem::replace(&mut self.bytes, mem::take(&mut partial.bytes));
            self.start = partial.start;
            self.end = partial.end;
        } else {
            self.bytes[..kept.len()].copy_from_slice(kept);
            self.start = 0;
            self.end = kept.len();
        }
        partial.start = 0;
        partial.end = 0;
    }

    /// Leaves the undecoded bytes with the connection, and the buffer empty.
    pub(super) fn leave(&mut self, partial: &mut PartialRecord) {
        let unread = self.end - self.start;
        if unread > SMALL {
            let mut other = mem::take(&mut self.spare);
            if other.is_empty() {
                other = vec![0; self.bytes.len()];
            }
            partial.bytes = mem::replace(&mut self.bytes, other);
            partial.start = self.start;
            partial.end = self.end;
        } else {
            partial.bytes.clear();
            partial.bytes.extend_from_slice(&self.bytes[self.start..self.end]);
            partial.start = 0;
            partial.end = unread;
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
    fn read(read_buffer: &mut ReadBuffer, stream: &[u8], at: usize, bytes: usize) -> usize {
        let room = read_buffer.room(1 << 20).unwrap();
        let count = room.len().min(bytes).min(stream.len() - at);
        room[..count].copy_from_slice(&stream[at..at + count]);
        read_buffer.filled(count);
        count
    }

    #[test]
    fn a_record_beyond_the_limit_finds_no_room() {
        let mut read_buffer = ReadBuffer::with_size(32 << 10);
        let mut read_bytes = 0;
        while let Some(room) = read_buffer.room(100_000) {
            let count = room.len();
            assert!(count >= 8 << 10);
            read_buffer.filled(count);
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
            let mut read_buffer = ReadBuffer::with_size(32 << 10);
            let mut rests = [PartialRecord::default(), PartialRecord::default()];
            let mut read_to = [0usize; 2];
            let mut consumed_to = [0usize; 2];
            for (which, bytes, consume) in steps {
                let which = usize::from(which);
                read_buffer.adopt(&mut rests[which]);
                // What no decoder would leave: more than half a megabyte undecoded.
                if read_buffer.unread().len() < 1 << 19 {
                    read_to[which] += read(&mut read_buffer, stream, read_to[which], bytes);
                }
                prop_assert_eq!(read_buffer.unread(), &stream[consumed_to[which]..read_to[which]]);
                let consume = consume.min(read_buffer.unread().len());
                read_buffer.consume(consume);
                consumed_to[which] += consume;
                read_buffer.leave(&mut rests[which]);
                prop_assert!(read_buffer.unread().is_empty());
            }
        }
    }
}
