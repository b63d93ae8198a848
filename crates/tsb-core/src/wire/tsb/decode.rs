//! Frames to batches.

use super::announce::{self, read_key};
use super::frame::{self, ANNOUNCE, HEADER, Header, IDS, PREFIX, SAMPLES, TIMES, u32_at, u64_at};
use super::{MAX_SERIES, is_range};
use crate::batch::{Batch, Ids, Times};
use crate::series::SeriesId;
use crate::time::Timestamp;
use crate::wire::{Decoder, Fatal, Malformed, Sequence, Sink};

/// Stands for the id of a series that the sink did not admit.
const REFUSED: u32 = u32::MAX;

/// Turns the frames of one connection into batches.
#[derive(Default)]
pub struct TsbDecoder {
    /// The sink's id of each id on the wire.
    ids: Vec<u32>,
    /// A checksum of each announced key, to tell a repetition from a contradiction.
    keys: Vec<u32>,
    sequence: Sequence,
    values: Vec<f64>,
    columns: Vec<SeriesId>,
    times: Vec<Timestamp>,
}

impl TsbDecoder {
    /// A decoder for one connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// The account of the sequence numbers so far.
    pub fn account(&self) -> Sequence {
        self.sequence
    }

    /// Applies one frame whose checksum is right.
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
            ANNOUNCE => self.announce(body, sink),
            SAMPLES => self.samples(header.shape, body, sink),
            _ => Err("a frame's kind is unknown"),
        }
    }

    fn announce(&mut self, body: &[u8], sink: &mut dyn Sink) -> Result<(), &'static str> {
        if body.len() < announce::PREFIX {
            return Err("an announcement is cut short");
        }
        let (first, count) = (u32_at(body, 0) as usize, u32_at(body, 4) as usize);
        if first > self.ids.len() {
            return Err("an announcement leaves out series");
        }
        let mut rest = &body[announce::PREFIX..];
        for id in first..first.saturating_add(count) {
            let (key, behind) = read_key(rest).ok_or("an announced key is damaged")?;
            let sum = crc32fast::hash(&rest[..rest.len() - behind.len()]);
            rest = behind;
            match self.keys.get(id) {
                Some(known) if *known == sum => {}
                Some(_) => return Err("an id is announced again with another key"),
                None if id >= MAX_SERIES => return Err("more than 2^24 series are announced"),
                None => {
                    let admitted = sink.series(&key);
                    self.ids.push(admitted.map_or(REFUSED, |id| id.0));
                    self.keys.push(sum);
                }
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err("an announcement is too long")
        }
    }

    fn samples(&mut self, shape: u8, body: &[u8], sink: &mut dyn Sink) -> Result<(), &'static str> {
        if shape & !(IDS | TIMES) != 0 {
            return Err("a frame's shape is unknown");
        }
        if body.len() < PREFIX {
            return Err("a frame of samples is cut short");
        }
        let (count, first) = (u32_at(body, 0) as usize, u32_at(body, 4) as usize);
        let at = Timestamp(u64_at(body, 8) as i64);
        let id_bytes = if shape & IDS != 0 { 4 } else { 0 };
        let time_bytes = if shape & TIMES != 0 { 8 } else { 0 };
        if count == 0 || (body.len() - PREFIX) as u64 != count as u64 * (id_bytes + time_bytes + 8) {
            return Err("a frame of samples is not as long as it says");
        }
        let (ids, rest) = body[PREFIX..].split_at(count * id_bytes as usize);
        let (times, values) = rest.split_at(count * time_bytes as usize);
        fill(&mut self.values, values, |bytes| f64::from_le_bytes(*bytes));
        fill(&mut self.times, times, |bytes| Timestamp(i64::from_le_bytes(*bytes)));
        let times = if times.is_empty() { None } else { Some(()) };
        let range = if ids.is_empty() {
            let known = self.ids.get(first..).and_then(|ids| ids.get(..count));
            let known = known.ok_or("a series is not announced")?;
            self.columns.clear();
            if !is_range(known) || known[0] == REFUSED {
                self.columns.extend(known.iter().map(|id| SeriesId(*id)));
            }
            self.columns.is_empty().then_some(SeriesId(known[0]))
        } else {
            fill(&mut self.columns, ids, |bytes| SeriesId(u32::from_le_bytes(*bytes)));
            for id in &mut self.columns {
                *id = SeriesId(*self.ids.get(id.index()).ok_or("a series is not announced")?);
            }
            None
        };
        if range.is_none() {
            self.drop_refused(sink);
        }
        if self.values.is_empty() {
            return Ok(());
        }
        let ids = range.map_or(Ids::Each(&self.columns), Ids::Range);
        let times = times.map_or(Times::One(at), |()| Times::Each(&self.times));
        sink.batch(&Batch::new(ids, times, &self.values));
        Ok(())
    }

    /// Takes the samples of refused series out of the columns.
    fn drop_refused(&mut self, sink: &mut dyn Sink) {
        let refused = self.columns.iter().filter(|id| id.0 == REFUSED).count();
        if refused == 0 {
            return;
        }
        let ids = &self.columns;
        keep_admitted(&mut self.values, ids);
        keep_admitted(&mut self.times, ids);
        self.columns.retain(|id| id.0 != REFUSED);
        sink.refused(refused);
    }
}

/// Replaces a column by what `bytes` hold.
#[inline(always)]
fn fill<T, const N: usize>(column: &mut Vec<T>, bytes: &[u8], read: impl Fn(&[u8; N]) -> T) {
    column.clear();
    let (items, _) = bytes.as_chunks::<N>();
    column.extend(items.iter().map(read));
}

fn keep_admitted<T>(column: &mut Vec<T>, ids: &[SeriesId]) {
    let mut ids = ids.iter();
    column.retain(|_| ids.next().is_some_and(|id| id.0 != REFUSED));
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
            .field("series", &self.ids.len())
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
