//! Samples that do not fit the rows of their tile: late ones, and those with a timestamp
//! of their own. Each series has its own head and its own blocks.
//!
//! What is here is newer than what the rows say of the same timestamp; and of what is
//! here, the head is newer than the blocks, and a block newer than those before it.

use std::collections::VecDeque;

use super::block::{Block, Columns, Sealer};
use super::index::reserve;

/// The most samples of a head. in [1, 256]
pub(super) const HEAD: usize = 128;

/// One series' loose samples.
#[derive(Debug)]
pub(super) struct Loose {
    /// Ascending in time, a timestamp once.
    pub(super) head: Vec<(i64, f64)>,
    pub(super) blocks: VecDeque<Block>,
    /// Sealed samples that a later one has superseded: when, and the number of the block.
    pub(super) dead: Vec<(i64, u64)>,
    /// How many blocks were dropped: the number of the first that is left.
    pub(super) dropped: u64,
    /// The newest timestamp that was ever here.
    pub(super) newest: i64,
    /// The head is sealed when it is so long: the first time at a length of its own, so
    /// that series that started together are not sealed together.
    seal_at: usize,
}

impl Loose {
    /// An empty series. `series` decides when it is first sealed.
    pub(super) fn new(series: usize) -> Self {
        Self {
            head: Vec::new(),
            blocks: VecDeque::new(),
            dead: Vec::new(),
            dropped: 0,
            newest: i64::MIN,
            seal_at: HEAD / 2 + series % (HEAD / 2),
        }
    }

    /// Whether a sample at `at` is in the head, or where it would have to go.
    pub(super) fn find(&self, at: i64) -> Result<usize, usize> {
        match self.head.last() {
            Some((last, _)) if *last >= at => self.head.binary_search_by_key(&at, |(time, _)| *time),
            _ => Err(self.head.len()),
        }
    }

    /// The number of the newest block that holds a sample at `at`.
    pub(super) fn holding(&self, at: i64, columns: &mut Columns) -> Option<u64> {
        let place = self.blocks.iter().rposition(|block| block.holds(0, at, columns))?;
        Some(self.dropped + place as u64)
    }

    /// Whether the head must be sealed before it can take another sample.
    pub(super) fn is_full(&self) -> bool {
        self.head.len() >= self.seal_at
    }

    /// Bytes that the next insertion will allocate.
    pub(super) fn growth(&self) -> usize {
        if self.head.len() < self.head.capacity() {
            0
        } else {
            self.head.capacity().clamp(4, HEAD) * size_of::<(i64, f64)>()
        }
    }

    /// Puts a sample where [`Loose::find`] said.
    pub(super) fn insert(&mut self, place: usize, at: i64, value: f64) {
        if self.head.len() == self.head.capacity() {
            self.head.reserve_exact(self.head.capacity().clamp(4, HEAD));
        }
        self.head.insert(place, (at, value));
        self.newest = self.newest.max(at);
    }

    /// Turns the head into a block; returns what that occupies.
    pub(super) fn seal(&mut self, sealer: &mut Sealer) -> usize {
        let rows = self.head.len();
        for (row, (time, value)) in self.head.drain(..).enumerate() {
            sealer.times[row] = time;
            sealer.columns[0][row] = value;
        }
        sealer.present[..rows].fill(1);
        let (block, _) = sealer.seal(rows, 1);
        let before = self.blocks.capacity();
        reserve(&mut self.blocks, 1);
        let grown = (self.blocks.capacity() - before) * size_of::<Block>() + block.heap_bytes();
        self.blocks.push_back(block);
        self.seal_at = HEAD;
        grown
    }

    /// Whether there is no sample.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.blocks.is_empty()
    }

    /// Bytes of the head.
    pub(super) fn head_bytes(&self) -> usize {
        self.head.capacity() * size_of::<(i64, f64)>()
    }
}
