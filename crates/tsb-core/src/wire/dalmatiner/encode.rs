//! Encodes samples to records, in each of the four forms.

use super::point::{INTEGER, integer, write8, write8_rounded};
use super::{PACKED, bucket, elements, metric};
use crate::batch::Batch;
use crate::series::{Catalog, SeriesKey};
use crate::time::Timestamp;
use crate::wire::output_buffer::{OutputBuffer, ShortText, TextTable};
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// The delay, in seconds, that the sender of a stream allows the server before it writes.
const DELAY: u8 = 2;

/// The format of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// July 2014: consecutive records, made for datagrams.
    July,
    /// August 2014: frames of a bucket and blocks. The content of a datagram is a frame without
    /// its length.
    August,
    /// The last version's stream mode: one entry per sample, and one flush per batch.
    Stream,
    /// The last version's batch mode: one batch per timestamp.
    Batch,
}

impl Form {
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::July => Protocol::DalmatinerJuly,
            Self::August => Protocol::DalmatinerAugust,
            Self::Stream => Protocol::DalmatinerStream,
            Self::Batch => Protocol::DalmatinerBatch,
        }
    }

    /// The constant part of a series' record, which follows the time.
    fn template(self, bucket: &str, key: &SeriesKey) -> Result<Vec<u8>, &'static str> {
        let name = match self {
            Self::July | Self::August => metric(key)?,
            Self::Stream | Self::Batch => elements(key)?,
        };
        let length = (name.len() as u16).to_be_bytes();
        let pieces: &[&[u8]] = match self {
            Self::July => &[
                &[bucket.len() as u8],
                bucket.as_bytes(),
                &length,
                &name,
                &[0, 9, INTEGER],
            ],
            Self::August => &[&length, &name, &[0, 9, INTEGER]],
            Self::Stream => &[&length, &name, &[0, 0, 0, 8]],
            Self::Batch => &[&length, &name],
        };
        Ok(pieces.concat())
    }

    /// The beginning of a record, with its time.
    fn head(self, at: Timestamp) -> ShortText {
        let time = (at.as_secs() as u64).to_be_bytes();
        let pieces: &[&[u8]] = match self {
            Self::July => &[&[0], &time],
            Self::August => &[&time],
            Self::Stream => &[&[5], &time],
            Self::Batch => &[],
        };
        // At most nine bytes, which fit.
        ShortText::new(&pieces.concat()).unwrap_or(ShortText::EMPTY)
    }
}

/// Encodes batches to records of one form.
///
/// Timestamps are cut to whole seconds. Left out, and counted by [`Encoder::skipped`]: timestamps
/// before 1970, ids that are not in the catalog, and values that the format cannot represent
/// exactly. In 2014 these are all but integers up to 2^53; later, fractions that are neither a
/// decimal of 47 bits nor a float whose last bit is zero.
#[derive(Debug)]
pub struct DalmatinerEncoder {
    form: Form,
    templates: TextTable,
    at: Timestamp,
    head: ShortText,
    buffer: OutputBuffer,
    bucket: Vec<u8>,
    /// Whether stream mode was entered.
    is_open: bool,
    rounds: bool,
    skipped: u64,
}

impl DalmatinerEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, with the reason. All series must be in one
    /// bucket.
    pub fn new(form: Form, catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let mut templates = TextTable::new();
        let mut common = None;
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(form.protocol(), key, why);
            let bucket = bucket(key).map_err(refuse)?;
            if *common.get_or_insert(bucket) != bucket {
                return Err(refuse("it is in another bucket, and a connection has one"));
            }
            let template = form.template(bucket, key).map_err(refuse)?;
            templates
                .push(&template)
                .ok_or_else(|| refuse("the names together exceed 4 GiB"))?;
        }
        let bucket = common.unwrap_or(super::DEFAULT_BUCKET).as_bytes();
        let at = Timestamp(0);
        Ok(Self {
            form,
            templates,
            at,
            head: form.head(at),
            buffer: OutputBuffer::new(),
            bucket: [&[bucket.len() as u8], bucket].concat(),
            is_open: false,
            rounds: false,
            skipped: 0,
        })
    }

    /// Writes a float without its last bit, where the later formats have no place for that, as
    /// DalmatinerDB does; without this, it is left out.
    #[must_use]
    pub fn rounding(mut self) -> Self {
        self.rounds = true;
        self
    }

    /// The beginning of each datagram: in August 2014 the bucket of its blocks.
    pub(super) fn datagram_head(&self) -> Vec<u8> {
        match self.form {
            Form::August => [&[0], self.bucket.as_slice()].concat(),
            _ => Vec::new(),
        }
    }

    /// Length of a series' record; 0 for an id that is not in the catalog.
    #[inline(always)]
    pub(super) fn record_length(&self, id: usize) -> usize {
        self.templates
            .get(id)
            .map_or(0, |template| self.head.length() + template.as_bytes().len() + 8)
    }

    /// Length of the first record in the bytes, which this encoder must have written.
    pub(super) fn form_length(&self, bytes: &[u8]) -> Option<usize> {
        // The time and, before August, the bucket precede the metric.
        let metric = match self.form {
            Form::July => 9 + self.bucket.len(),
            _ => 8,
        };
        let length = bytes.get(metric..)?.first_chunk::<2>()?;
        let whole = metric + 2 + usize::from(u16::from_be_bytes(*length)) + 2 + 9;
        (whole <= bytes.len()).then_some(whole)
    }

    /// Appends one record; false if it was counted as left out.
    #[inline(always)]
    pub(super) fn try_record(&mut self, (id, at, value): (usize, Timestamp, f64), out: &mut Vec<u8>) -> bool {
        self.set_time(at);
        let is_written = self.record(id, value, out);
        self.buffer.flush(out);
        is_written
    }

    #[inline(always)]
    fn set_time(&mut self, at: Timestamp) {
        if at != self.at {
            (self.at, self.head) = (at, self.form.head(at));
        }
    }

    /// The encoded value of a sample, if the format can represent it.
    #[inline(always)]
    fn last_bytes(&self, value: f64) -> Option<u64> {
        let word = match self.form {
            Form::July | Form::August => integer(value).map(|integer| integer as u64),
            Form::Stream | Form::Batch => write8(value).or_else(|| self.rounded(value)),
        };
        word.filter(|_| self.at.0 >= 0)
    }

    /// A value that the format cannot represent exactly, if it may be rounded.
    #[cold]
    fn rounded(&self, value: f64) -> Option<u64> {
        write8_rounded(value).filter(|_| self.rounds)
    }

    /// Adds one record to the buffer; false if it was counted as left out.
    #[inline(always)]
    fn record(&mut self, id: usize, value: f64, out: &mut Vec<u8>) -> bool {
        let (Some(template), Some(word)) = (self.templates.get(id), self.last_bytes(value)) else {
            self.skipped += 1;
            return false;
        };
        self.buffer.word(&self.head, template, word, out);
        true
    }

    fn records(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        for (id, at, value) in batch.iter() {
            self.set_time(at);
            self.record(id.index(), value, out);
        }
        self.buffer.flush(out);
    }

    /// Writes blocks in frames, each closed when it is long enough.
    fn frames(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let head = 1 + self.bucket.len();
        let mut frame = None;
        for (id, at, value) in batch.iter() {
            let body = *frame.get_or_insert_with(|| {
                out.extend_from_slice(&[0; 5]);
                out.extend_from_slice(&self.bucket);
                out.len() - head
            });
            self.set_time(at);
            self.record(id.index(), value, out);
            if out.len() + self.buffer.used() - body >= PACKED {
                self.buffer.flush(out);
                end_frame(body, out);
                frame = None;
            }
        }
        self.buffer.flush(out);
        if let Some(body) = frame {
            if out.len() - body == head {
                // No record was written: an empty frame would be a keep-alive.
                out.truncate(body - 4);
            } else {
                end_frame(body, out);
            }
        }
    }

    /// Writes one batch per run of samples of the same second.
    fn batches(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let mut second = None;
        for (id, at, value) in batch.iter() {
            self.set_time(at);
            if second != Some(at.as_secs())
                && self.templates.get(id.index()).is_some()
                && self.last_bytes(value).is_some()
            {
                self.buffer.flush(out);
                out.extend_from_slice(end_of(second));
                out.push(10);
                out.extend_from_slice(&at.as_secs().to_be_bytes());
                second = Some(at.as_secs());
            }
            self.record(id.index(), value, out);
        }
        self.buffer.flush(out);
        out.extend_from_slice(end_of(second));
    }

    /// Enters stream mode; from here on there are no frames.
    fn open(&mut self, out: &mut Vec<u8>) {
        if !self.is_open {
            self.is_open = true;
            let length = 2 + self.bucket.len() as u32;
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&[4, DELAY]);
            out.extend_from_slice(&self.bucket);
        }
    }
}

/// The end of an open batch: a metric without a name.
fn end_of(batch: Option<i64>) -> &'static [u8] {
    if batch.is_some() { &[0; 2] } else { &[] }
}

/// Writes the length of the frame whose body begins at `body`.
fn end_frame(body: usize, out: &mut [u8]) {
    let length = (out.len() - body) as u32;
    out[body - 4..body].copy_from_slice(&length.to_be_bytes());
}

impl Encoder for DalmatinerEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        match self.form {
            Form::July => self.records(batch, out),
            Form::August => self.frames(batch, out),
            Form::Stream => {
                self.open(out);
                self.records(batch, out);
                out.push(6);
            }
            Form::Batch => {
                self.open(out);
                self.batches(batch, out);
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
