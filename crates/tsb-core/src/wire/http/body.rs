//! The content of a body on its way to a decoder.

use std::io::Write;

use flate2::write::MultiGzDecoder;

use super::MAX_BODY;

/// Compressed bytes that are inflated at once: they make a megabyte at most.
const STEP: usize = 1 << 10;

/// Content that is not decoded yet, inflated if it was compressed.
#[derive(Debug)]
pub(super) struct Content {
    /// Bytes in which a record may still be unfinished.
    bytes: Vec<u8>,
    inflater: Option<MultiGzDecoder<Vec<u8>>>,
    /// How much content there was.
    pub(super) length: u64,
}

/// Why content cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadContent {
    /// It is longer than a body may be.
    TooLong,
    /// It is not gzip.
    NotGzip,
}

impl Content {
    pub(super) fn new(is_gzip: bool) -> Self {
        Self {
            bytes: Vec::new(),
            inflater: is_gzip.then(|| MultiGzDecoder::new(Vec::new())),
            length: 0,
        }
    }

    /// Whether bytes are content as they come, and none wait.
    pub(super) fn is_direct(&self) -> bool {
        self.inflater.is_none() && self.bytes.is_empty()
    }

    /// Content that was taken from where it came.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.length += bytes as u64;
    }

    /// Takes some of `data`; returns how much.
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

    /// Nothing more comes.
    pub(super) fn finish(&mut self) -> Result<(), BadContent> {
        if let Some(inflater) = &mut self.inflater {
            inflater.try_finish().map_err(|_| BadContent::NotGzip)?;
            self.collect()?;
        }
        Ok(())
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

    /// What waits to be decoded.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes
    }

    /// So much of it was decoded.
    pub(super) fn consume(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }
}
