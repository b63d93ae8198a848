//! Decodes frames to batches.

use super::frame::{self, ANNOUNCE, HEADER, Header, SAMPLES};
use super::table::{NOT_ANNOUNCED, Rows, Table};
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink};

/// Turns the frames of one connection into batches.
#[derive(Default)]
pub struct TsbDecoder {
    table: Table,
    sequence: Sequence,
}

impl TsbDecoder {
    /// A decoder for one connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Charges the memory of the table to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.table.within(room);
        self
    }

    /// The account of the sequence numbers so far.
    pub fn account(&self) -> Sequence {
        self.sequence
    }

    /// Applies one frame whose checksum was verified.
    fn frame(&mut self, header: Header, body: &[u8], sink: &mut dyn Sink) -> Result<(), &'static str> {
        if header.sequence < self.sequence.next {
            self.sequence.repeated += 1;
            return Err("a frame came before");
        }
        let missing = header.sequence - self.sequence.next;
        if missing > 0 {
            self.sequence.gaps += 1;
            self.sequence.missing = self.sequence.missing.saturating_add(missing);
            let what = "frames are missing";
            sink.malformed(&Malformed { what, bytes: &[] });
        }
        self.sequence.next = header.sequence.saturating_add(1);
        match header.kind {
            ANNOUNCE => self.table.announce(body, 0, sink).map(|_| ()),
            SAMPLES => {
                let applied = self.table.apply(&Rows::read(header.shape, body)?, sink);
                applied.map_err(|_| NOT_ANNOUNCED)
            }
            _ => Err("a frame's kind is unknown"),
        }
    }
}

impl Decoder for TsbDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let header = match frame::open(rest) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(at),
                Err(what) => {
                    sink.malformed(&Malformed { what, bytes: rest });
                    return Err(Fatal { what });
                }
            };
            let end = HEADER + header.length;
            if let Err(what) = self.frame(header, &rest[HEADER..end], sink) {
                let bytes = &rest[..end];
                sink.malformed(&Malformed { what, bytes });
            }
            at += end;
        }
    }

    fn sequence(&self) -> Option<Sequence> {
        Some(self.sequence)
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !rest.is_empty() {
            let what = "the last frame is cut short";
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}

impl std::fmt::Debug for TsbDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsbDecoder")
            .field("series", &self.table.len())
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
