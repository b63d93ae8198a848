//! The answers that one connection has not written to its socket yet. Their size is bounded: while
//! more than [`HELD`] bytes wait, the connection is not read.

use std::io::{self, ErrorKind};
use std::task::{Context, Poll};

use super::stream::{Stream, UnregisteredStream};

/// While more than this number of bytes is unwritten, no further request is decoded.
const HELD: usize = 64 << 10;

/// Answers that the socket has not accepted yet.
#[derive(Debug, Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    // Invariant: written <= bytes.len()
    written: usize,
    /// The peer accepts no more bytes. What it sent before is still decoded.
    is_over: bool,
}

impl Answers {
    /// Number of bytes not written yet.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Whether every answer has been written.
    pub(super) fn are_taken(&self) -> bool {
        self.waiting() == 0 && !self.is_over
    }

    /// Whether the connection must not be read until the peer has accepted some answers.
    pub(super) fn are_held(&self) -> bool {
        self.waiting() > HELD
    }

    /// The buffer to which the next answer is appended.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if self.waiting() == 0 || self.is_over {
            self.bytes.clear();
            self.written = 0;
            self.bytes.shrink_to(HELD);
        }
        &mut self.bytes
    }

    /// Writes as many bytes as the socket accepts, and returns their number. If bytes are left,
    /// the waker is called when the socket accepts more.
    pub(super) fn write(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> usize {
        self.write_with(|bytes| stream.poll_write(context, bytes))
    }

    /// The same on a socket outside tokio, without a wake-up.
    pub(super) fn write_unregistered(&mut self, stream: &mut UnregisteredStream) -> usize {
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
