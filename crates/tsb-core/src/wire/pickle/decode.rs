//! Decodes frames to samples.

use std::sync::Arc;

use super::MAX_PICKLE;
use super::fast_path::{Element, Elements};
use super::reader::{Object, Reader};
use crate::bytes::{cut, cut_slice};
use crate::time::{Clock, SECOND_NS, Timestamp};
use crate::wire::graphite::series_key;
use crate::wire::name_lookup::{LONGEST_NAME, NameLookup};
use crate::wire::number::parse_f64;
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink};

/// Turns the frames of one connection into batches.
///
/// A frame may be larger than the caller's buffer, so the decoder itself keeps the bytes of an
/// incomplete frame: at most [`MAX_PICKLE`], and no more than were received.
#[derive(Debug)]
pub struct PickleDecoder {
    lookup: NameLookup,
    clock: Arc<dyn Clock>,
    /// The beginning of an incomplete frame, with its length.
    frame: Vec<u8>,
}

/// The latest timestamp in seconds; negated, the earliest.
const LAST_SECOND: i64 = i64::MAX / SECOND_NS as i64;

const TOO_LONG: &str = "a pickle is longer than 1048576 bytes";

impl PickleDecoder {
    /// A decoder for one connection. The clock gives the time for timestamp -1, which means "now".
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&*clock),
            clock,
            frame: Vec::new(),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    /// Decodes one pickle, without its length.
    fn pickle(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if let Some(elements) = Elements::of(bytes) {
            return self.common_elements(elements, sink);
        }
        let Some((reader, top)) = Reader::load(bytes) else {
            let what = "invalid pickle";
            return sink.malformed(&Malformed { what, bytes });
        };
        let Some(Object::List(elements) | Object::Tuple(elements)) = reader.object(top) else {
            let what = "a pickle is not a list";
            return sink.malformed(&Malformed { what, bytes });
        };
        for element in elements {
            if let Err(what) = self.element(&reader, *element, sink) {
                sink.malformed(&Malformed { what, bytes: &[] });
            }
        }
    }

    /// Decodes the elements of a pickle in the common form.
    fn common_elements(&mut self, mut elements: Elements<'_>, sink: &mut dyn Sink) {
        loop {
            if self.lookup.is_blind() {
                self.look_ahead(elements.clone());
            }
            let Some(element) = elements.next() else { break };
            if let Err(what) = self.sample(element, sink) {
                sink.malformed(&Malformed { what, bytes: &[] });
            }
        }
    }

    /// Announces the names of upcoming elements.
    #[inline(never)]
    fn look_ahead(&mut self, elements: Elements<'_>) {
        for element in elements {
            if !self.lookup.announce(element.name) {
                break;
            }
        }
        self.lookup.announced();
    }

    fn element(&mut self, reader: &Reader<'_>, element: u32, sink: &mut dyn Sink) -> Result<(), &'static str> {
        const SHAPE: &str = "an element is not (name, (timestamp, value))";
        let (name, point) = pair(reader, element).ok_or(SHAPE)?;
        let (at, value) = pair(reader, point).ok_or(SHAPE)?;
        let value = float(reader, value).ok_or("a value is not a number")?;
        let at = float(reader, at).ok_or("a timestamp is not a number")?;
        let Some(Object::Text(name)) = reader.object(name) else {
            return Err("a name is not a text");
        };
        self.sample(Element { name, at, value }, sink)
    }

    #[inline(always)]
    fn sample(&mut self, element: Element<'_>, sink: &mut dyn Sink) -> Result<(), &'static str> {
        let Element { name, at, value } = element;
        if value.is_nan() {
            return Err("a value is NaN, which carbon drops");
        }
        // Truncates towards zero; out-of-range values saturate, and NaN becomes 0.
        let seconds = at as i64;
        if at.is_nan() || !(-LAST_SECOND..=LAST_SECOND).contains(&seconds) || name.len() > LONGEST_NAME {
            return Err("a timestamp or a name is out of range");
        }
        let seconds = if seconds == -1 {
            self.clock.wall().as_secs()
        } else {
            seconds
        };
        let key = || {
            let name = std::str::from_utf8(name).map_err(|_| "a name is not UTF-8")?;
            Ok(series_key(name))
        };
        let (_, id) = self.lookup.entry(name, key, sink)?;
        self.lookup.push(id, Timestamp::from_secs(seconds), value, sink);
        Ok(())
    }

    /// Decodes the frames at the beginning of the bytes; returns the number of bytes consumed.
    fn frames(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, &'static str> {
        let (mut at, mut rest) = (0, bytes);
        while let Some(length) = cut(&mut rest) {
            let length = u32::from_be_bytes(length) as usize;
            if length > MAX_PICKLE {
                return Err(TOO_LONG);
            }
            let Some(pickle) = cut_slice(&mut rest, length) else {
                break;
            };
            self.pickle(pickle, sink);
            at += 4 + length;
        }
        Ok(at)
    }

    /// Continues the incomplete frame; returns the number of bytes consumed.
    fn go_on(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, &'static str> {
        let mut taken = 0;
        while !self.frame.is_empty() && taken < bytes.len() {
            let whole = match self.frame.first_chunk() {
                None => 4,
                Some(length) => 4 + u32::from_be_bytes(*length) as usize,
            };
            let more = (whole - self.frame.len()).min(bytes.len() - taken);
            self.frame.extend_from_slice(&bytes[taken..taken + more]);
            taken += more;
            let frame = std::mem::take(&mut self.frame);
            // An empty pickle is a frame of four bytes.
            if self.frames(&frame, sink)? == 0 {
                self.frame = frame;
            }
        }
        Ok(taken)
    }
}

/// The two members of a tuple or a list.
fn pair(reader: &Reader<'_>, number: u32) -> Option<(u32, u32)> {
    match reader.object(number)? {
        Object::Tuple(members) | Object::List(members) => match members[..] {
            [first, second] => Some((first, second)),
            _ => None,
        },
        _ => None,
    }
}

/// Python's `float()` of an object.
fn float(reader: &Reader<'_>, number: u32) -> Option<f64> {
    match reader.object(number)? {
        Object::Integer(integer) => Some(*integer as f64),
        Object::Float(float) => Some(*float),
        Object::Text(text) => parse_f64(text.trim_ascii()),
        _ => None,
    }
}

impl Decoder for PickleDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let result = self.go_on(bytes, sink).and_then(|taken| {
            let rest = &bytes[taken..];
            let at = self.frames(rest, sink)?;
            self.frame.extend_from_slice(&rest[at..]);
            Ok(bytes.len())
        });
        self.lookup.flush(sink);
        result.map_err(|what| {
            sink.malformed(&Malformed { what, bytes });
            Fatal { what }
        })
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], sink: &mut dyn Sink) {
        if !self.frame.is_empty() {
            let what = "the last frame is cut short";
            let bytes = &self.frame;
            sink.malformed(&Malformed { what, bytes });
        }
    }
}
