//! Decodes lines to samples.
//!
//! There are three paths, all with full validation. *In order*: the line is compared with the
//! expected next name and with the text of the last timestamp; equal text was validated before.
//! *In any order*: lines are parsed in groups, whose names are then looked up together so that
//! cache misses overlap. *Exact*: any line that these two do not recognize is parsed like carbon
//! does, one at a time.

use std::sync::Arc;

use super::MAX_LINE;
use super::line::{self, LineProblem, Seconds};
use super::series_key;
use crate::time::{Clock, SECOND_NS, Timestamp};
use crate::wire::cached_timestamp::CachedTimestamp;
use crate::wire::columns::Columns;
use crate::wire::name_order::NameOrder;
use crate::wire::names::{Hash, Names, find_end};
use crate::wire::number::{Decimal, WINDOW, Window, parse_f64, read_decimal, window_at};
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink, without_end};

/// Number of names that are looked up together.
const GROUP: usize = 32;

/// Maximum length of a value's text on the fast paths.
const LONGEST_VALUE: usize = 40;

/// The latest timestamp on the fast paths.
const LAST_SECOND: i64 = i64::MAX / SECOND_NS as i64;

/// Turns the lines of one connection into batches.
pub struct GraphiteDecoder {
    names: Names,
    columns: Columns,
    /// The text of the last line end.
    tail: CachedTimestamp,
    clock: Arc<dyn Clock>,
    /// Index of the expected next name; may be one past the last.
    expected: usize,
    order: NameOrder,
    /// Lines that are parsed.
    gathered: Box<[Pending; GROUP]>,
    /// Lines whose table entries are guessed too.
    guessed: Box<[Pending; GROUP]>,
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
}

impl GraphiteDecoder {
    /// A decoder for one connection. The clock gives the time for timestamp -1, which means "now".
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        // The seed does not affect the result of decoding.
        let seed = clock.wall().as_nanos() as u64 ^ clock.now().rotate_left(32);
        Self {
            names: Names::new(b' ', seed),
            columns: Columns::new(),
            tail: CachedTimestamp::new(),
            clock,
            expected: 0,
            order: NameOrder::new(),
            gathered: Box::new([Pending::default(); GROUP]),
            guessed: Box::new([Pending::default(); GROUP]),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.names.within(room, 0);
        self
    }

    /// Decodes lines of `bytes` from `at` on, as long as they are of the common form and begin
    /// before `end`, which is the end of a line. Returns the start of the next line.
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

    /// Decodes lines that continue a run: the expected name, the next id, the same timestamp.
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

    /// The known name at the beginning of the window, and its length.
    fn seek(&self, window: &Window) -> Option<(usize, usize)> {
        let length = find_end(window, b' ')? + 1;
        let hash = self.names.hash_in(window, length);
        Some((self.names.find_in(window, hash, length)?, length))
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
                self.order = NameOrder::new();
                return at;
            }
            if next_count == 0 {
                return at;
            }
            (count, behind) = (next_count, next_behind);
        }
    }

    /// The entry of a line's name; `None` if the line needs the exact path.
    #[inline(always)]
    fn resolve(&mut self, bytes: &[u8], end: usize, pending: &Pending, sink: &mut dyn Sink) -> Option<usize> {
        let window = window_at(bytes, pending.start, end)?;
        if self.names.begins(pending.entry, window) == Some(pending.length) {
            return Some(pending.entry);
        }
        let found = self.names.find_in(window, pending.hash, pending.length);
        found.or_else(|| meet(&mut self.names, &window[..pending.length - 1], sink))
    }

    /// Parses up to one group of lines; returns their number and the start of the next line.
    #[inline(always)]
    fn gather(&mut self, bytes: &[u8], mut at: usize, end: usize) -> (usize, usize) {
        let mut tail = self.tail;
        let mut count = 0;
        for pending in self.gathered.iter_mut() {
            let Some(window) = window_at(bytes, at, end) else { break };
            // Other white space and control characters need the exact path.
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

    /// Parses one line, without its line feed, like carbon does.
    #[inline(never)]
    fn exact(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), Fatal> {
        let line = match line::parse(bytes) {
            Ok(line) => line,
            Err(LineProblem::Malformed(what)) => {
                sink.malformed(&Malformed { what, bytes });
                return Ok(());
            }
            Err(LineProblem::Fatal(what)) => return Err(self.fail(what, bytes, sink)),
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

/// Asks the sink about a new name. `None` if the name needs the exact path, or if there is no room
/// to remember it.
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

/// Start of the next line, if the line ends at `start` of a window with a time of the common form,
/// which excludes -1 and fractions.
#[inline(always)]
fn read_tail(tail: &mut CachedTimestamp, window: &Window, start: usize) -> Option<usize> {
    let time = |seconds| (seconds <= LAST_SECOND).then(|| Timestamp::from_secs(seconds));
    tail.read(window, start, [b' ', b'\n'], time)
}

/// The value at `start` of a window, which must be followed by a space.
#[inline(always)]
fn read_value(window: &Window, start: usize) -> Option<Decimal> {
    let decimal = read_decimal(window, start);
    match decimal {
        Some(decimal) if window[decimal.end] == b' ' => Some(decimal),
        _ => read_any_value(window, start),
    }
}

/// A value in any form except NaN.
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
            at = self.common_lines(bytes, at, end, sink);
            if at + WINDOW > bytes.len() && at < end {
                // The last lines, copied into a buffer with padding.
                let mut last = [0; 2 * WINDOW];
                last[..bytes.len() - at].copy_from_slice(&bytes[at..]);
                at += self.common_lines(&last, 0, end - at, sink);
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
        without_end(rest, sink);
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
