//! A codec at work on the `mix` fleet, in the orders that cost differently.

use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_core::wire::{Decoder, Encoder, Malformed, NotAdmitted, Protocol, Sink};
use tsb_core::{Batch, Catalog, Ids, SeriesId, SeriesKey, Times, Timestamp};

use crate::mix::{self, Mix, Random};

/// What is measured: a protocol, and how the series of the fleet are called on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The protocol.
    pub protocol: Protocol,
    /// How many series differ in the label `_field` alone; 0 is a dotted name without labels.
    fields: usize,
}

impl Case {
    /// Every protocol, and Influx with one and with ten fields a line.
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

/// How a tick is cut into batches, and in which order its series come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One batch of 54,000 series.
    WholeTick,
    /// A batch a host, 54 series.
    OneHost,
    /// The series of a tick shuffled anew, in batches of 1,350; series that can share a
    /// record stay together.
    Shuffled,
}

impl Order {
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

    /// Samples of a batch, and batches between two looks at the clock.
    fn shape(self) -> (usize, usize) {
        match self {
            Self::WholeTick => (mix::SERIES, 1),
            Self::OneHost => (mix::HOST, 100),
            Self::Shuffled => (1_350, 4),
        }
    }
}

/// Counts and sums what arrives.
#[derive(Debug, Default)]
struct Sum {
    catalog: Catalog,
    samples: usize,
    batches: usize,
    bits: u64,
}

impl Sink for Sum {
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

/// One encoder and one decoder, tick after tick, part after part of a tick.
#[derive(Debug)]
pub struct Run {
    case: Case,
    order: Order,
    encoder: Box<dyn Encoder>,
    decoder: Box<dyn Decoder>,
    sink: Sum,
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

impl Run {
    /// Everything ready, nothing sent.
    ///
    /// # Panics
    /// When the protocol cannot carry the fleet.
    pub fn new(case: Case, order: Order) -> Self {
        let catalog = case.catalog();
        let encoder = case.protocol.encoder(&catalog);
        Self {
            case,
            order,
            encoder: encoder.unwrap_or_else(|error| panic!("{error}")),
            decoder: case.protocol.decoder(Arc::new(ManualClock::new())),
            sink: Sum {
                catalog,
                ..Sum::default()
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

    /// Makes the values of the next tick; shuffles them, if that is the order, from the
    /// second tick on.
    pub fn next_tick(&mut self) {
        self.fleet.tick(&mut self.values);
        if self.case.protocol.facts().integers_only {
            self.values.iter_mut().for_each(|value| *value = value.round());
        }
        if self.order == Order::Shuffled && self.ticks > 0 {
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

    /// Goes to the next part of the tick; `false` when there is none.
    pub fn next_part(&mut self) -> bool {
        let (batch, batches) = self.order.shape();
        let start = self.part.end;
        self.part = start..self.values.len().min(start + batch * batches);
        self.clear();
        !self.part.is_empty()
    }

    /// Empties the payloads, keeps their room.
    pub fn clear(&mut self) {
        for payload in &mut self.payloads {
            payload.clear();
        }
    }

    /// Encodes the part, a payload a batch. The same values may be encoded again.
    pub fn encode(&mut self) {
        let (size, _) = self.order.shape();
        let batches = self.part.clone().step_by(size).zip(&mut self.payloads);
        for (start, payload) in batches {
            let end = self.part.end.min(start + size);
            let values = &self.values[start..end];
            let batch = match self.order {
                Order::Shuffled => Batch::new(Ids::Each(&self.ids[start..end]), Times::One(self.at), values),
                _ => Batch::tick(self.ids[start], self.at, values),
            };
            self.encoder.encode(&batch, payload);
        }
    }

    /// Decodes what was encoded.
    ///
    /// # Panics
    /// When the decoder does not take all of it.
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

    /// Compares what arrived since the last look with the values of the tick; returns how
    /// many samples and batches that were.
    ///
    /// # Panics
    /// When they differ.
    pub fn verify(&mut self) -> (usize, usize) {
        assert_eq!(self.sink.samples, self.values.len(), "samples");
        assert_eq!(self.sink.bits, sum(&self.values), "the bits of the values");
        let found = (self.sink.samples, self.sink.batches);
        (self.sink.samples, self.sink.batches, self.sink.bits) = (0, 0, 0);
        found
    }

    /// Forgets what arrived, for repeated measurements of one part.
    pub fn forget(&mut self) {
        (self.sink.samples, self.sink.batches, self.sink.bits) = (0, 0, 0);
    }
}

/// Of the bits of the values, wrapping: exact, whatever the order.
fn sum(values: &[f64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(value.to_bits()))
}
