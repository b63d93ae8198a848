//! Runs a codec on the `mix` fleet, in batch orders of different cost.

use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_core::wire::{Decoder, Encoder, Malformed, NotAdmitted, Protocol, Sink};
use tsb_core::{Batch, Catalog, Ids, SeriesId, SeriesKey, Times, Timestamp};

use crate::mix::{self, Mix, Random};

/// A case: a protocol, and the form of the series keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecCase {
    /// The protocol.
    pub protocol: Protocol,
    /// Number of series that differ only in the label `_field`; 0: dotted names without labels.
    fields: usize,
}

impl CodecCase {
    /// Every protocol of [`Protocol::ALL`], so a new one is timed without a change here; Influx with one and
    /// with ten fields per line.
    pub fn all() -> Vec<Self> {
        let of = |protocol: Protocol| {
            let fields: &[usize] = if protocol == Protocol::Influx { &[1, 10] } else { &[0] };
            fields.iter().map(move |&fields| Self { protocol, fields })
        };
        Protocol::ALL.into_iter().flat_map(of).collect()
    }

    /// As the identifier of a benchmark.
    pub fn name(self) -> String {
        match self.fields {
            0 | 1 => self.protocol.to_string(),
            fields => format!("{}-{fields}", self.protocol),
        }
    }

    fn catalog(self) -> Catalog {
        match self.fields {
            0 => mix::catalog(),
            fields => mix::labelled(fields),
        }
    }
}

/// How a tick is divided into batches, and the order of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOrder {
    /// One batch of 54,000 series.
    WholeTick,
    /// One batch per host, 54 series.
    OneHost,
    /// The series of a tick shuffled each time, in batches of 1,350; series that can share a
    /// record stay together.
    Shuffled,
}

impl BatchOrder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WholeTick, Self::OneHost, Self::Shuffled];

    /// As the identifier of a benchmark.
    pub fn name(self) -> &'static str {
        match self {
            Self::WholeTick => "tick-54000",
            Self::OneHost => "host-54",
            Self::Shuffled => "shuffled",
        }
    }

    /// Samples per batch, and batches between two clock readings.
    fn shape(self) -> (usize, usize) {
        match self {
            Self::WholeTick => (mix::SERIES, 1),
            Self::OneHost => (mix::HOST, 100),
            Self::Shuffled => (1_350, 4),
        }
    }
}

/// Counts and sums the decoded samples.
#[derive(Debug, Default)]
struct SampleSum {
    catalog: Catalog,
    samples: usize,
    batches: usize,
    bits: u64,
}

impl Sink for SampleSum {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        Ok(self.catalog.intern(key.clone()))
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.samples += batch.len();
        self.batches += 1;
        self.bits = self.bits.wrapping_add(sum(batch.values()));
    }

    fn refused(&mut self, why: NotAdmitted, samples: usize) {
        panic!("{samples} samples were refused: {}", why.reason());
    }

    fn unannounced(&mut self, samples: usize) {
        panic!("{samples} samples were never announced");
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        panic!("{}", problem.what);
    }
}

/// An encoder and a decoder, which process ticks part by part.
#[derive(Debug)]
pub struct Codec {
    case: CodecCase,
    order: BatchOrder,
    encoder: Box<dyn Encoder>,
    decoder: Box<dyn Decoder>,
    sink: SampleSum,
    fleet: Mix,
    random: Random,
    ids: Vec<SeriesId>,
    values: Vec<f64>,
    payloads: Vec<Vec<u8>>,
    at: Timestamp,
    ticks: usize,
    /// The samples of this part and where the next begins.
    part: std::ops::Range<usize>,
}

impl Codec {
    /// Prepares a run; nothing has been encoded.
    ///
    /// # Panics
    /// If the protocol cannot carry the fleet.
    pub fn new(case: CodecCase, order: BatchOrder) -> Self {
        let catalog = case.catalog();
        let encoder = case.protocol.encoder(&catalog);
        Self {
            case,
            order,
            encoder: encoder.unwrap_or_else(|error| panic!("{error}")),
            decoder: case.protocol.decoder(Arc::new(ManualClock::new())),
            sink: SampleSum {
                catalog,
                ..SampleSum::default()
            },
            fleet: Mix::new(7),
            random: Random(9),
            ids: (0..mix::SERIES as u32).map(SeriesId).collect(),
            values: Vec::new(),
            payloads: vec![Vec::new(); order.shape().1],
            at: Timestamp::from_secs(1_700_000_000),
            ticks: 0,
            part: 0..0,
        }
    }

    /// Generates the values of the next tick. Shuffled order starts with the second tick.
    pub fn next_tick(&mut self) {
        self.fleet.tick(&mut self.values);
        if self.case.protocol.capabilities().integers_only {
            self.values.iter_mut().for_each(|value| *value = value.round());
        }
        if self.order == BatchOrder::Shuffled && self.ticks > 0 {
            self.shuffle(self.case.fields.max(1));
            let values = self.ids.iter().map(|id| self.values[id.index()]);
            self.values = values.collect();
        }
        self.at = self.at + 1_000_000_000;
        self.ticks += 1;
        self.part = 0..0;
    }

    /// Shuffles the ids in groups.
    fn shuffle(&mut self, group: usize) {
        let mut firsts: Vec<u32> = (0..(mix::SERIES / group) as u32).collect();
        for index in (1..firsts.len()).rev() {
            firsts.swap(index, self.random.below(index as u64 + 1) as usize);
        }
        let group = group as u32;
        let ids = firsts
            .iter()
            .flat_map(|first| (0..group).map(move |offset| first * group + offset));
        self.ids = ids.map(SeriesId).collect();
    }

    /// Moves to the next part of the tick; `false` if there is none.
    pub fn next_part(&mut self) -> bool {
        let (batch, batches) = self.order.shape();
        let start = self.part.end;
        self.part = start..self.values.len().min(start + batch * batches);
        self.clear();
        !self.part.is_empty()
    }

    /// Empties the payloads and keeps their allocations.
    pub fn clear(&mut self) {
        for payload in &mut self.payloads {
            payload.clear();
        }
    }

    /// Encodes the part, one payload per batch. May be called repeatedly.
    pub fn encode(&mut self) {
        let (size, _) = self.order.shape();
        let batches = self.part.clone().step_by(size).zip(&mut self.payloads);
        for (start, payload) in batches {
            let end = self.part.end.min(start + size);
            let values = &self.values[start..end];
            let batch = match self.order {
                BatchOrder::Shuffled => Batch::new(Ids::Each(&self.ids[start..end]), Times::One(self.at), values),
                _ => Batch::tick(self.ids[start], self.at, values),
            };
            self.encoder.encode(&batch, payload);
        }
    }

    /// Decodes the payloads.
    ///
    /// # Panics
    /// If the decoder does not consume all of it.
    pub fn decode(&mut self) {
        for payload in &self.payloads {
            let consumed = self.decoder.decode(payload, &mut self.sink);
            assert_eq!(consumed, Ok(payload.len()));
        }
    }

    /// The bytes of the part.
    pub fn payload_bytes(&self) -> usize {
        self.payloads.iter().map(Vec::len).sum()
    }

    /// The samples of the part.
    pub fn samples(&self) -> usize {
        self.part.len()
    }

    /// Compares the decoded samples since the last call with the values of the tick. Returns the
    /// number of samples and batches.
    ///
    /// # Panics
    /// If they differ.
    pub fn verify(&mut self) -> (usize, usize) {
        assert_eq!(self.sink.samples, self.values.len(), "samples");
        assert_eq!(self.sink.bits, sum(&self.values), "the bits of the values");
        let found = (self.sink.samples, self.sink.batches);
        (self.sink.samples, self.sink.batches, self.sink.bits) = (0, 0, 0);
        found
    }

    /// Resets the counters, for repeated measurements of one part.
    pub fn forget(&mut self) {
        (self.sink.samples, self.sink.batches, self.sink.bits) = (0, 0, 0);
    }
}

/// Wrapping sum of the values' bits: exact in any order.
fn sum(values: &[f64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(value.to_bits()))
}
