//! The layout of keys below a prefix: the samples of a series are neighbours, in time order.
//!
//! | key | value |
//! | --- | --- |
//! | `PREFIX/m` | the marker |
//! | `PREFIX/k` number | name and labels of a series, as JSON |
//! | `PREFIX/s` number time | a value, as eight bytes of a double, little-endian |
//!
//! A number is four bytes and a time eight, with the sign bit inverted; both are big-endian, so
//! that etcd's order of bytes is the order of numbers and times.

use prost::bytes::Bytes;
use tsb_core::{SeriesKey, Timestamp};

use super::message::Range;
use tsb_stores::parts::{key_of, labels_to_json};

/// The value of the marker.
pub(super) const MARKER: &str = r#"{"layout":"samples","version":1}"#;

const SIGN: u64 = 1 << 63;

/// The keys below one prefix.
#[derive(Clone, Debug)]
pub(super) struct KeySpace {
    prefix: String,
}

impl KeySpace {
    pub(super) fn new(place: &str) -> Self {
        Self {
            prefix: format!("{place}/"),
        }
    }

    /// All keys below the prefix, including those of other programs.
    pub(super) fn everything(&self) -> Range {
        let end = format!("{}0", &self.prefix[..self.prefix.len() - 1]);
        between(Bytes::copy_from_slice(self.prefix.as_bytes()), end.into())
    }

    pub(super) fn marker(&self) -> Bytes {
        self.of("m")
    }

    /// The names of all series.
    pub(super) fn names(&self) -> Range {
        between(self.of("k"), self.of("l"))
    }

    /// The samples of all series.
    pub(super) fn samples(&self) -> Range {
        between(self.of("s"), self.of("t"))
    }

    pub(super) fn name(&self, number: u32) -> Bytes {
        let mut key = format!("{}k", self.prefix).into_bytes();
        key.extend(number.to_be_bytes());
        key.into()
    }

    /// Appends the key of a sample.
    pub(super) fn push_sample(&self, number: u32, at: Timestamp, into: &mut Vec<u8>) {
        into.extend(self.prefix.as_bytes());
        into.push(b's');
        into.extend(number.to_be_bytes());
        into.extend((at.0 as u64 ^ SIGN).to_be_bytes());
    }

    pub(super) fn sample(&self, number: u32, at: Timestamp) -> Bytes {
        let mut key = Vec::new();
        self.push_sample(number, at, &mut key);
        key.into()
    }

    /// The samples of one series from `start` on.
    pub(super) fn samples_from(&self, number: u32, start: Timestamp) -> Range {
        between(self.sample(number, start), after(&self.sample(number, Timestamp::MAX)))
    }

    /// The series number in the key of a name.
    pub(super) fn number_of(&self, key: &[u8]) -> Option<u32> {
        let number = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"k")?;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    }

    /// Series number and timestamp in the key of a sample.
    pub(super) fn sample_of(&self, key: &[u8]) -> Option<(u32, Timestamp)> {
        let key = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"s")?;
        let (number, at) = key.split_first_chunk()?;
        let at = u64::from_be_bytes(at.try_into().ok()?) ^ SIGN;
        Some((u32::from_be_bytes(*number), Timestamp(at as i64)))
    }

    fn of(&self, kind: &str) -> Bytes {
        format!("{}{kind}", self.prefix).into()
    }
}

/// The keys from `key` (included) to `end` (excluded).
pub(super) fn between(key: Bytes, end: Bytes) -> Range {
    Range {
        key,
        end,
        ..Range::default()
    }
}

/// The first key after this one.
pub(super) fn after(key: &[u8]) -> Bytes {
    let mut next = key.to_vec();
    next.push(0);
    next.into()
}

/// Encodes a series: name and labels.
pub(super) fn series_to_value(key: &SeriesKey) -> Bytes {
    let pair = (key.name(), labels_to_json(key));
    serde_json::json!(pair).to_string().into()
}

/// The inverse of [`series_to_value`].
pub(super) fn series_of(value: &[u8]) -> Option<SeriesKey> {
    let (name, labels): (String, String) = serde_json::from_slice(value).ok()?;
    key_of(&name, &labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_series_and_time() {
        let key_space = KeySpace::new("runs");
        let times = [i64::MIN, -1, 0, 1, 255, 256, i64::MAX].map(Timestamp);
        let mut keys = Vec::new();
        for number in [0, 1, 255, 256, u32::MAX] {
            for at in times {
                let key = key_space.sample(number, at);
                assert_eq!(key_space.sample_of(&key), Some((number, at)));
                keys.push(key);
            }
            let range = key_space.samples_from(number, Timestamp::MIN);
            assert!(range.key == keys[keys.len() - times.len()] && range.end > keys[keys.len() - 1]);
        }
        assert!(keys.is_sorted_by(|left, right| left < right));
        let all = key_space.samples();
        assert!(keys.iter().all(|key| all.key <= *key && *key < all.end));
    }

    #[test]
    fn kinds_of_keys_do_not_overlap_and_stay_below_the_prefix() {
        let key_space = KeySpace::new("runs");
        let all = key_space.everything();
        assert_eq!((&*all.key, &*all.end), (&b"runs/"[..], &b"runs0"[..]));
        let names = key_space.names();
        for key in [key_space.marker(), key_space.name(7), key_space.sample(7, Timestamp(1))] {
            assert!(all.key < key && key < all.end);
            assert_eq!(
                names.key <= key && key < names.end,
                key_space.number_of(&key) == Some(7)
            );
        }
        for foreign in [&b"runs/k123"[..], b"run/k1234", b"runs/s1234"] {
            assert_eq!(key_space.number_of(foreign), None);
            assert_eq!(key_space.sample_of(foreign), None);
        }
    }

    #[test]
    fn a_series_decodes_to_what_was_encoded() {
        for key in [
            SeriesKey::new("a\"b\n"),
            SeriesKey::with_labels("a", [("x", "{}"), ("y", "\u{e9}")]),
        ] {
            assert_eq!(series_of(&series_to_value(&key)), Some(key));
        }
        assert_eq!(series_of(b"[]"), None);
    }
}
