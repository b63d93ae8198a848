//! A small mutator without a library: seeded, driven by a corpus.
//!
//! It has no coverage feedback. It applies what typically breaks parsers: cuts, repetitions,
//! splices, flipped bits, extreme numbers in text and in binary, and significant bytes.

use std::io;
use std::path::Path;

/// Length limit of inputs.
const LONGEST: usize = 64 << 10;

/// Texts that often break parsers.
const WORDS: [&[u8]; 22] = [
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"\0",
    b"-1",
    b"-0",
    b"nan",
    b"inf",
    b"1e309",
    b"4.9e-324",
    b"1_0",
    b"9007199254740993",
    b"99999999999999999999",
    b"0.1234567890123456789",
    b"\xff",
    "\u{a0}".as_bytes(),
    "\u{2028}".as_bytes(),
    b";",
    b"=",
    b"tsb\x01",
    b"\xff\xff\xff\xff",
];

/// Generates inputs from a corpus; the same seed gives the same inputs.
#[derive(Debug)]
pub(crate) struct Mutator {
    state: u64,
    corpus: Vec<Vec<u8>>,
}

/// The files of a directory, in the order of their names.
///
/// # Errors
/// If it cannot be read, or is empty.
pub(crate) fn corpus(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    let entries = std::fs::read_dir(directory)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    if paths.is_empty() {
        let what = format!("{} holds no corpus", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    paths.iter().map(std::fs::read).collect()
}

impl Mutator {
    /// A mutator; the corpus has at least one input.
    pub(crate) fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { state: seed, corpus }
    }

    /// An input of the corpus with a few changes.
    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick().clone();
        for _ in 0..1 << self.below(5) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    /// The input with a piece removed.
    pub(crate) fn smaller(&mut self, input: &[u8]) -> Vec<u8> {
        let mut smaller = input.to_vec();
        let (start, end) = self.piece(&smaller);
        smaller.drain(start..end);
        smaller
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let (start, end) = self.piece(input);
        match self.below(9) {
            0 => drop(input.drain(start..end)),
            1 => {
                let copy = input[start..end].to_vec();
                input.splice(at..at, copy);
            }
            2 => {
                let other = self.pick().clone();
                let (from, to) = self.piece(&other);
                input.splice(at..at, other[from..to].iter().copied());
            }
            3 => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(start..end.min(start + self.below(5)), word.iter().copied());
            }
            4 => input.truncate(at),
            5 => input[start..end].fill(b'x'),
            6 => {
                let number = [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, u64::MAX][self.below(7)].to_le_bytes();
                let width = [1, 2, 4, 8][self.below(4)];
                for (byte, new) in input.iter_mut().skip(at).zip(&number[..width]) {
                    *byte = *new;
                }
            }
            7 => input
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte = byte.wrapping_add(1)),
            _ => {
                let bit = 1 << self.below(8);
                input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
            }
        }
    }

    /// A piece of an input, usually a short one.
    fn piece(&mut self, input: &[u8]) -> (usize, usize) {
        let start = self.below(input.len() + 1);
        let most = (input.len() - start).min(1 << self.below(12));
        (start, start + self.below(most + 1))
    }

    fn pick(&mut self) -> &Vec<u8> {
        let index = self.below(self.corpus.len());
        &self.corpus[index]
    }

    /// SplitMix64.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}
