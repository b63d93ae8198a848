//! Storage of queued samples, in chunks of one size that are reused.
//!
//! A series holds a chain of chunks. Chunks are added and removed at either end of a chain, so a
//! growing queue copies nothing. Memory is bounded by the number of chunks in use
//! ([`ChunkBudget`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Samples per chunk: together with `next` and `len` a chunk fills four cache lines.
pub(super) const SAMPLES: usize = 15;
/// Chunks per allocation.
const SLAB: usize = 64;
/// The null chunk index: the end of a chain.
pub(super) const NONE: u32 = u32::MAX;

/// A sample: nanoseconds since the epoch, and a value.
pub(super) type Sample = (i64, f64);

/// Some samples of one series, and the index of the next chunk.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    samples: [Sample; SAMPLES],
    next: u32,
    // in [0, SAMPLES]
    len: u32,
}

impl Chunk {
    const EMPTY: Self = Self {
        samples: [(0, 0.0); SAMPLES],
        next: NONE,
        len: 0,
    };
}

/// The number of chunks that all shards together may use.
#[derive(Debug)]
pub(super) struct ChunkBudget {
    used: AtomicUsize,
    max: usize,
}

impl ChunkBudget {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max: (max_bytes / size_of::<Chunk>() as u64).max(1) as usize,
        }
    }

    /// Bytes of the chunks in use.
    pub(super) fn used_bytes(&self) -> u64 {
        (self.used.load(Ordering::Relaxed) * size_of::<Chunk>()) as u64
    }

    fn take(&self) -> bool {
        let is_left = self.used.fetch_add(1, Ordering::Relaxed) < self.max;
        if !is_left {
            self.give();
        }
        is_left
    }

    fn give(&self) {
        self.used.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The chunks of one shard.
#[derive(Debug)]
pub(super) struct Arena {
    // Boxed, so that growing the vector does not move the chunks.
    slabs: Vec<Box<[Chunk; SLAB]>>,
    // The first chunk of the free list.
    free: u32,
    free_count: usize,
    budget: Arc<ChunkBudget>,
}

/// The chain of one series: its oldest and its newest chunk, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

impl Arena {
    pub(super) fn new(budget: Arc<ChunkBudget>) -> Self {
        Self {
            slabs: Vec::new(),
            free: NONE,
            free_count: 0,
            budget,
        }
    }

    /// Appends a sample. Returns false if the memory bound is reached.
    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, sample: Sample) -> bool {
        if chain.tail != NONE {
            let tail = self.chunk(chain.tail);
            if let Some(slot) = tail.samples.get_mut(tail.len as usize) {
                *slot = sample;
                tail.len += 1;
                return true;
            }
        }
        self.budget.take() && self.push_into_new(chain, sample)
    }

    #[cold]
    #[inline(never)]
    fn push_into_new(&mut self, chain: &mut Chain, sample: Sample) -> bool {
        let new = self.take();
        let chunk = self.chunk(new);
        chunk.samples[0] = sample;
        chunk.len = 1;
        if chain.tail == NONE {
            chain.head = new;
        } else {
            self.chunk(chain.tail).next = new;
        }
        chain.tail = new;
        true
    }

    /// Moves all samples out, oldest first, and frees the chunks.
    pub(super) fn drain(&mut self, chain: &mut Chain, mut into: impl FnMut(&[Sample])) {
        let mut at = std::mem::replace(chain, Chain::EMPTY).head;
        while at != NONE {
            let chunk = self.chunk(at);
            into(chunk.samples.get(..chunk.len as usize).unwrap_or_default());
            let next = chunk.next;
            self.give(at);
            at = next;
        }
    }

    /// Puts samples back in front of all others. They were in chunks before, so the bound is
    /// exceeded by at most the samples being written.
    pub(super) fn put_back(&mut self, chain: &mut Chain, samples: &[Sample]) {
        let mut before = Chain::EMPTY;
        for part in samples.chunks(SAMPLES) {
            self.budget.used.fetch_add(1, Ordering::Relaxed);
            let new = self.take();
            let chunk = self.chunk(new);
            chunk.samples[..part.len()].copy_from_slice(part);
            chunk.len = part.len() as u32;
            if before.tail == NONE {
                before.head = new;
            } else {
                self.chunk(before.tail).next = new;
            }
            before.tail = new;
        }
        if before.tail == NONE {
            return;
        }
        self.chunk(before.tail).next = chain.head;
        chain.head = before.head;
        if chain.tail == NONE {
            chain.tail = before.tail;
        }
    }

    /// Bytes that are allocated and unused.
    pub(super) fn free_bytes(&self) -> u64 {
        (self.free_count * size_of::<Chunk>()) as u64
    }

    fn take(&mut self) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let taken = self.free;
        let chunk = self.chunk(taken);
        let next = std::mem::replace(&mut chunk.next, NONE);
        chunk.len = 0;
        self.free = next;
        self.free_count -= 1;
        taken
    }

    fn give(&mut self, at: u32) {
        let free = self.free;
        self.chunk(at).next = free;
        self.free = at;
        self.free_count += 1;
        self.budget.give();
    }

    fn grow(&mut self) {
        let first = (self.slabs.len() * SLAB) as u32;
        let mut slab = Box::new([const { Chunk::EMPTY }; SLAB]);
        for (chunk, next) in slab.iter_mut().zip(first + 1..) {
            chunk.next = next;
        }
        slab[SLAB - 1].next = self.free;
        self.free = first;
        self.free_count += SLAB;
        self.slabs.push(slab);
    }

    #[inline]
    fn chunk(&mut self, at: u32) -> &mut Chunk {
        &mut self.slabs[at as usize / SLAB][at as usize % SLAB]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(arena: &mut Arena, chain: &mut Chain) -> Vec<i64> {
        let mut found = Vec::new();
        arena.drain(chain, |samples| found.extend(samples.iter().map(|sample| sample.0)));
        found
    }

    #[test]
    fn a_chain_gives_back_what_was_pushed_in_order() {
        let mut arena = Arena::new(Arc::new(ChunkBudget::new(1 << 20)));
        let mut chains = [Chain::EMPTY; 3];
        for at in 0..200 {
            for chain in &mut chains {
                assert!(arena.push(chain, (at, 0.5)));
            }
        }
        assert_eq!(drained(&mut arena, &mut chains[1]), (0..200).collect::<Vec<_>>());
        assert_eq!(drained(&mut arena, &mut chains[1]), Vec::<i64>::new());
        let back: Vec<Sample> = (-40..0).map(|at| (at, 1.0)).collect();
        arena.put_back(&mut chains[0], &back);
        arena.put_back(&mut chains[1], &back);
        assert!(arena.push(&mut chains[1], (0, 1.0)));
        assert_eq!(drained(&mut arena, &mut chains[0]), (-40..200).collect::<Vec<_>>());
        assert_eq!(drained(&mut arena, &mut chains[1]), (-40..1).collect::<Vec<_>>());
        arena.put_back(&mut chains[1], &[]);
        assert_eq!(drained(&mut arena, &mut chains[1]), Vec::<i64>::new());
    }

    #[test]
    fn the_bound_holds_and_chunks_are_used_again() {
        let budget = Arc::new(ChunkBudget::new(4 * size_of::<Chunk>() as u64));
        let mut arena = Arena::new(Arc::clone(&budget));
        let mut chain = Chain::EMPTY;
        for _ in 0..3 {
            let taken = (0..100).filter(|&at| arena.push(&mut chain, (at, 0.0))).count();
            assert_eq!(taken, 4 * SAMPLES);
            assert_eq!(drained(&mut arena, &mut chain).len(), taken);
        }
        assert_eq!((budget.used_bytes(), arena.slabs.len()), (0, 1));
        assert_eq!(arena.free_bytes(), (SLAB * size_of::<Chunk>()) as u64);
    }
}
