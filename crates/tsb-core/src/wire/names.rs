//! The table of series names of one connection, for every decoder whose records contain names.
//!
//! Senders repeat themselves: a name is usually followed by the name that followed it before. So the table
//! keeps names in the order of their first appearance, and a decoder compares with the next one
//! before it searches. Names in any other order are found by hash.
//!
//! It is *not* the catalog: it holds names as on the wire, with the sink's answers.

pub(super) mod budget_share;
mod cell;
mod hash;

use budget_share::BudgetShare;
pub(crate) use cell::{Cell, INLINE};
pub(crate) use hash::Hash;

use crate::series::SeriesId;
use crate::wire::number::{LAST_START, Window, bytes16};
use crate::wire::simd::{find_at_most, prefetch};
use crate::wire::{NotAdmitted, Room};

/// Maximum length of a name, terminator included, on the fast paths.
pub(crate) const LONGEST: usize = LAST_START;

/// Maximum number of refused names that are remembered; for further ones the sink is asked again.
const MAX_REFUSED: usize = 65_536;

/// Maximum total length of remembered refused names, in bytes.
const MAX_REFUSED_BYTES: usize = 4 << 20;

/// Marks an unused entry.
const NONE: u32 = u32::MAX;

/// The names of one connection, each followed by its terminator.
pub(crate) struct Names {
    cells: Vec<Cell>,
    /// The parts of long names that do not fit into their cells.
    rests: Vec<u8>,
    /// Open addressing by buckets. The length is a power of two, and at most half is used.
    buckets: Vec<Bucket>,
    terminator: u8,
    seed: u64,
    refused: usize,
    refused_bytes: usize,
    /// Memory taken from the budget that all connections of a listener share.
    share: BudgetShare,
}

/// Eight entries in a cache line, which are compared at once. The position of the right one is
/// random, so stopping early would be a mispredicted branch.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    tags: [u32; 8],
    // Filled from the front; `NONE` behind.
    entries: [u32; 8],
}

impl Bucket {
    const EMPTY: Self = Self {
        tags: [0; 8],
        entries: [NONE; 8],
    };

    /// The entry with this tag, or `NONE`; the last if there are several.
    #[inline(always)]
    fn find(&self, tag: u32) -> u32 {
        // Collects one bit per entry, because a choice entry by entry was compiled to branches.
        let tags = self.tags.iter().enumerate();
        let same = tags.fold(0_u32, |same, (slot, &other)| same | u32::from(other == tag) << slot);
        let last = same.checked_ilog2();
        last.map_or(NONE, |slot| self.entries[slot as usize % self.entries.len()])
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.entries[7] != NONE
    }
}

impl Names {
    /// An empty table. `terminator` ends a name on the wire; `seed` prevents attackers from
    /// choosing names that collide.
    pub(crate) fn new(terminator: u8, seed: u64) -> Self {
        Self {
            cells: Vec::new(),
            rests: Vec::new(),
            buckets: vec![Bucket::EMPTY; 8],
            terminator,
            seed,
            refused: 0,
            refused_bytes: 0,
            share: BudgetShare::default(),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share, plus
    /// `beside` bytes per name for the owner's data. The table must be empty.
    pub(crate) fn within(&mut self, room: &Room, beside: usize) {
        self.share = BudgetShare::new(&room.names, size_of::<Cell>() + beside);
    }

    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The names from `entry` on, in order of first appearance, and the rests of long ones.
    #[inline(always)]
    pub(crate) fn from(&self, entry: usize) -> (&[Cell], &[u8]) {
        (self.cells.get(entry..).unwrap_or_default(), &self.rests)
    }

    /// The series of a name, if it was admitted.
    #[inline(always)]
    pub(crate) fn id(&self, entry: usize) -> Result<SeriesId, NotAdmitted> {
        let id = self.cells[entry].id;
        if id < NotAdmitted::FIRST {
            return Ok(SeriesId(id));
        }
        Err(NotAdmitted::of(id))
    }

    /// Length of name `entry`, terminator included, if the window begins with it.
    #[inline(always)]
    pub(crate) fn begins(&self, entry: usize, window: &Window) -> Option<usize> {
        let cell = self.cells.get(entry)?;
        cell.begins(window, &self.rests).then_some(cell.length())
    }

    /// The entry of the name at the beginning of a window, if it is known. `length` includes the
    /// terminator; it is in [1, `LONGEST`].
    #[inline(always)]
    pub(crate) fn find_in(&self, window: &Window, hash: Hash, length: usize) -> Option<usize> {
        self.probe(hash, |names, entry| names.begins(entry, window) == Some(length))
    }

    /// The entry of a name, terminator not included.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.probe(self.hash(name), |names, entry| names.is(entry, name))
    }

    /// Whether name `entry` equals this one, terminator not included.
    #[inline(always)]
    pub(crate) fn is(&self, entry: usize, name: &[u8]) -> bool {
        self.cells.get(entry).is_some_and(|cell| cell.is(name, &self.rests))
    }

    /// The hash of a name, terminator not included.
    pub(crate) fn hash(&self, name: &[u8]) -> Hash {
        Hash::of(name, self.terminator, self.seed)
    }

    /// The hash of the name that a window begins with; `length` as for [`Self::find_in`].
    #[inline(always)]
    pub(crate) fn hash_in(&self, window: &Window, length: usize) -> Hash {
        Hash::in_window(window, length, self.terminator, self.seed)
    }

    /// Prefetches what [`Self::guess`] will access.
    #[inline(always)]
    pub(crate) fn expect(&self, hash: Hash) {
        if let Some(bucket) = self.buckets.get(hash.index() & (self.buckets.len() - 1)) {
            prefetch(bucket);
        }
    }

    /// The entry that a tag points to, or an arbitrary one if there is none; prefetches what
    /// [`Self::begins`] will access.
    #[inline(always)]
    pub(crate) fn guess(&self, hash: Hash) -> usize {
        let bucket = self.buckets.get(hash.index() & (self.buckets.len() - 1));
        let entry = bucket.map_or(NONE, |bucket| bucket.find(hash.tag())) as usize;
        if let Some(cell) = self.cells.get(entry) {
            prefetch(cell);
        }
        entry
    }

    #[inline(always)]
    fn probe(&self, hash: Hash, is_it: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        let mask = self.buckets.len() - 1;
        let mut at = hash.index() & mask;
        // Terminates, because the table is at most half full.
        loop {
            let bucket = &self.buckets[at];
            for (tag, entry) in bucket.tags.iter().zip(&bucket.entries) {
                let entry = *entry as usize;
                if *tag == hash.tag() && entry < self.cells.len() && is_it(self, entry) {
                    return Some(entry);
                }
            }
            if !bucket.is_full() {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether any further name would be remembered.
    pub(crate) fn has_room(&self) -> bool {
        !self.share.is_used_up()
            && self.rests.len() < u32::MAX as usize
            && self.refused < MAX_REFUSED
            && self.refused_bytes + LONGEST <= MAX_REFUSED_BYTES
    }

    /// Stores a new name with the sink's answer. `None`: there is no room, because too many names
    /// were refused, or because the shared memory is used up.
    pub(crate) fn insert(&mut self, name: &[u8], id: Result<SeriesId, NotAdmitted>) -> Option<usize> {
        let is_refused = id.is_err();
        if is_refused && (self.refused >= MAX_REFUSED || self.refused_bytes + name.len() > MAX_REFUSED_BYTES) {
            return None;
        }
        let entry = self.cells.len();
        let grows = 2 * (entry + 1) > 8 * self.buckets.len();
        if !self.reserve(name.len(), grows) {
            return None;
        }
        let id = id.map_or_else(NotAdmitted::stand_in, |id| id.0);
        let cell = Cell::new(name, self.terminator, id, &mut self.rests)?;
        if is_refused {
            self.refused += 1;
            self.refused_bytes += name.len();
        }
        if grows {
            self.grow();
        }
        self.cells.push(cell);
        let hash = Hash::of(name, self.terminator, self.seed);
        place(&mut self.buckets, hash, entry);
        Some(entry)
    }

    /// Takes the memory of one more name from the budget before it is allocated.
    fn reserve(&mut self, length: usize, grows: bool) -> bool {
        let rest = (length + 1).saturating_sub(INLINE);
        let cells = budget_share::grown(self.cells.capacity(), self.cells.len() + 1);
        let rests = budget_share::grown(self.rests.capacity(), self.rests.len() + rest);
        let buckets = self.buckets.len() << u32::from(grows);
        let fixed = rests + buckets * size_of::<Bucket>();
        if !self.share.reach(cells, fixed) {
            return false;
        }
        self.cells.reserve_exact(cells - self.cells.len());
        self.rests.reserve_exact(rests - self.rests.len());
        true
    }

    fn grow(&mut self) {
        self.buckets = vec![Bucket::EMPTY; 2 * self.buckets.len()];
        for (entry, cell) in self.cells.iter().enumerate() {
            let (head, tail) = cell.pieces(&self.rests);
            let hash = Hash::of(&[head, tail].concat(), self.terminator, self.seed);
            place(&mut self.buckets, hash, entry);
        }
    }
}

fn place(buckets: &mut [Bucket], hash: Hash, entry: usize) {
    let mask = buckets.len() - 1;
    let mut at = hash.index() & mask;
    while buckets[at].is_full() {
        at = (at + 1) & mask;
    }
    let bucket = &mut buckets[at];
    if let Some(free) = bucket.entries.iter().position(|entry| *entry == NONE) {
        bucket.entries[free] = entry as u32;
        bucket.tags[free] = hash.tag();
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names")
            .field("names", &self.len())
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

/// Number of bytes before the first that is `end` or below; `None` if there is none among the
/// first [`LONGEST`].
#[inline(always)]
pub(crate) fn find_end(window: &Window, end: u8) -> Option<usize> {
    find_end_from(window, 0, end)
}

/// The same search from `from` on, which is at most 48; the result counts from the beginning of
/// the window.
#[inline(always)]
pub(crate) fn find_end_from(window: &Window, from: usize, end: u8) -> Option<usize> {
    for start in (from..LONGEST).step_by(16) {
        let found = find_at_most(bytes16(window, start), end);
        if found < 16 {
            return Some(start + found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Budget;
    use crate::wire::number::WINDOW;

    fn window(text: &[u8]) -> Window {
        let mut window = [0xee; WINDOW];
        window[..text.len()].copy_from_slice(text);
        window
    }

    #[test]
    fn names_of_every_length_are_found_both_ways() {
        let mut names = Names::new(b' ', 7);
        let texts: Vec<Vec<u8>> = (1..300)
            .map(|length| vec![b'a' + (length % 26) as u8; length])
            .collect();
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(names.find(text), None);
            assert_eq!(names.insert(text, Ok(SeriesId(index as u32 + 10))), Some(index));
        }
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(names.find(text), Some(index));
            assert!(names.is(index, text) && !names.is(index, &text[1..]) && !names.is(index + 1, text));
            assert_eq!(names.id(index), Ok(SeriesId(index as u32 + 10)));
            if text.len() < LONGEST {
                let mut line = text.clone();
                line.push(b' ');
                let view = window(&line);
                let hash = names.hash_in(&view, line.len());
                assert_eq!(find_end(&view, b' '), Some(text.len()));
                assert_eq!(names.begins(index, &view), Some(line.len()));
                assert_eq!(names.find_in(&view, hash, line.len()), Some(index));
                names.expect(hash);
                assert!([index, NONE as usize].contains(&names.guess(hash)));
                for at in 0..line.len() {
                    let mut other = line.clone();
                    other[at] ^= 1;
                    let view = window(&other);
                    assert_eq!(names.begins(index, &view), None);
                    assert_eq!(names.find_in(&view, names.hash_in(&view, line.len()), line.len()), None);
                }
            }
        }
    }

    #[test]
    fn refused_names_are_remembered_up_to_a_bound() {
        let mut names = Names::new(b' ', 7);
        let why = NotAdmitted::NameBytes;
        let entry = names.insert(b"refused", Err(why)).unwrap();
        assert_eq!((names.find(b"refused"), names.id(entry)), (Some(entry), Err(why)));
        let mut remembered = 1;
        for index in 0..70_000_u32 {
            remembered += usize::from(names.insert(&index.to_le_bytes(), Err(why)).is_some());
        }
        assert_eq!(remembered, MAX_REFUSED);
        assert!(!names.has_room());
        assert!(names.insert(b"admitted", Ok(SeriesId(1))).is_some());
        assert_eq!(
            Names::new(b' ', 7).insert(&vec![b'x'; MAX_REFUSED_BYTES + 1], Err(why)),
            None
        );
    }

    /// Issue 15: names were bounded by their number, not by their bytes.
    #[test]
    fn long_names_share_a_bound_and_give_it_back() {
        const BYTES: usize = 1 << 20;
        let room = Room {
            names: Budget::new(BYTES),
            ..Room::default()
        };
        let mut tables: Vec<Names> = (0..4).map(|seed| Names::new(b' ', seed)).collect();
        for names in &mut tables {
            names.within(&room, 0);
        }
        let mut remembered = 0;
        for index in 0..400_usize {
            let name = format!("{index}{}", "x".repeat(30_000));
            remembered += usize::from(
                tables[index % 4]
                    .insert(name.as_bytes(), Ok(SeriesId(index as u32)))
                    .is_some(),
            );
        }
        let held: usize = tables.iter().map(|names| names.rests.capacity()).sum();
        assert!((4..BYTES / 30_000).contains(&remembered), "{remembered}");
        assert!(held <= BYTES && !tables[0].has_room(), "{held}");
        drop(tables);
        assert_eq!(room.names.left(), BYTES);
    }

    #[test]
    fn the_end_of_a_name_is_the_first_byte_at_or_below() {
        for end in 0..LONGEST {
            for byte in [0, 9, 10, 13, 31, 32] {
                let mut text = [0xff_u8; LONGEST + 2];
                text[end] = byte;
                text[end + 1] = 0;
                assert_eq!(find_end(&window(&text), b' '), Some(end));
            }
        }
        assert_eq!(find_end(&[b'!'; WINDOW], b' '), None);
    }
}
