//! Samples held until their series is announced; the announcement was lost or is late.

use crate::wire::Budget;

/// Maximum number of bytes held per peer.
const MAX_BYTES: usize = 1 << 20;

/// A held frame of samples.
#[derive(Debug)]
pub(super) struct HeldFrame {
    /// The first unknown id in it.
    pub(super) missing: u32,
    pub(super) shape: u8,
    pub(super) samples: u64,
    pub(super) body: Box<[u8]>,
}

impl HeldFrame {
    /// Its memory, in bytes.
    fn bytes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
}

/// The held frames of one peer, in order of arrival.
#[derive(Debug)]
pub(super) struct HeldFrames {
    frames: Vec<HeldFrame>,
    bytes: usize,
    budget: Budget,
}

impl HeldFrames {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            frames: Vec::new(),
            bytes: 0,
            budget,
        }
    }

    /// Holds a frame. Returns false if there is no room.
    pub(super) fn keep(&mut self, frame: HeldFrame) -> bool {
        let bytes = frame.bytes();
        if self.bytes + bytes > MAX_BYTES || !self.budget.take(bytes) {
            return false;
        }
        self.bytes += bytes;
        self.frames.push(frame);
        true
    }

    /// Removes and returns the frames whose missing id is known now.
    pub(super) fn ready(&mut self, is_known: impl Fn(u32) -> bool) -> Vec<HeldFrame> {
        let ready: Vec<HeldFrame> = self.frames.extract_if(.., |frame| is_known(frame.missing)).collect();
        let bytes = ready.iter().map(HeldFrame::bytes).sum();
        self.bytes -= bytes;
        self.budget.give_back(bytes);
        ready
    }
}

impl Drop for HeldFrames {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
