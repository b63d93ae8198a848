//! A name with its terminator, in one cache line.

use crate::wire::number::{Window, bytes16};
use crate::wire::simd::{Bytes16, same16};

/// Number of bytes of a name, terminator included, that are stored in the cell itself.
pub(crate) const INLINE: usize = 54;

/// One name of a table, exactly one cache line long, so that a lookup costs one cache miss.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Cell {
    /// The name and its terminator, or the beginning of it, padded with zeros.
    pub(crate) text: [u8; INLINE],
    /// Length of the name with its terminator, in bytes.
    length: u16,
    /// A value that the table's owner stores with the name.
    pub(crate) id: u32,
    /// Offset of the rest of a longer name in a separate text.
    rest: u32,
}

impl Cell {
    /// A cell for `name` and its terminator; the part that does not fit is appended to `rests`.
    /// `None` if the name is longer than 65,534 bytes, or the rests than 4 GiB.
    pub(crate) fn new(name: &[u8], terminator: u8, id: u32, rests: &mut Vec<u8>) -> Option<Self> {
        let length = u16::try_from(name.len() + 1).ok()?;
        let rest = u32::try_from(rests.len()).ok()?;
        let mut text = [0; INLINE];
        for (to, from) in text.iter_mut().zip(name.iter().chain([&terminator])) {
            *to = *from;
        }
        if name.len() >= INLINE {
            rests.extend_from_slice(&name[INLINE..]);
            rests.push(terminator);
        }
        Some(Self { text, length, id, rest })
    }

    /// The length of the name with its terminator, in bytes.
    #[inline(always)]
    pub(crate) fn length(&self) -> usize {
        usize::from(self.length)
    }

    /// The name without its terminator, in two pieces.
    pub(crate) fn pieces<'a>(&'a self, rests: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let length = self.length() - 1;
        let inline = length.min(INLINE);
        let start = self.rest as usize;
        (&self.text[..inline], &rests[start..start + length - inline])
    }

    /// Whether the window begins with the name and its terminator.
    #[inline(always)]
    pub(crate) fn begins(&self, window: &Window, rests: &[u8]) -> bool {
        // Comparisons that may overlap, without a loop, for names of 15 to 53 bytes.
        match self.length() {
            length @ 16..=32 => self.same(window, 0) & self.same(window, length - 16),
            length @ 33..=INLINE => {
                self.same(window, 0)
                    & self.same(window, 16)
                    & self.same(window, length - 32)
                    & self.same(window, length - 16)
            }
            length @ 0..16 => same16(self.bytes16(0), bytes16(window, 0), length),
            length => self.begins_long(window, length, rests),
        }
    }

    /// Whether the name equals this one, terminator not included.
    #[inline(always)]
    pub(crate) fn is(&self, name: &[u8], rests: &[u8]) -> bool {
        if name.len() + 1 != self.length() {
            return false;
        }
        // As above: comparisons that may overlap, without a loop.
        match name.len() {
            length @ 16..=32 => self.agrees(name, 0) & self.agrees(name, length - 16),
            length @ 33..INLINE => {
                self.agrees(name, 0)
                    & self.agrees(name, 16)
                    & self.agrees(name, length - 32)
                    & self.agrees(name, length - 16)
            }
            _ => {
                let (head, tail) = self.pieces(rests);
                name.strip_prefix(head) == Some(tail)
            }
        }
    }

    #[inline(always)]
    fn agrees(&self, name: &[u8], at: usize) -> bool {
        name.get(at..).and_then(<[u8]>::first_chunk) == Some(self.bytes16(at))
    }

    #[inline(always)]
    fn same(&self, window: &Window, at: usize) -> bool {
        self.bytes16(at) == bytes16(window, at)
    }

    #[inline(always)]
    fn bytes16(&self, at: usize) -> &Bytes16 {
        self.text[at..].first_chunk().unwrap_or(&[0; 16])
    }

    #[inline(never)]
    fn begins_long(&self, window: &Window, length: usize, rests: &[u8]) -> bool {
        let start = self.rest as usize;
        let rest = &rests[start..start + length - INLINE];
        window[..INLINE] == self.text && window.get(INLINE..length) == Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::number::WINDOW;

    #[test]
    fn a_cell_is_a_cache_line() {
        assert_eq!((size_of::<Cell>(), align_of::<Cell>()), (64, 64));
    }

    #[test]
    fn a_name_of_any_length_is_compared_to_its_last_byte() {
        for length in 0..WINDOW {
            let name: Vec<u8> = (0..length).map(|index| b'a' + (index % 26) as u8).collect();
            let mut rests = b"other".to_vec();
            let cell = Cell::new(&name, b' ', 7, &mut rests).unwrap();
            let (head, tail) = cell.pieces(&rests);
            assert_eq!([head, tail].concat(), name);
            let mut window = [0xee; WINDOW];
            window[..length].copy_from_slice(&name);
            window[length] = b' ';
            assert!(cell.begins(&window, &rests), "{length}");
            assert!(
                cell.is(&name, &rests) && !cell.is(&window[..=length], &rests),
                "{length}"
            );
            for at in 0..=length {
                window[at] ^= 1;
                assert!(!cell.begins(&window, &rests), "{length}, {at}");
                assert_eq!(cell.is(&window[..length], &rests), at == length, "{length}, {at}");
                window[at] ^= 1;
            }
        }
        assert!(Cell::new(&vec![b'x'; 65_535], b' ', 7, &mut Vec::new()).is_none());
    }
}
