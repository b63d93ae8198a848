//! Lines to samples.
//!
//! As the Graphite decoder, three ways, all fully checked. *In order*: name, field after
//! field and timestamp are compared with what is expected; only values are parsed. *In any
//! order*: names are looked up in groups, so that the misses of the cache overlap.
//! *Exactly*: whatever these two do not recognise is read as InfluxDB would.

mod datagram;

use std::sync::Arc;

use datagram::Held;

use super::line::{self, Field};
use super::tail::Tail;
use super::window::{Follow, name_length, read_value};
use super::{MAX_FIELDS, Precision, series_key};
use crate::time::{Clock, Timestamp};
use crate::wire::columns::Columns;
use crate::wire::lanes::prefetch;
use crate::wire::names::{Hash, Names};
use crate::wire::number::{WINDOW, Window, window_at};
use crate::wire::order::Order;
use crate::wire::{Decoder, Fatal, MAX_RECORD, Malformed, NotAdmitted, Room, Sequence, Sink, unended};

/// How many names are looked up together.
const GROUP: usize = 32;

/// How far into a window a field may begin; beyond, the window is moved on.
const LAST_FIELD: usize = 160;

/// What of a window stays when it is moved: numbers are read backwards from their end.
const KEPT: usize = 16;

/// The bytes at the end of a payload that are copied, to have room behind them.
const LAST: usize = 768;

/// Turns the lines of one connection into batches.
pub struct InfluxDecoder {
    /// Each series' line head, a space and its field; `=` ends it.
    names: Names,
    /// Of each name: what stands before its value where it is not the first of its line.
    follows: Vec<Follow>,
    columns: Columns,
    tail: Tail,
    clock: Arc<dyn Clock>,
    /// The name that is expected next; may be one behind the last.
    expected: usize,
    order: Order,
    /// Lines that are parsed.
    gathered: Box<[Pending; GROUP]>,
    /// Lines whose entries are guessed as well.
    guessed: Box<[Pending; GROUP]>,
    /// The values of a line behind its first.
    values: Box<[f64; MAX_FIELDS]>,
    /// What the exact way found in a line.
    fields: Vec<Field>,
    /// The name that the exact way looks up.
    name: Vec<u8>,
    whole: bool,
    held: Held,
}

/// A line whose name is not looked up yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    hash: Hash,
    /// A guess.
    entry: usize,
    start: usize,
    /// Of the name, terminator included.
    length: usize,
    at: Timestamp,
    value: f64,
    /// Where more fields begin; 0 when there are none.
    more: usize,
}

impl InfluxDecoder {
    /// A decoder for one connection. The clock says when a line without timestamp came.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        // The seed has no influence on what is decoded.
        let seed = clock.wall().as_nanos() as u64 ^ clock.now().rotate_left(32);
        Self {
            names: Names::new(b'=', seed),
            follows: Vec::new(),
            columns: Columns::new(),
            tail: Tail::new(Precision::NANOSECONDS),
            clock,
            expected: 0,
            order: Order::new(),
            gathered: Box::new([Pending::default(); GROUP]),
            guessed: Box::new([Pending::default(); GROUP]),
            values: Box::new([0.0; MAX_FIELDS]),
            fields: Vec::new(),
            name: Vec::new(),
            whole: false,
            held: Held::default(),
        }
    }

    /// A decoder of datagrams: each call of [`Decoder::decode`] is one, and as InfluxDB has
    /// it on UDP, one bad line discards the whole.
    pub fn of_datagrams(clock: Arc<dyn Clock>) -> Self {
        Self {
            whole: true,
            ..Self::new(clock)
        }
    }

    /// Has its names take their memory from what a listener allows all its connections.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.names.within(room, size_of::<Follow>());
        self
    }

    /// What the timestamps of the lines to come count.
    pub fn set_precision(&mut self, precision: Precision) {
        if precision != self.tail.precision() {
            self.tail = Tail::new(precision);
        }
    }

    /// Decodes lines of `bytes` from `at` on, as long as they are of the usual kind and
    /// begin before `end`. Returns where the next one begins.
    fn usual(&mut self, bytes: &[u8], mut at: usize, end: usize, sink: &mut dyn Sink) -> usize {
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

    /// Lines whose names come as they came before.
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

    /// Lines that continue a run: the expected names, the ids that follow, the same timestamp.
    #[inline(always)]
    fn run(&mut self, bytes: &[u8], mut at: usize, end: usize) -> usize {
        let tail = self.tail;
        let (first, time, values) = self.columns.run();
        if time != tail.at() {
            return at;
        }
        let (cells, rests) = self.names.from(self.expected);
        let follows = self.follows.get(self.expected..).unwrap_or_default();
        // Counts the samples of whole lines; what lies behind is not claimed.
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
                let (Some(follow), Some(slot)) = (follows.get(count), values.get_mut(count)) else {
                    break 'lines;
                };
                if follow.id != first.wrapping_add(count as u32) {
                    break 'lines;
                }
                let value = follow
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
                // Lines are as long as the one before, but the processor does not see it.
                prefetch(cell);
            }
            done = count;
        }
        self.columns.ran(done);
        self.expected += done;
        at
    }

    /// One line of the usual kind; the same place when there is none.
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

    /// The known name that the window begins with, and its length.
    fn seek(&self, window: &Window) -> Option<(usize, usize)> {
        let length = name_length(window)?;
        let hash = self.names.hash_in(window, length);
        Some((self.names.find_in(window, hash, length)?, length))
    }

    /// What follows the first value of a line: the fields that followed before, their values
    /// into `values`, and the timestamp. Returns where the next line begins and how many
    /// fields there were.
    #[inline(always)]
    fn rest_of_line(&mut self, bytes: &[u8], at: usize, end: usize, entry: usize) -> Option<(usize, usize)> {
        let (mut base, mut behind, mut count) = (at.saturating_sub(KEPT), at.min(KEPT), 0);
        let mut window = window_at(bytes, base, end)?;
        while window[behind] == b',' {
            if behind > LAST_FIELD {
                (base, behind) = (base + behind - KEPT, KEPT);
                window = window_at(bytes, base, end)?;
            }
            let start = self.follows.get(entry + 1 + count)?.begins(window, behind)?;
            let decimal = read_value(window, start)?;
            *self.values.get_mut(count)? = decimal.value;
            count += 1;
            behind = decimal.end;
        }
        let next = self.tail.read(window, behind)?;
        Some((base + next, count))
    }

    /// Lines whose names come in any order. While one group is parsed, the cache fetches
    /// what looking up the names of the group before it takes.
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
                self.order = Order::new();
                return at;
            }
            if next_count == 0 {
                return at;
            }
            (count, behind) = (next_count, next_behind);
        }
    }

    /// Takes a line whose name is known; returns how many fields its first has behind it.
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

    /// The entry of a line's name; `None` when the line is for the exact way.
    #[inline(always)]
    fn resolve(&self, bytes: &[u8], end: usize, pending: &Pending) -> Option<usize> {
        let window = window_at(bytes, pending.start, end)?;
        if self.names.begins(pending.entry, window) == Some(pending.length) {
            return Some(pending.entry);
        }
        self.names.find_in(window, pending.hash, pending.length)
    }

    /// Parses lines up to a group's worth; returns how many, and where the next begins.
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
                // May be one that is quoted: then the line is for the exact way, and what
                // was gathered behind it is forgotten.
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

    /// One line, without its line feed, read as InfluxDB would.
    #[inline(never)]
    fn exact(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if !line::is_point(bytes) {
            return;
        }
        let mut fields = std::mem::take(&mut self.fields);
        let parsed = line::parse(bytes, self.tail.precision(), &mut fields);
        let taken = parsed.and_then(|line| {
            let now = || self.tail.precision().cut(self.clock.wall());
            let at = line.at.unwrap_or_else(now);
            // Told before anything of the line is taken.
            series_key(line.head, b"")?;
            let mut before = None;
            for field in &fields {
                match field.value {
                    Ok(value) => {
                        before = self.sample(line.head, &bytes[field.key.clone()], before, (at, value), sink)?;
                    }
                    Err(what) => sink.malformed(&Malformed { what, bytes }),
                }
            }
            Ok(())
        });
        if let Err(what) = taken {
            sink.malformed(&Malformed { what, bytes });
        }
        self.fields = fields;
    }

    /// One field of a line that is read exactly, and the entry of the one before it in its
    /// line. Returns its own entry.
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
            self.follows.resize(self.names.len(), Follow::NEVER);
            // Only then do both have one line head, now and for ever.
            if before.is_some_and(|before| before + 1 == entry) {
                self.follows[entry] = Follow::new(key, id.map_or_else(NotAdmitted::stand_in, |id| id.0));
            }
            self.expected = entry + 1;
        }
        match id {
            Ok(id) => self.columns.push(id, at, value, sink),
            Err(why) => sink.refused(why, 1),
        }
        Ok(entry)
    }

    /// Every line that ends; returns how many bytes that took.
    fn lines(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> usize {
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let mut at = 0;
        while at < end {
            at += self.usual_lines(&bytes[at..], end - at, sink);
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

    /// Lines of the usual kind before `end`; returns where the first other one begins.
    fn usual_lines(&mut self, bytes: &[u8], end: usize, sink: &mut dyn Sink) -> usize {
        let mut at = 0;
        if bytes.len() > LAST {
            at = self.usual(bytes, at, end, sink);
        }
        let rest = bytes.len() - at;
        if rest <= LAST && at < end {
            // The last lines, with room behind them.
            let mut last = [0; LAST + WINDOW];
            last[..rest].copy_from_slice(&bytes[at..]);
            at += self.usual(&last, 0, end - at, sink);
        }
        at
    }
}

impl Decoder for InfluxDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        if self.whole {
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
        // The last line needs no end.
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
