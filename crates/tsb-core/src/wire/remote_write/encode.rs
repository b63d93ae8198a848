//! Encodes samples to a body.

use super::MAX_NAME;
use super::labels::labels_of;
use crate::batch::Batch;
use crate::bytes::varint;
use crate::series::{Catalog, SeriesKey};
use crate::time::Timestamp;
use crate::wire::output_buffer::TextTable;
use crate::wire::protobuf::{bytes_key, push_bytes};
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// Length of the timestamps from 1971 to 2109, in bytes.
const USUAL_TIME: usize = 6;

/// Bytes of a sample besides its timestamp: two keys and a double.
const SAMPLE: usize = 10;

/// The keys of `TimeSeries.samples` and of the value and the timestamp of a sample.
const SAMPLES_KEY: u8 = bytes_key(2);
const VALUE_KEY: u8 = 1 << 3 | 1;
const TIME_KEY: u8 = 2 << 3;

/// Encodes a batch to one body, in which each sample has its labels.
///
/// Timestamps are cut to milliseconds. Left out, and counted by [`Encoder::skipped`]: ids that are
/// not in the catalog.
#[derive(Debug)]
pub struct RemoteWriteEncoder {
    /// The bytes of each series up to the value, for a timestamp of the usual length.
    heads: TextTable,
    /// Length of the labels in each head.
    labels: Vec<u32>,
    at: Timestamp,
    /// The timestamp with its key.
    time: Vec<u8>,
    skipped: u64,
}

impl RemoteWriteEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let mut new = Self {
            heads: TextTable::new(),
            labels: Vec::with_capacity(catalog.len()),
            at: Timestamp(0),
            time: vec![TIME_KEY, 0],
            skipped: 0,
        };
        for key in catalog.keys() {
            new.push(key)
                .map_err(|why| UnsupportedSeries::new(Protocol::RemoteWrite, key, why))?;
        }
        Ok(new)
    }

    /// Adds a series, whose id is the number of those before.
    ///
    /// # Errors
    /// What in the key cannot be carried.
    pub fn push(&mut self, key: &SeriesKey) -> Result<(), &'static str> {
        let labels = wire_labels(key)?;
        let sample = SAMPLE + USUAL_TIME;
        let mut head = Vec::with_capacity(labels.len() + 8);
        head.push(bytes_key(1));
        varint::put(&mut head, (labels.len() + 2 + sample) as u64);
        head.extend_from_slice(&labels);
        head.extend_from_slice(&[SAMPLES_KEY, sample as u8, VALUE_KEY]);
        self.heads.push(&head).ok_or("the names together exceed 4 GiB")?;
        self.labels.push(labels.len() as u32);
        Ok(())
    }

    fn set_time(&mut self, at: Timestamp) {
        if at != self.at {
            self.at = at;
            self.time.truncate(1);
            varint::put(&mut self.time, at.0.div_euclid(1_000_000) as u64);
        }
    }

    /// Writes a sample whose timestamp has another length than the usual.
    #[cold]
    fn unusual(&self, head: &[u8], labels: u32, value: f64, out: &mut Vec<u8>) {
        let sample = SAMPLE - 1 + self.time.len();
        let labels = &head[head.len() - 3 - labels as usize..head.len() - 3];
        out.push(bytes_key(1));
        varint::put(out, (labels.len() + 1 + varint::len(sample as u64) + sample) as u64);
        out.extend_from_slice(labels);
        out.extend_from_slice(&[SAMPLES_KEY, sample as u8, VALUE_KEY]);
        out.extend_from_slice(&value.to_le_bytes());
        out.extend_from_slice(&self.time);
    }
}

/// The labels of a series as on the wire: `TimeSeries.labels`.
///
/// # Errors
/// What in the key cannot be carried.
fn wire_labels(key: &SeriesKey) -> Result<Vec<u8>, &'static str> {
    let (mut wire, mut pair) = (Vec::new(), Vec::new());
    for (label, value) in labels_of(key)? {
        pair.clear();
        push_bytes(1, label.as_bytes(), &mut pair);
        push_bytes(2, value.as_bytes(), &mut pair);
        push_bytes(1, &pair, &mut wire);
    }
    if wire.len() > MAX_NAME {
        return Err("its labels are longer than 32 KiB");
    }
    Ok(wire)
}

impl Encoder for RemoteWriteEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        for (id, at, value) in batch.iter() {
            self.set_time(at);
            let (Some(head), Some(labels)) = (self.heads.get(id.index()), self.labels.get(id.index())) else {
                self.skipped += 1;
                continue;
            };
            let head = head.as_bytes();
            if self.time.len() == 1 + USUAL_TIME {
                out.extend_from_slice(head);
                out.extend_from_slice(&value.to_le_bytes());
                out.extend_from_slice(&self.time);
            } else {
                self.unusual(head, *labels, value, out);
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
