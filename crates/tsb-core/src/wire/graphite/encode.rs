//! Samples to lines.

use super::wire_name;
use crate::batch::{Batch, Ids, Times};
use crate::series::Catalog;
use crate::time::Timestamp;
use crate::wire::number::{MAX_TEXT, format_f64, format_i64, put_plain};
use crate::wire::{Encoder, Protocol, Uncarried};

/// Room that one line of the fast path may touch: a name, ten digits, a timestamp.
const LINE: usize = 96;

/// The longest name, space included, that the fast path copies.
const LONGEST: usize = 64;

/// The shortest one: [`put_plain`] overwrites nine bytes before the value.
const SHORTEST: usize = 10;

/// Lines are made in a block that stays in the first-level cache.
const BLOCK: usize = 8192;

/// Turns batches into lines.
///
/// Timestamps are cut to whole seconds. Left out, and counted by [`Encoder::skipped`]:
/// values that are not numbers (carbon drops them), timestamps in the second before the
/// epoch (-1 means "now" to carbon), and ids that the catalog does not have.
pub struct GraphiteEncoder {
    /// Each series' name and a space, one behind the other, then room to copy too much.
    names: Vec<u8>,
    /// Name `i` is `names[ends[i]..ends[i + 1]]`.
    ends: Vec<u32>,
    tail: Tail,
    block: Box<[u8; BLOCK]>,
    // Invariant: used <= BLOCK
    used: usize,
    skipped: u64,
}

/// The end of a line: a space, the seconds, a line feed.
#[derive(Clone, Copy, Debug)]
struct Tail {
    seconds: i64,
    text: [u8; 32],
    // In [3, 22].
    length: usize,
}

impl Tail {
    fn new(seconds: i64) -> Self {
        let mut digits = [0; MAX_TEXT];
        let count = format_i64(seconds, &mut digits);
        let mut text = [0; 32];
        text[0] = b' ';
        text[1..=count].copy_from_slice(&digits[..count]);
        text[count + 1] = b'\n';
        let length = count + 2;
        Self { seconds, text, length }
    }

    /// Whether a copy of 16 bytes is enough.
    fn is_short(&self) -> bool {
        self.length <= 16
    }
}

impl GraphiteEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, Uncarried> {
        let mut names = Vec::new();
        let mut ends = vec![0];
        for key in catalog.keys() {
            let refuse = |why| Uncarried::new(Protocol::Graphite, key, why);
            let name = wire_name(key).map_err(refuse)?;
            names.extend_from_slice(name.as_bytes());
            names.push(b' ');
            let end = u32::try_from(names.len() + LONGEST);
            let end = end.map_err(|_| refuse("the names together exceed 4 GiB"))?;
            ends.push(end - LONGEST as u32);
        }
        names.resize(names.len() + LONGEST, 0);
        Ok(Self {
            names,
            ends,
            tail: Tail::new(0),
            block: Box::new([0; BLOCK]),
            used: 0,
            skipped: 0,
        })
    }

    /// One line; `false` when there is no fast way to write it.
    #[inline(always)]
    fn fast_line(&mut self, index: usize, value: f64) -> bool {
        let Some(&[start, end]) = self.ends.get(index..).and_then(|ends| ends.first_chunk()) else {
            return false;
        };
        let (start, length) = (start as usize, (end - start) as usize);
        let Some(name) = self.names.get(start..).and_then(|names| names.first_chunk::<LONGEST>()) else {
            return false;
        };
        let line = self.block.get_mut(self.used..).and_then(|rest| rest.first_chunk_mut::<LINE>());
        let (Some(line), SHORTEST..=LONGEST) = (line, length) else {
            return false;
        };
        let Some(digits) = put_plain(value, line, length) else {
            return false;
        };
        put_name(name, length, line);
        let end = length + digits;
        line[end..end + 16].copy_from_slice(&self.tail.text[..16]);
        self.used += end + self.tail.length;
        true
    }

    /// One line of any kind, or none.
    #[inline(never)]
    fn slow_line(&mut self, index: usize, value: f64, out: &mut Vec<u8>) {
        let known = index + 1 < self.ends.len();
        if !known || value.is_nan() || self.tail.seconds == -1 {
            self.skipped += 1;
            return;
        }
        let name = &self.names[self.ends[index] as usize..self.ends[index + 1] as usize];
        let most = name.len() + MAX_TEXT + self.tail.text.len();
        if self.used + most > BLOCK {
            out.extend_from_slice(&self.block[..self.used]);
            self.used = 0;
        }
        let mut text = [0; MAX_TEXT];
        let digits = format_f64(value, &mut text);
        let parts = [name, &text[..digits], &self.tail.text[..self.tail.length]];
        if most > BLOCK {
            parts.iter().for_each(|part| out.extend_from_slice(part));
            return;
        }
        for part in parts {
            self.block[self.used..self.used + part.len()].copy_from_slice(part);
            self.used += part.len();
        }
    }

    #[inline(always)]
    fn line(&mut self, index: usize, value: f64, out: &mut Vec<u8>) {
        if self.used > BLOCK - LINE {
            out.extend_from_slice(&self.block[..self.used]);
            self.used = 0;
        }
        if !self.fast_line(index, value) {
            self.slow_line(index, value, out);
        }
    }

    fn set_time(&mut self, at: Timestamp) {
        let seconds = at.as_secs();
        if seconds != self.tail.seconds {
            self.tail = Tail::new(seconds);
        }
    }

    /// Lines of one timestamp.
    fn lines(&mut self, ids: impl Iterator<Item = usize>, values: &[f64], out: &mut Vec<u8>) {
        if self.tail.is_short() && self.tail.seconds != -1 {
            for (index, &value) in ids.zip(values) {
                self.line(index, value, out);
            }
        } else {
            for (index, &value) in ids.zip(values) {
                self.slow_line(index, value, out);
            }
        }
    }
}

/// Copies a name of 10 to 64 bytes in two pieces that may overlap: no loop, no call.
#[inline(always)]
fn put_name(name: &[u8; LONGEST], length: usize, line: &mut [u8; LINE]) {
    if length > 32 {
        line[..32].copy_from_slice(&name[..32]);
        line[length - 32..length].copy_from_slice(&name[length - 32..length]);
    } else if length >= 16 {
        line[..16].copy_from_slice(&name[..16]);
        line[length - 16..length].copy_from_slice(&name[length - 16..length]);
    } else {
        line[..8].copy_from_slice(&name[..8]);
        line[length - 8..length].copy_from_slice(&name[length - 8..length]);
    }
}

impl Encoder for GraphiteEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let values = batch.values();
        match (batch.ids(), batch.times()) {
            (Ids::Range(first), Times::One(at)) => {
                self.set_time(at);
                self.lines(first.index().., values, out);
            }
            (Ids::Each(ids), Times::One(at)) => {
                self.set_time(at);
                self.lines(ids.iter().map(|id| id.index()), values, out);
            }
            (_, Times::Each(times)) => {
                for (index, at) in times.iter().enumerate() {
                    self.set_time(*at);
                    let id = batch.id(index).index();
                    self.lines(std::iter::once(id), &values[index..=index], out);
                }
            }
        }
        out.extend_from_slice(&self.block[..self.used]);
        self.used = 0;
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl std::fmt::Debug for GraphiteEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphiteEncoder")
            .field("series", &(self.ends.len() - 1))
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}
