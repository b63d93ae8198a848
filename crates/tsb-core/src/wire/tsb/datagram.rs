//! Decodes datagrams to batches; any datagram may be lost, late or duplicated.

use super::account::Account;
use super::frame::{self, ANNOUNCE, END, HEADER, Header, SAMPLES};
use super::held_frames::{HeldFrame, HeldFrames};
use super::table::{NotAnnounced, Rows, Table};
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink};

/// Maximum number of ids that an announcement may skip, in addition to the number of known ids:
/// the datagrams that announce them may be lost or late.
const GAP: usize = 1 << 16;

/// Turns the datagrams of one peer into batches.
///
/// Each datagram must be passed whole. Samples of series that are not announced yet are held in
/// bounded memory; if there is no room, or no announcement before the end, they are refused.
pub struct TsbDatagramDecoder {
    session: Option<u16>,
    table: Table,
    account: Account,
    held: HeldFrames,
}

impl TsbDatagramDecoder {
    /// A decoder for one peer.
    pub fn new(room: &Room) -> Self {
        let mut table = Table::default();
        table.within(room);
        Self {
            session: None,
            table,
            account: Account::default(),
            held: HeldFrames::new(room.held.clone()),
        }
    }

    /// Starts a new session of the sender: ids and numbers start anew.
    fn begin(&mut self, session: u16, sink: &mut dyn Sink) {
        if self.session.is_some() {
            self.give_up(sink);
            self.table.clear();
            self.account = Account::default();
        }
        self.session = Some(session);
    }

    /// Gives up on held samples, whose announcement cannot arrive any more.
    fn give_up(&mut self, sink: &mut dyn Sink) {
        for frame in self.held.ready(|_| true) {
            sink.unannounced(frame.samples as usize);
        }
    }

    #[inline]
    fn frame(&mut self, header: Header, body: &[u8], sink: &mut dyn Sink) -> Result<(), &'static str> {
        if self.session != Some(header.session) {
            self.begin(header.session, sink);
        }
        match header.kind {
            SAMPLES => self.samples(header, body, sink),
            ANNOUNCE => self.announce(body, sink),
            END if body.is_empty() => {
                self.account.end(header.sequence);
                Ok(())
            }
            END => Err("a frame that ends a session has a body"),
            _ => Err("a frame's kind is unknown"),
        }
    }

    #[inline]
    fn samples(&mut self, header: Header, body: &[u8], sink: &mut dyn Sink) -> Result<(), &'static str> {
        let rows = Rows::read(header.shape, body)?;
        let samples = rows.count as u64;
        if self.account.book(header.sequence, samples)
            && let Err(NotAnnounced(missing)) = self.table.apply(&rows, sink)
        {
            let frame = HeldFrame {
                missing,
                shape: header.shape,
                samples,
                body: body.into(),
            };
            self.wait(frame, sink);
        }
        Ok(())
    }

    #[cold]
    fn wait(&mut self, frame: HeldFrame, sink: &mut dyn Sink) {
        let samples = frame.samples as usize;
        if !self.held.keep(frame) {
            sink.unannounced(samples);
        }
    }

    fn announce(&mut self, body: &[u8], sink: &mut dyn Sink) -> Result<(), &'static str> {
        let announced = self.table.announce(body, self.table.len() + GAP, sink);
        if announced == Ok(true) {
            self.resume(sink);
        }
        announced.map(|_| ())
    }

    /// Applies held samples whose series are known now.
    fn resume(&mut self, sink: &mut dyn Sink) {
        for frame in self.held.ready(|id| self.table.knows(id)) {
            let Ok(rows) = Rows::read(frame.shape, &frame.body) else {
                continue;
            };
            if let Err(NotAnnounced(missing)) = self.table.apply(&rows, sink) {
                self.wait(HeldFrame { missing, ..frame }, sink);
            }
        }
    }
}

impl Decoder for TsbDatagramDecoder {
    fn decode(&mut self, datagram: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut rest = datagram;
        while let Some(first) = rest.first() {
            let problem = if *first == 0 {
                // Zero bytes are padding, which makes datagrams equally long.
                let is_padding = rest.iter().all(|byte| *byte == 0);
                (!is_padding).then_some("the padding of a datagram is not zero")
            } else {
                match frame::open_datagram(rest) {
                    Ok(Some(header)) => {
                        let (whole, behind) = rest.split_at(HEADER + header.length);
                        if let Err(what) = self.frame(header, &whole[HEADER..], sink) {
                            sink.malformed(&Malformed { what, bytes: whole });
                        }
                        rest = behind;
                        continue;
                    }
                    Ok(None) => Some("a frame is cut short by the end of its datagram"),
                    Err(what) => Some(what),
                }
            };
            if let Some(what) = problem {
                sink.malformed(&Malformed { what, bytes: rest });
            }
            break;
        }
        Ok(datagram.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        Some(self.account.sequence())
    }

    fn finish(&mut self, _rest: &[u8], sink: &mut dyn Sink) {
        self.give_up(sink);
    }
}

impl std::fmt::Debug for TsbDatagramDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsbDatagramDecoder")
            .field("series", &self.table.len())
            .field("sequence", &self.account.sequence())
            .finish_non_exhaustive()
    }
}
