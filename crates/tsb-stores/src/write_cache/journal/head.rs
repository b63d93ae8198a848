//! The head of a segment, and the marker: the file that states which segments exist.
//!
//! It does no I/O: it encodes heads and markers, and decodes them from arbitrary bytes.

use tsb_core::bytes::{u32_at, u64_at};

/// The first bytes of a segment of any version; a digit for the version follows.
const MAGIC: &[u8; 7] = b"tsbjrnl";
/// The first bytes of a marker of any version.
const MARKER_MAGIC: &[u8; 7] = b"tsbmark";
/// The version that is written.
pub(super) const VERSION: u8 = b'2';
/// The version of markers that is written.
pub(super) const MARKER_VERSION: u8 = b'1';
/// Length of the head of a segment, in the version that is written.
pub(super) const HEAD_LEN: usize = 32;
/// Length of the head in format 1; every version begins with this part.
const HEAD_1_LEN: usize = 16;
/// Length of a marker.
const MARKER_LEN: usize = 40;

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    /// Its number.
    pub(super) number: u32,
    /// The number of its first record, or the next number if it has no record yet.
    pub(super) first_record: u64,
    /// The number of the first segment that was begun by the same opening. Ids mean the same in
    /// all segments of one opening.
    pub(super) opening: u32,
}

impl SegmentHead {
    /// Encodes the head.
    pub(super) fn to_bytes(self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        bytes[..7].copy_from_slice(MAGIC);
        bytes[7] = VERSION;
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_record.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.opening.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// How a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodedHead {
    /// With the head of a segment of format 1, with this number.
    Version1(u32),
    /// With the head of a segment of format 2.
    Version2(SegmentHead),
    /// With the head of a segment of an unknown, later format.
    Later(char),
    /// With no head.
    Damaged,
}

impl DecodedHead {
    /// Decodes the start of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::read(bytes).unwrap_or(Self::Damaged)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let common = bytes.get(..HEAD_1_LEN)?;
        if !common.starts_with(MAGIC) || crc32fast::hash(&common[..12]) != u32_at(common, 12)? {
            return None;
        }
        let number = u32_at(common, 8)?;
        match common[7] {
            b'1' => Some(Self::Version1(number)),
            VERSION => {
                let head = bytes.get(..HEAD_LEN)?;
                let is_whole = crc32fast::hash(&head[..28]) == u32_at(head, 28)?;
                is_whole.then_some(())?;
                Some(Self::Version2(SegmentHead {
                    number,
                    first_record: u64_at(head, 16)?,
                    opening: u32_at(head, 24)?,
                }))
            }
            version => Some(Self::Later(char::from(version))),
        }
    }

    /// The number in the head.
    pub(super) fn number(self) -> Option<u32> {
        match self {
            Self::Version1(number) => Some(number),
            Self::Version2(head) => Some(head.number),
            Self::Later(_) | Self::Damaged => None,
        }
    }

    /// The position of its first record.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Version1(_) => HEAD_1_LEN,
            Self::Version2(_) => HEAD_LEN,
            Self::Later(_) | Self::Damaged => 0,
        }
    }
}

/// States which segments exist: without it, a missing first or last segment would go unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// The oldest segment that is still needed.
    pub(super) oldest: u32,
    /// The number of its first record; 0 if unknown.
    pub(super) oldest_record: u64,
    /// The head of the newest segment.
    pub(super) newest: SegmentHead,
}

/// Why a marker cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerError {
    /// Its version is unknown to this build.
    Later(char),
    /// It is damaged.
    Damaged,
}

impl Marker {
    /// Encodes the marker.
    pub(super) fn to_bytes(self) -> [u8; MARKER_LEN] {
        let mut bytes = [0; MARKER_LEN];
        bytes[..7].copy_from_slice(MARKER_MAGIC);
        bytes[7] = MARKER_VERSION;
        bytes[8..12].copy_from_slice(&self.oldest.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.newest.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.newest.first_record.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.newest.opening.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.oldest_record.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..36]);
        bytes[36..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a marker.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, MarkerError> {
        Self::read(bytes).unwrap_or(Err(MarkerError::Damaged))
    }

    fn read(bytes: &[u8]) -> Option<Result<Self, MarkerError>> {
        let is_whole = bytes.len() == MARKER_LEN
            && bytes.starts_with(MARKER_MAGIC)
            && crc32fast::hash(&bytes[..36]) == u32_at(bytes, 36)?;
        is_whole.then_some(())?;
        if bytes[7] != MARKER_VERSION {
            return Some(Err(MarkerError::Later(char::from(bytes[7]))));
        }
        Some(Ok(Self {
            oldest: u32_at(bytes, 8)?,
            oldest_record: u64_at(bytes, 28)?,
            newest: SegmentHead {
                number: u32_at(bytes, 12)?,
                first_record: u64_at(bytes, 16)?,
                opening: u32_at(bytes, 24)?,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: SegmentHead = SegmentHead {
        number: 7,
        first_record: 1 << 40,
        opening: 5,
    };

    const MARKER: Marker = Marker {
        oldest: 3,
        oldest_record: 9,
        newest: HEAD,
    };

    #[test]
    fn a_head_comes_back_and_no_bit_of_it_can_flip_unseen() {
        let bytes = HEAD.to_bytes();
        assert_eq!(DecodedHead::of(&bytes), DecodedHead::Version2(HEAD));
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(DecodedHead::of(&altered), DecodedHead::Damaged, "{bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(DecodedHead::of(&bytes[..len]), DecodedHead::Damaged, "{len}");
        }
    }

    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut bytes = HEAD.to_bytes();
        for (version, expected) in [(b'1', DecodedHead::Version1(7)), (b'3', DecodedHead::Later('3'))] {
            bytes[7] = version;
            let sum = crc32fast::hash(&bytes[..12]);
            bytes[12..16].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(DecodedHead::of(&bytes), expected);
        }
        let mut bytes = MARKER.to_bytes();
        bytes[7] = b'2';
        let sum = crc32fast::hash(&bytes[..36]);
        bytes[36..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Marker::of(&bytes), Err(MarkerError::Later('2')));
    }

    #[test]
    fn a_marker_comes_back_and_no_bit_of_it_can_flip_unseen() {
        let bytes = MARKER.to_bytes();
        assert_eq!(Marker::of(&bytes), Ok(MARKER));
        assert_eq!(Marker::of(&bytes[..MARKER_LEN - 1]), Err(MarkerError::Damaged));
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Marker::of(&altered), Err(MarkerError::Damaged), "{bit}");
        }
    }
}
