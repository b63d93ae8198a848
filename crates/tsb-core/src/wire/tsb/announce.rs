//! The encoding of keys in announcements.

use super::{MAX_KEY, MAX_SERIES};
use crate::bytes::{cut, cut_slice};
use crate::series::{Catalog, SeriesKey};
use crate::wire::{Protocol, UnsupportedSeries};

/// Length of the fields before the keys of an announcement: the first id and the number of keys.
pub(super) const PREFIX: usize = 8;

/// The encoded announcements of all keys of a catalog.
pub(super) struct Keys {
    /// The encoded keys, one after the other.
    bytes: Vec<u8>,
    /// Key `i` is `bytes[ends[i]..ends[i + 1]]`.
    ends: Vec<usize>,
}

impl Keys {
    /// Encodes the keys of `catalog`, each with at most `limit` bytes.
    ///
    /// # Errors
    /// The first series that cannot be carried, and why.
    pub(super) fn new(catalog: &Catalog, limit: usize) -> Result<Self, UnsupportedSeries> {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for (index, key) in catalog.keys().iter().enumerate() {
            let start = bytes.len();
            let room = if index < MAX_SERIES {
                Ok(())
            } else {
                Err("a connection carries 2^24 series")
            };
            let pushed = room.and_then(|()| push_key(key, &mut bytes)).and_then(|()| {
                let fits = bytes.len() - start <= limit;
                fits.then_some(())
                    .ok_or("its announcement does not fit into a datagram")
            });
            pushed.map_err(|why| UnsupportedSeries::new(Protocol::Tsb, key, why))?;
            ends.push(bytes.len());
        }
        Ok(Self { bytes, ends })
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// The encoding of key `index`.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.ends[index]..self.ends[index + 1]]
    }
}

/// Appends a key: name, number of labels, labels; each text preceded by its length.
///
/// # Errors
/// If the key is too long; nothing is appended then.
pub(super) fn push_key(key: &SeriesKey, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let texts = key.labels().iter().map(|(label, value)| 4 + label.len() + value.len());
    if 4 + key.name().len() + texts.sum::<usize>() > MAX_KEY {
        return Err("with its labels it is longer than 32 KiB");
    }
    push_text(key.name(), out);
    out.extend_from_slice(&(key.labels().len() as u16).to_le_bytes());
    for (label, value) in key.labels() {
        push_text(label, out);
        push_text(value, out);
    }
    Ok(())
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Decodes a key from the beginning of `bytes` and returns the remaining bytes.
pub(super) fn read_key(bytes: &[u8]) -> Option<(SeriesKey, &[u8])> {
    let mut rest = bytes;
    let name = cut_text(&mut rest)?;
    let count = u16::from_le_bytes(cut(&mut rest)?);
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for _ in 0..count {
        let label = cut_text(&mut rest)?;
        let value = cut_text(&mut rest)?;
        // Labels must be strictly ascending, so that a key has only one encoding.
        if labels.last().is_some_and(|(last, _)| *last >= label) {
            return None;
        }
        labels.push((label, value));
    }
    Some((SeriesKey::with_labels(name, labels), rest))
}

fn cut_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = u16::from_le_bytes(cut(bytes)?);
    std::str::from_utf8(cut_slice(bytes, usize::from(length))?).ok()
}
