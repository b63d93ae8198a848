//! Decodes numbers from bytes that may be damaged. Every method returns `None` if the bytes end
//! too early.

use crate::block::varint::unzigzag;

/// The bytes that have not been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Number of bytes left.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Seven bits per byte, lowest first; the top bit is set on all bytes but the last.
    #[inline]
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A varint of a zigzag-encoded number.
    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        self.varint().map(unzigzag)
    }

    pub(super) fn double(&mut self) -> Option<f64> {
        self.array().map(|bytes| f64::from_bits(u64::from_le_bytes(bytes)))
    }
}
