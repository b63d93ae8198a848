//! The `mix` fleet for the codec benchmarks: values of five kinds, names of 27 bytes.
//!
//! 35 % constant, 20 % repeated (change about once a minute), 25 % integer counters, 15 %
//! integer random walks, 5 % walks with two decimals; kinds are assigned to ids at random. Every
//! value follows from the seed. The workloads of tsb itself are in `tsb_core::workload`.

use tsb_core::{Catalog, SeriesKey};

/// Series per tick.
pub const SERIES: usize = 54_000;

/// Series per host.
pub const HOST: usize = 54;

/// The running values of the fleet.
#[derive(Clone, Debug)]
pub struct Mix {
    series: Vec<Series>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
struct Series {
    kind: Kind,
    base: i64,
    now: i64,
    step: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Constant,
    Repeated,
    Counter,
    Walk,
    Cents,
}

/// The keys of the fleet, in id order: `kstat.host0007.zfs.13.obytes64`.
pub fn catalog() -> Catalog {
    let modules = ["cpu", "zfs", "net", "disk"];
    let names = ["nsec", "hits", "obytes64", "writes"];
    let key = |index: usize| {
        let (module, name) = (modules[index % 4], names[index / 4 % 4]);
        SeriesKey::new(format!(
            "kstat.host{:04}.{module}.{}.{name}",
            index / HOST,
            index % HOST
        ))
    };
    (0..SERIES).map(key).collect()
}

/// The keys of the fleet with labels: `kstat{host=h0007,module=cpu13,_field=field4}`, with
/// `fields` fields for each host and module.
pub fn labelled(fields: usize) -> Catalog {
    let key = |index: usize| {
        let line = index / fields;
        let labels = [
            ("host", format!("h{:04}", index / HOST)),
            ("module", format!("cpu{}", line % HOST)),
            ("_field", format!("field{}", index % fields)),
        ];
        SeriesKey::with_labels("kstat", labels)
    };
    (0..SERIES).map(key).collect()
}

impl Mix {
    /// A fleet of [`SERIES`] series.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let series = (0..SERIES).map(|_| Series::new(&mut random)).collect();
        Self { series, random }
    }

    /// The next tick's values, in id order.
    pub fn tick(&mut self, values: &mut Vec<f64>) {
        values.clear();
        for series in &mut self.series {
            values.push(series.next(&mut self.random));
        }
    }
}

impl Series {
    fn new(random: &mut Random) -> Self {
        let share = random.below(100);
        let (kind, base, step) = match share {
            0..35 => (Kind::Constant, random.below(1_000_000), 0),
            35..55 => (Kind::Repeated, random.below(10_000), 60),
            55..80 => {
                let step = [2, 8, 32, 128, 1024][random.below(5) as usize];
                (Kind::Counter, random.below(1_000_000_000), step)
            }
            80..95 => {
                let step = [2, 8, 32, 128][random.below(4) as usize];
                (Kind::Walk, 10_000 + random.below(1_000_000), step)
            }
            _ => (Kind::Cents, 2_000 + random.below(6_000), 100),
        };
        let base = base as i64;
        Self {
            kind,
            base,
            now: base,
            step,
        }
    }

    fn next(&mut self, random: &mut Random) -> f64 {
        match self.kind {
            Kind::Constant => {}
            Kind::Repeated => {
                if random.below(self.step) == 0 {
                    self.now = self.base + random.below(100) as i64;
                }
            }
            Kind::Counter => self.now += random.below(self.step) as i64,
            Kind::Walk => self.now = (self.now + self.walk(random)).abs(),
            Kind::Cents => {
                self.now = (self.now + self.walk(random)).clamp(0, 10_000);
                return self.now as f64 / 100.0;
            }
        }
        self.now as f64
    }

    fn walk(&self, random: &mut Random) -> i64 {
        random.below(2 * self.step + 1) as i64 - self.step as i64
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() >> 32) * bound) >> 32
    }
}
