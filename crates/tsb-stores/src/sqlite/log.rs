//! The log of the `ticks` layout: everything written since the last commit, as one frame.
//!
//! A frame holds batches: a run of neighbouring series, or a list, with one timestamp or one
//! each. A value is stored as the difference to the previous value of its series, so a frame can
//! be read only after all earlier frames of its generation. It does not use SQLite. Byte format:
//! `docs/formats/sqlite.md`.

mod values;

use tsb_core::bytes::{BytesError, Fault, Reader, varint};
use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use values::Values;

const RUN: u8 = 0;
const LIST: u8 = 1;
const LIST_AT_ONE_TIME: u8 = 2;
/// Bytes of the checksum at the start.
const HEAD: usize = 4;

/// Encodes frames.
#[derive(Debug, Default)]
pub(super) struct FrameEncoder {
    values: Values,
    out: Vec<u8>,
    /// The timestamp of the previous batch in this frame.
    at: i64,
}

impl FrameEncoder {
    /// Begins a generation: its first frame can be read on its own.
    pub(super) fn restart(&mut self) {
        self.values = Values::default();
        self.clear();
    }

    /// Continues where a decoder has ended.
    pub(super) fn resume(&mut self, decoder: FrameDecoder) {
        self.values = decoder.values;
        self.clear();
    }

    /// Begins the next frame.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.at = 0;
    }

    /// Bytes of the frame so far; 0 if it is empty.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Adds a batch, whose ids are series numbers of the file.
    pub(super) fn add(&mut self, batch: &Batch<'_>) {
        if batch.is_empty() {
            return;
        }
        if self.out.is_empty() {
            self.out.extend_from_slice(&[0; HEAD]);
        }
        match (batch.ids(), batch.times()) {
            (Ids::Range(first), Times::One(at)) => {
                self.out.push(RUN);
                varint::put(&mut self.out, u64::from(first.0));
                varint::put(&mut self.out, batch.len() as u64);
                self.time(at.0);
                self.values.put_run(first.0, batch.values(), &mut self.out);
            }
            _ => self.list(batch),
        }
    }

    fn list(&mut self, batch: &Batch<'_>) {
        let one = match batch.times() {
            Times::One(at) => Some(at),
            Times::Each(_) => None,
        };
        self.out.push(if one.is_some() { LIST_AT_ONE_TIME } else { LIST });
        varint::put(&mut self.out, batch.len() as u64);
        let mut before = 0;
        for index in 0..batch.len() {
            let id = i64::from(batch.id(index).0);
            varint::put_signed(&mut self.out, id - before);
            before = id;
        }
        match one {
            Some(at) => self.time(at.0),
            None => (0..batch.len()).for_each(|index| self.time(batch.time(index).0)),
        }
        let ids = (0..batch.len()).map(|index| batch.id(index).0);
        self.values.put_list(ids, batch.values(), &mut self.out);
    }

    fn time(&mut self, at: i64) {
        varint::put_signed(&mut self.out, at.wrapping_sub(self.at));
        self.at = at;
    }

    /// The complete frame, with its checksum.
    pub(super) fn frame(&mut self) -> &[u8] {
        if let Some((head, rest)) = self.out.split_first_chunk_mut::<HEAD>() {
            *head = crc32fast::hash(rest).to_le_bytes();
        }
        &self.out
    }
}

/// A decoded batch. A visitor may swap it for another one, whose buffers the decoder then reuses.
#[derive(Debug, Default)]
pub(super) struct DecodedBatch {
    /// The first series of a run of neighbours; `None`: `ids` lists them.
    run: Option<SeriesId>,
    ids: Vec<SeriesId>,
    /// One for all samples, or one each.
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl DecodedBatch {
    /// The samples.
    pub(super) fn batch(&self) -> Batch<'_> {
        let times = match self.times.as_slice() {
            [at] => Times::One(*at),
            each => Times::Each(each),
        };
        Batch::new(self.run.map_or(Ids::Each(&self.ids), Ids::Range), times, &self.values)
    }

    /// Number of samples.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Decodes frames, in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct FrameDecoder {
    values: Values,
    decoded: DecodedBatch,
}

impl FrameDecoder {
    /// Calls `visit` for each batch of a frame. Series numbers must be below `series`. An error
    /// says what is wrong with the frame.
    pub(super) fn frame(
        &mut self,
        bytes: &[u8],
        series: u32,
        mut visit: impl FnMut(&mut DecodedBatch),
    ) -> Result<(), &'static str> {
        let mut cursor = Reader::new(bytes);
        let sum = cursor.u32().map_err(|_| "a frame is cut off")?;
        if crc32fast::hash(&bytes[HEAD..]) != sum {
            return Err("the checksum of a frame is wrong");
        }
        let mut at = 0;
        while !cursor.rest().is_empty() {
            self.batch(&mut cursor, &mut at, series)
                .map_err(|_| "a frame holds what none can")?;
            visit(&mut self.decoded);
        }
        Ok(())
    }

    fn batch(&mut self, cursor: &mut Reader<'_>, at: &mut i64, series: u32) -> Result<(), BytesError> {
        let kind = cursor.byte()?;
        let decoded = &mut self.decoded;
        decoded.ids.clear();
        decoded.times.clear();
        if kind == RUN {
            let first: u32 = cursor.varint_as()?;
            let len: u32 = cursor.varint_as()?;
            *at = at.wrapping_add(cursor.signed()?);
            if first.checked_add(len).is_none_or(|end| end > series) {
                return Err(cursor.error(Fault::Invalid));
            }
            decoded.run = Some(SeriesId(first));
            decoded.times.push(Timestamp(*at));
            return self.values.get_run(first, len as usize, cursor, &mut decoded.values);
        }
        let len: usize = cursor.varint_as()?;
        // An id takes at least one byte.
        if kind > LIST_AT_ONE_TIME || len > cursor.rest().len() {
            return Err(cursor.error(Fault::Invalid));
        }
        decoded.run = None;
        let mut id = 0i64;
        for _ in 0..len {
            id = id.wrapping_add(cursor.signed()?);
            let number = u32::try_from(id).ok().filter(|number| *number < series);
            let number = number.ok_or_else(|| cursor.error(Fault::Invalid))?;
            decoded.ids.push(SeriesId(number));
        }
        for _ in 0..if kind == LIST { len } else { 1 } {
            *at = at.wrapping_add(cursor.signed()?);
            decoded.times.push(Timestamp(*at));
        }
        self.values.get_list(&decoded.ids, cursor, &mut decoded.values)
    }
}

#[cfg(test)]
mod tests;
