//! Datagrams to be sent: one buffer with the end of each datagram.

/// Datagrams in one buffer; the last one is open, which means that records may be added.
///
/// With `is_equal`, a datagram that is closed because it is full is padded to the limit, as the kernel's
/// segmentation requires: one system call then sends dozens. One that [`Packets::close`] closes stays
/// shorter.
#[derive(Clone, Debug)]
pub struct Packets {
    bytes: Vec<u8>,
    // Invariant: ascending, none beyond bytes.len().
    ends: Vec<usize>,
    limit: usize,
    is_equal: bool,
}

impl Packets {
    /// An empty list of datagrams of at most `limit` bytes; with `is_equal`, closed ones are
    /// padded to exactly that length.
    ///
    /// # Panics
    /// If the limit is 0 or above [`super::MAX_DATAGRAM`], which is a bug of the caller.
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

    /// Whether full datagrams are padded to the limit.
    pub fn is_equal(&self) -> bool {
        self.is_equal
    }

    /// Number of closed datagrams.
    pub fn closed(&self) -> usize {
        self.ends.len()
    }

    /// Number of datagrams, including the open one unless it is empty.
    pub fn len(&self) -> usize {
        self.ends.len() + usize::from(self.open_start() < self.bytes.len())
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Closes the open datagram without padding, unless it is empty.
    pub fn close(&mut self) {
        if self.open_start() < self.bytes.len() {
            self.ends.push(self.bytes.len());
        }
    }

    /// The bytes of the closed datagrams, and the end of each.
    pub fn closed_bytes(&self) -> (&[u8], &[usize]) {
        (&self.bytes[..self.open_start()], &self.ends)
    }

    /// The closed datagrams.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// Removes the closed datagrams; the open one stays.
    pub fn clear_closed(&mut self) {
        let start = self.open_start();
        if start > 0 {
            self.bytes.copy_within(start.., 0);
            self.bytes.truncate(self.bytes.len() - start);
            self.ends.clear();
        }
    }

    /// Number of bytes that still fit into the open datagram.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.limit - (self.bytes.len() - self.open_start())
    }

    /// Whether the open datagram is empty.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.open_start() == self.bytes.len()
    }

    /// The buffer for the next record, which may add at most [`Self::room`] bytes.
    #[inline]
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Closes the open datagram because the next record does not fit. With equal sizes, `pad`
    /// fills it up; it gets the buffer and the number of bytes to add.
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
