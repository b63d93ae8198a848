//! Encodes samples to a body.

use super::MAX_NAME;
use crate::batch::Batch;
use crate::bytes::varint;
use crate::series::{Catalog, SeriesKey};
use crate::wire::output_buffer::TextTable;
use crate::wire::protobuf::{bytes_key, push_bytes};
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// The keys of a point's time and of its value as a double.
const TIME_KEY: u8 = 3 << 3 | 1;
const VALUE_KEY: u8 = 4 << 3 | 1;

/// Bytes of a point besides its attributes: its time and its value.
const POINT: usize = 18;

/// Encodes a batch to one body: a gauge of one data point for each sample, of one resource without
/// attributes.
///
/// Left out, and counted by [`Encoder::skipped`]: samples of 1970 and before, because the time 0
/// means that there is none, and ids that are not in the catalog.
#[derive(Debug)]
pub struct OtlpEncoder {
    /// The bytes of each series up to the time.
    heads: TextTable,
    /// The bytes of each series behind the value: its attributes.
    tails: TextTable,
    skipped: u64,
}

impl OtlpEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let (mut heads, mut tails) = (TextTable::new(), TextTable::new());
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(Protocol::Otlp, key, why);
            let (head, tail) = wire_name(key).map_err(refuse)?;
            let pushed = heads.push(&head).and_then(|()| tails.push(&tail));
            pushed.ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
        }
        Ok(Self {
            heads,
            tails,
            skipped: 0,
        })
    }
}

/// The bytes of a metric with one point up to the time, and those behind its value.
///
/// # Errors
/// What in the key cannot be carried.
fn wire_name(key: &SeriesKey) -> Result<(Vec<u8>, Vec<u8>), &'static str> {
    if key.name().is_empty() {
        return Err("its name is empty");
    }
    let mut attributes = Vec::new();
    for (label, value) in key.labels() {
        if label.is_empty() {
            return Err("a label is empty");
        }
        let (mut any, mut pair) = (Vec::new(), Vec::new());
        push_bytes(1, value.as_bytes(), &mut any);
        push_bytes(1, label.as_bytes(), &mut pair);
        push_bytes(2, &any, &mut pair);
        push_bytes(7, &pair, &mut attributes);
    }
    if key.name().len() + attributes.len() > MAX_NAME {
        return Err("it is longer than 32 KiB");
    }
    let point = POINT + attributes.len();
    let gauge = 1 + varint::len(point as u64) + point;
    let mut name = Vec::new();
    push_bytes(1, key.name().as_bytes(), &mut name);
    let metric = name.len() + 1 + varint::len(gauge as u64) + gauge;
    let mut head = vec![bytes_key(2)];
    varint::put(&mut head, metric as u64);
    head.extend_from_slice(&name);
    head.push(bytes_key(5));
    varint::put(&mut head, gauge as u64);
    head.push(bytes_key(1));
    varint::put(&mut head, point as u64);
    head.push(TIME_KEY);
    Ok((head, attributes))
}

impl Encoder for OtlpEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let parts = |index| self.heads.get(index).zip(self.tails.get(index));
        let mut metrics = 0;
        for (id, at, _) in batch.iter() {
            match parts(id.index()) {
                Some((head, tail)) if at.0 > 0 => metrics += head.as_bytes().len() + tail.as_bytes().len() + POINT - 1,
                _ => self.skipped += 1,
            }
        }
        if metrics == 0 {
            return;
        }
        // One resource with one scope.
        let scope = 1 + varint::len(metrics as u64) + metrics;
        out.push(bytes_key(1));
        varint::put(out, scope as u64);
        out.push(bytes_key(2));
        varint::put(out, metrics as u64);
        out.reserve(metrics);
        for (id, at, value) in batch.iter() {
            if let (Some((head, tail)), true) = (parts(id.index()), at.0 > 0) {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(&at.0.to_le_bytes());
                out.push(VALUE_KEY);
                out.extend_from_slice(&value.to_le_bytes());
                out.extend_from_slice(tail.as_bytes());
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
