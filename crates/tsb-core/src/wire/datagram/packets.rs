//! Datagrams that wait to be sent: one buffer, and where each ends.

/// Datagrams in one buffer, the last of them open.
///
/// With equal sizes every closed datagram is as long as the limit, which is what the
/// kernel's segmentation needs: one system call then carries dozens.
#[derive(Clone, Debug)]
pub struct Packets {
    bytes: Vec<u8>,
    // Invariant: rising, none beyond bytes.len().
    ends: Vec<usize>,
    limit: usize,
    is_equal: bool,
}

impl Packets {
    /// No datagrams yet, none of which will be longer than `limit` bytes; with `is_equal`
    /// the closed ones are exactly as long.
    ///
    /// # Panics
    /// When the limit is 0 or more than [`super::MAX_DATAGRAM`]: a slip of the caller.
    pub fn new(limit: usize, is_equal: bool) -> Self {
        assert!((1..=super::MAX_DATAGRAM).contains(&limit), "no datagram has this size");
        Self {
            bytes: Vec::with_capacity(2 << 16),
            ends: Vec::with_capacity(256),
            limit,
            is_equal,
        }
    }

    /// The most bytes of a datagram.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether closed datagrams are padded to the limit.
    pub fn is_equal(&self) -> bool {
        self.is_equal
    }

    /// How many datagrams are closed.
    pub fn closed(&self) -> usize {
        self.ends.len()
    }

    /// How many datagrams there are, the open one included if something is in it.
    pub fn len(&self) -> usize {
        self.ends.len() + usize::from(self.open_start() < self.bytes.len())
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Closes the open datagram, if something is in it, as short as it is.
    pub fn close(&mut self) {
        if self.open_start() < self.bytes.len() {
            self.ends.push(self.bytes.len());
        }
    }

    /// The closed datagrams, one behind the other, and the end of each.
    pub fn closed_bytes(&self) -> (&[u8], &[usize]) {
        (&self.bytes[..self.open_start()], &self.ends)
    }

    /// The closed datagrams.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// Forgets the closed datagrams; the open one stays.
    pub fn clear_closed(&mut self) {
        let start = self.open_start();
        if start > 0 {
            self.bytes.copy_within(start.., 0);
            self.bytes.truncate(self.bytes.len() - start);
            self.ends.clear();
        }
    }

    /// How much more fits into the open datagram.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.limit - (self.bytes.len() - self.open_start())
    }

    /// Whether nothing is in the open datagram.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.open_start() == self.bytes.len()
    }

    /// Where the next record goes; it may add at most [`Self::room`] bytes.
    #[inline]
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Closes the open datagram because the next record does not fit: with equal sizes it
    /// is filled up by `pad`, which gets the buffer and how many bytes to add.
    pub(crate) fn close_full(&mut self, pad: impl FnOnce(&mut Vec<u8>, usize)) {
        let room = self.room();
        if self.is_equal && room > 0 && !self.is_fresh() {
            pad(&mut self.bytes, room);
            debug_assert_eq!(self.room(), 0, "the padding fills the datagram");
        }
        self.close();
    }

    #[inline]
    fn open_start(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_datagrams_leave_and_the_open_one_stays() {
        let mut packets = Packets::new(8, true);
        packets.open().extend_from_slice(b"abcdef");
        assert_eq!((packets.room(), packets.len(), packets.closed()), (2, 1, 0));
        packets.close_full(|bytes, count| bytes.resize(bytes.len() + count, b'_'));
        packets.open().extend_from_slice(b"gh");
        assert_eq!(packets.iter().collect::<Vec<_>>(), [b"abcdef__"]);
        packets.clear_closed();
        assert_eq!((packets.len(), packets.closed(), packets.room()), (1, 0, 6));
        packets.close();
        packets.close();
        assert_eq!(packets.iter().collect::<Vec<_>>(), [b"gh"]);
        packets.clear_closed();
        assert!(packets.is_empty());
    }
}
