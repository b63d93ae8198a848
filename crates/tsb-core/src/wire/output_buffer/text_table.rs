//! Packed names, each followed by enough bytes for copies of fixed length.

use super::OVERSHOOT;
use crate::wire::simd::prefetch;

/// Immutable texts, stored one after the other.
#[derive(Debug)]
pub(crate) struct TextTable {
    // Invariant: ends with `OVERSHOOT` zeros.
    bytes: Vec<u8>,
    // Invariant: rising; one more than there are texts.
    starts: Vec<u32>,
}

/// One text, and the bytes that follow it in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    // Invariant: at least length + `OVERSHOOT` long.
    pub(super) bytes: &'a [u8],
    pub(super) length: usize,
}

impl TextTable {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; OVERSHOOT],
            starts: vec![0],
        }
    }

    /// Adds a text; `None` if the total would exceed 4 GiB.
    pub(crate) fn push(&mut self, text: &[u8]) -> Option<()> {
        self.bytes.truncate(self.bytes.len() - OVERSHOOT);
        self.bytes.extend_from_slice(text);
        let end = u32::try_from(self.bytes.len()).ok();
        self.bytes.resize(self.bytes.len() + OVERSHOOT, 0);
        self.starts.push(end?);
        Some(())
    }

    /// Number of texts.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Text `index`.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<Text<'_>> {
        let (start, end) = (*self.starts.get(index)?, *self.starts.get(index + 1)?);
        let bytes = self.bytes.get(start as usize..)?;
        let length = (end - start) as usize;
        Some(Text { bytes, length })
    }

    /// Prefetches the first and the last cache line of text `index`.
    #[inline(always)]
    pub(crate) fn expect(&self, index: usize) {
        if let Some(text) = self.get(index) {
            prefetch(&text.bytes[0]);
            prefetch(&text.bytes[text.length]);
        }
    }
}

impl<'a> Text<'a> {
    /// Its bytes.
    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        &self.bytes[..self.length]
    }
}
