//! The frame: a header of 24 bytes and a body.

use crate::wire::MAX_RECORD;

/// "tsb" and the version of the protocol.
pub(super) const MAGIC: [u8; 4] = *b"tsb\x01";

/// The length of the header, in bytes.
pub(super) const HEADER: usize = 24;

/// The longest body, in bytes.
pub(super) const MAX_BODY: usize = MAX_RECORD - HEADER;

/// The length of what stands before the columns of a sample frame, in bytes.
pub(super) const PREFIX: usize = 16;

/// A frame of keys.
pub(super) const ANNOUNCE: u8 = 1;

/// A frame of samples.
pub(super) const SAMPLES: u8 = 2;

/// In the shape of a sample frame: it has a column of ids.
pub(super) const IDS: u8 = 1;

/// In the shape of a sample frame: it has a column of timestamps.
pub(super) const TIMES: u8 = 2;

/// Where the checksum stands in the header.
const CHECKSUM: usize = 20;

/// What a header says, besides magic and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) sequence: u64,
    pub(super) kind: u8,
    pub(super) shape: u8,
}

/// Writes the header before the body, which is already in place behind 24 free bytes.
pub(super) fn seal(frame: &mut [u8], kind: u8, shape: u8, sequence: u64) {
    let length = (frame.len() - HEADER) as u32;
    frame[..4].copy_from_slice(&MAGIC);
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&sequence.to_le_bytes());
    frame[16..CHECKSUM].copy_from_slice(&[kind, shape, 0, 0]);
    let sum = checksum(frame);
    frame[CHECKSUM..HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// CRC-32 (IEEE 802.3) of the frame without its checksum.
fn checksum(frame: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&frame[..CHECKSUM]);
    sum.update(&frame[HEADER..]);
    sum.finalize()
}

/// Reads the header that `bytes` begin with. `Ok(None)`: more bytes are needed.
///
/// # Errors
/// The stream is not of this protocol, or damaged: where the next frame begins is unknown.
pub(super) fn open(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
    let have = bytes.len().min(MAGIC.len());
    if bytes[..have] != MAGIC[..have] {
        return Err("a frame does not begin with the magic of version 1");
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32_at(header, 4) as usize;
    if length > MAX_BODY {
        return Err("a frame is longer than 64 KiB");
    }
    let Some(frame) = bytes.get(..HEADER + length) else {
        return Ok(None);
    };
    if checksum(frame) != u32_at(header, CHECKSUM) {
        return Err("a frame's checksum is wrong");
    }
    Ok(Some(Header {
        length,
        sequence: u64_at(header, 8),
        kind: header[16],
        shape: header[17],
    }))
}

/// Four bytes as a number. The caller has checked that they are there.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// Eight bytes as a number. The caller has checked that they are there.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
