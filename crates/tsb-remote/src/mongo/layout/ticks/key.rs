//! Keys of documents of columns, as bytes that sort in the collection's order: group, irregular
//! or not, newest timestamp, order of writing, client.
//!
//! MongoDB compares binary values by length first, so every bound must be a whole key.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, RawDocument, doc};
use tsb_core::Timestamp;

/// Length of a key in bytes.
const LENGTH: usize = 25;

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super::super) struct DocumentKey {
    pub(in super::super::super) group: u32,
    /// The document has columns for series numbers or timestamps.
    pub(in super::super::super) is_irregular: bool,
    pub(in super::super::super) newest: Timestamp,
    /// Number of samples that its client had written before.
    pub(in super::super::super) order: u64,
    /// Its client: concurrent clients must make different keys.
    pub(in super::super::super) client: [u8; 4],
}

impl DocumentKey {
    /// The smallest key that a document of this kind can have.
    pub(super) fn first(group: u32, is_irregular: bool, newest: Timestamp) -> Self {
        Self {
            group,
            is_irregular,
            newest,
            order: 0,
            client: [0; 4],
        }
    }

    pub(super) fn bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&self.group.to_be_bytes());
        bytes[4] = u8::from(self.is_irregular);
        // Inverting the sign bit makes timestamps before 1970 sort first.
        bytes[5..13].copy_from_slice(&(self.newest.0 ^ i64::MIN).to_be_bytes());
        bytes[13..21].copy_from_slice(&self.order.to_be_bytes());
        bytes[21..].copy_from_slice(&self.client);
        bytes
    }

    /// The key of a document.
    pub(in super::super::super) fn of(document: &RawDocument) -> Option<Self> {
        let bytes: &[u8; LENGTH] = document.get_binary("_id").ok()?.bytes.try_into().ok()?;
        let eight = |start: usize| bytes[start..start + 8].first_chunk::<8>().copied();
        Some(Self {
            group: u32::from_be_bytes(*bytes.first_chunk::<4>()?),
            is_irregular: bytes[4] != 0,
            newest: Timestamp(i64::from_be_bytes(eight(5)?) ^ i64::MIN),
            order: u64::from_be_bytes(eight(13)?),
            client: *bytes.last_chunk::<4>()?,
        })
    }
}

/// The condition that a key is in `[from, until)`.
pub(super) fn between(from: DocumentKey, until: DocumentKey) -> Document {
    let bound = |key: DocumentKey| Binary {
        subtype: BinarySubtype::Generic,
        bytes: key.bytes().to_vec(),
    };
    doc! { "$gte": bound(from), "$lt": bound(until) }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::RawDocumentBuf;

    use super::*;

    #[test]
    fn keys_sort_like_their_parts_and_decode_to_them() {
        let mut keys = Vec::new();
        for group in [0, 1, 256, u32::MAX] {
            for is_irregular in [false, true] {
                for newest in [i64::MIN, -1, 0, 1, i64::MAX] {
                    for order in [0, 255, 256] {
                        let client = [1, 2, 3, 4];
                        let newest = Timestamp(newest);
                        keys.push(DocumentKey {
                            order,
                            client,
                            ..DocumentKey::first(group, is_irregular, newest)
                        });
                    }
                }
            }
        }
        assert!(keys.is_sorted_by_key(|key| key.bytes()));
        for key in keys {
            let id = Binary {
                subtype: BinarySubtype::Generic,
                bytes: key.bytes().to_vec(),
            };
            let document = RawDocumentBuf::try_from(&doc! { "_id": id }).unwrap();
            assert_eq!(DocumentKey::of(&document), Some(key));
        }
        let odd = RawDocumentBuf::try_from(&doc! { "_id": 5 }).unwrap();
        assert_eq!(DocumentKey::of(&odd), None);
    }
}
