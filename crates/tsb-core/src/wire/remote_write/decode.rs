//! Decodes a body to samples.

use std::sync::Arc;

use super::MAX_NAME;
use super::labels::series_key;
use crate::series::{SeriesId, SeriesKey};
use crate::time::{Clock, Timestamp};
use crate::wire::name_lookup::NameLookup;
use crate::wire::protobuf::{Field, Fields, NotProtobuf, bytes_key, push_bytes};
use crate::wire::{Decoder, Fatal, Malformed, NotAdmitted, Room, Sequence, Sink};

/// Decodes bodies to batches: each call of [`Decoder::decode`] gets one.
///
/// An invalid series is left out, and reported; the others of its body are passed on. Where a body
/// stops being protobuf, it ends. Metadata and exemplars, which are no samples, are not kept.
#[derive(Debug)]
pub struct RemoteWriteDecoder {
    lookup: NameLookup,
    /// The labels of a series whose labels do not stand together.
    labels: Vec<u8>,
}

/// What is wrong with a series.
#[derive(Clone, Copy, Debug)]
enum Problem {
    /// It is not protobuf, and so is all behind it.
    Form,
    /// This, in a sentence.
    Series(&'static str),
}

impl From<NotProtobuf> for Problem {
    fn from(_: NotProtobuf) -> Self {
        Self::Form
    }
}

impl RemoteWriteDecoder {
    /// A decoder for one client.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&**clock),
            labels: Vec::new(),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    /// Decodes a `TimeSeries`.
    #[inline(always)]
    fn series(&mut self, message: &[u8], sink: &mut dyn Sink) -> Result<(), Problem> {
        let mut fields = Fields::new(message);
        while fields.next_bytes(bytes_key(1))?.is_some() {}
        let labels = &message[..message.len() - fields.rest().len()];
        let sample = fields.next_bytes(bytes_key(2))?;
        let Some(sample) = sample.filter(|_| fields.rest().is_empty()) else {
            return self.any_series(message, sink);
        };
        let (at, value) = read_sample(sample)?;
        let id = self.id(labels, sink)?;
        self.lookup.push(id, at, value, sink);
        Ok(())
    }

    /// Decodes a `TimeSeries` of any other form than labels followed by one sample.
    #[inline(never)]
    fn any_series(&mut self, message: &[u8], sink: &mut dyn Sink) -> Result<(), Problem> {
        let mut labels = std::mem::take(&mut self.labels);
        labels.clear();
        let (mut samples, mut histograms) = (Vec::new(), 0);
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            match field {
                (1, Field::Bytes(label)) => push_bytes(1, label, &mut labels),
                (2, Field::Bytes(sample)) => samples.push(read_sample(sample)?),
                (4, Field::Bytes(_)) => histograms += 1,
                _ => {}
            }
        }
        if !samples.is_empty() {
            // Without a sample, its labels are of no interest.
            let id = self.id(&labels, sink)?;
            for (at, value) in samples {
                self.lookup.push(id, at, value, sink);
            }
        }
        self.labels = labels;
        for _ in 0..histograms {
            let what = "a histogram is not supported here";
            sink.malformed(&Malformed { what, bytes: message });
        }
        Ok(())
    }

    #[inline(always)]
    fn id(&mut self, labels: &[u8], sink: &mut dyn Sink) -> Result<Result<SeriesId, NotAdmitted>, Problem> {
        let entry = self.lookup.entry(labels, || key(labels), sink);
        entry.map(|(_, id)| id).map_err(Problem::Series)
    }
}

/// Timestamp and value of a `Sample`.
#[inline(always)]
fn read_sample(sample: &[u8]) -> Result<(Timestamp, f64), Problem> {
    let (mut fields, mut millis, mut value) = (Fields::new(sample), 0, 0.0);
    while let Some(field) = fields.next()? {
        match field {
            (1, Field::Fixed64(bits)) => value = f64::from_bits(bits),
            (2, Field::Varint(number)) => millis = number as i64,
            _ => {}
        }
    }
    let nanos = millis.checked_mul(1_000_000);
    let nanos = nanos.ok_or(Problem::Series("a timestamp is beyond the years 1678 to 2262"))?;
    Ok((Timestamp(nanos), value))
}

/// The series of its labels, which stand together.
///
/// # Errors
/// What is wrong with them.
fn key(labels: &[u8]) -> Result<SeriesKey, &'static str> {
    if labels.len() > MAX_NAME {
        return Err("the labels of a series are longer than 32 KiB");
    }
    let form = |NotProtobuf| "a label is not valid protobuf";
    let mut found = Vec::new();
    let mut pairs = Fields::new(labels);
    while let Some(pair) = pairs.next_bytes(bytes_key(1)).map_err(form)? {
        let (label, value) = read_label(pair).map_err(form)?;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "a label is not UTF-8");
        found.push((text(label)?, text(value)?));
    }
    series_key(found)
}

fn read_label(pair: &[u8]) -> Result<(&[u8], &[u8]), NotProtobuf> {
    let (mut fields, mut label, mut value) = (Fields::new(pair), &[][..], &[][..]);
    while let Some(field) = fields.next()? {
        match field {
            (1, Field::Bytes(text)) => label = text,
            (2, Field::Bytes(text)) => value = text,
            _ => {}
        }
    }
    Ok((label, value))
}

impl Decoder for RemoteWriteDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut fields = Fields::new(bytes);
        loop {
            let rest = fields.rest();
            let outcome = match fields.next() {
                Ok(None) => break,
                Ok(Some((1, Field::Bytes(series)))) => self.series(series, sink),
                Ok(Some(_)) => Ok(()),
                Err(broken) => Err(broken.into()),
            };
            match outcome {
                Ok(()) => {}
                Err(Problem::Series(what)) => {
                    let bytes = &rest[..rest.len() - fields.rest().len()];
                    sink.malformed(&Malformed { what, bytes });
                }
                Err(Problem::Form) => {
                    let what = "a body is not a WriteRequest in protobuf";
                    sink.malformed(&Malformed { what, bytes: rest });
                    break;
                }
            }
        }
        self.lookup.flush(sink);
        Ok(bytes.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], _sink: &mut dyn Sink) {}
}
