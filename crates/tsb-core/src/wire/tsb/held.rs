//! Samples that wait for the announcement of their series, which was lost or is late.

use crate::wire::Budget;

/// At most so many bytes of one peer wait.
const MAX_BYTES: usize = 1 << 20;

/// A frame of samples that waits.
#[derive(Debug)]
pub(super) struct Frame {
    /// The first id on the wire that it waits for.
    pub(super) missing: u32,
    pub(super) shape: u8,
    pub(super) samples: u64,
    pub(super) body: Box<[u8]>,
}

impl Frame {
    /// What it takes, in bytes.
    fn bytes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
}

/// The frames of one peer that wait, in the order in which they came.
#[derive(Debug)]
pub(super) struct Held {
    frames: Vec<Frame>,
    bytes: usize,
    budget: Budget,
}

impl Held {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            frames: Vec::new(),
            bytes: 0,
            budget,
        }
    }

    /// Keeps a frame. `false`: there is no room.
    pub(super) fn keep(&mut self, frame: Frame) -> bool {
        let bytes = frame.bytes();
        if self.bytes + bytes > MAX_BYTES || !self.budget.take(bytes) {
            return false;
        }
        self.bytes += bytes;
        self.frames.push(frame);
        true
    }

    /// Takes out the frames whose wait may be over.
    pub(super) fn ready(&mut self, is_known: impl Fn(u32) -> bool) -> Vec<Frame> {
        let ready: Vec<Frame> = self.frames.extract_if(.., |frame| is_known(frame.missing)).collect();
        let bytes = ready.iter().map(Frame::bytes).sum();
        self.bytes -= bytes;
        self.budget.give_back(bytes);
        ready
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
