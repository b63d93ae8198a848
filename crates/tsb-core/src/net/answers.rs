//! What is to be written back to a peer, and never more than it reads.

use std::io::{self, ErrorKind};
use std::task::{Context, Poll};

use super::stream::{Plain, Stream};

/// While more than so many bytes wait, nothing more is decoded that could be answered.
const HELD: usize = 64 << 10;

/// Answers that the socket has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    // Invariant: written <= bytes.len()
    written: usize,
    /// The peer takes nothing any more; it may have sent something before.
    is_over: bool,
}

impl Answers {
    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Whether the peer has taken everything.
    pub(super) fn are_taken(&self) -> bool {
        self.waiting() == 0 && !self.is_over
    }

    /// Whether so much waits that nothing is read before the peer takes some.
    pub(super) fn are_held(&self) -> bool {
        self.waiting() > HELD
    }

    /// Where the next answer goes.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if self.waiting() == 0 || self.is_over {
            self.bytes.clear();
            self.written = 0;
            self.bytes.shrink_to(HELD);
        }
        &mut self.bytes
    }

    /// Writes as much as the socket takes; returns how much. The waker is called when it
    /// takes more.
    pub(super) fn write(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> usize {
        self.write_with(|bytes| stream.poll_write(context, bytes))
    }

    /// The same past tokio, without a wake-up.
    pub(super) fn write_plain(&mut self, stream: &mut Plain) -> usize {
        self.write_with(|bytes| match stream.write_some(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            written => Poll::Ready(written),
        })
    }

    fn write_with(&mut self, mut write: impl FnMut(&[u8]) -> Poll<io::Result<usize>>) -> usize {
        let before = self.written;
        while self.written < self.bytes.len() {
            match write(&self.bytes[self.written..]) {
                Poll::Ready(Ok(count)) if count > 0 => self.written += count,
                Poll::Ready(_) => {
                    self.is_over = true;
                    self.bytes.truncate(self.written);
                }
                Poll::Pending => break,
            }
        }
        self.written - before
    }
}
