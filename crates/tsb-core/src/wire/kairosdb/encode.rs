//! Encodes samples to a body.

use crate::batch::Batch;
use crate::series::Catalog;
use crate::time::Timestamp;
use crate::wire::number::push_i64;
use crate::wire::output_buffer::{OutputBuffer, ShortText, TextTable};
use crate::wire::put::{DEFAULT_TAG, Dialect, wire_name};
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// Encodes a batch to one body, an array.
///
/// Timestamps are cut to milliseconds. Left out, and counted by [`Encoder::skipped`]: values that
/// are not finite, and ids that are not in the catalog. A batch without any remaining sample
/// produces no body.
#[derive(Debug)]
pub struct KairosdbJsonEncoder {
    /// The text of each series up to the time.
    heads: TextTable,
    /// The text from after the value to the end of the object.
    tails: TextTable,
    at: Timestamp,
    /// The time and a comma.
    time: ShortText,
    buffer: OutputBuffer,
    skipped: u64,
}

impl KairosdbJsonEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let (mut heads, mut tails) = (TextTable::new(), TextTable::new());
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(Protocol::KairosdbJson, key, why);
            // Names contain no character that JSON would escape.
            let (metric, _) = wire_name(Dialect::Kairosdb, key).map_err(refuse)?;
            let labels = key.labels().iter();
            let mut tags: Vec<String> = labels
                .map(|(label, value)| format!("\"{label}\":\"{value}\""))
                .collect();
            if tags.is_empty() {
                let (label, value) = DEFAULT_TAG;
                tags.push(format!("\"{label}\":\"{value}\""));
            }
            let pushed = heads.push(format!("{{\"name\":\"{metric}\",\"datapoints\":[[").as_bytes());
            let tail = format!("]],\"tags\":{{{}}}}}", tags.join(","));
            let pushed = pushed.and_then(|()| tails.push(tail.as_bytes()));
            pushed.ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
        }
        let at = Timestamp(0);
        Ok(Self {
            heads,
            tails,
            at,
            time: time(at),
            buffer: OutputBuffer::new(),
            skipped: 0,
        })
    }
}

fn time(at: Timestamp) -> ShortText {
    let mut text = Vec::new();
    push_i64(at.0.div_euclid(1_000_000), &mut text);
    text.push(b',');
    // Fourteen digits and a sign fit.
    ShortText::new(&text).unwrap_or(ShortText::EMPTY)
}

impl Encoder for KairosdbJsonEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        const OPENING: ShortText = ShortText::of(b"[");
        const COMMA: ShortText = ShortText::of(b",");
        let mut is_first = true;
        for (id, at, value) in batch.iter() {
            let (Some(head), Some(tail)) = (self.heads.get(id.index()), self.tails.get(id.index())) else {
                self.skipped += 1;
                continue;
            };
            if !value.is_finite() {
                self.skipped += 1;
                continue;
            }
            if at != self.at {
                (self.at, self.time) = (at, time(at));
            }
            self.buffer.make_room(out);
            self.buffer.short_text(if is_first { &OPENING } else { &COMMA });
            is_first = false;
            self.buffer.text(head, out);
            self.buffer.short_text(&self.time);
            self.buffer.value_with_point(value);
            self.buffer.text(tail, out);
        }
        self.buffer.flush(out);
        if !is_first {
            out.push(b']');
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
