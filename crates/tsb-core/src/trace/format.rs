//! The outer format of a trace file: file header, block headers, variable-length integers.
//!
//! `docs/formats/trace.md` specifies the same; change both together. The content of a block of
//! samples is in `columns`.

use super::error::TraceDefect;

/// The first eight bytes of every trace file. The high bit and the line ends reveal damage by a
/// text-mode copy.
pub const MAGIC: [u8; 8] = *b"\x89TSBT\r\n\x1a";

/// The version that this build writes, and the newest that it reads.
pub const VERSION: u16 = 1;

/// Bytes of the file header: magic, version, reserved, checksum.
pub(crate) const FILE_HEADER_BYTES: usize = 16;

/// Bytes of a block header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 16;

/// Maximum payload of a block. A reader holds one at a time.
pub(crate) const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// Maximum number of samples in a block: limits the memory that a small hostile block can require.
pub(crate) const MAX_BLOCK_SAMPLES: u64 = 1 << 22;

/// Longest name or label, in bytes.
pub(crate) const MAX_TEXT_BYTES: u64 = 4096;

/// Most labels of one series.
pub(crate) const MAX_LABELS: u64 = 64;

/// The largest integer that an f64 represents exactly.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// The type of a block. A reader may skip unknown types from [`OPTIONAL_KINDS`] on; below that, an
/// unknown type is damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Note,
    Series,
    Samples,
    End,
    Optional,
}

/// The first type that a reader may skip.
pub(crate) const OPTIONAL_KINDS: u8 = 128;

impl Kind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Note => 1,
            Self::Series => 2,
            Self::Samples => 3,
            Self::End => 4,
            Self::Optional => OPTIONAL_KINDS,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Note),
            2 => Some(Self::Series),
            3 => Some(Self::Samples),
            4 => Some(Self::End),
            OPTIONAL_KINDS.. => Some(Self::Optional),
            _ => None,
        }
    }
}

/// A validated block header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockHeader {
    pub(crate) kind: Kind,
    pub(crate) length: u32,
    pub(crate) checksum: u32,
}

/// The file header of the version that is written.
pub(crate) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Validates a file header; `bytes` may be too short.
pub(crate) fn check_file_header(bytes: &[u8]) -> Result<(), TraceDefect> {
    if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
        return Err(TraceDefect::Foreign {
            what: "not a tsb trace: it does not begin with the magic bytes",
        });
    }
    let Some(header) = bytes.first_chunk::<FILE_HEADER_BYTES>() else {
        return Err(damaged(bytes.len() as u64, "the file ends within its header"));
    };
    if crc32fast::hash(&header[..12]) != le_u32(&header[12..]) {
        return Err(damaged(8, "the checksum of the file header does not match"));
    }
    let found = u16::from_le_bytes([header[8], header[9]]);
    if found > VERSION {
        return Err(TraceDefect::Newer {
            found,
            supported: VERSION,
        });
    }
    if found == 0 {
        return Err(damaged(8, "there is no format version 0"));
    }
    Ok(())
}

/// The header of block `number` with this payload.
pub(crate) fn block_header(kind: Kind, number: u64, payload: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
    let mut header = [0; BLOCK_HEADER_BYTES];
    header[0] = kind.code();
    header[2..4].copy_from_slice(&(number as u16).to_le_bytes());
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..12].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let checksum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Validates the header of block `number`, which begins at `offset`.
pub(crate) fn check_block_header(
    header: &[u8; BLOCK_HEADER_BYTES],
    number: u64,
    offset: u64,
) -> Result<BlockHeader, TraceDefect> {
    if crc32fast::hash(&header[..12]) != le_u32(&header[12..]) {
        return Err(damaged(offset, "the checksum of a block header does not match"));
    }
    if u16::from_le_bytes([header[2], header[3]]) != number as u16 {
        return Err(damaged(offset, "a block is missing, doubled or out of order"));
    }
    let Some(kind) = Kind::from_code(header[0]) else {
        return Err(damaged(offset, "a block of unknown kind"));
    };
    let length = le_u32(&header[4..8]);
    if length > MAX_BLOCK_BYTES {
        return Err(TraceDefect::TooMuch {
            offset,
            what: "bytes in one block",
            limit: MAX_BLOCK_BYTES.into(),
        });
    }
    Ok(BlockHeader {
        kind,
        length,
        checksum: le_u32(&header[8..12]),
    })
}

pub(crate) fn damaged(offset: u64, what: &'static str) -> TraceDefect {
    TraceDefect::Damaged { offset, what }
}

fn le_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

/// Appends an unsigned integer, seven bits per byte, least significant first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps signed to unsigned so that small magnitudes stay small: 0, -1, 1, -2, ...
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// A cursor over the payload of one block. Every read is checked.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    // Offset of `bytes` in the file.
    base: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base }
    }

    /// The cursor's offset in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn damaged(&self, what: &'static str) -> TraceDefect {
        damaged(self.offset(), what)
    }

    pub(crate) fn too_much(&self, what: &'static str, limit: u64) -> TraceDefect {
        TraceDefect::TooMuch {
            offset: self.offset(),
            what,
            limit,
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], TraceDefect> {
        let rest = &self.bytes[self.at..];
        if count > rest.len() {
            return Err(self.damaged("a block ends within an entry"));
        }
        self.at += count;
        Ok(&rest[..count])
    }

    pub(crate) fn byte(&mut self) -> Result<u8, TraceDefect> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn varint(&mut self) -> Result<u64, TraceDefect> {
        let mut value = 0_u64;
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
        Err(self.damaged("an integer of more than 64 bits"))
    }

    /// An integer of at most `limit`.
    pub(crate) fn count(&mut self, what: &'static str, limit: u64) -> Result<usize, TraceDefect> {
        let value = self.varint()?;
        if value > limit {
            return Err(self.too_much(what, limit));
        }
        Ok(value as usize)
    }

    pub(crate) fn bits64(&mut self) -> Result<u64, TraceDefect> {
        let bytes = self.take(8)?;
        Ok(bytes.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight)))
    }

    /// A length, then this number of bytes of UTF-8.
    pub(crate) fn text(&mut self) -> Result<&'a str, TraceDefect> {
        let length = self.count("bytes in one name", MAX_TEXT_BYTES)?;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("a name that is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_come_back(values in proptest::collection::vec(any::<i64>(), 0..50)) {
            let mut bytes = Vec::new();
            for &value in &values {
                put_varint(&mut bytes, zigzag(value));
            }
            let mut cursor = Cursor::new(&bytes, 0);
            for &value in &values {
                prop_assert_eq!(unzigzag(cursor.varint().unwrap()), value);
            }
            prop_assert!(cursor.is_at_end());
        }
    }

    #[test]
    fn an_integer_of_too_many_bits_is_refused() {
        let mut longest = Vec::new();
        put_varint(&mut longest, u64::MAX);
        assert_eq!(longest.len(), 10);
        assert_eq!(Cursor::new(&longest, 0).varint().unwrap(), u64::MAX);
        longest[9] = 2;
        let error = Cursor::new(&longest, 5).varint().unwrap_err();
        assert!(error.to_string().contains("64 bits"), "{error}");
        assert!(Cursor::new(&[0x80; 11], 0).varint().is_err());
        assert!(Cursor::new(&[0x80], 0).varint().is_err());
    }
}
