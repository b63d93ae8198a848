//! A cursor over bytes that may be damaged: every read is checked, and an error says where.

use std::fmt;

use super::varint::unzigzag;
use super::{cut, cut_slice};

/// What is wrong with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They end within a value.
    Ended,
    /// An integer has more bits than its type.
    TooLarge,
    /// A value is none that the format has.
    Invalid,
}

/// Bytes that cannot be read, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesError {
    /// The position of the reader.
    pub offset: u64,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for BytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            Fault::Ended => "the bytes end within a value",
            Fault::TooLarge => "an integer has too many bits",
            Fault::Invalid => "a value is invalid",
        };
        write!(f, "{what}, at byte {}", self.offset)
    }
}

impl std::error::Error for BytesError {}

/// The bytes that have not been read, and their position.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    // The position behind the last byte; so a read changes one slice and nothing else.
    end: u64,
}

impl<'a> Reader<'a> {
    /// Reads from the beginning.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::based(bytes, 0)
    }

    /// Reads bytes that begin at position `base` of a larger whole, such as a file; offsets count
    /// from its start.
    #[inline]
    pub fn based(bytes: &'a [u8], base: u64) -> Self {
        Self {
            rest: bytes,
            end: base + bytes.len() as u64,
        }
    }

    /// The bytes that have not been read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The position of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    /// An error at the current position.
    #[cold]
    pub fn error(&self, fault: Fault) -> BytesError {
        BytesError {
            offset: self.offset(),
            fault,
        }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// There are fewer; none is consumed.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], BytesError> {
        cut_slice(&mut self.rest, len).ok_or_else(|| self.error(Fault::Ended))
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer; none is consumed.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], BytesError> {
        cut(&mut self.rest).ok_or_else(|| self.error(Fault::Ended))
    }

    /// The next byte.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, BytesError> {
        self.array().map(|[byte]| byte)
    }

    /// A little-endian number of two bytes.
    ///
    /// # Errors
    /// The bytes end too early.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, BytesError> {
        self.array().map(u16::from_le_bytes)
    }

    /// A little-endian number of four bytes.
    ///
    /// # Errors
    /// The bytes end too early.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, BytesError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A little-endian number of eight bytes.
    ///
    /// # Errors
    /// The bytes end too early.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, BytesError> {
        self.array().map(u64::from_le_bytes)
    }

    /// The bits of a float, little-endian.
    ///
    /// # Errors
    /// The bytes end too early.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, BytesError> {
        self.u64().map(f64::from_bits)
    }

    /// An integer of variable length: see [`varint`](super::varint).
    ///
    /// # Errors
    /// The bytes end within it, or it has more than 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, BytesError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(Fault::TooLarge))
    }

    /// An integer of variable length that fits `T`.
    ///
    /// # Errors
    /// The bytes end within it, or it has too many bits.
    #[inline]
    pub fn varint_as<T: TryFrom<u64>>(&mut self) -> Result<T, BytesError> {
        T::try_from(self.varint()?).map_err(|_| self.error(Fault::TooLarge))
    }

    /// A signed integer of variable length, mapped by [`zigzag`](super::varint::zigzag).
    ///
    /// # Errors
    /// The bytes end within it, or it has more than 64 bits.
    #[inline]
    pub fn signed(&mut self) -> Result<i64, BytesError> {
        self.varint().map(unzigzag)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::varint;
    use super::*;

    proptest! {
        #[test]
        fn integers_come_back(values in proptest::collection::vec(any::<i64>(), 0..50)) {
            let mut bytes = Vec::new();
            for &value in &values {
                varint::put_signed(&mut bytes, value);
            }
            let mut reader = Reader::new(&bytes);
            for &value in &values {
                prop_assert_eq!(reader.signed(), Ok(value));
            }
            prop_assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn an_integer_of_too_many_bits_is_refused() {
        let error = |bytes: &[u8]| Reader::based(bytes, 5).varint().unwrap_err();
        let (offset, fault) = (15, Fault::TooLarge);
        let mut longest = Vec::new();
        varint::put(&mut longest, u64::MAX);
        assert_eq!(longest.len(), 10);
        assert_eq!(Reader::new(&longest).varint(), Ok(u64::MAX));
        longest[9] = 2;
        assert_eq!(error(&longest), BytesError { offset, fault });
        assert_eq!(error(&[0x80; 11]), BytesError { offset, fault });
        let (offset, fault) = (6, Fault::Ended);
        assert_eq!(error(&[0x80]), BytesError { offset, fault });
        assert_eq!(Reader::new(&[0xff, 1]).varint_as(), Ok(255_u8));
        assert_eq!(
            Reader::new(&[0x80, 2]).varint_as::<u8>().unwrap_err().fault,
            Fault::TooLarge
        );
    }

    #[test]
    fn fixed_widths_are_little_endian_and_a_read_that_fails_consumes_nothing() {
        let bytes = [1, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 9];
        let mut reader = Reader::based(&bytes, 100);
        assert_eq!(reader.byte(), Ok(1));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.u32(), Ok(3));
        assert_eq!(reader.f64(), Ok(1.5));
        let error = reader.u64().unwrap_err();
        assert_eq!((error.offset, error.fault), (115, Fault::Ended));
        assert_eq!(error.to_string(), "the bytes end within a value, at byte 115");
        assert_eq!(reader.take(2).unwrap_err(), error);
        assert_eq!(reader.take(1), Ok(&[9][..]));
        assert_eq!((reader.offset(), reader.rest().len()), (116, 0));
    }
}
