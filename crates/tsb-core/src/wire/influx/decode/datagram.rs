//! Datagrams of lines: as in InfluxDB over UDP, one invalid line discards the whole datagram.

use super::super::line;
use super::InfluxDecoder;
use crate::batch::{Batch, Ids, Times};
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::{Malformed, NotAdmitted, Sink};

impl InfluxDecoder {
    /// Decodes all lines of a datagram, or none.
    pub(super) fn datagram(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if self.common_datagram(bytes, sink) {
            return;
        }
        let mut fields = std::mem::take(&mut self.fields);
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let line = &rest[..line::length(rest).unwrap_or(rest.len())];
            at += line.len() + 1;
            if !line::is_point(line) {
                continue;
            }
            if let Err(what) = line::parse(line, self.tail.precision(), &mut fields) {
                sink.malformed(&Malformed { what, bytes });
                self.fields = fields;
                return;
            }
        }
        self.fields = fields;
        let consumed = self.lines(bytes, sink);
        self.exact(&bytes[consumed..], sink);
        self.columns.flush(sink);
    }

    /// Decodes a datagram that consists only of lines of the common form, which are valid. Returns
    /// false, and passes nothing on, for any other.
    fn common_datagram(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> bool {
        // The empty lines that pad a datagram are skipped.
        let lines = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == b'\n').count();
        let bytes = &bytes[..bytes.len().min(lines + 1)];
        let mut decoded = std::mem::take(&mut self.decoded);
        let is_good = bytes.len() > lines && self.all_common_lines(bytes, bytes.len(), &mut decoded) == bytes.len();
        if is_good {
            decoded.release(sink);
            self.columns.flush(sink);
        } else {
            self.columns.forget();
        }
        decoded.clear();
        self.decoded = decoded;
        is_good
    }
}

/// The decoded part of a datagram that may turn out to be invalid. Its buffers are reused.
#[derive(Default)]
pub(super) struct DecodedDatagram {
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    // By reason, in the order of `NotAdmitted::ALL`.
    refused: [usize; NotAdmitted::ALL.len()],
}

impl DecodedDatagram {
    fn release(&self, sink: &mut dyn Sink) {
        for (why, samples) in NotAdmitted::ALL.into_iter().zip(self.refused) {
            if samples > 0 {
                sink.refused(why, samples);
            }
        }
        if !self.values.is_empty() {
            let (ids, times) = (Ids::Each(&self.ids), Times::Each(&self.times));
            sink.batch(&Batch::new(ids, times, &self.values));
        }
    }

    fn clear(&mut self) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
        self.refused = [0; NotAdmitted::ALL.len()];
    }
}

impl Sink for DecodedDatagram {
    fn series(&mut self, _key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        // Only lines with known names are of the common form.
        Err(NotAdmitted::Undefined)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for (id, at, value) in batch.iter() {
            self.ids.push(id);
            self.times.push(at);
            self.values.push(value);
        }
    }

    fn refused(&mut self, why: NotAdmitted, samples: usize) {
        self.refused[why as usize] += samples;
    }

    // Lines contain their names, so this is never called.
    fn unannounced(&mut self, _samples: usize) {}

    // Lines of the common form are valid, so this is never called.
    fn malformed(&mut self, _problem: &Malformed<'_>) {}
}
