//! Lines to samples.
//!
//! Three ways through the bytes, all fully checked. *In order*: the line is compared with
//! the name that is expected next and with the last timestamp's text; what agrees with text
//! that was valid before is valid. *In any order*: lines are parsed in groups, and then the
//! group's names are looked up together, so that the misses of the cache overlap. *Exactly*:
//! whatever these two do not recognise is read as carbon would, one line at a time.

use std::sync::Arc;

use super::MAX_LINE;
use super::line::{self, Problem, Seconds};
use super::series_key;
use crate::time::{Clock, SECOND_NS, Timestamp};
use crate::wire::columns::Columns;
use crate::wire::names::{Hash, Names, find_end};
use crate::wire::number::{Decimal, WINDOW, Window, parse_f64, read_decimal, window_at};
use crate::wire::order::Order;
use crate::wire::stamp::Stamp;
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink};

/// How many names are looked up together.
const GROUP: usize = 32;

/// The longest text of a value that is looked at within a window.
const LONGEST_VALUE: usize = 40;

/// The latest timestamp that is read the fast way.
const LAST_SECOND: i64 = i64::MAX / SECOND_NS as i64;

/// Turns the lines of one connection into batches.
pub struct GraphiteDecoder {
    names: Names,
    columns: Columns,
    /// What a line ends with.
    tail: Stamp,
    clock: Arc<dyn Clock>,
    /// The name that is expected next; may be one behind the last.
    expected: usize,
    order: Order,
    /// Lines that are parsed.
    gathered: Box<[Pending; GROUP]>,
    /// Lines whose entries are guessed as well.
    guessed: Box<[Pending; GROUP]>,
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
}

impl GraphiteDecoder {
    /// A decoder for one connection. The clock says what "now" is (timestamp -1).
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        // The seed has no influence on what is decoded.
        let seed = clock.wall().as_nanos() as u64 ^ clock.now().rotate_left(32);
        Self {
            names: Names::new(b' ', seed),
            columns: Columns::new(),
            tail: Stamp::new(),
            clock,
            expected: 0,
            order: Order::new(),
            gathered: Box::new([Pending::default(); GROUP]),
            guessed: Box::new([Pending::default(); GROUP]),
        }
    }

    /// Has its names take their memory from what a listener allows all its connections.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.names.within(room, 0);
        self
    }

    /// Decodes lines of `bytes` from `at` on, as long as they are of the usual kind and
    /// begin before `end`, where a line ends. Returns where the next one begins.
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

    /// Lines that continue a run: the expected name, the id that follows, the same timestamp.
    #[inline(always)]
    fn run(&mut self, bytes: &[u8], mut at: usize, end: usize) -> usize {
        let tail = self.tail;
        let (mut id, time, values) = self.columns.run();
        if time != tail.at() {
            return at;
        }
        let first = id;
        let (cells, rests) = self.names.from(self.expected);
        for (cell, slot) in cells.iter().zip(values) {
            let Some(window) = window_at(bytes, at, end) else { break };
            if cell.id != id || !cell.begins(window, rests) {
                break;
            }
            let Some(decimal) = read_value(window, cell.length()) else {
                break;
            };
            let Some(next) = tail.again(window, decimal.end) else {
                break;
            };
            *slot = decimal.value;
            id = id.wrapping_add(1);
            at += next;
        }
        let count = id.wrapping_sub(first) as usize;
        self.columns.ran(count);
        self.expected += count;
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
        let Some(next) = read_tail(&mut self.tail, window, decimal.end) else {
            return at;
        };
        match self.names.id(entry) {
            Ok(id) => self.columns.push(id, self.tail.at(), decimal.value, sink),
            Err(why) => sink.refused(why, 1),
        }
        self.expected = entry + 1;
        at + next
    }

    /// The known name that the window begins with, and its length.
    fn seek(&self, window: &Window) -> Option<(usize, usize)> {
        let length = find_end(window, b' ')? + 1;
        let hash = self.names.hash_in(window, length);
        Some((self.names.find_in(window, hash, length)?, length))
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
                let Some(entry) = self.resolve(bytes, end, &pending, sink) else {
                    return at;
                };
                match self.names.id(entry) {
                    Ok(id) => self.columns.push_alone(id, pending.at, pending.value, sink),
                    Err(why) => sink.refused(why, 1),
                }
                successors += usize::from(entry == self.expected);
                self.expected = entry + 1;
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

    /// The entry of a line's name; `None` when the line is for the exact way.
    #[inline(always)]
    fn resolve(&mut self, bytes: &[u8], end: usize, pending: &Pending, sink: &mut dyn Sink) -> Option<usize> {
        let window = window_at(bytes, pending.start, end)?;
        if self.names.begins(pending.entry, window) == Some(pending.length) {
            return Some(pending.entry);
        }
        let found = self.names.find_in(window, pending.hash, pending.length);
        found.or_else(|| meet(&mut self.names, &window[..pending.length - 1], sink))
    }

    /// Parses lines up to a group's worth; returns how many, and where the next begins.
    #[inline(always)]
    fn gather(&mut self, bytes: &[u8], mut at: usize, end: usize) -> (usize, usize) {
        let mut tail = self.tail;
        let mut count = 0;
        for pending in self.gathered.iter_mut() {
            let Some(window) = window_at(bytes, at, end) else { break };
            // Any other white space, and control characters, are for the exact way.
            let Some(space) = find_end(window, b' ').filter(|at| window[*at] == b' ') else {
                break;
            };
            let length = space + 1;
            let Some(decimal) = read_value(window, length) else {
                break;
            };
            let Some(next) = read_tail(&mut tail, window, decimal.end) else {
                break;
            };
            let hash = self.names.hash_in(window, length);
            self.names.expect(hash);
            *pending = Pending {
                hash,
                entry: 0,
                start: at,
                length,
                at: tail.at(),
                value: decimal.value,
            };
            count += 1;
            at += next;
        }
        self.tail = tail;
        (count, at)
    }

    /// One line, without its line feed, read as carbon would.
    #[inline(never)]
    fn exact(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), Fatal> {
        let line = match line::parse(bytes) {
            Ok(line) => line,
            Err(Problem::Malformed(what)) => {
                sink.malformed(&Malformed { what, bytes });
                return Ok(());
            }
            Err(Problem::Fatal(what)) => return Err(self.fail(what, bytes, sink)),
        };
        let at = match line.at {
            Seconds::At(seconds) => Timestamp::from_secs(seconds),
            Seconds::Now => Timestamp::from_secs(self.clock.wall().as_secs()),
        };
        let name = line.name.as_bytes();
        let entry = self.names.find(name);
        let (entry, id) = if let Some(entry) = entry {
            (Some(entry), self.names.id(entry))
        } else {
            let id = sink.series(&series_key(line.name));
            (self.names.insert(name, id), id)
        };
        self.expected = entry.map_or(self.expected, |entry| entry + 1);
        match id {
            Ok(id) => self.columns.push(id, at, line.value, sink),
            Err(why) => sink.refused(why, 1),
        }
        Ok(())
    }

    fn fail(&mut self, what: &'static str, bytes: &[u8], sink: &mut dyn Sink) -> Fatal {
        self.columns.flush(sink);
        sink.malformed(&Malformed { what, bytes });
        Fatal { what }
    }
}

/// Asks the sink about a new name; `None` when it cannot be taken as it stands or there is
/// no room for it: then it is read the exact way.
#[inline(never)]
fn meet(names: &mut Names, name: &[u8], sink: &mut dyn Sink) -> Option<usize> {
    // White space beyond ASCII would split the name.
    let name = std::str::from_utf8(name).ok().filter(|name| name.is_ascii())?;
    if name.is_empty() || !names.has_room() {
        return None;
    }
    let id = sink.series(&series_key(name));
    names.insert(name.as_bytes(), id)
}

/// Where the next line begins, when the line ends at `start` of a window with a time of the
/// usual kind: among others, -1 and fractions are not.
#[inline(always)]
fn read_tail(tail: &mut Stamp, window: &Window, start: usize) -> Option<usize> {
    let time = |seconds| (seconds <= LAST_SECOND).then(|| Timestamp::from_secs(seconds));
    tail.read(window, start, [b' ', b'\n'], time)
}

/// The value at `start` of a window; a space follows it.
#[inline(always)]
fn read_value(window: &Window, start: usize) -> Option<Decimal> {
    let decimal = read_decimal(window, start);
    match decimal {
        Some(decimal) if window[decimal.end] == b' ' => Some(decimal),
        _ => read_any_value(window, start),
    }
}

/// A value of any form that is not NaN.
#[inline(never)]
fn read_any_value(window: &Window, start: usize) -> Option<Decimal> {
    let text = window.get(start..start + LONGEST_VALUE)?;
    let length = text.iter().position(|byte| *byte <= b' ')?;
    let value = parse_f64(&text[..length]).filter(|value| !value.is_nan())?;
    let end = start + length;
    (end + 16 <= WINDOW).then_some(Decimal { value, end })
}

impl Decoder for GraphiteDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let mut at = 0;
        while at < end {
            at = self.usual(bytes, at, end, sink);
            if at + WINDOW > bytes.len() && at < end {
                // The last lines, with room behind them.
                let mut last = [0; 2 * WINDOW];
                last[..bytes.len() - at].copy_from_slice(&bytes[at..]);
                at += self.usual(&last, 0, end - at, sink);
            }
            if at < end {
                let rest = &bytes[at..end];
                let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                self.exact(&rest[..length], sink)?;
                at += length + 1;
            }
        }
        let rest = &bytes[end..];
        if rest.len() > MAX_LINE {
            return Err(self.fail(line::TOO_LONG, rest, sink));
        }
        self.columns.flush(sink);
        Ok(end)
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !rest.is_empty() {
            let what = "the last line has no end";
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}

impl std::fmt::Debug for GraphiteDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphiteDecoder")
            .field("names", &self.names)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
