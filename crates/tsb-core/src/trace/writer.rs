//! Writes a trace file block by block, so that everything written stays readable if the writer is
//! killed at any time.
//!
//! It opens no file and reads no clock: it writes to any [`Write`].

use std::io::Write;

use super::columns::{self, BlockColumn};
use super::error::TraceDefect;
use super::format::{self, BlockKind, MAX_LABELS, MAX_TEXT_BYTES};
use crate::bytes::varint;
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;

/// Number of samples after which a block is written automatically. In the worst case, columns of
/// one sample each, this is below the maximum block size of the format.
const BLOCK_SAMPLES: usize = 1 << 18;

/// Bytes of announced series after which their block is written.
const SERIES_BLOCK_BYTES: usize = 1 << 20;

/// Totals of a finished trace file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceTotals {
    /// Series announced.
    pub series: u64,
    /// Samples written.
    pub samples: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A trace file being written. Samples are buffered in memory until [`flush`](Self::flush).
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    block_number: u64,
    totals: TraceTotals,
    catalog: Catalog,
    // Payload of the next series block, without its count.
    announced: Vec<u8>,
    announced_count: u64,
    last_texts: Vec<String>,
    // By series id; empty unless the id is in `waiting`.
    segments: Vec<BlockColumn>,
    waiting: Vec<SeriesId>,
    waiting_samples: usize,
    payload: Vec<u8>,
}

impl<W: Write> TraceWriter<W> {
    /// Starts a file. `notes` are pairs that describe the origin of the samples.
    pub fn new(mut out: W, notes: &[(&str, &str)]) -> Result<Self, TraceDefect> {
        let header = format::file_header();
        out.write_all(&header).map_err(TraceDefect::io("write"))?;
        let mut writer = Self {
            out,
            block_number: 0,
            totals: TraceTotals {
                bytes: header.len() as u64,
                ..TraceTotals::default()
            },
            catalog: Catalog::new(),
            announced: Vec::new(),
            announced_count: 0,
            last_texts: Vec::new(),
            segments: Vec::new(),
            waiting: Vec::new(),
            waiting_samples: 0,
            payload: Vec::new(),
        };
        varint::put(&mut writer.payload, notes.len() as u64);
        for text in notes.iter().flat_map(|&(name, value)| [name, value]) {
            check_text(text)?;
            varint::put(&mut writer.payload, text.len() as u64);
            writer.payload.extend_from_slice(text.as_bytes());
        }
        writer.write_block(BlockKind::Note)?;
        Ok(writer)
    }

    /// The id of a series; a new one is announced in the file, at any time.
    ///
    /// # Errors
    /// [`TraceDefect::Invalid`] if the name or a label is too long for the format.
    pub fn define(&mut self, key: &SeriesKey) -> Result<SeriesId, TraceDefect> {
        if let Some(id) = self.catalog.id(key) {
            return Ok(id);
        }
        if key.labels().len() as u64 > MAX_LABELS {
            return Err(TraceDefect::Invalid {
                what: "a series has at most 64 labels in a trace",
            });
        }
        let texts = key_texts(key);
        for text in &texts {
            check_text(text)?;
        }
        varint::put(&mut self.announced, key.labels().len() as u64);
        for (index, text) in texts.iter().enumerate() {
            let before = self.last_texts.get(index).map_or("", String::as_str);
            let shared = shared_bytes(before, text);
            varint::put(&mut self.announced, shared as u64);
            varint::put(&mut self.announced, (text.len() - shared) as u64);
            self.announced.extend_from_slice(&text.as_bytes()[shared..]);
        }
        self.last_texts = texts.into_iter().map(str::to_owned).collect();
        self.announced_count += 1;
        self.totals.series += 1;
        self.segments.push(BlockColumn::default());
        let id = self.catalog.intern(key.clone());
        if self.announced.len() >= SERIES_BLOCK_BYTES {
            self.write_announced()?;
        }
        Ok(id)
    }

    /// Adds a sample of a defined series. Within one series, samples are stored in the order of
    /// the calls, whatever their timestamps.
    ///
    /// # Errors
    /// [`TraceDefect::Invalid`] if the series was not defined; a write error if the block is full.
    pub fn push(&mut self, id: SeriesId, at: Timestamp, value: f64) -> Result<(), TraceDefect> {
        let Some(segment) = self.segments.get_mut(id.index()) else {
            return Err(TraceDefect::Invalid {
                what: "a sample of a series that was not defined",
            });
        };
        if segment.times.is_empty() {
            self.waiting.push(id);
        }
        segment.times.push(at);
        segment.values.push(value);
        self.waiting_samples += 1;
        if self.waiting_samples == BLOCK_SAMPLES {
            self.flush()?;
        }
        Ok(())
    }

    /// Number of samples not written to the file yet.
    pub fn waiting(&self) -> usize {
        self.waiting_samples
    }

    /// Totals of what was written to the underlying writer so far.
    pub fn totals(&self) -> TraceTotals {
        self.totals
    }

    /// Writes all buffered samples as complete blocks, and flushes the underlying writer.
    pub fn flush(&mut self) -> Result<(), TraceDefect> {
        self.write_announced()?;
        if self.waiting_samples > 0 {
            self.waiting.sort_unstable();
            let segments: Vec<(SeriesId, &BlockColumn)> = self
                .waiting
                .iter()
                .map(|&id| (id, &self.segments[id.index()]))
                .collect();
            columns::encode(&segments, &mut self.payload);
            self.write_block(BlockKind::Samples)?;
            self.totals.samples += self.waiting_samples as u64;
            self.waiting_samples = 0;
            for id in self.waiting.drain(..) {
                let segment = &mut self.segments[id.index()];
                segment.times.clear();
                segment.values.clear();
            }
        }
        self.out.flush().map_err(TraceDefect::io("flush"))
    }

    /// Writes the buffered samples and the end block, which tells a reader that the file is
    /// complete.
    pub fn finish(mut self) -> Result<(W, TraceTotals), TraceDefect> {
        self.flush()?;
        varint::put(&mut self.payload, self.totals.series);
        varint::put(&mut self.payload, self.totals.samples);
        self.write_block(BlockKind::End)?;
        self.out.flush().map_err(TraceDefect::io("flush"))?;
        Ok((self.out, self.totals))
    }

    fn write_announced(&mut self) -> Result<(), TraceDefect> {
        if self.announced_count == 0 {
            return Ok(());
        }
        varint::put(&mut self.payload, self.announced_count);
        self.payload.extend_from_slice(&self.announced);
        self.announced.clear();
        self.announced_count = 0;
        // Blocks are independent: no text in one depends on another block.
        self.last_texts.clear();
        self.write_block(BlockKind::Series)
    }

    /// Writes the payload as one block, in one call, and clears it.
    fn write_block(&mut self, kind: BlockKind) -> Result<(), TraceDefect> {
        let header = format::block_header(kind, self.block_number, &self.payload);
        self.payload.splice(..0, header);
        self.out.write_all(&self.payload).map_err(TraceDefect::io("write"))?;
        self.totals.bytes += self.payload.len() as u64;
        self.block_number += 1;
        self.payload.clear();
        Ok(())
    }
}

/// The texts of a key: its name, then each label and its value.
fn key_texts(key: &SeriesKey) -> Vec<&str> {
    let labels = key
        .labels()
        .iter()
        .flat_map(|(label, value)| [label.as_str(), value.as_str()]);
    std::iter::once(key.name()).chain(labels).collect()
}

fn check_text(text: &str) -> Result<(), TraceDefect> {
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(TraceDefect::Invalid {
            what: "a name, label or note in a trace has at most 4096 bytes",
        });
    }
    Ok(())
}

/// Number of leading bytes that two texts share, cut at a character boundary.
fn shared_bytes(before: &str, text: &str) -> usize {
    let pairs = before.bytes().zip(text.bytes());
    let mut shared = pairs.take_while(|(left, right)| left == right).count();
    while !text.is_char_boundary(shared) {
        shared -= 1;
    }
    shared
}
