//! Decodes the records of 2014 to samples.

use std::sync::Arc;

use super::point::read9;
use super::{first_of, key_of_metric, push_seconds};
use crate::bytes::{cut, cut_slice};
use crate::time::Clock;
use crate::wire::name_lookup::{LONGEST_NAME, NameLookup};
use crate::wire::{Decoder, Fatal, MAX_RECORD, Malformed, Room, Sequence, Sink};

/// The samples of one block.
#[derive(Clone, Copy, Debug)]
struct Block<'a> {
    bucket: &'a [u8],
    metric: &'a [u8],
    /// Bucket and metric with their lengths, as the lookup key.
    name: &'a [u8],
    seconds: u64,
    data: &'a [u8],
}

/// Passes on the points of a block: consecutive seconds of one metric.
#[inline(always)]
fn apply(block: Block<'_>, lookup: &mut NameLookup, sink: &mut dyn Sink) {
    if let Err(what) = points(block, lookup, sink) {
        let bytes = block.metric;
        sink.malformed(&Malformed { what, bytes });
    }
}

#[inline(always)]
fn points(block: Block<'_>, lookup: &mut NameLookup, sink: &mut dyn Sink) -> Result<(), &'static str> {
    let (points, rest) = block.data.as_chunks::<9>();
    if !rest.is_empty() {
        return Err("the data of a block are not points of nine bytes");
    }
    let at = first_of(block.seconds, points.len()).filter(|_| block.name.len() <= LONGEST_NAME);
    let at = at.ok_or("a time or a name is out of range")?;
    let (_, id) = lookup.entry(block.name, || key_of_metric(block.bucket, block.metric), sink)?;
    push_seconds(lookup, (id, at), points.iter().map(|point| read9(*point)), sink)
}

/// The error for the rest of a datagram, in the words of DalmatinerDB's log.
const UNKNOWN: &str = "unknown content";

/// Decodes datagrams of July 2014: each call of [`Decoder::decode`] gets one.
///
/// If a datagram cannot be parsed, the records before the error are kept and the rest is dropped,
/// as by the server.
#[derive(Debug)]
pub struct JulyDecoder {
    lookup: NameLookup,
}

impl JulyDecoder {
    /// A decoder for one sender.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        let lookup = NameLookup::new(&**clock);
        Self { lookup }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }
}

/// Parses one record of July 2014; `None` if there is none.
#[inline(always)]
fn record<'a>(bytes: &mut &'a [u8]) -> Option<Block<'a>> {
    let [0] = cut(bytes)? else { return None };
    let seconds = u64::from_be_bytes(cut(bytes)?);
    let all = *bytes;
    let [length] = cut(bytes)?;
    let bucket = cut_slice(bytes, usize::from(length))?;
    let metric_length = u16::from_be_bytes(cut(bytes)?);
    let metric = cut_slice(bytes, usize::from(metric_length))?;
    let name = &all[..all.len() - bytes.len()];
    let data_length = u16::from_be_bytes(cut(bytes)?);
    let data = cut_slice(bytes, usize::from(data_length))?;
    Some(Block {
        bucket,
        metric,
        name,
        seconds,
        data,
    })
}

/// Announces the names of upcoming records to the name table.
#[inline(never)]
fn look_ahead(lookup: &mut NameLookup, mut bytes: &[u8]) {
    while let Some(block) = record(&mut bytes) {
        if !lookup.announce(block.name) {
            break;
        }
    }
    lookup.announced();
}

/// Length of the first record of July 2014, for packing records into datagrams; `None` if the
/// bytes do not start with a complete record.
pub fn record_length(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    record(&mut rest)?;
    Some(bytes.len() - rest.len())
}

impl Decoder for JulyDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.lookup.is_blind() {
                look_ahead(&mut self.lookup, rest);
            }
            let before = rest;
            let Some(block) = record(&mut rest) else {
                let what = UNKNOWN;
                sink.malformed(&Malformed { what, bytes: before });
                break;
            };
            apply(block, &mut self.lookup, sink);
        }
        self.lookup.flush(sink);
        Ok(bytes.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !rest.is_empty() {
            let what = UNKNOWN;
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}

/// Decodes August 2014: frames of a connection, or datagrams.
///
/// On a connection, any parse error ends it, as in the server. Of a datagram, the blocks before
/// the error are kept and the rest is dropped.
#[derive(Debug)]
pub struct AugustDecoder {
    lookup: NameLookup,
    is_datagram: bool,
    /// Bucket and metric of a block, as the lookup key.
    name: Vec<u8>,
}

impl AugustDecoder {
    /// A decoder for one connection.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&**clock),
            is_datagram: false,
            name: Vec::new(),
        }
    }

    /// A decoder of datagrams: each call of [`Decoder::decode`] gets one.
    pub fn of_datagrams(clock: &Arc<dyn Clock>) -> Self {
        Self {
            is_datagram: true,
            ..Self::new(clock)
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    /// Decodes the body of a frame, or a datagram. `Err`: the bytes that cannot be parsed.
    fn body<'a>(&mut self, mut bytes: &'a [u8], sink: &mut dyn Sink) -> Result<(), &'a [u8]> {
        let all = bytes;
        let Some([0]) = cut(&mut bytes) else { return Err(all) };
        if bytes.is_empty() && !self.is_datagram {
            return Ok(()); // a keep-alive
        }
        let bucket = cut(&mut bytes).and_then(|[length]: [u8; 1]| cut_slice(&mut bytes, usize::from(length)));
        let Some(bucket) = bucket else { return Err(all) };
        self.name.clear();
        self.name.push(bucket.len() as u8);
        self.name.extend_from_slice(bucket);
        let prefix = self.name.len();
        while !bytes.is_empty() {
            if self.lookup.is_blind() {
                self.look_ahead(prefix, bytes);
            }
            let before = bytes;
            let Some((seconds, metric, data)) = block(&mut bytes) else {
                return Err(before);
            };
            self.name.truncate(prefix);
            self.name.extend_from_slice(metric);
            let block = Block {
                bucket,
                metric,
                name: &self.name,
                seconds,
                data,
            };
            apply(block, &mut self.lookup, sink);
        }
        Ok(())
    }

    /// Announces the names of upcoming blocks; the bucket is in the first `prefix` bytes of the
    /// name.
    #[inline(never)]
    fn look_ahead(&mut self, prefix: usize, mut bytes: &[u8]) {
        while let Some((_, metric, _)) = block(&mut bytes) {
            self.name.truncate(prefix);
            self.name.extend_from_slice(metric);
            if !self.lookup.announce(&self.name) {
                break;
            }
        }
        self.lookup.announced();
    }

    fn fail(&mut self, what: &'static str, bytes: &[u8], sink: &mut dyn Sink) -> Fatal {
        self.lookup.flush(sink);
        sink.malformed(&Malformed { what, bytes });
        Fatal { what }
    }
}

/// Time, metric and data of one block of August 2014.
#[inline(always)]
fn block<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8], &'a [u8])> {
    let seconds = u64::from_be_bytes(cut(bytes)?);
    let metric_length = u16::from_be_bytes(cut(bytes)?);
    let metric = cut_slice(bytes, usize::from(metric_length))?;
    let data_length = u16::from_be_bytes(cut(bytes)?);
    let data = cut_slice(bytes, usize::from(data_length))?;
    Some((seconds, metric, data))
}

impl Decoder for AugustDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        if self.is_datagram {
            if let Err(rest) = self.body(bytes, sink) {
                let what = UNKNOWN;
                sink.malformed(&Malformed { what, bytes: rest });
            }
            self.lookup.flush(sink);
            return Ok(bytes.len());
        }
        let mut at = 0;
        let mut rest = bytes;
        while let Some(length) = cut(&mut rest) {
            let length = u32::from_be_bytes(length) as usize;
            if length > MAX_RECORD - 4 {
                return Err(self.fail("a frame is longer than 64 KiB", &bytes[at..], sink));
            }
            let Some(body) = cut_slice(&mut rest, length) else {
                break;
            };
            if let Err(rest) = self.body(body, sink) {
                return Err(self.fail("a frame cannot be parsed", rest, sink));
            }
            at += 4 + length;
        }
        self.lookup.flush(sink);
        Ok(at)
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !rest.is_empty() {
            let what = "the last frame is cut short";
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}
