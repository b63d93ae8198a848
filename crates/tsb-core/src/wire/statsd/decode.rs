//! Decodes lines to samples.

use std::sync::Arc;

use super::{MetricType, is_kept, number, series_key};
use crate::series::SeriesId;
use crate::time::Clock;
use crate::wire::name_lookup::NameLookup;
use crate::wire::number::{WINDOW, Window, find_from, read_decimal, window_or_copy};
use crate::wire::{Decoder, Fatal, MAX_RECORD, Malformed, NotAdmitted, Room, Sequence, Sink, unended, without_end};

/// Turns the lines of one connection or one sender into batches.
///
/// Of several gauge values in one line the last counts; every counter and timer value is a sample.
#[derive(Debug)]
pub struct StatsdDecoder {
    lookup: NameLookup,
    clock: Arc<dyn Clock>,
    /// The last value of each gauge, by its entry.
    gauges: Vec<f64>,
    /// The cleaned key of a line, and a byte for its type unless it is a gauge.
    name: Vec<u8>,
}

/// A parsed value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ParsedValue {
    kind: MetricType,
    value: f64,
    /// Whether it is added to the gauge.
    is_relative: bool,
}

impl StatsdDecoder {
    /// A decoder for one connection or sender. The clock gives the samples' time of arrival.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&*clock),
            clock,
            gauges: Vec::new(),
            name: Vec::new(),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, size_of::<f64>());
        self
    }

    fn line(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if bytes.is_empty() {
            return;
        }
        let mut parts = bytes.split(|byte| *byte == b':');
        self.set_name(parts.next().unwrap_or_default());
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            let what = "a line has no type";
            return sink.malformed(&Malformed { what, bytes });
        }
        let now = self.clock.wall();
        let mut gauge = None;
        for part in parts {
            let taken = read(part).and_then(|parsed| match parsed.kind {
                MetricType::Gauge => self.set_gauge(parsed, sink).map(|held| gauge = Some(held)),
                kind => {
                    let (_, id) = self.entry(kind, sink)?;
                    self.lookup.push(id, now, parsed.value, sink);
                    Ok(())
                }
            });
            if let Err(what) = taken {
                sink.malformed(&Malformed { what, bytes });
            }
        }
        if let Some((id, value)) = gauge {
            self.lookup.push(id, now, value, sink);
        }
    }

    /// Decodes gauges of the common form from `at` on, as long as they are known; returns the
    /// start of the next line. All get the current time.
    fn common_gauges(&mut self, bytes: &[u8], mut at: usize, sink: &mut dyn Sink) -> usize {
        let mut copy = [0; WINDOW];
        let mut now = None;
        while let Some(window) = window_or_copy(bytes, at, &mut copy) {
            if self.lookup.is_blind() {
                self.look_ahead(bytes, at);
            }
            let Some((key, value, next)) = common_gauge(window) else {
                break;
            };
            let Some(entry) = self.lookup.find(key) else { break };
            let Some(gauge) = self.gauges.get_mut(entry) else { break };
            *gauge = value;
            let now = *now.get_or_insert_with(|| self.clock.wall());
            self.lookup.push(self.lookup.id(entry), now, value, sink);
            at += next;
        }
        at
    }

    /// Announces the names of upcoming gauges.
    #[inline(never)]
    fn look_ahead(&mut self, bytes: &[u8], mut at: usize) {
        let mut copy = [0; WINDOW];
        while let Some(window) = window_or_copy(bytes, at, &mut copy)
            && let Some((key, _, next)) = common_gauge(window)
            && self.lookup.announce(key)
        {
            at += next;
        }
        self.lookup.announced();
    }

    /// Sets the lookup key, cleaned like StatsD does.
    fn set_name(&mut self, key: &[u8]) {
        self.name.clear();
        let mut was_blank = false;
        for &byte in key {
            let is_blank = byte.is_ascii_whitespace() || byte == 0x0b;
            match byte {
                _ if is_blank && !was_blank => self.name.push(b'_'),
                b'/' => self.name.push(b'-'),
                byte if is_kept(byte) => self.name.push(byte),
                _ => {}
            }
            was_blank = is_blank;
        }
    }

    fn entry(&mut self, kind: MetricType, sink: &mut dyn Sink) -> Result<Entry, &'static str> {
        // A gauge is looked up by its plain key; the byte that marks other types cannot occur in
        // one.
        let length = self.name.len();
        if kind != MetricType::Gauge {
            self.name.push(kind as u8);
        }
        let text = &self.name[..length];
        let key = || {
            let text = std::str::from_utf8(text).map_err(|_| "a name is not UTF-8")?;
            Ok(series_key(text, kind))
        };
        let entry = self.lookup.entry(&self.name, key, sink);
        self.name.truncate(length);
        entry
    }

    /// Sets or changes a gauge; returns its id and its current value.
    fn set_gauge(
        &mut self,
        parsed: ParsedValue,
        sink: &mut dyn Sink,
    ) -> Result<(Result<SeriesId, NotAdmitted>, f64), &'static str> {
        let (entry, id) = self.entry(MetricType::Gauge, sink)?;
        let Some(entry) = entry else {
            return Ok((id, parsed.value));
        };
        if entry >= self.gauges.len() {
            self.gauges.resize(entry + 1, 0.0);
        }
        let gauge = &mut self.gauges[entry];
        // An unset gauge counts as zero.
        *gauge = if parsed.is_relative {
            *gauge + parsed.value
        } else {
            parsed.value
        };
        Ok((id, *gauge))
    }
}

type Entry = (Option<usize>, Result<SeriesId, NotAdmitted>);

/// Parses one `value|type[|@rate][|#tags]`.
fn read(part: &[u8]) -> Result<ParsedValue, &'static str> {
    let mut fields = part.split(|byte| *byte == b'|');
    let text = fields.next().unwrap_or_default();
    let kind = fields.next().ok_or("a line has no type")?;
    let mut rate = 1.0;
    for field in fields {
        match field {
            [b'#', ..] => {}
            [b'@', number @ ..] if number.first() != Some(&b'-') => {
                rate = number::parse(number).ok_or("a sample rate is not a number")?;
            }
            _ => return Err("a sample rate is not a number"),
        }
    }
    if kind == b"s" {
        return Err("a member of a set is not supported here");
    }
    let value = number::parse(text).ok_or("a value is not a number")?;
    let kind = match kind {
        b"g" => MetricType::Gauge,
        b"ms" if value < 0.0 => return Err("a timer is negative"),
        b"ms" => MetricType::Timer,
        _ => MetricType::Counter,
    };
    Ok(ParsedValue {
        kind,
        value: if kind == MetricType::Counter {
            value / rate
        } else {
            value
        },
        is_relative: kind == MetricType::Gauge && matches!(text.first(), Some(b'+' | b'-')),
    })
}

/// The gauge at the beginning of a window, with an absolute value: its key, the value, and the
/// start of the next line. `None` if the line needs the exact path.
#[inline(always)]
fn common_gauge(window: &Window) -> Option<(&[u8], f64, usize)> {
    const END: &[u8; 3] = b"|g\n";
    let colon = find_from(window, 0, b':')?;
    // A sign would make it a relative change.
    let start = colon + 1;
    let decimal = read_decimal(window, start).filter(|_| window[start].is_ascii_digit())?;
    let next = decimal.end + END.len();
    (window.get(decimal.end..next)? == END).then_some((&window[..colon], decimal.value, next))
}

impl Decoder for StatsdDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut at = 0;
        loop {
            at = self.common_gauges(bytes, at, sink);
            let feed = memchr::memchr(b'\n', &bytes[at..]);
            let Some(length) = feed.filter(|length| *length < MAX_RECORD) else {
                break;
            };
            self.line(&bytes[at..at + length], sink);
            at += length + 1;
        }
        self.lookup.flush(sink);
        unended(bytes, at, sink)
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        without_end(rest, sink);
    }
}
