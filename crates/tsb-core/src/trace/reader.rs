//! Reads a trace file block by block, within limits.
//!
//! For any input, a defect names its position and memory stays bounded. A file left by a killed
//! recorder is read up to its last complete block.

use std::collections::BTreeMap;
use std::io::Read;

use super::Limits;
use super::columns;
use super::error::TraceDefect;
use super::format::{
    self, BLOCK_HEADER_BYTES, BlockHeader, BlockKind, FILE_HEADER_BYTES, MAX_LABELS, MAX_TEXT_BYTES, damaged,
    read_count, read_text, too_much,
};
use crate::bytes::Reader;
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;

/// How a trace file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its end block, whose totals match.
    Complete,
    /// After a complete block: the recorder stopped without finishing the file.
    Unfinished {
        /// Length of the file.
        offset: u64,
    },
    /// Within a block: the recorder was killed while writing. That block is lost.
    Cut {
        /// Start of the incomplete block.
        offset: u64,
    },
}

/// Receives the columns of one block: a series, its timestamps and equally many values.
pub type Visitor<'a> = dyn FnMut(SeriesId, &[Timestamp], &[f64]) + 'a;

/// Reads a trace file. Holds one block at a time and the keys so far.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    limits: Limits,
    offset: u64,
    block_number: u64,
    notes: BTreeMap<String, String>,
    catalog: Catalog,
    key_bytes: u64,
    samples: u64,
    ending: Option<Ending>,
}

impl<R: Read> TraceReader<R> {
    /// Validates the file header.
    pub fn new(mut input: R, limits: Limits) -> Result<Self, TraceDefect> {
        let mut header = Vec::with_capacity(FILE_HEADER_BYTES);
        read_up_to(&mut input, FILE_HEADER_BYTES as u64, &mut header)?;
        format::check_file_header(&header)?;
        Ok(Self {
            input,
            limits,
            offset: FILE_HEADER_BYTES as u64,
            block_number: 0,
            notes: BTreeMap::new(),
            catalog: Catalog::new(),
            key_bytes: 0,
            samples: 0,
            ending: None,
        })
    }

    /// Notes read so far.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Series announced so far; their index is their id.
    pub fn keys(&self) -> &[SeriesKey] {
        self.catalog.keys()
    }

    /// Number of samples passed on so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// How the file ended, once [`next_block`](Self::next_block) has returned `false`.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Reads one block and passes on its columns, if any. `false`: there is no further complete
    /// block, and [`ending`](Self::ending) returns why.
    ///
    /// # Errors
    /// A defect with its position. Nothing of a block with a wrong checksum is passed on.
    pub fn next_block(&mut self, visit: &mut Visitor<'_>) -> Result<bool, TraceDefect> {
        if self.ending.is_some() {
            return Ok(false);
        }
        let mut header = Vec::with_capacity(BLOCK_HEADER_BYTES);
        read_up_to(&mut self.input, BLOCK_HEADER_BYTES as u64, &mut header)?;
        if header.is_empty() {
            self.ending = Some(Ending::Unfinished { offset: self.offset });
            return Ok(false);
        }
        let Some(header) = header.first_chunk::<BLOCK_HEADER_BYTES>() else {
            self.ending = Some(Ending::Cut { offset: self.offset });
            return Ok(false);
        };
        let header = format::check_block_header(header, self.block_number, self.offset)?;
        let mut payload = Vec::new();
        read_up_to(&mut self.input, header.length.into(), &mut payload)?;
        if payload.len() < header.length as usize {
            self.ending = Some(Ending::Cut { offset: self.offset });
            return Ok(false);
        }
        let base = self.offset + BLOCK_HEADER_BYTES as u64;
        if crc32fast::hash(&payload) != header.checksum {
            return Err(damaged(base, "the checksum of a block does not match"));
        }
        self.take_block(header, &payload, base, visit)?;
        self.offset = base + payload.len() as u64;
        self.block_number += 1;
        if header.kind == BlockKind::End {
            self.expect_end()?;
        }
        Ok(self.ending.is_none())
    }

    fn take_block(
        &mut self,
        header: BlockHeader,
        payload: &[u8],
        base: u64,
        visit: &mut Visitor<'_>,
    ) -> Result<(), TraceDefect> {
        let mut cursor = Reader::based(payload, base);
        match header.kind {
            BlockKind::Note => self.take_notes(&mut cursor)?,
            BlockKind::Series => self.take_series(&mut cursor)?,
            BlockKind::Samples => return self.take_samples(payload, base, visit),
            BlockKind::End => self.take_end(&mut cursor)?,
            BlockKind::Optional => return Ok(()),
        }
        if cursor.rest().is_empty() {
            Ok(())
        } else {
            Err(damaged(cursor.offset(), "bytes left over at the end of a block"))
        }
    }

    fn take_notes(&mut self, cursor: &mut Reader<'_>) -> Result<(), TraceDefect> {
        for _ in 0..read_count(cursor, "notes", 1000)? {
            let name = read_text(cursor)?.to_owned();
            let value = read_text(cursor)?.to_owned();
            self.key_bytes += (name.len() + value.len()) as u64;
            self.check_key_bytes(cursor)?;
            self.notes.insert(name, value);
        }
        Ok(())
    }

    fn take_series(&mut self, cursor: &mut Reader<'_>) -> Result<(), TraceDefect> {
        let limit = self.limits.series;
        let count = read_count(cursor, "series", limit as u64)?;
        let mut texts: Vec<String> = Vec::new();
        for _ in 0..count {
            if self.catalog.len() == limit {
                return Err(too_much(cursor, "series", limit as u64));
            }
            let labels = read_count(cursor, "labels of one series", MAX_LABELS)?;
            for index in 0..=2 * labels {
                if texts.len() <= index {
                    texts.push(String::new());
                }
                take_text(cursor, &mut texts[index])?;
                self.key_bytes += texts[index].len() as u64;
            }
            texts.truncate(1 + 2 * labels);
            self.check_key_bytes(cursor)?;
            let pairs = texts[1..]
                .chunks_exact(2)
                .map(|pair| (pair[0].as_str(), pair[1].as_str()));
            let key = SeriesKey::with_labels(texts[0].as_str(), pairs);
            if key.labels().len() != labels {
                return Err(damaged(cursor.offset(), "a series with two labels of one name"));
            }
            if self.catalog.id(&key).is_some() {
                return Err(damaged(cursor.offset(), "a series that is announced twice"));
            }
            self.catalog.intern(key);
        }
        Ok(())
    }

    fn check_key_bytes(&self, cursor: &Reader<'_>) -> Result<(), TraceDefect> {
        if self.key_bytes > self.limits.key_bytes {
            return Err(too_much(cursor, "bytes of names", self.limits.key_bytes));
        }
        Ok(())
    }

    fn take_samples(&mut self, payload: &[u8], base: u64, visit: &mut Visitor<'_>) -> Result<(), TraceDefect> {
        let limit = self.limits.samples;
        let samples = &mut self.samples;
        columns::decode(payload, base, self.catalog.len(), &mut |id, times, values| {
            *samples += values.len() as u64;
            if *samples > limit {
                return Err(TraceDefect::TooMuch {
                    offset: base,
                    what: "samples",
                    limit,
                });
            }
            visit(id, times, values);
            Ok(())
        })
    }

    fn take_end(&mut self, cursor: &mut Reader<'_>) -> Result<(), TraceDefect> {
        if cursor.varint()? != self.catalog.len() as u64 || cursor.varint()? != self.samples {
            return Err(damaged(
                cursor.offset(),
                "the totals at the end do not agree with what was read",
            ));
        }
        self.ending = Some(Ending::Complete);
        Ok(())
    }

    fn expect_end(&mut self) -> Result<(), TraceDefect> {
        let mut more = Vec::new();
        read_up_to(&mut self.input, 1, &mut more)?;
        if more.is_empty() {
            Ok(())
        } else {
            Err(damaged(self.offset, "bytes after the end block"))
        }
    }
}

/// Reads a text that is stored as a suffix to a prefix of the previous text in its position.
fn take_text(cursor: &mut Reader<'_>, text: &mut String) -> Result<(), TraceDefect> {
    let shared = read_count(cursor, "bytes in one name", MAX_TEXT_BYTES)?;
    if !text.is_char_boundary(shared) {
        return Err(damaged(
            cursor.offset(),
            "a name that shares more than the one before has",
        ));
    }
    text.truncate(shared);
    text.push_str(read_text(cursor)?);
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(too_much(cursor, "bytes in one name", MAX_TEXT_BYTES));
    }
    Ok(())
}

/// Appends up to `count` bytes; fewer only at the end of the input. Memory grows with the bytes
/// received, not with `count`.
fn read_up_to(input: &mut impl Read, count: u64, into: &mut Vec<u8>) -> Result<(), TraceDefect> {
    input
        .by_ref()
        .take(count)
        .read_to_end(into)
        .map_err(TraceDefect::io("read"))?;
    Ok(())
}
