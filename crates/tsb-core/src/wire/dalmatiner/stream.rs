//! Decodes the last version's stream to samples: entries and batches.
//!
//! A connection begins in command mode, with frames. One command enters stream mode, in which there
//! are no frames; those that read are answered where there is a store to read. Any parse error ends
//! the connection, as in the server.

use std::sync::Arc;

use super::point::read8;
use super::reads::Reads;
use super::{first_of, key_of_elements, push_seconds};
use crate::bytes::{cut, cut_slice};
use crate::time::Clock;
use crate::wire::name_lookup::NameLookup;
use crate::wire::{Decoder, Fatal, MAX_RECORD, Malformed, Next, Peer, Room, SampleReader, Sequence, Sink};

/// Maximum data of an entry, in bytes, so that a record fits into 64 KiB.
const MAX_DATA: usize = 32 << 10;

/// With this many bytes of answers, no further request is read.
const ANSWERS: usize = 16 << 10;

/// The longest metric, in bytes.
const MAX_NAME: usize = 24 << 10;

/// The mode of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Frames of commands.
    Command,
    /// Entries, flushes and batches.
    Stream,
    /// The metrics of a batch.
    Batch(u64),
}

/// Turns the bytes of one connection into batches.
#[derive(Debug)]
pub struct StreamDecoder {
    lookup: NameLookup,
    state: State,
    bucket: Vec<u8>,
    reads: Option<Box<Reads>>,
}

/// Why a record cannot be decoded.
enum StreamProblem {
    /// It is not complete yet.
    Unfinished,
    /// The connection must end.
    Fatal(&'static str),
}

impl StreamDecoder {
    /// A decoder for one connection.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&**clock),
            state: State::Command,
            bucket: Vec::new(),
            reads: None,
        }
    }

    /// Answers requests that read, from what `reader` finds.
    #[must_use]
    pub fn reading(mut self, reader: Box<dyn SampleReader>) -> Self {
        self.reads = Some(Box::new(Reads::new(reader)));
        self
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    /// Decodes one record from the beginning of the bytes.
    #[inline(always)]
    fn record(&mut self, bytes: &mut &[u8], sink: &mut dyn Sink) -> Result<(), StreamProblem> {
        match self.state {
            State::Stream => self.message(bytes, sink),
            State::Batch(seconds) => self.member(bytes, seconds, sink),
            State::Command => self.command(bytes),
        }
    }

    fn command(&mut self, bytes: &mut &[u8]) -> Result<(), StreamProblem> {
        // Answers go out before further requests are read, so that few of them wait.
        if self.reads.as_ref().is_some_and(|reads| reads.answers.len() >= ANSWERS) {
            return Err(StreamProblem::Unfinished);
        }
        let length = u32::from_be_bytes(cut(bytes).ok_or(StreamProblem::Unfinished)?) as usize;
        if length > MAX_RECORD - 4 {
            return Err(StreamProblem::Fatal("a frame is longer than 64 KiB"));
        }
        let body = cut_slice(bytes, length).ok_or(StreamProblem::Unfinished)?;
        match body {
            [4, _delay, length, bucket @ ..] if bucket.len() == usize::from(*length) => {
                self.bucket = bucket.to_vec();
                self.state = State::Stream;
                Ok(())
            }
            [4, ..] => Err(StreamProblem::Fatal("a frame cannot be parsed")),
            body => match self.reads.as_mut().map(|reads| reads.answer(body)) {
                Some(true) => Ok(()),
                Some(false) => Err(StreamProblem::Fatal("a command is unknown or cannot be parsed")),
                None => Err(StreamProblem::Fatal("a command is not the one that enters stream mode")),
            },
        }
    }

    #[inline(always)]
    fn message(&mut self, bytes: &mut &[u8], sink: &mut dyn Sink) -> Result<(), StreamProblem> {
        let [code] = cut(bytes).ok_or(StreamProblem::Unfinished)?;
        match code {
            5 => self.entry(bytes, sink),
            6 => Ok(()), // a flush of what the server holds; here nothing is held
            10 => {
                let seconds = u64::from_be_bytes(cut(bytes).ok_or(StreamProblem::Unfinished)?);
                self.state = State::Batch(seconds);
                Ok(())
            }
            _ => Err(StreamProblem::Fatal("a message in stream mode is unknown")),
        }
    }

    #[inline(always)]
    fn entry(&mut self, bytes: &mut &[u8], sink: &mut dyn Sink) -> Result<(), StreamProblem> {
        let seconds = u64::from_be_bytes(cut(bytes).ok_or(StreamProblem::Unfinished)?);
        let metric = metric(bytes)?;
        let length = u32::from_be_bytes(cut(bytes).ok_or(StreamProblem::Unfinished)?) as usize;
        if metric.is_empty() || !length.is_multiple_of(8) || length > MAX_DATA {
            return Err(StreamProblem::Fatal("an entry cannot be parsed"));
        }
        let data = cut_slice(bytes, length).ok_or(StreamProblem::Unfinished)?;
        self.points(metric, seconds, data, sink);
        Ok(())
    }

    /// Decodes a metric of a batch, or the batch's end.
    #[inline(always)]
    fn member(&mut self, bytes: &mut &[u8], seconds: u64, sink: &mut dyn Sink) -> Result<(), StreamProblem> {
        let metric = metric(bytes)?;
        if metric.is_empty() {
            self.state = State::Stream;
            return Ok(());
        }
        let data = cut_slice(bytes, 8).ok_or(StreamProblem::Unfinished)?;
        self.points(metric, seconds, data, sink);
        Ok(())
    }

    /// Passes on points: consecutive seconds of one metric. A value that a server accepts but an
    /// f64 cannot represent is dropped; for such a timestamp the whole record is.
    #[inline(always)]
    fn points(&mut self, metric: &[u8], seconds: u64, data: &[u8], sink: &mut dyn Sink) {
        let (points, _) = data.as_chunks::<8>();
        let points = points.iter().map(|point| read8(u64::from_be_bytes(*point)));
        let at = first_of(seconds, points.len()).ok_or("a time is out of range");
        let taken = at.and_then(|at| {
            let key = || key_of_elements(&self.bucket, metric);
            let (_, id) = self.lookup.entry(metric, key, sink)?;
            push_seconds(&mut self.lookup, (id, at), points, sink)
        });
        if let Err(what) = taken {
            sink.malformed(&Malformed { what, bytes: metric });
        }
    }

    /// Announces the metrics of upcoming records, as long as they are of one kind.
    #[inline(never)]
    fn look_ahead(&mut self, mut bytes: &[u8]) {
        while let Some(metric) = self.next_metric(&mut bytes) {
            if !self.lookup.announce(metric) {
                break;
            }
        }
        self.lookup.announced();
    }

    fn next_metric<'a>(&self, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let is_batch = matches!(self.state, State::Batch(_));
        if !is_batch {
            let [5, ..] = cut::<9>(bytes)? else { return None };
        }
        let metric = metric(bytes).ok().filter(|metric| !metric.is_empty())?;
        let length = if is_batch {
            8
        } else {
            u32::from_be_bytes(cut(bytes)?) as usize
        };
        cut_slice(bytes, length)?;
        Some(metric)
    }
}

/// The metric at the beginning of the bytes, after its length.
#[inline(always)]
fn metric<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], StreamProblem> {
    let length = usize::from(u16::from_be_bytes(cut(bytes).ok_or(StreamProblem::Unfinished)?));
    if length > MAX_NAME {
        return Err(StreamProblem::Fatal("a metric is longer than 24 KiB"));
    }
    cut_slice(bytes, length).ok_or(StreamProblem::Unfinished)
}

impl Decoder for StreamDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut rest = bytes;
        let mut left = bytes;
        while !left.is_empty() {
            if self.lookup.is_blind() {
                self.look_ahead(left);
            }
            match self.record(&mut left, sink) {
                Ok(()) => rest = left,
                Err(StreamProblem::Unfinished) => break,
                Err(StreamProblem::Fatal(what)) => {
                    self.lookup.flush(sink);
                    sink.malformed(&Malformed { what, bytes: rest });
                    return Err(Fatal { what });
                }
            }
        }
        self.lookup.flush(sink);
        Ok(bytes.len() - rest.len())
    }

    fn answer(&mut self, _peer: Peer, out: &mut Vec<u8>) -> Next {
        match &mut self.reads {
            Some(reads) if !reads.answers.is_empty() => {
                out.append(&mut reads.answers);
                reads.answers = Vec::new();
                Next::Again
            }
            _ => Next::More,
        }
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !rest.is_empty() || matches!(self.state, State::Batch(_)) {
            let what = "the stream ends within a message";
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}
