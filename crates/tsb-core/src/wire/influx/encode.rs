//! Encodes samples to lines.

use super::join::Joins;
use super::{TIMES, wire_name};
use crate::batch::{Batch, Ids, Times};
use crate::series::Catalog;
use crate::time::Timestamp;
use crate::wire::number::{MAX_TEXT, format_i64};
use crate::wire::output_buffer::{OutputBuffer, ShortText, TextTable};
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// Number of samples ahead of which a line head is prefetched. The heads of a whole fleet do not
/// fit into the second-level cache, and with many fields per line, or ids in no order, the
/// processor cannot predict the next one.
const AHEAD: usize = 24;

/// Turns batches into lines.
///
/// Every value is written as a float, so that a field keeps its type. Left out, and counted by
/// [`Encoder::skipped`]: values that are not finite, the two lowest timestamps and the highest,
/// which InfluxDB reserves, and ids that are not in the catalog.
pub struct InfluxEncoder {
    /// The line head of each series, a space, its field, and `=`.
    heads: TextTable,
    joins: Joins,
    at: Timestamp,
    /// Whether the wire can carry the current timestamp.
    is_timed: bool,
    /// A space, the timestamp and a line feed.
    tail: ShortText,
    buffer: OutputBuffer,
    /// Whether a line is open, without its end.
    open: bool,
    skipped: u64,
}

impl InfluxEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let mut heads = TextTable::new();
        let mut names = Vec::with_capacity(catalog.len());
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(Protocol::Influx, key, why);
            let name = wire_name(key).map_err(refuse)?;
            let text = format!("{} {}=", name.head, name.field);
            heads
                .push(text.as_bytes())
                .ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
            names.push(name);
        }
        let at = Timestamp(0);
        Ok(Self {
            heads,
            joins: Joins::new(names.iter()),
            at,
            is_timed: true,
            tail: tail(at),
            buffer: OutputBuffer::new(),
            open: false,
            skipped: 0,
        })
    }

    /// Writes lines with one timestamp. `id` returns the series of the value at an index, and is
    /// also called beyond the last value. A sample may join the line of the previous one if its id
    /// is the next.
    #[inline(always)]
    fn lines(&mut self, id: impl Fn(usize) -> usize, values: &[f64], out: &mut Vec<u8>) {
        let mut next = usize::MAX;
        for (at, &value) in values.iter().enumerate() {
            let coming = id(at + AHEAD);
            if self.joins.is_alone(coming) || id(at + AHEAD - 1) + 1 != coming {
                self.heads.expect(coming);
            }
            let index = id(at);
            self.sample(index, index == next, value, out);
            next = index + 1;
        }
        self.close();
    }

    #[inline(always)]
    fn sample(&mut self, index: usize, follows: bool, value: f64, out: &mut Vec<u8>) {
        let (Some(head), Some(join)) = (self.heads.get(index), self.joins.get(index)) else {
            self.skipped += 1;
            return self.close();
        };
        let is_joined = follows && join.length() > 0;
        if self.is_timed {
            let is_written = if is_joined && self.open {
                self.buffer.common_field(join, value, out)
            } else {
                let before = if self.open { &self.tail } else { &ShortText::EMPTY };
                self.buffer.common_record(before, head, value, out)
            };
            if is_written {
                self.open = true;
                return;
            }
        }
        self.unusual(index, is_joined, value, out);
    }

    /// Writes a sample of any form.
    #[inline(never)]
    fn unusual(&mut self, index: usize, is_joined: bool, value: f64, out: &mut Vec<u8>) {
        if !is_joined {
            self.close();
        }
        let (Some(head), Some(join)) = (self.heads.get(index), self.joins.get(index)) else {
            return;
        };
        if !value.is_finite() || !self.is_timed {
            self.skipped += 1;
            return;
        }
        if self.open {
            self.buffer.make_room(out);
            self.buffer.short_text(join);
        } else {
            self.buffer.text(head, out);
            self.open = true;
        }
        self.buffer.value(value);
    }

    fn close(&mut self) {
        if self.open {
            self.buffer.short_text(&self.tail);
            self.open = false;
        }
    }

    fn set_time(&mut self, at: Timestamp) {
        if at != self.at {
            (self.at, self.tail) = (at, tail(at));
            self.is_timed = TIMES.contains(&at.0);
        }
    }
}

fn tail(at: Timestamp) -> ShortText {
    let mut digits = [0; MAX_TEXT];
    let count = format_i64(at.as_nanos(), &mut digits);
    let mut text = [0; MAX_TEXT + 2];
    text[0] = b' ';
    text[1..=count].copy_from_slice(&digits[..count]);
    text[count + 1] = b'\n';
    // Twenty digits, a sign and two bytes fit.
    ShortText::new(&text[..count + 2]).unwrap_or(ShortText::EMPTY)
}

impl Encoder for InfluxEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let values = batch.values();
        match (batch.ids(), batch.times()) {
            (Ids::Range(first), Times::One(at)) => {
                self.set_time(at);
                self.lines(|at| first.index() + at, values, out);
            }
            (Ids::Each(ids), Times::One(at)) => {
                self.set_time(at);
                let last = ids.len().saturating_sub(1);
                self.lines(|at| ids[at.min(last)].index(), values, out);
            }
            (_, Times::Each(times)) => {
                let mut start = 0;
                for run in times.chunk_by(|one, other| one == other) {
                    let samples = start..start + run.len();
                    self.set_time(run[0]);
                    let last = run.len() - 1;
                    let id = |at: usize| batch.id(start + at.min(last)).index();
                    self.lines(id, &values[samples.clone()], out);
                    start = samples.end;
                }
            }
        }
        self.buffer.flush(out);
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl std::fmt::Debug for InfluxEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InfluxEncoder")
            .field("series", &self.heads.len())
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}
