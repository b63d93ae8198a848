//! Decodes lines to samples.

use std::sync::Arc;

use super::line::{self, Put, PutLine};
use super::{Dialect, MAX_LINE, fast_path};
use crate::time::Clock;
use crate::wire::cached_timestamp::CachedTimestamp;
use crate::wire::name_lookup::NameLookup;
use crate::wire::number::{WINDOW, window_or_copy};
use crate::wire::{Decoder, Fatal, Malformed, Next, Peer, Room, Sequence, Sink, without_end};

const TOO_LONG: &str = "a line is longer than 1024 bytes";

/// Maximum length of the replies to the lines of one read, in bytes; more would fill the socket.
pub(super) const MAX_ANSWERS: usize = 64 << 10;

/// Turns the lines of one connection into batches.
///
/// An invalid line is reported and the connection continues. OpenTSDB's errors are written back
/// ([`super::reply`]), including those for valid samples that are not stored; but like OpenTSDB,
/// not to a peer that has not read the earlier ones.
#[derive(Debug)]
pub struct PutDecoder {
    dialect: Dialect,
    lookup: NameLookup,
    /// The time of a line, and the space on either side.
    stamp: CachedTimestamp,
    /// Metric and tags of a line, as the lookup key.
    name: Vec<u8>,
    /// Whether the rest of an overlong line is still to be skipped.
    is_skipping: bool,
    /// Replies not written yet.
    answers: Vec<u8>,
    /// Whether the peer asked to end the connection.
    is_over: bool,
}

impl PutDecoder {
    /// A decoder for one connection.
    pub fn new(dialect: Dialect, clock: &Arc<dyn Clock>) -> Self {
        Self {
            dialect,
            lookup: NameLookup::new(&**clock),
            stamp: CachedTimestamp::new(),
            name: Vec::new(),
            is_skipping: false,
            answers: Vec::new(),
            is_over: false,
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    fn line(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if std::mem::take(&mut self.is_skipping) {
            return;
        }
        let taken = if bytes.len() > MAX_LINE {
            Err(TOO_LONG)
        } else {
            match line::read(bytes, self.dialect) {
                Ok(PutLine::Put(put)) => self.take(put, sink),
                Ok(PutLine::Other) => {
                    self.say(line::told(bytes, self.dialect));
                    self.is_over |= self.dialect == Dialect::Opentsdb && bytes.starts_with(b"exit");
                    Ok(())
                }
                Err(problem) => Err(problem.what),
            }
        };
        if let Err(what) = taken {
            sink.malformed(&Malformed { what, bytes });
        }
        if taken.is_err() && self.dialect == Dialect::Opentsdb && bytes.len() <= MAX_LINE {
            self.say(line::reply(bytes));
        }
    }

    fn say(&mut self, text: Option<impl AsRef<str>>) {
        if let Some(text) = text.filter(|_| self.answers.len() < MAX_ANSWERS) {
            self.answers.extend_from_slice(text.as_ref().as_bytes());
        }
    }

    fn take(&mut self, put: Put<'_>, sink: &mut dyn Sink) -> Result<(), &'static str> {
        set_name(&mut self.name, put.metric, put.tags);
        let dialect = self.dialect;
        let key = || line::key(put.metric, put.tags, dialect).map_err(|problem| problem.what);
        let (_, id) = self.lookup.entry(&self.name, key, sink)?;
        self.lookup.push(id, put.at, put.value, sink);
        if id.is_err() {
            self.say_unknown(put.metric);
        }
        Ok(())
    }

    /// Replies for a refused series as the server does for an unknown metric.
    #[inline(never)]
    fn say_unknown(&mut self, metric: &[u8]) {
        if self.dialect == Dialect::Opentsdb {
            self.say(Some(line::unknown(metric)));
        }
    }

    /// Decodes lines of the common form from `at` on, as long as their names are known; returns
    /// the start of the next line.
    fn common_lines(&mut self, bytes: &[u8], mut at: usize, sink: &mut dyn Sink) -> usize {
        let mut copy = [0; WINDOW];
        while let Some(window) = window_or_copy(bytes, at, &mut copy) {
            if self.lookup.is_blind() {
                self.look_ahead(bytes, at);
            }
            let Some(line) = fast_path::read(window, self.dialect, &mut self.stamp) else {
                break;
            };
            set_name(&mut self.name, &window[line.metric.clone()], &window[line.tags]);
            let Some(entry) = self.lookup.find(&self.name) else {
                break;
            };
            let id = self.lookup.id(entry);
            self.lookup.push(id, line.at, line.value, sink);
            if id.is_err() {
                self.say_unknown(&window[line.metric]);
            }
            at += line.next;
        }
        at
    }

    /// Announces the names of upcoming lines.
    #[inline(never)]
    fn look_ahead(&mut self, bytes: &[u8], mut at: usize) {
        let mut copy = [0; WINDOW];
        while let Some(window) = window_or_copy(bytes, at, &mut copy)
            && let Some(line) = fast_path::read(window, self.dialect, &mut self.stamp)
        {
            set_name(&mut self.name, &window[line.metric], &window[line.tags]);
            if !self.lookup.announce(&self.name) {
                break;
            }
            at += line.next;
        }
        self.lookup.announced();
    }
}

/// Sets the lookup key of a series.
#[inline(always)]
fn set_name(name: &mut Vec<u8>, metric: &[u8], tags: &[u8]) {
    name.clear();
    name.extend_from_slice(metric);
    name.extend_from_slice(tags);
}

impl Decoder for PutDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut at = 0;
        while !self.is_over {
            if !self.is_skipping {
                at = self.common_lines(bytes, at, sink);
            }
            let Some(length) = memchr::memchr(b'\n', &bytes[at..]) else {
                break;
            };
            self.line(&bytes[at..at + length], sink);
            at += length + 1;
        }
        if self.is_over {
            // Any further input is ignored.
            at = bytes.len();
        }
        let rest = &bytes[at..];
        if rest.len() > MAX_LINE {
            // Reported once per overlong line, whose content is discarded.
            if !self.is_skipping {
                let what = TOO_LONG;
                sink.malformed(&Malformed { what, bytes: rest });
            }
            self.is_skipping = true;
            at = bytes.len();
        }
        self.lookup.flush(sink);
        Ok(at)
    }

    fn answer(&mut self, peer: Peer, out: &mut Vec<u8>) -> Next {
        if self.dialect == Dialect::Opentsdb {
            // One reply per sample, up to the maximum length.
            let most = (MAX_ANSWERS / line::REFUSED.len() + 1) as u64;
            (0..peer.rejected.min(most)).for_each(|_| self.say(Some(line::REFUSED)));
        }
        if peer.is_listening {
            out.extend_from_slice(&self.answers);
        }
        self.answers.clear();
        if self.is_over { Next::Over } else { Next::More }
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !self.is_skipping && !self.is_over {
            without_end(rest, sink);
        }
    }
}
