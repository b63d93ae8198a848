//! The content of a request body, inflated if necessary, before it is decoded.

use std::io::Write;

use flate2::write::MultiGzDecoder;

use super::MAX_BODY;
use super::packing::Packing;

/// Compressed bytes that are inflated at a time: they expand to a megabyte at most.
const STEP: usize = 1 << 10;

/// Content that is not decoded yet, inflated if it was compressed.
#[derive(Debug)]
pub(super) struct Content {
    /// Bytes that may end in an incomplete record.
    bytes: Vec<u8>,
    inflater: Option<MultiGzDecoder<Vec<u8>>>,
    /// Whether it is a snappy block, which is inflated at its end.
    is_snappy: bool,
    /// Total length of the content so far.
    pub(super) length: u64,
}

/// Why content is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadContent {
    /// It exceeds the maximum length of a body.
    TooLong,
    /// It is not gzip.
    NotGzip,
    /// It is no snappy block.
    NotSnappy,
}

impl Content {
    pub(super) fn new(packing: Packing) -> Self {
        Self {
            bytes: Vec::new(),
            inflater: (packing == Packing::Gzip).then(|| MultiGzDecoder::new(Vec::new())),
            is_snappy: packing == Packing::Snappy,
            length: 0,
        }
    }

    /// Whether the bytes of the body can be decoded directly: not compressed, and none buffered.
    pub(super) fn is_direct(&self) -> bool {
        self.inflater.is_none() && !self.is_snappy && self.bytes.is_empty()
    }

    /// Records that `bytes` bytes were decoded directly.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.length += bytes as u64;
    }

    /// Takes part of `data`; returns the number of bytes taken.
    pub(super) fn push(&mut self, data: &[u8]) -> Result<usize, BadContent> {
        let Some(inflater) = &mut self.inflater else {
            self.bytes.extend_from_slice(data);
            self.passed(data.len());
            return Ok(data.len());
        };
        let step = &data[..data.len().min(STEP)];
        inflater.write_all(step).map_err(|_| BadContent::NotGzip)?;
        self.collect()?;
        Ok(step.len())
    }

    /// Marks the end of the body.
    pub(super) fn finish(&mut self) -> Result<(), BadContent> {
        if let Some(inflater) = &mut self.inflater {
            inflater.try_finish().map_err(|_| BadContent::NotGzip)?;
            self.collect()?;
        }
        if std::mem::take(&mut self.is_snappy) {
            self.bytes = snap::raw::Decoder::new()
                .decompress_vec(&self.bytes)
                .map_err(|_| BadContent::NotSnappy)?;
            self.length = self.bytes.len() as u64;
        }
        Ok(())
    }

    /// The length that a snappy block states, to which it will be inflated; 0 for other content.
    pub(super) fn stated(&self) -> Result<usize, BadContent> {
        if !self.is_snappy {
            return Ok(0);
        }
        let length = snap::raw::decompress_len(&self.bytes).map_err(|_| BadContent::NotSnappy)?;
        if length as u64 > MAX_BODY {
            return Err(BadContent::TooLong);
        }
        Ok(length)
    }

    fn collect(&mut self) -> Result<(), BadContent> {
        if let Some(inflater) = &mut self.inflater {
            let made = inflater.get_mut();
            self.length += made.len() as u64;
            self.bytes.append(made);
        }
        if self.length > MAX_BODY {
            return Err(BadContent::TooLong);
        }
        Ok(())
    }

    /// The content that is not decoded yet.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes
    }

    /// Records that `count` bytes were decoded.
    pub(super) fn consume(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }
}
