//! Line protocols over datagrams: packs whole lines, and decodes datagrams of lines.

use memchr::memrchr;

use super::{Packer, Packets};
use crate::batch::Batch;
use crate::series::Catalog;
use crate::time::Timestamp;
use crate::wire::{Decoder, Encoder, Fatal, Protocol, Sequence, Sink, UnsupportedSeries};

/// A value with the longest possible text.
const LONGEST: f64 = -1.234_567_890_123_456_7e-308;

/// A timestamp with the longest text that is not negative; a negative one may be a byte longer.
const LATEST: Timestamp = Timestamp(i64::MAX);

/// Number of samples encoded at a time: their text stays in the first-level cache.
const PIECE: usize = 256;

/// Packs the lines of an encoder.
///
/// To make datagrams equally long, Graphite's last line is padded with blanks before its end,
/// which carbon ignores; for other protocols empty lines are added, which their servers skip.
#[derive(Debug)]
pub(crate) struct LinePacker {
    encoder: Box<dyn Encoder>,
    lines: Vec<u8>,
    filler: u8,
    /// Number of samples whose line is longer than a datagram.
    too_long: u64,
}

impl LinePacker {
    /// A packer. Every line must fit into `limit` bytes.
    ///
    /// # Errors
    /// The first series that cannot be carried, or whose longest line is longer.
    pub(crate) fn new(protocol: Protocol, catalog: &Catalog, limit: usize) -> Result<Self, UnsupportedSeries> {
        let mut encoder = protocol.encoder(catalog)?;
        let mut lines = Vec::with_capacity(64 << 10);
        for (id, key) in catalog.definitions() {
            lines.clear();
            encoder.encode(&Batch::tick(id, LATEST, &[LONGEST]), &mut lines);
            if lines.len() > limit {
                return Err(UnsupportedSeries::new(
                    protocol,
                    &key,
                    "its line does not fit into a datagram",
                ));
            }
        }
        Ok(Self {
            encoder,
            lines,
            filler: if protocol == Protocol::Graphite { b' ' } else { b'\n' },
            too_long: 0,
        })
    }

    /// Moves the encoded lines into datagrams.
    fn distribute(&mut self, packets: &mut Packets) {
        let filler = self.filler;
        let mut rest = self.lines.as_slice();
        while !rest.is_empty() {
            let room = packets.room();
            if rest.len() <= room {
                packets.open().extend_from_slice(rest);
                return;
            }
            if let Some(end) = memrchr(b'\n', &rest[..room]) {
                packets.open().extend_from_slice(&rest[..=end]);
                rest = &rest[end + 1..];
            } else if packets.is_fresh() {
                let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                rest = &rest[end..];
                self.too_long += 1;
                continue;
            }
            if !rest.is_empty() {
                packets.close_full(|bytes, count| pad(bytes, count, filler));
            }
        }
    }
}

/// Inserts `count` filler bytes before the last line feed.
fn pad(bytes: &mut Vec<u8>, count: usize, filler: u8) {
    bytes.pop();
    bytes.resize(bytes.len() + count, filler);
    bytes.push(b'\n');
}

impl Packer for LinePacker {
    fn pack(&mut self, batch: &Batch<'_>, packets: &mut Packets) {
        for start in (0..batch.len()).step_by(PIECE) {
            let end = batch.len().min(start + PIECE);
            self.lines.clear();
            self.encoder.encode(&batch.slice(start..end), &mut self.lines);
            self.distribute(packets);
        }
    }

    fn finish(&mut self, _packets: &mut Packets) -> bool {
        false
    }

    fn samples_in(&self, datagram: &[u8]) -> u64 {
        let ends = memchr::memchr_iter(b'\n', datagram);
        ends.filter(|&end| end > 0 && datagram[end - 1] != b'\n').count() as u64
    }

    fn skipped(&self) -> u64 {
        self.encoder.skipped() + self.too_long
    }
}

/// Decodes datagrams one by one: the end of a datagram ends its last record, and an error that
/// would end a connection ends only the datagram.
#[derive(Debug)]
pub(crate) struct WholeDatagrams {
    decoder: Box<dyn Decoder>,
    /// Whether records end with a line feed, which the last one may lack.
    is_lines: bool,
    /// Buffer for adding the missing line feed.
    ended: Vec<u8>,
}

impl WholeDatagrams {
    /// For line protocols.
    pub(crate) fn of_lines(decoder: Box<dyn Decoder>) -> Self {
        Self {
            decoder,
            is_lines: true,
            ended: Vec::new(),
        }
    }

    /// For protocols whose records state their length, or whose datagram is one record.
    pub(crate) fn of_records(decoder: Box<dyn Decoder>) -> Self {
        Self {
            is_lines: false,
            ..Self::of_lines(decoder)
        }
    }

    fn records(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        // On an error the decoder has informed the sink; the rest of the datagram is dropped.
        if let Ok(consumed) = self.decoder.decode(bytes, sink) {
            let rest = &bytes[consumed..];
            if !rest.is_empty() {
                self.decoder.finish(rest, sink);
            }
        }
    }
}

impl Decoder for WholeDatagrams {
    fn decode(&mut self, datagram: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        match datagram.last() {
            None => {}
            Some(last) if *last != b'\n' && self.is_lines => {
                let mut ended = std::mem::take(&mut self.ended);
                ended.clear();
                ended.extend_from_slice(datagram);
                ended.push(b'\n');
                self.records(&ended, sink);
                self.ended = ended;
            }
            Some(_) => self.records(datagram, sink),
        }
        Ok(datagram.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], _sink: &mut dyn Sink) {}
}
