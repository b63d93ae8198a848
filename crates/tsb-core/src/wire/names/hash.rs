//! The hash of a name: folded multiplications over 32 bytes at a time.

use crate::wire::number::{WINDOW, Window};

/// The hash of a name with its terminator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hash(u64);

impl Hash {
    /// The hash of a name, to which the terminator is added.
    pub(super) fn of(name: &[u8], terminator: u8, seed: u64) -> Self {
        let (blocks, last) = name.as_chunks::<32>();
        let state = blocks.iter().fold(seed, |state, block| mix(words(block), state, 32));
        let mut padded = [0; 32];
        padded[..last.len()].copy_from_slice(last);
        padded[last.len()] = terminator;
        Self(mix(words(&padded), state, last.len() + 1))
    }

    /// The hash of the first `length` bytes of a window, which include the terminator; `length` is
    /// in [1, `WINDOW`].
    #[inline(always)]
    pub(super) fn in_window(window: &Window, length: usize, terminator: u8, seed: u64) -> Self {
        let (blocks, _) = window.as_chunks::<32>();
        match length {
            0..=32 => Self(mix(kept(&blocks[0], length), seed, length)),
            33..=64 => {
                let state = mix(words(&blocks[0]), seed, 32);
                Self(mix(kept(&blocks[1], length - 32), state, length - 32))
            }
            _ => Self::of(&window[..length.min(WINDOW) - 1], terminator, seed),
        }
    }

    /// The part that selects the position in a table.
    #[inline(always)]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// The part that distinguishes names at the same position.
    #[inline(always)]
    pub(super) fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[inline(always)]
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    [0, 1, 2, 3].map(|index| u64::from_le_bytes(words[index]))
}

/// The first `count` bytes, at most 32, padded with zeros.
#[inline(always)]
fn kept(bytes: &[u8; 32], count: usize) -> [u64; 4] {
    let mut text = words(bytes);
    for (word, keep) in text.iter_mut().zip(&KEEP[count % KEEP.len()]) {
        *word &= keep;
    }
    text
}

/// The constants are the fractional digits of pi.
#[inline(always)]
fn mix(words: [u64; 4], seed: u64, length: usize) -> u64 {
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

    #[test]
    fn a_window_hashes_as_the_name_in_it() {
        for length in 1..WINDOW {
            let name: Vec<u8> = (1..length).map(|index| b'a' + (index % 26) as u8).collect();
            let mut window = [0xee; WINDOW];
            window[..length - 1].copy_from_slice(&name);
            window[length - 1] = b' ';
            let hash = Hash::of(&name, b' ', 3);
            assert_eq!(Hash::in_window(&window, length, b' ', 3), hash);
            assert_ne!(Hash::of(&name, b' ', 4), hash);
        }
    }

    #[test]
    fn names_that_differ_little_spread_over_a_table() {
        let mut slots = vec![0_u32; 1 << 16];
        for index in 0..1 << 15 {
            let name = format!("kstat.host{:04}.cpu.{}.nsec", index / 64, index % 64);
            slots[Hash::of(name.as_bytes(), b' ', 1).index() % (1 << 16)] += 1;
        }
        // As good as random: with a load of a half 13 in a slot do not happen.
        assert!(slots.iter().all(|names| *names < 13));
        let taken = slots.iter().filter(|names| **names > 0).count();
        assert!((24_000..28_000).contains(&taken), "{taken}");
    }
}
