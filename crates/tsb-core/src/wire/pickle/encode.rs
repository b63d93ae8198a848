//! Encodes samples to frames, byte for byte as CPython pickles them with protocol 2.

use super::SAMPLES;
use crate::batch::Batch;
use crate::series::{Catalog, SeriesId};
use crate::time::Timestamp;
use crate::wire::graphite::wire_name;
use crate::wire::output_buffer::TextTable;
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// Turns batches into frames of at most [`SAMPLES`] samples.
///
/// Timestamps are cut to whole seconds. Left out, and counted by [`Encoder::skipped`]:
/// values that are not numbers (carbon drops them), timestamps in the second before the
/// epoch (-1 means "now" to carbon), and ids that the catalog does not have.
#[derive(Debug)]
pub struct PickleEncoder {
    /// `X`, the length of the name, the name.
    names: TextTable,
    skipped: u64,
}

impl PickleEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let mut names = TextTable::new();
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(Protocol::Pickle, key, why);
            let name = wire_name(key).map_err(refuse)?;
            let length = (name.len() as u32).to_le_bytes();
            let text = [b"X".as_slice(), &length, name.as_bytes()].concat();
            names
                .push(&text)
                .ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
        }
        Ok(Self { names, skipped: 0 })
    }

    fn is_carried(&self, &(id, at, value): &(SeriesId, Timestamp, f64)) -> bool {
        id.index() < self.names.len() && !value.is_nan() && at.as_secs() != -1
    }

    /// Writes one sample of a list; `memo` is the index of its first memo entry.
    fn element(&self, (id, at, value): (SeriesId, Timestamp, f64), memo: u32, out: &mut Vec<u8>) {
        if let Some(name) = self.names.get(id.index()) {
            out.extend_from_slice(name.as_bytes());
        }
        remember(memo, out);
        put_integer(at.as_secs(), out);
        out.push(b'G');
        out.extend_from_slice(&value.to_bits().to_be_bytes());
        out.push(0x86);
        remember(memo + 1, out);
        out.push(0x86);
        remember(memo + 2, out);
    }
}

/// BINPUT, or LONG_BINPUT.
fn remember(memo: u32, out: &mut Vec<u8>) {
    if let Ok(memo) = u8::try_from(memo) {
        out.extend_from_slice(&[b'q', memo]);
    } else {
        out.push(b'r');
        out.extend_from_slice(&memo.to_le_bytes());
    }
}

/// BININT1, BININT2, BININT, or LONG1 with as few bytes as hold it.
fn put_integer(integer: i64, out: &mut Vec<u8>) {
    match integer {
        0..=0xff => out.extend_from_slice(&[b'K', integer as u8]),
        0x100..=0xffff => {
            out.push(b'M');
            out.extend_from_slice(&(integer as u16).to_le_bytes());
        }
        _ if i32::try_from(integer).is_ok() => {
            out.push(b'J');
            out.extend_from_slice(&(integer as i32).to_le_bytes());
        }
        _ => {
            let same = if integer < 0 {
                integer.leading_ones()
            } else {
                integer.leading_zeros()
            };
            let bytes = (65 - same).div_ceil(8) as usize;
            out.extend_from_slice(&[0x8a, bytes as u8]);
            out.extend_from_slice(&integer.to_le_bytes()[..bytes]);
        }
    }
}

impl Encoder for PickleEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let mut left = batch.iter().filter(|sample| self.is_carried(sample)).count();
        self.skipped += (batch.len() - left) as u64;
        let mut samples = batch.iter().filter(|sample| self.is_carried(sample));
        while left > 0 {
            let count = left.min(SAMPLES);
            left -= count;
            let start = out.len();
            out.extend_from_slice(&[0, 0, 0, 0, 0x80, 2, b']', b'q', 0]);
            if count > 1 {
                out.push(b'(');
            }
            for (sample, memo) in samples.by_ref().take(count).zip((1..).step_by(3)) {
                self.element(sample, memo, out);
            }
            out.extend_from_slice(if count > 1 { b"e." } else { b"a." });
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
