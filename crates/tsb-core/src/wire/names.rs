//! The names of a connection: what a text decoder knows of them.
//!
//! Senders repeat themselves: the name behind this one is most often the one that followed
//! it before, so the table keeps the names in the order of their first appearance, and a
//! decoder compares before it searches. Names in any other order are found by hash.
//!
//! It is *not* the catalog: it holds wire names as they came, and what the sink said.

use crate::series::SeriesId;
use crate::wire::number::{WINDOW, Window, load};

/// The longest name, terminator included, that is compared within a window.
pub(crate) const LONGEST: usize = 64;

/// Refused names that are remembered; of further ones the sink is asked again.
const MAX_REFUSED: usize = 65_536;

/// The bytes that refused names may take together.
const MAX_REFUSED_BYTES: usize = 4 << 20;

/// Stands for the id of a name that the sink did not admit.
const REFUSED: u32 = u32::MAX;

/// A free slot.
const FREE: Slot = Slot { tag: 0, entry: u32::MAX };

/// The names of one connection, each with its terminator behind it.
pub(crate) struct Names {
    /// The names in order, packed; behind them room to read too much.
    text: Vec<u8>,
    /// Name `i` is `text[ends[i]..ends[i + 1]]`.
    ends: Vec<u32>,
    /// What the sink said.
    ids: Vec<u32>,
    /// Open addressing, at most half full. A power of two long.
    slots: Vec<Slot>,
    terminator: u8,
    seed: u64,
    refused: usize,
    refused_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: u32,
    entry: u32,
}

/// The hash of a name with its terminator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hash(u64);

impl Names {
    /// An empty table. `terminator` ends a name on the wire; `seed` keeps strangers from
    /// choosing names that collide.
    pub(crate) fn new(terminator: u8, seed: u64) -> Self {
        Self {
            text: vec![0; WINDOW],
            ends: vec![0],
            ids: Vec::new(),
            slots: vec![FREE; 64],
            terminator,
            seed,
            refused: 0,
            refused_bytes: 0,
        }
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The series of a name; `None` when it was refused.
    #[inline(always)]
    pub(crate) fn id(&self, entry: usize) -> Option<SeriesId> {
        let id = self.ids[entry];
        (id != REFUSED).then_some(SeriesId(id))
    }

    /// The length of name `entry`, terminator included, when the window begins with it.
    #[inline(always)]
    pub(crate) fn matches(&self, entry: usize, window: &Window) -> Option<usize> {
        let &[start, end] = self.ends.get(entry..)?.first_chunk()?;
        let (start, length) = (start as usize, (end - start) as usize);
        let name = self.text.get(start..)?.first_chunk::<LONGEST>()?;
        same(name, window, length).then_some(length)
    }

    /// The entry of a name that a window begins with, when it is known.
    #[inline(always)]
    pub(crate) fn find_in(&self, window: &Window, length: usize) -> Option<usize> {
        self.probe(self.hash_in(window, length), |names, entry| names.matches(entry, window) == Some(length))
    }

    /// The entry of a name, terminator not included.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.probe(self.hash(name), |names, entry| names.text_of(entry) == name)
    }

    /// The hash of the first `length` bytes of a window: a name with its terminator.
    #[inline(always)]
    pub(crate) fn hash_in(&self, window: &Window, length: usize) -> Hash {
        if length > 32 {
            return self.hash(&window[..length.min(WINDOW) - 1]);
        }
        let keep = &KEEP[length];
        let words = [0, 1, 2, 3].map(|index| load(window, 8 * index) & keep[index]);
        Hash(hash32(words, self.seed, length))
    }

    fn hash(&self, name: &[u8]) -> Hash {
        let mut hash = self.seed;
        let mut rest = name;
        while rest.len() >= 32 {
            let (head, tail) = rest.split_at(32);
            hash = hash32(words_of(head), hash, 32);
            rest = tail;
        }
        let mut last = [0; 32];
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = self.terminator;
        Hash(hash32(words_of(&last), hash, rest.len() + 1))
    }

    /// The entry that the first slot for `hash` names, right or not: a guess that loads
    /// what [`Self::matches`] will need. Call it for many names before looking at one.
    #[inline(always)]
    pub(crate) fn guess(&self, hash: Hash) -> usize {
        let mask = self.slots.len() - 1;
        self.slots[hash.0 as usize & mask].entry as usize
    }

    #[inline(always)]
    fn probe(&self, hash: Hash, is_it: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        let (mask, tag) = (self.slots.len() - 1, hash.tag());
        let mut at = hash.0 as usize & mask;
        // Ends at a free slot: the table is at most half full.
        loop {
            let slot = self.slots[at];
            if slot.entry == FREE.entry {
                return None;
            }
            if slot.tag == tag && is_it(self, slot.entry as usize) {
                return Some(slot.entry as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether any further name would be remembered.
    pub(crate) fn has_room(&self) -> bool {
        self.text.len() + WINDOW < u32::MAX as usize
            && self.refused < MAX_REFUSED
            && self.refused_bytes + LONGEST <= MAX_REFUSED_BYTES
    }

    /// Remembers a new name and what the sink said of it. `None`: there is no room to
    /// remember it, as too many were refused.
    pub(crate) fn insert(&mut self, name: &[u8], id: Option<SeriesId>) -> Option<usize> {
        let used = self.text.len() - WINDOW;
        let end = u32::try_from(used + name.len() + 1).ok()?;
        if id.is_none() {
            if self.refused >= MAX_REFUSED || self.refused_bytes + name.len() > MAX_REFUSED_BYTES {
                return None;
            }
            self.refused += 1;
            self.refused_bytes += name.len();
        }
        if 2 * (self.ids.len() + 1) > self.slots.len() {
            self.grow();
        }
        let entry = self.ids.len();
        self.text.truncate(used);
        self.text.extend_from_slice(name);
        self.text.push(self.terminator);
        self.text.resize(end as usize + WINDOW, 0);
        self.ends.push(end);
        self.ids.push(id.map_or(REFUSED, |id| id.0));
        let hash = self.hash(name);
        self.place(hash, entry);
        Some(entry)
    }

    fn place(&mut self, hash: Hash, entry: usize) {
        let mask = self.slots.len() - 1;
        let mut at = hash.0 as usize & mask;
        while self.slots[at].entry != FREE.entry {
            at = (at + 1) & mask;
        }
        let entry = entry as u32;
        self.slots[at] = Slot { tag: hash.tag(), entry };
    }

    fn grow(&mut self) {
        self.slots = vec![FREE; 2 * self.slots.len()];
        for entry in 0..self.len() {
            let hash = self.hash(self.text_of(entry));
            self.place(hash, entry);
        }
    }

    /// The name without its terminator.
    fn text_of(&self, entry: usize) -> &[u8] {
        &self.text[self.ends[entry] as usize..self.ends[entry + 1] as usize - 1]
    }
}

impl Hash {
    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
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

/// Whether name and window agree in their first `length` bytes: two compares that may
/// overlap, no loop, for names of 16 to 64 bytes.
#[inline(always)]
fn same(name: &[u8; LONGEST], window: &Window, length: usize) -> bool {
    fn piece<const N: usize>(name: &[u8; LONGEST], window: &Window, at: usize) -> bool {
        name[at..at + N] == window[at..at + N]
    }
    match length {
        16..=32 => piece::<16>(name, window, 0) & piece::<16>(name, window, length - 16),
        33..=LONGEST => piece::<32>(name, window, 0) & piece::<32>(name, window, length - 32),
        8..16 => piece::<8>(name, window, 0) & piece::<8>(name, window, length - 8),
        _ => length < 8 && name[..length] == window[..length],
    }
}

/// How many bytes come before the first one that is `end` or below; `None` when that is
/// not among the first 64.
#[inline(always)]
pub(crate) fn find_end(window: &Window, end: u8) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let limit = ONES * u64::from(end + 1);
    for block in 0..LONGEST / 8 {
        let bytes = load(window, 8 * block);
        // The highest bit of each byte below the limit; a borrow can only spoil bytes
        // behind the first such byte.
        let below = bytes.wrapping_sub(limit) & !bytes & (ONES << 7);
        if below != 0 {
            return Some(8 * block + (below.trailing_zeros() / 8) as usize);
        }
    }
    None
}

fn words_of(bytes: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// Two folded multiplications. The constants are the fraction of pi.
#[inline(always)]
fn hash32(words: [u64; 4], seed: u64, length: usize) -> u64 {
    let first = fold(words[0] ^ seed, words[1] ^ 0x243f_6a88_85a3_08d3);
    let second = fold(
        words[2] ^ seed.rotate_left(32) ^ length as u64,
        words[3] ^ 0x1319_8a2e_0370_7344,
    );
    fold(first ^ 0xa409_3822_299f_31d0, second ^ 0x082e_fa98_ec4e_6c89)
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Masks that keep the first `n` of 32 bytes.
static KEEP: [[u64; 4]; 33] = {
    let mut masks = [[0; 4]; 33];
    let mut length = 0;
    while length <= 32 {
        let mut byte = 0;
        while byte < length {
            masks[length][byte / 8] |= 0xff << (8 * (byte % 8));
            byte += 1;
        }
        length += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &[u8]) -> Window {
        let mut window = [0xee; WINDOW];
        window[..text.len()].copy_from_slice(text);
        window
    }

    #[test]
    fn names_of_every_length_are_found_both_ways() {
        let mut names = Names::new(b' ', 7);
        let texts: Vec<Vec<u8>> = (1..200).map(|length| vec![b'a' + (length % 26) as u8; length]).collect();
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(names.find(text), None);
            assert_eq!(names.insert(text, Some(SeriesId(index as u32 + 10))), Some(index));
        }
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(names.find(text), Some(index));
            assert_eq!(names.id(index), Some(SeriesId(index as u32 + 10)));
            if text.len() < LONGEST {
                let mut line = text.clone();
                line.push(b' ');
                assert_eq!(find_end(&window(&line), b' '), Some(text.len()));
                assert_eq!(names.matches(index, &window(&line)), Some(line.len()));
                assert_eq!(names.find_in(&window(&line), line.len()), Some(index));
                for at in 0..line.len() {
                    let mut other = line.clone();
                    other[at] ^= 1;
                    assert_eq!(names.matches(index, &window(&other)), None);
                    assert_eq!(names.find_in(&window(&other), line.len()), None);
                }
            }
        }
    }

    #[test]
    fn refused_names_are_remembered_up_to_a_bound() {
        let mut names = Names::new(b' ', 7);
        let entry = names.insert(b"refused", None).unwrap();
        assert_eq!((names.find(b"refused"), names.id(entry)), (Some(entry), None));
        let mut remembered = 1;
        for index in 0..70_000_u32 {
            remembered += usize::from(names.insert(&index.to_le_bytes(), None).is_some());
        }
        assert_eq!(remembered, MAX_REFUSED);
        assert!(names.insert(b"admitted", Some(SeriesId(1))).is_some());
        assert_eq!(Names::new(b' ', 7).insert(&vec![b'x'; MAX_REFUSED_BYTES + 1], None), None);
    }

    #[test]
    fn the_end_of_a_name_is_the_first_byte_at_or_below() {
        for end in 0..64 {
            for byte in [0, 9, 10, 13, 31, 32] {
                let mut text = [0xff_u8; 70];
                text[end] = byte;
                text[end + 1] = 0;
                assert_eq!(find_end(&window(&text), b' '), Some(end));
            }
        }
        assert_eq!(find_end(&[b'!'; WINDOW], b' '), None);
    }
}
