//! Encodes samples to lines.

use super::{Dialect, wire_name};
use crate::batch::Batch;
use crate::series::Catalog;
use crate::time::{SECOND_NS, Timestamp};
use crate::wire::number::push_i64;
use crate::wire::output_buffer::{OutputBuffer, ShortText, TextTable};
use crate::wire::{Encoder, UnsupportedSeries};

const MILLI_NS: i64 = 1_000_000;

/// Turns batches into `put` lines.
///
/// Timestamps are written in seconds if they are whole, otherwise in milliseconds; finer ones are
/// cut. Left out, and counted by [`Encoder::skipped`]: values that are not finite, ids that are
/// not in the catalog, and timestamps that the receiver would misread. OpenTSDB accepts none
/// before 1970, and milliseconds only with thirteen digits (2001 to 2286); KairosDB treats numbers
/// below 3,000,000,000 as seconds.
#[derive(Debug)]
pub struct PutEncoder {
    dialect: Dialect,
    /// `put metric `
    heads: TextTable,
    /// The tags, each preceded by a space, and a line feed.
    tails: TextTable,
    at: Timestamp,
    /// The time and a space; empty if the time cannot be carried.
    time: ShortText,
    buffer: OutputBuffer,
    skipped: u64,
}

impl PutEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(dialect: Dialect, catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let (mut heads, mut tails) = (TextTable::new(), TextTable::new());
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(dialect.protocol(), key, why);
            let (metric, tags) = wire_name(dialect, key).map_err(refuse)?;
            let pushed = heads.push(format!("put {metric} ").as_bytes());
            let pushed = pushed.and_then(|()| tails.push(format!("{tags}\n").as_bytes()));
            pushed.ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
        }
        let at = Timestamp(0);
        Ok(Self {
            dialect,
            heads,
            tails,
            at,
            time: time(dialect, at),
            buffer: OutputBuffer::new(),
            skipped: 0,
        })
    }

    #[inline(always)]
    fn line(&mut self, id: usize, value: f64, out: &mut Vec<u8>) -> bool {
        let (Some(head), Some(tail)) = (self.heads.get(id), self.tails.get(id)) else {
            return false;
        };
        if self.time.length() == 0 || !value.is_finite() {
            return false;
        }
        self.buffer.text(head, out);
        self.buffer.short_text(&self.time);
        self.buffer.value_with_point(value);
        self.buffer.text(tail, out);
        true
    }
}

impl Dialect {
    /// Whether a line can say this time, cut to milliseconds: [`PutEncoder`] leaves out a sample of
    /// any other.
    pub fn carries(self, at: Timestamp) -> bool {
        time(self, at).length() > 0
    }
}

/// A time and a space in the receiver's format; empty if it cannot be carried.
fn time(dialect: Dialect, at: Timestamp) -> ShortText {
    let millis = at.0.div_euclid(MILLI_NS);
    let is_whole = at.0.rem_euclid(SECOND_NS as i64) == 0;
    let (seconds, milliseconds) = match dialect {
        Dialect::Opentsdb => (1..=0xffff_ffff, 1_000_000_000_000..=9_999_999_999_999),
        Dialect::Kairosdb => (i64::MIN..=2_999_999_999, 3_000_000_000..=i64::MAX),
    };
    let number = if is_whole && seconds.contains(&at.as_secs()) {
        at.as_secs()
    } else if milliseconds.contains(&millis) {
        millis
    } else {
        return ShortText::EMPTY;
    };
    let mut text = Vec::new();
    push_i64(number, &mut text);
    text.push(b' ');
    ShortText::new(&text).unwrap_or(ShortText::EMPTY)
}

impl Encoder for PutEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        for (id, at, value) in batch.iter() {
            if at != self.at {
                (self.at, self.time) = (at, time(self.dialect, at));
            }
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
