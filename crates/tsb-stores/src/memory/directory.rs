//! Maps ids to extents without a lock, by a radix table of atomics.
//!
//! Ids are dense in a run, so the table is small; a stray id costs a few kilobytes, not an array
//! up to it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::extent::Extent;

const LEAF_BITS: u32 = 11;
const NODE_BITS: u32 = 11;
const ROOT: usize = 1 << (32 - LEAF_BITS - NODE_BITS);
const NODE: usize = 1 << NODE_BITS;
const LEAF: usize = 1 << LEAF_BITS;

const UNDEFINED: u32 = 0;
const DEFINED: u32 = 1;
/// Table entries from here on are extent numbers.
const PLACED: u32 = 2;

type Leaf = Box<[AtomicU32; LEAF]>;
type Node = Box<[OnceLock<Leaf>]>;

/// The state of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdState {
    /// Not defined.
    Undefined,
    /// Defined, and never written.
    Defined,
    /// In the extent of this number.
    Placed(u32),
}

/// Ids and extents. Reads never wait; callers must serialize additions.
#[derive(Debug)]
pub(super) struct Directory {
    root: Box<[OnceLock<Node>]>,
    /// Every id below this is defined.
    dense: AtomicU32,
    extents: Extents,
}

impl Directory {
    pub(super) fn new() -> Self {
        Self {
            root: empty(ROOT),
            dense: AtomicU32::new(0),
            extents: Extents::new(),
        }
    }

    fn leaf(&self, id: u32) -> Option<&Leaf> {
        let node = self.root[(id >> (LEAF_BITS + NODE_BITS)) as usize].get()?;
        node[(id >> LEAF_BITS) as usize % NODE].get()
    }

    fn leaf_or_new(&self, id: u32) -> &Leaf {
        let node = self.root[(id >> (LEAF_BITS + NODE_BITS)) as usize].get_or_init(|| empty(NODE));
        node[(id >> LEAF_BITS) as usize % NODE].get_or_init(|| Box::new([const { AtomicU32::new(UNDEFINED) }; LEAF]))
    }

    /// The state of `id`.
    #[inline]
    pub(super) fn entry(&self, id: u32) -> IdState {
        let state = self
            .leaf(id)
            .map_or(UNDEFINED, |leaf| leaf[id as usize % LEAF].load(Ordering::Acquire));
        match state {
            UNDEFINED => IdState::Undefined,
            DEFINED => IdState::Defined,
            placed => IdState::Placed(placed - PLACED),
        }
    }

    /// Checks that the ids `first..=last` are all defined; the error is the first that is not.
    #[inline]
    pub(super) fn check(&self, first: u32, last: u32) -> Result<(), u32> {
        let dense = self.dense.load(Ordering::Acquire);
        if last < dense {
            return Ok(());
        }
        let missing = (first.max(dense)..=last).find(|&id| self.entry(id) == IdState::Undefined);
        missing.map_or(Ok(()), Err)
    }

    /// Whether every id up to `id` is defined.
    #[inline]
    pub(super) fn is_dense(&self, id: u32) -> bool {
        id < self.dense.load(Ordering::Acquire)
    }

    /// Marks an id as defined.
    pub(super) fn define(&self, id: u32) {
        self.leaf_or_new(id)[id as usize % LEAF].store(DEFINED, Ordering::Release);
        let mut dense = self.dense.load(Ordering::Acquire);
        if dense == id {
            while dense < u32::MAX && self.entry(dense) != IdState::Undefined {
                dense += 1;
            }
            self.dense.store(dense, Ordering::Release);
        }
    }

    /// Adds an extent of ids that are defined and in no extent.
    pub(super) fn place(&self, extent: Extent) {
        let ids = extent.first..=extent.first + (extent.len - 1);
        let number = self.extents.push(extent);
        for id in ids {
            self.leaf_or_new(id)[id as usize % LEAF].store(number + PLACED, Ordering::Release);
        }
    }

    /// An extent by its number.
    #[inline]
    pub(super) fn extent(&self, number: u32) -> Option<&Extent> {
        self.extents.get(number)
    }

    /// The extent of an id, if it has one.
    #[inline]
    pub(super) fn extent_of(&self, id: u32) -> Option<&Extent> {
        match self.entry(id) {
            IdState::Placed(number) => self.extent(number),
            _ => None,
        }
    }

    /// Number of extents.
    pub(super) fn extent_count(&self) -> u32 {
        self.extents.count.load(Ordering::Acquire)
    }

    /// All extents.
    pub(super) fn extents(&self) -> impl Iterator<Item = &Extent> {
        (0..self.extent_count()).filter_map(|number| self.extent(number))
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        let nodes = self.root.iter().filter_map(OnceLock::get);
        let leaves = nodes
            .clone()
            .map(|node| node.iter().filter(|leaf| leaf.get().is_some()).count());
        let slot = size_of::<OnceLock<Node>>();
        ROOT * slot + nodes.count() * NODE * slot + leaves.sum::<usize>() * LEAF * size_of::<AtomicU32>()
    }
}

fn empty<T>(len: usize) -> Box<[OnceLock<T>]> {
    (0..len).map(|_| OnceLock::new()).collect()
}

type Bucket = Box<[OnceLock<Extent>]>;

/// Extents in buckets of doubling size, so that none ever moves.
#[derive(Debug)]
struct Extents {
    buckets: Box<[OnceLock<Bucket>]>,
    count: AtomicU32,
}

/// Size of the first bucket, as a power of two.
const FIRST_BITS: u32 = 4;

impl Extents {
    fn new() -> Self {
        Self {
            buckets: empty((32 - FIRST_BITS) as usize + 1),
            count: AtomicU32::new(0),
        }
    }

    /// The bucket of a number, its size as a power of two, and the position in it.
    #[inline]
    fn place(number: u32) -> (usize, u32, usize) {
        let shifted = u64::from(number) + (1 << FIRST_BITS);
        let bits = shifted.ilog2();
        ((bits - FIRST_BITS) as usize, bits, (shifted - (1 << bits)) as usize)
    }

    #[inline]
    fn get(&self, number: u32) -> Option<&Extent> {
        let (bucket, _, place) = Self::place(number);
        self.buckets[bucket].get()?[place].get()
    }

    fn push(&self, extent: Extent) -> u32 {
        let number = self.count.load(Ordering::Acquire);
        let (bucket, bits, place) = Self::place(number);
        let bucket = self.buckets[bucket].get_or_init(|| empty(1 << bits));
        bucket[place].get_or_init(|| extent);
        self.count.store(number + 1, Ordering::Release);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_from_anywhere_are_found_and_dense_ones_are_checked_at_once() {
        let directory = Directory::new();
        for id in [2, 0, 5_000_000, u32::MAX, 1] {
            assert_eq!(directory.entry(id), IdState::Undefined);
            directory.define(id);
            assert_eq!(directory.entry(id), IdState::Defined);
        }
        assert_eq!(directory.dense.load(Ordering::Relaxed), 3);
        assert_eq!(directory.check(0, 2), Ok(()));
        assert_eq!(directory.check(1, 5), Err(3));
        assert_eq!(directory.check(u32::MAX, u32::MAX), Ok(()));
        assert!(
            directory.bytes() < 256 * 1024,
            "{} bytes for five ids",
            directory.bytes()
        );
    }

    #[test]
    fn extents_stay_where_they_are_put() {
        let directory = Directory::new();
        for number in 0..100 {
            for id in number * 3..number * 3 + 3 {
                directory.define(id);
            }
            directory.place(Extent::new(number * 3, 3, number, 32));
        }
        assert_eq!(directory.extent_count(), 100);
        for number in 0..100 {
            assert_eq!(directory.entry(number * 3 + 1), IdState::Placed(number));
            assert_eq!(
                directory.extent_of(number * 3 + 2).map(|extent| extent.first),
                Some(number * 3)
            );
        }
        assert_eq!(directory.extents().count(), 100);
    }
}
