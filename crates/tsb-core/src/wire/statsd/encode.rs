//! Encodes samples to lines.

use super::{MetricType, wire_name};
use crate::batch::Batch;
use crate::series::Catalog;
use crate::wire::output_buffer::{OutputBuffer, ShortText, TextTable};
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// Turns batches into lines, without their timestamps.
///
/// A signed gauge would be a relative change, so a negative value is preceded by setting the gauge
/// to zero, in the same line. Left out, and counted by [`Encoder::skipped`]: values that are not
/// finite, minus zero, negative timers, and ids that are not in the catalog.
#[derive(Debug)]
pub struct StatsdEncoder {
    /// The key and a colon.
    heads: TextTable,
    kinds: Vec<MetricType>,
    buffer: OutputBuffer,
    skipped: u64,
}

impl StatsdEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let (mut heads, mut kinds) = (TextTable::new(), Vec::with_capacity(catalog.len()));
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(Protocol::Statsd, key, why);
            let (wire, kind) = wire_name(key).map_err(refuse)?;
            let pushed = heads.push(format!("{wire}:").as_bytes());
            pushed.ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
            kinds.push(kind);
        }
        Ok(Self {
            heads,
            kinds,
            buffer: OutputBuffer::new(),
            skipped: 0,
        })
    }

    #[inline(always)]
    fn line(&mut self, id: usize, value: f64, out: &mut Vec<u8>) -> bool {
        let (Some(head), Some(&kind)) = (self.heads.get(id), self.kinds.get(id)) else {
            return false;
        };
        let is_negative = value.is_sign_negative();
        if !value.is_finite() || (is_negative && (value == 0.0 || kind == MetricType::Timer)) {
            return false;
        }
        self.buffer.text(head, out);
        if is_negative && kind == MetricType::Gauge {
            self.buffer.short_text(&ZERO);
        }
        self.buffer.value(value);
        self.buffer.short_text(kind.end());
        true
    }
}

impl MetricType {
    /// The end of a line.
    fn end(self) -> &'static ShortText {
        static ENDS: [ShortText; 3] = [ShortText::of(b"|g\n"), ShortText::of(b"|c\n"), ShortText::of(b"|ms\n")];
        match self {
            Self::Gauge => &ENDS[0],
            Self::Counter => &ENDS[1],
            Self::Timer => &ENDS[2],
        }
    }
}

/// Sets a gauge to zero before a signed value.
const ZERO: ShortText = ShortText::of(b"0|g:");

impl Encoder for StatsdEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        for (id, _, value) in batch.iter() {
            if !self.line(id.index(), value, out) {
                self.skipped += 1;
            }
        }
        self.buffer.flush(out);
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
