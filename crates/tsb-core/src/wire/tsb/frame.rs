//! The frame: a header of 24 bytes and a body.

use crate::bytes::{u32_at, u64_at};
use crate::wire::MAX_RECORD;

/// "tsb" and the version of the protocol over a stream.
pub(super) const STREAM: [u8; 4] = *b"tsb\x01";

/// "tsb" and the version of the protocol over datagrams.
pub(super) const DATAGRAM: [u8; 4] = *b"tsb\x02";

/// The length of the header, in bytes.
pub(super) const HEADER: usize = 24;

/// The longest body, in bytes.
pub(super) const MAX_BODY: usize = MAX_RECORD - HEADER;

/// Length of the fields before the columns of a sample frame, in bytes.
pub(super) const PREFIX: usize = 16;

/// A frame of keys.
pub(super) const ANNOUNCE: u8 = 1;

/// A frame of samples.
pub(super) const SAMPLES: u8 = 2;

/// A frame that announces the end of the data; only in datagrams.
pub(super) const END: u8 = 3;

/// Flag in the shape of a sample frame: it has a column of ids.
pub(super) const IDS: u8 = 1;

/// Flag in the shape of a sample frame: it has a column of timestamps.
pub(super) const TIMES: u8 = 2;

/// Start of the bytes that the checksum covers, up to the end of the frame. The checksum itself
/// directly precedes them, so that they are contiguous.
const COVERED: usize = 8;

/// The fields of a header besides magic and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) shape: u8,
    /// In datagrams, the number of the sender's session. 0 in a stream.
    pub(super) session: u16,
    pub(super) sequence: u64,
}

impl Header {
    /// The header as bytes, without its checksum.
    #[inline]
    pub(super) fn bytes(self, magic: [u8; 4]) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&magic);
        bytes[8..12].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[12] = self.kind;
        bytes[13] = self.shape;
        bytes[14..16].copy_from_slice(&self.session.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }
}

/// Writes the checksum of an otherwise complete frame.
#[inline]
pub(super) fn seal(frame: &mut [u8]) {
    let sum = crc32fast::hash(&frame[COVERED..]);
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// Parses the header at the beginning of stream bytes. `Ok(None)`: more bytes are needed.
///
/// # Errors
/// The stream is of another protocol, or damaged: the start of the next frame is unknown.
pub(super) fn open(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
    open_as(STREAM, "a frame does not begin with the magic of version 1", bytes)
}

/// Parses the header at the beginning of a datagram's rest. `Ok(None)`: it is truncated.
///
/// # Errors
/// The datagram is of another protocol, or damaged.
pub(super) fn open_datagram(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
    open_as(DATAGRAM, "a frame does not begin with the magic of version 2", bytes)
}

#[inline]
fn open_as(magic: [u8; 4], strange: &'static str, bytes: &[u8]) -> Result<Option<Header>, &'static str> {
    let (Some(header), Some(sum), Some(length), Some(sequence)) = (
        bytes.first_chunk::<HEADER>(),
        u32_at(bytes, 4),
        u32_at(bytes, 8),
        u64_at(bytes, 16),
    ) else {
        let have = bytes.len().min(magic.len());
        return if bytes[..have] == magic[..have] {
            Ok(None)
        } else {
            Err(strange)
        };
    };
    if header.first_chunk() != Some(&magic) {
        return Err(strange);
    }
    let length = length as usize;
    if length > MAX_BODY {
        return Err("a frame is longer than 64 KiB");
    }
    let Some(frame) = bytes.get(..HEADER + length) else {
        return Ok(None);
    };
    if crc32fast::hash(&frame[COVERED..]) != sum {
        return Err("a frame's checksum is wrong");
    }
    Ok(Some(Header {
        length,
        kind: header[12],
        shape: header[13],
        session: u16::from_le_bytes([header[14], header[15]]),
        sequence,
    }))
}
