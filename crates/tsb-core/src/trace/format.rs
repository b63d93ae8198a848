//! The outer format of tsb's own trace files (`.tsbtrace`): file header, block headers, counts and
//! texts. `open` lists the formats of other programs.
//!
//! `docs/formats/trace.md` specifies the same; change both together. The content of a block of
//! samples is in `columns`.

use super::error::TraceDefect;
use crate::bytes::{BytesError, Fault, Reader, u32_at};

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
pub(crate) enum BlockKind {
    Note,
    Series,
    Samples,
    End,
    Optional,
}

/// The first type that a reader may skip.
pub(crate) const OPTIONAL_KINDS: u8 = 128;

impl BlockKind {
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
    pub(crate) kind: BlockKind,
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
    if u32_at(header, 12) != Some(crc32fast::hash(&header[..12])) {
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
pub(crate) fn block_header(kind: BlockKind, number: u64, payload: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
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
    let mut fields = Reader::based(header, offset);
    let [code, _reserved] = fields.array()?;
    let (found, length, checksum) = (fields.u16()?, fields.u32()?, fields.u32()?);
    if fields.u32()? != crc32fast::hash(&header[..12]) {
        return Err(damaged(offset, "the checksum of a block header does not match"));
    }
    if found != number as u16 {
        return Err(damaged(offset, "a block is missing, doubled or out of order"));
    }
    let Some(kind) = BlockKind::from_code(code) else {
        return Err(damaged(offset, "a block of unknown kind"));
    };
    if length > MAX_BLOCK_BYTES {
        return Err(TraceDefect::TooMuch {
            offset,
            what: "bytes in one block",
            limit: MAX_BLOCK_BYTES.into(),
        });
    }
    Ok(BlockHeader { kind, length, checksum })
}

pub(crate) fn damaged(offset: u64, what: &'static str) -> TraceDefect {
    TraceDefect::Damaged { offset, what }
}

pub(crate) fn too_much(payload: &Reader<'_>, what: &'static str, limit: u64) -> TraceDefect {
    TraceDefect::TooMuch {
        offset: payload.offset(),
        what,
        limit,
    }
}

impl From<BytesError> for TraceDefect {
    fn from(error: BytesError) -> Self {
        let what = match error.fault {
            Fault::Ended => "a block ends within an entry",
            Fault::TooLarge => "an integer of more than 64 bits",
            Fault::Invalid => "an entry that is invalid",
        };
        damaged(error.offset, what)
    }
}

/// Reads an integer of at most `limit`.
pub(crate) fn read_count(payload: &mut Reader<'_>, what: &'static str, limit: u64) -> Result<usize, TraceDefect> {
    let value = payload.varint()?;
    if value > limit {
        return Err(too_much(payload, what, limit));
    }
    Ok(value as usize)
}

/// Reads a length, then this number of bytes of UTF-8.
pub(crate) fn read_text<'a>(payload: &mut Reader<'a>) -> Result<&'a str, TraceDefect> {
    let length = read_count(payload, "bytes in one name", MAX_TEXT_BYTES)?;
    let bytes = payload.take(length)?;
    std::str::from_utf8(bytes).map_err(|_| damaged(payload.offset(), "a name that is not UTF-8"))
}
