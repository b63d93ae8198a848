//! Numbers and slices out of bytes that may be damaged: cursors, fixed widths, integers of variable
//! length, and percent-encoded text.
//!
//! Nothing here panics on its input, except for [`varint::get`] and [`varint::get_signed`], which say
//! so. The format that uses it decides what the numbers mean and how an error is worded.

pub mod percent;
mod reader;
pub mod varint;

pub use reader::{BytesError, Fault, Reader};

/// Removes the first `N` bytes and returns them; `None` if there are fewer.
#[inline(always)]
pub fn cut<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

/// Removes the first `len` bytes and returns them; `None` if there are fewer.
#[inline(always)]
pub fn cut_slice<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

/// The `N` bytes from `at` on; `None` if there are fewer.
#[inline]
pub fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The little-endian number at `at`; `None` if the bytes end before.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// The little-endian number at `at`; `None` if the bytes end before.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_samples_are_removed_and_absent_ones_change_nothing() {
        let mut bytes = &[1, 2, 3, 4][..];
        assert_eq!(cut(&mut bytes), Some([1]));
        assert_eq!(cut_slice(&mut bytes, 2), Some(&[2, 3][..]));
        assert_eq!(cut::<2>(&mut bytes), None);
        assert_eq!(cut_slice(&mut bytes, 2), None);
        assert_eq!(bytes, [4]);
    }

    #[test]
    fn a_number_is_read_where_it_is_whole() {
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(u32_at(&bytes, 5), Some(0x0807_0605));
        assert_eq!(u64_at(&bytes, 1), Some(0x0807_0605_0403_0201));
        assert_eq!(array_at(&bytes, 7), Some([7, 8]));
        for at in [6, 9, 10, usize::MAX] {
            assert_eq!(u32_at(&bytes, at), None);
            assert_eq!(u64_at(&bytes, at), None);
        }
    }
}
