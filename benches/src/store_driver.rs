//! Drives a store with a workload whose batches are made outside the timed region, and
//! reads some series back.

use tsb_core::time::{process_cpu_ns, thread_cpu_ns};
use tsb_core::workload::Workload;
use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};
use tsb_stores::{Refusals, Store, StoreExt, TimeRange};

/// The timestamp of the first tick.
pub const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);
/// One series in this many is read back.
const VERIFIED: usize = 997;

/// How batches lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickOrder {
    /// In id order.
    AsSent,
    /// In one of several random orders.
    Shuffled,
}

/// Whose CPU time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// That of the writing thread.
    Thread,
    /// That of the process: of stores that have threads of their own.
    Process,
}

impl CpuClock {
    fn now(self) -> u64 {
        match self {
            Self::Thread => thread_cpu_ns(),
            Self::Process => process_cpu_ns(),
        }
    }
}

/// A batch that owns its columns, in the shape in which the workload made it.
#[derive(Debug, Default)]
struct OwnedBatch {
    range: Option<SeriesId>,
    one: Option<Timestamp>,
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl OwnedBatch {
    fn copy(&mut self, batch: &Batch<'_>) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
        self.values.extend_from_slice(batch.values());
        (self.range, self.one) = (None, None);
        match batch.ids() {
            Ids::Range(first) => self.range = Some(first),
            Ids::Each(ids) => self.ids.extend_from_slice(ids),
        }
        match batch.times() {
            Times::One(at) => self.one = Some(at),
            Times::Each(times) => self.times.extend_from_slice(times),
        }
    }

    /// Puts a tick of a range in the order of `ids`.
    #[expect(clippy::expect_used, reason = "only whole ticks are shuffled")]
    fn shuffle(&mut self, ids: &[SeriesId]) {
        let first = self.range.take().expect("a tick of a range").0;
        let dense = std::mem::take(&mut self.values);
        self.values.extend(ids.iter().map(|id| dense[(id.0 - first) as usize]));
        self.ids.extend_from_slice(ids);
    }

    fn batch(&self) -> Batch<'_> {
        let ids = self.range.map_or(Ids::Each(&self.ids), Ids::Range);
        let times = self.one.map_or(Times::Each(&self.times), Times::One);
        Batch::new(ids, times, &self.values)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Some orders of all ids; a tick takes one after the other.
fn orders(series: usize) -> Vec<Vec<SeriesId>> {
    let order = |seed: u64| {
        let mut ids: Vec<SeriesId> = (0..series as u32).map(SeriesId).collect();
        for index in (1..ids.len()).rev() {
            let other = mixed(seed << 32 | index as u64) % (index as u64 + 1);
            ids.swap(index, other as usize);
        }
        ids
    };
    (0..5).map(order).collect()
}

/// What writing some ticks has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Samples accepted.
    pub samples: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// The dearest tick (of as many batches as it has).
    pub worst_ns: u64,
}

/// Writes ticks, timing only the store.
#[derive(Debug)]
pub struct StoreDriver<'w> {
    workload: &'w Workload,
    generator: tsb_core::workload::Generator<'w>,
    clock: CpuClock,
    order: TickOrder,
    orders: Vec<Vec<SeriesId>>,
    batches: Vec<OwnedBatch>,
    refused: Refusals,
    tick: u64,
}

impl<'w> StoreDriver<'w> {
    /// Begins at the first tick.
    pub fn new(workload: &'w Workload, order: TickOrder, clock: CpuClock) -> Self {
        let mut batches = Vec::new();
        batches.resize_with(workload.groups().len(), OwnedBatch::default);
        Self {
            workload,
            generator: workload.generator(0..workload.groups().len(), BASE),
            clock,
            order,
            orders: if order == TickOrder::Shuffled {
                orders(workload.catalog().len())
            } else {
                Vec::new()
            },
            batches,
            refused: Refusals::new(),
            tick: 0,
        }
    }

    /// Writes some ticks, timing only the store.
    ///
    /// # Panics
    /// When the store refuses or fails.
    #[expect(clippy::expect_used, reason = "a benchmark that cannot write has nothing to report")]
    pub fn run(&mut self, store: &dyn Store, ticks: u64) -> Cost {
        let mut cost = Cost::default();
        for _ in 0..ticks {
            for (group, owned) in self.batches.iter_mut().enumerate() {
                owned.copy(&self.generator.operation(group, self.tick));
                if self.order == TickOrder::Shuffled {
                    owned.shuffle(&self.orders[self.tick as usize % self.orders.len()]);
                }
            }
            let start = self.clock.now();
            for owned in &self.batches {
                let ack = store
                    .write(&owned.batch(), &mut self.refused)
                    .expect("a write of defined series");
                cost.samples += ack.accepted as u64;
            }
            let spent = self.clock.now() - start;
            cost.cpu_ns += spent;
            cost.worst_ns = cost.worst_ns.max(spent);
            self.tick += 1;
        }
        assert!(self.refused.is_empty(), "nothing is refused");
        cost
    }

    /// Reads some series back and compares them with what the workload says was sent.
    ///
    /// # Panics
    /// When they differ.
    #[expect(clippy::expect_used, reason = "a benchmark that cannot read has nothing to report")]
    pub fn verify(&self, store: &dyn Store) {
        let mut replay = self.workload.replay(BASE);
        for id in (0..self.workload.catalog().len()).step_by(VERIFIED) {
            let mut sent = std::collections::BTreeMap::new();
            replay.series(SeriesId(id as u32), 0..self.tick, &mut |chunk| {
                let samples = chunk.iter().filter(|(tick, ..)| *tick < self.tick);
                sent.extend(samples.map(|(_, at, value, _)| (at, value.to_bits())));
            });
            let held = store
                .samples(SeriesId(id as u32), TimeRange::ALL)
                .expect("a defined series");
            let held: Vec<_> = held.into_iter().map(|(at, value)| (at, value.to_bits())).collect();
            assert_eq!(held, sent.into_iter().collect::<Vec<_>>(), "series {id}");
        }
    }
}
