//! Decodes lines to samples.
//!
//! Like the Graphite decoder, it has three paths, all with full validation. *In order*: name, each
//! field and timestamp are compared with the expected ones, and only values are parsed. *In any
//! order*: names are looked up in groups, so that cache misses overlap. *Exact*: any line that
//! these two do not recognize is parsed like InfluxDB does.

mod datagram;

use std::sync::Arc;

use datagram::DecodedDatagram;

use super::cached_line_end::CachedLineEnd;
use super::fast_path::{NextField, name_length, read_value};
use super::line::{self, Field};
use super::{MAX_FIELDS, Precision, series_key};
use crate::time::{Clock, Timestamp};
use crate::wire::columns::Columns;
use crate::wire::name_order::NameOrder;
use crate::wire::names::{Hash, Names};
use crate::wire::number::{WINDOW, Window, window_at};
use crate::wire::simd::prefetch;
use crate::wire::{Decoder, Fatal, MAX_RECORD, Malformed, NotAdmitted, Room, Sequence, Sink, unended, without_end};

/// Number of names that are looked up together.
const GROUP: usize = 32;

/// Maximum offset in a window at which a field may begin; beyond it, the window is advanced.
const LAST_FIELD: usize = 160;

/// Bytes of a window kept when it is advanced: numbers are read backwards from their end.
const KEPT: usize = 16;

/// Number of bytes at the end of a payload that are copied into a buffer with padding.
const LAST: usize = 768;

/// Turns the lines of one connection into batches.
pub struct InfluxDecoder {
    /// The line head of each series, a space and its field, terminated by `=`.
    names: Names,
    /// For each name, the text before its value if it is not the first in its line.
    next_fields: Vec<NextField>,
    columns: Columns,
    tail: CachedLineEnd,
    clock: Arc<dyn Clock>,
    /// Index of the expected next name; may be one past the last.
    expected: usize,
    order: NameOrder,
    /// Lines that are parsed.
    gathered: Box<[Pending; GROUP]>,
    /// Lines whose table entries are guessed too.
    guessed: Box<[Pending; GROUP]>,
    /// The values of a line after its first.
    values: Box<[f64; MAX_FIELDS]>,
    /// The fields of a line that the exact path found.
    fields: Vec<Field>,
    /// The name that the exact path looks up.
    name: Vec<u8>,
    framing: Framing,
    decoded: DecodedDatagram,
}

/// How lines come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// A stream, which may end in the middle of a line.
    Stream,
    /// Bodies of known length, whose last line may lack its end.
    Bodies,
    /// Datagrams, each of which is decoded as a whole.
    Datagrams,
}

/// A parsed line whose name is not looked up yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    hash: Hash,
    /// The guessed entry.
    entry: usize,
    start: usize,
    /// Length of the name, terminator included.
    length: usize,
    at: Timestamp,
    value: f64,
    /// Offset of further fields; 0 if there are none.
    more: usize,
}

impl InfluxDecoder {
    /// A decoder for one connection. The clock gives the time of lines without a timestamp.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        // The seed does not affect the result of decoding.
        let seed = clock.wall().as_nanos() as u64 ^ clock.now().rotate_left(32);
        Self {
            names: Names::new(b'=', seed),
            next_fields: Vec::new(),
            columns: Columns::new(),
            tail: CachedLineEnd::new(Precision::NANOSECONDS),
            clock,
            expected: 0,
            order: NameOrder::new(),
            gathered: Box::new([Pending::default(); GROUP]),
            guessed: Box::new([Pending::default(); GROUP]),
            values: Box::new([0.0; MAX_FIELDS]),
            fields: Vec::new(),
            name: Vec::new(),
            framing: Framing::Stream,
            decoded: DecodedDatagram::default(),
        }
    }

    /// A decoder of bodies of known length, such as those of HTTP: the last line of each may lack its end.
    pub fn of_bodies(clock: Arc<dyn Clock>) -> Self {
        Self {
            framing: Framing::Bodies,
            ..Self::new(clock)
        }
    }

    /// A decoder of datagrams: each call of [`Decoder::decode`] gets one, and as in InfluxDB over
    /// UDP, one invalid line discards the whole datagram.
    pub fn of_datagrams(clock: Arc<dyn Clock>) -> Self {
        Self {
            framing: Framing::Datagrams,
            ..Self::new(clock)
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.names.within(room, size_of::<NextField>());
        self
    }

    /// Sets the unit of timestamps for the following lines.
    pub fn set_precision(&mut self, precision: Precision) {
        if precision != self.tail.precision() {
            self.tail = CachedLineEnd::new(precision);
        }
    }

    /// Decodes lines of `bytes` from `at` on, as long as they are of the common form and begin
    /// before `end`. Returns the start of the next line.
    fn common_lines(&mut self, bytes: &[u8], mut at: usize, end: usize, sink: &mut dyn Sink) -> usize {
        loop {
            let begin = at;
            let was = self.order.is_kept();
            at = if self.order.is_kept() {
                self.ordered(bytes, at, end, sink)
            } else {
                self.scattered(bytes, at, end, sink)
            };
            if at == begin && was == self.order.is_kept() {
                return at;
            }
        }
    }

    /// Decodes lines whose names repeat the earlier order.
    fn ordered(&mut self, bytes: &[u8], mut at: usize, end: usize, sink: &mut dyn Sink) -> usize {
        loop {
            let begin = at;
            at = self.run(bytes, at, end);
            self.order.held(at - begin);
            let next = self.step(bytes, at, end, sink);
            if next == at {
                return at;
            }
            at = next;
        }
    }

    /// Decodes lines that continue a run: the expected names, consecutive ids, the same timestamp.
    #[inline(always)]
    fn run(&mut self, bytes: &[u8], mut at: usize, end: usize) -> usize {
        let tail = self.tail;
        let (first, time, values) = self.columns.run();
        if time != tail.at() {
            return at;
        }
        let (cells, rests) = self.names.from(self.expected);
        let next_fields = self.next_fields.get(self.expected..).unwrap_or_default();
        // Number of samples in complete lines; the samples of an incomplete line are not counted.
        let mut done = 0;
        'lines: while let Some(window) = window_at(bytes, at, end) {
            let mut count = done;
            let (Some(cell), Some(slot)) = (cells.get(count), values.get_mut(count)) else {
                break;
            };
            if cell.id != first.wrapping_add(count as u32) || !cell.begins(window, rests) {
                break;
            }
            let Some(decimal) = read_value(window, cell.length()) else {
                break;
            };
            *slot = decimal.value;
            count += 1;
            let (mut window, mut behind, mut base) = (window, decimal.end, at);
            while window[behind] == b',' {
                if behind > LAST_FIELD {
                    (base, behind) = (base + behind - KEPT, KEPT);
                    let Some(next) = window_at(bytes, base, end) else {
                        break 'lines;
                    };
                    window = next;
                }
                let (Some(next_field), Some(slot)) = (next_fields.get(count), values.get_mut(count)) else {
                    break 'lines;
                };
                if next_field.id != first.wrapping_add(count as u32) {
                    break 'lines;
                }
                let value = next_field
                    .begins(window, behind)
                    .and_then(|start| read_value(window, start));
                let Some(decimal) = value else { break 'lines };
                *slot = decimal.value;
                count += 1;
                behind = decimal.end;
            }
            let Some(next) = tail.again(window, behind) else { break };
            at = base + next;
            let fields = count - done;
            if fields > 1
                && let Some(cell) = cells.get(count + fields)
            {
                // Lines are usually as long as the previous one, but the processor cannot predict
                // the address.
                prefetch(cell);
            }
            done = count;
        }
        self.columns.ran(done);
        self.expected += done;
        at
    }

    /// Decodes one line of the common form; returns `at` if it is not one.
    #[inline(never)]
    fn step(&mut self, bytes: &[u8], at: usize, end: usize, sink: &mut dyn Sink) -> usize {
        let Some(window) = window_at(bytes, at, end) else {
            return at;
        };
        if self.expected >= self.names.len() {
            self.expected = 0;
        }
        let (entry, length) = if let Some(length) = self.names.begins(self.expected, window) {
            (self.expected, length)
        } else {
            let Some((entry, length)) = self.seek(window) else {
                return at;
            };
            if !self.order.missed() {
                return at;
            }
            (entry, length)
        };
        let Some(decimal) = read_value(window, length) else {
            return at;
        };
        let Some((next, more)) = self.rest_of_line(bytes, at + decimal.end, end, entry) else {
            return at;
        };
        let time = self.tail.at();
        self.take(entry, time, decimal.value, sink);
        for index in 0..more {
            self.take(entry + 1 + index, time, self.values[index], sink);
        }
        self.expected = entry + 1 + more;
        next
    }

    fn take(&mut self, entry: usize, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        match self.names.id(entry) {
            Ok(id) => self.columns.push(id, at, value, sink),
            Err(why) => sink.refused(why, 1),
        }
    }

    /// The known name at the beginning of the window, and its length.
    fn seek(&self, window: &Window) -> Option<(usize, usize)> {
        let length = name_length(window)?;
        let hash = self.names.hash_in(window, length);
        Some((self.names.find_in(window, hash, length)?, length))
    }

    /// Parses the rest of a line after its first value: the fields that followed before, whose
    /// values go into `values`, and the timestamp. Returns the start of the next line and the
    /// number of fields.
    #[inline(always)]
    fn rest_of_line(&mut self, bytes: &[u8], at: usize, end: usize, entry: usize) -> Option<(usize, usize)> {
        let (mut base, mut behind, mut count) = (at.saturating_sub(KEPT), at.min(KEPT), 0);
        let mut window = window_at(bytes, base, end)?;
        while window[behind] == b',' {
            if behind > LAST_FIELD {
                (base, behind) = (base + behind - KEPT, KEPT);
                window = window_at(bytes, base, end)?;
            }
            let start = self.next_fields.get(entry + 1 + count)?.begins(window, behind)?;
            let decimal = read_value(window, start)?;
            *self.values.get_mut(count)? = decimal.value;
            count += 1;
            behind = decimal.end;
        }
        let next = self.tail.read(window, behind)?;
        Some((base + next, count))
    }

    /// Decodes lines with names in any order. While one group is parsed, the cache loads the table
    /// entries of the previous group's names.
    fn scattered(&mut self, bytes: &[u8], mut at: usize, end: usize, sink: &mut dyn Sink) -> usize {
        let (mut count, mut behind) = self.gather(bytes, at, end);
        loop {
            std::mem::swap(&mut self.gathered, &mut self.guessed);
            for pending in &mut self.guessed[..count] {
                pending.entry = self.names.guess(pending.hash);
            }
            let (next_count, next_behind) = self.gather(bytes, behind, end);
            let mut successors = 0;
            for index in 0..count {
                let pending = self.guessed[index];
                at = pending.start;
                let Some(entry) = self.resolve(bytes, end, &pending) else {
                    return at;
                };
                let Some(more) = self.take_line(bytes, end, &pending, entry, sink) else {
                    return at;
                };
                successors += usize::from(entry == self.expected);
                self.expected = entry + 1 + more;
            }
            at = behind;
            if 2 * successors > GROUP {
                self.order = NameOrder::new();
                return at;
            }
            if next_count == 0 {
                return at;
            }
            (count, behind) = (next_count, next_behind);
        }
    }

    /// Passes on a line whose name is known; returns the number of fields after its first.
    #[inline(always)]
    fn take_line(
        &mut self,
        bytes: &[u8],
        end: usize,
        pending: &Pending,
        entry: usize,
        sink: &mut dyn Sink,
    ) -> Option<usize> {
        let (mut at, mut more) = (pending.at, 0);
        if pending.more > 0 {
            (_, more) = self.rest_of_line(bytes, pending.more, end, entry)?;
            at = self.tail.at();
        }
        self.take_alone(entry, at, pending.value, sink);
        for index in 0..more {
            self.take_alone(entry + 1 + index, at, self.values[index], sink);
        }
        Some(more)
    }

    #[inline(always)]
    fn take_alone(&mut self, entry: usize, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        match self.names.id(entry) {
            Ok(id) => self.columns.push_alone(id, at, value, sink),
            Err(why) => sink.refused(why, 1),
        }
    }

    /// The entry of a line's name; `None` if the line needs the exact path.
    #[inline(always)]
    fn resolve(&self, bytes: &[u8], end: usize, pending: &Pending) -> Option<usize> {
        let window = window_at(bytes, pending.start, end)?;
        if self.names.begins(pending.entry, window) == Some(pending.length) {
            return Some(pending.entry);
        }
        self.names.find_in(window, pending.hash, pending.length)
    }

    /// Parses up to one group of lines; returns their number and the start of the next line.
    #[inline(always)]
    fn gather(&mut self, bytes: &[u8], mut at: usize, end: usize) -> (usize, usize) {
        let mut tail = self.tail;
        let mut count = 0;
        for pending in self.gathered.iter_mut() {
            let Some(window) = window_at(bytes, at, end) else { break };
            let Some(length) = name_length(window) else { break };
            let Some(decimal) = read_value(window, length) else {
                break;
            };
            let mut more = 0;
            let next = if window[decimal.end] == b',' {
                more = at + decimal.end;
                // This may be a quoted line feed: then the line needs the exact path, and what was
                // parsed after it is discarded.
                let rest = bytes.get(more..end.min(bytes.len()));
                rest.and_then(|rest| memchr::memchr(b'\n', rest))
                    .map(|feed| decimal.end + feed + 1)
            } else {
                tail.read(window, decimal.end)
            };
            let Some(next) = next else { break };
            let hash = self.names.hash_in(window, length);
            self.names.expect(hash);
            *pending = Pending {
                hash,
                entry: 0,
                start: at,
                length,
                at: tail.at(),
                value: decimal.value,
                more,
            };
            count += 1;
            at += next;
        }
        self.tail = tail;
        (count, at)
    }

    /// Parses one line, without its line feed, like InfluxDB does.
    #[inline(never)]
    fn exact(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if !line::is_point(bytes) {
            return;
        }
        let mut fields = std::mem::take(&mut self.fields);
        let parsed = line::parse(bytes, self.tail.precision(), &mut fields);
        let taken = parsed.and_then(|(head, at)| {
            let now = || self.tail.precision().cut(self.clock.wall());
            let at = at.unwrap_or_else(now);
            // Reported before any sample of the line is passed on.
            series_key(head, b"")?;
            let mut before = None;
            for field in &fields {
                match field.value {
                    Ok(value) => {
                        before = self.sample(head, &bytes[field.key.clone()], before, (at, value), sink)?;
                    }
                    Err(why) => sink.malformed(&Malformed {
                        what: why.text(),
                        bytes,
                    }),
                }
            }
            Ok(())
        });
        if let Err(what) = taken {
            sink.malformed(&Malformed { what, bytes });
        }
        self.fields = fields;
    }

    /// Decodes one field on the exact path, given the entry of the previous field in its line.
    /// Returns its own entry.
    fn sample(
        &mut self,
        head: &[u8],
        key: &[u8],
        before: Option<usize>,
        (at, value): (Timestamp, f64),
        sink: &mut dyn Sink,
    ) -> Result<Option<usize>, &'static str> {
        self.name.clear();
        self.name.extend_from_slice(head);
        self.name.push(b' ');
        self.name.extend_from_slice(key);
        let entry = self.names.find(&self.name);
        let (entry, id) = if let Some(entry) = entry {
            (Some(entry), self.names.id(entry))
        } else {
            let id = sink.series(&series_key(head, key)?);
            (self.names.insert(&self.name, id), id)
        };
        if let Some(entry) = entry {
            self.next_fields.resize(self.names.len(), NextField::NEVER);
            // Only consecutive entries are certain to have the same line head permanently.
            if before.is_some_and(|before| before + 1 == entry) {
                self.next_fields[entry] = NextField::new(key, id.map_or_else(NotAdmitted::stand_in, |id| id.0));
            }
            self.expected = entry + 1;
        }
        match id {
            Ok(id) => self.columns.push(id, at, value, sink),
            Err(why) => sink.refused(why, 1),
        }
        Ok(entry)
    }

    /// Decodes every complete line; returns the number of bytes consumed.
    fn lines(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> usize {
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let mut at = 0;
        while at < end {
            at += self.all_common_lines(&bytes[at..], end - at, sink);
            if at < end {
                let Some(length) = line::length(&bytes[at..]).filter(|length| *length < MAX_RECORD) else {
                    break;
                };
                self.exact(&bytes[at..at + length], sink);
                at += length + 1;
            }
        }
        at.min(bytes.len())
    }

    /// Decodes lines of the common form before `end`; returns the start of the first other line.
    fn all_common_lines(&mut self, bytes: &[u8], end: usize, sink: &mut dyn Sink) -> usize {
        let mut at = 0;
        if bytes.len() > LAST {
            at = self.common_lines(bytes, at, end, sink);
        }
        let rest = bytes.len() - at;
        if rest <= LAST && at < end {
            // The last lines, copied into a buffer with padding.
            let mut last = [0; LAST + WINDOW];
            last[..rest].copy_from_slice(&bytes[at..]);
            at += self.common_lines(&last, 0, end - at, sink);
        }
        at
    }
}

impl Decoder for InfluxDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        if self.framing == Framing::Datagrams {
            self.datagram(bytes, sink);
            return Ok(bytes.len());
        }
        let at = self.lines(bytes, sink);
        self.columns.flush(sink);
        unended(bytes, at, sink)
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if self.framing == Framing::Stream {
            return without_end(rest, sink);
        }
        self.exact(rest, sink);
        self.columns.flush(sink);
    }
}

impl std::fmt::Debug for InfluxDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InfluxDecoder")
            .field("names", &self.names)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
