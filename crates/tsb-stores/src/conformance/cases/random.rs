//! Clause 7 (and most others), by seeded random sequences of all operations, compared with the
//! model.

use tsb_core::{Batch, Durability, Ids, SeriesId, Times, Timestamp};

use super::query::AWKWARD;
use super::resample::CONSOLIDATIONS;
use super::{Case, CheckResult, of_all};
use crate::conformance::failure::{Failure, equal, refused};
use crate::conformance::rng::Rng;
use crate::conformance::subject::Subject;
use crate::conformance::{CheckOutcome, Context};
use crate::error::Error;
use crate::store::{Exactness, Refusals, Resample, Scope, TimeRange};

pub(super) const CASES: &[Case] = &[
    of_all("c7_random_operations_seeds_0_to_7", |context| random(context, 0..8)),
    of_all("c7_random_operations_seeds_8_to_15", |context| random(context, 8..16)),
    of_all("c7_random_operations_seeds_16_to_23", |context| random(context, 16..24)),
];

/// Operations per sequence.
const OPERATIONS: usize = 200;

fn random(context: &Context, seeds: std::ops::Range<u64>) -> CheckResult {
    for seed in seeds {
        let mut run = Run {
            context,
            subject: context.subject(1)?,
            rng: Rng::new(seed),
            now: context.at(0),
        };
        for operation in 0..OPERATIONS {
            run.step()
                .map_err(|failure| format!("seed {seed}, operation {operation}: {failure}"))?;
        }
        run.subject
            .check()
            .map_err(|failure| format!("seed {seed}, at the end: {failure}"))?;
        run.subject.store.close()?;
    }
    Ok(CheckOutcome::Holds)
}

struct Run<'a> {
    context: &'a Context,
    subject: Subject,
    rng: Rng,
    now: Timestamp,
}

impl Run<'_> {
    fn step(&mut self) -> Result<(), Failure> {
        match self.rng.below(100) {
            0..5 => self.define(),
            5..35 => self.write_tick(),
            35..50 => self.write_some(),
            50..65 => self.write_irregular(),
            65..68 => {
                self.jump();
                Ok(())
            }
            68..73 => self.flush(),
            73..83 => self.query(),
            83..90 => self.resample(),
            90..94 => self.newest(),
            94..96 => self.subject.check_stats(),
            96..99 => self.unknown(),
            _ => self.reopen(),
        }
    }

    fn series(&self) -> u32 {
        self.subject.defined.len() as u32
    }

    fn define(&mut self) -> Result<(), Failure> {
        // Ids stay dense in total, but arrive shuffled, and overlap those already defined.
        let end = self.series() + self.rng.below(6) as u32;
        let start = self.rng.below(u64::from(self.series()) + 1) as u32;
        let mut ids: Vec<_> = (start..end).collect();
        self.rng.shuffle(&mut ids);
        self.subject.define(ids)
    }

    fn value(&mut self) -> f64 {
        let capabilities = &self.context.capabilities;
        let is_exact = matches!(capabilities.exactness, Exactness::Exact | Exactness::OnePerSlot(_));
        match self.rng.below(8) {
            0 if capabilities.special_values => self.rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
            1 if is_exact => self.rng.pick(&AWKWARD[..AWKWARD.len() - 3]),
            2 if is_exact => f64::from_bits(self.rng.next() & 0x7fef_ffff_ffff_ffff),
            3 | 4 => 0.0,
            5 => self.rng.between(-1_000, 1_000) as f64 * 0.25,
            _ => self.rng.below(100_000) as f64,
        }
    }

    fn values(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.value()).collect()
    }

    /// A time near now, an earlier one, or one used before.
    fn moment(&mut self) -> Timestamp {
        let grain = self.context.capabilities.resolution_ns;
        let tick_ns = self.context.tick_ns();
        let back = match self.rng.below(10) {
            0 => self.rng.between(0, 200) * tick_ns,
            1 | 2 => self.rng.between(0, 10) * tick_ns,
            3 => -(self.rng.between(0, 1_000_000_000) / grain * grain),
            _ => 0,
        };
        self.now + -back
    }

    fn write_tick(&mut self) -> Result<(), Failure> {
        self.now = self.now + self.context.tick_ns();
        let first = self.rng.below(u64::from(self.series()));
        let count = if self.rng.one_in(3) {
            self.rng.below(u64::from(self.series()) - first + 1)
        } else {
            u64::from(self.series()) - first
        };
        let values = self.values(count as usize);
        self.subject.tick(first as u32, self.now, &values).map(drop)
    }

    fn ids(&mut self) -> Vec<SeriesId> {
        let count = self.rng.below(20);
        (0..count)
            .map(|_| SeriesId(self.rng.below(u64::from(self.series())) as u32))
            .collect()
    }

    fn write_some(&mut self) -> Result<(), Failure> {
        let ids = self.ids();
        let at = self.moment();
        let values = self.values(ids.len());
        self.subject
            .write(&Batch::new(Ids::Each(&ids), Times::One(at), &values))
            .map(drop)
    }

    fn write_irregular(&mut self) -> Result<(), Failure> {
        let ids = self.ids();
        let times: Vec<_> = ids.iter().map(|_| self.moment()).collect();
        let values = self.values(ids.len());
        if self.rng.one_in(4) {
            let count = times.len().min(self.series() as usize);
            let batch = Batch::new(Ids::Range(SeriesId(0)), Times::Each(&times[..count]), &values[..count]);
            return self.subject.write(&batch).map(drop);
        }
        self.subject
            .write(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values))
            .map(drop)
    }

    /// A gap of minutes, sometimes of days.
    fn jump(&mut self) {
        let ticks = if self.rng.one_in(4) {
            1_000_000
        } else {
            self.rng.between(1, 500)
        };
        self.now = self.now + ticks * self.context.tick_ns();
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let levels = [
            Durability::Unconfirmed,
            Durability::Volatile,
            Durability::Buffered,
            Durability::Synced,
        ];
        let level = self.rng.pick(&levels).min(self.context.capabilities.reaches);
        let ids = self.ids();
        let scope = if self.rng.one_in(2) {
            Scope::All
        } else {
            Scope::Series(&ids)
        };
        Ok(self.subject.store.flush(scope, level)?)
    }

    fn range(&mut self) -> TimeRange {
        if self.rng.one_in(4) {
            return TimeRange::ALL;
        }
        let (a, b) = (self.moment(), self.moment());
        TimeRange {
            start: a.min(b),
            end: a.max(b) + self.rng.between(0, 2),
        }
    }

    fn query(&mut self) -> Result<(), Failure> {
        if !self.subject.reads() {
            return Ok(());
        }
        let range = self.range();
        let ids = self.ids();
        ids.into_iter()
            .take(3)
            .try_for_each(|id| self.subject.check_rows(id, range))
    }

    fn resample(&mut self) -> Result<(), Failure> {
        if !self.subject.reads() || !self.context.capabilities.resample {
            return Ok(());
        }
        let step = self.rng.pick(&[1, 10, 60, 61, 3_600]);
        let resample = Resample {
            step_ns: step * self.context.tick_ns(),
            consolidation: self.rng.pick(&CONSOLIDATIONS),
        };
        let range = self.range();
        let ids = self.ids();
        ids.into_iter().take(3).try_for_each(|id| {
            // Exclude samples that may have expired: the model still counts them.
            let start = range.start.max(self.subject.model.kept_from());
            self.subject.check_resampled(id, TimeRange { start, ..range }, resample)
        })
    }

    fn newest(&mut self) -> Result<(), Failure> {
        if !self.subject.reads() {
            return Ok(());
        }
        let ids = self.ids();
        self.subject.check_newest(&ids)
    }

    fn unknown(&mut self) -> Result<(), Failure> {
        let mut ids = self.ids();
        let place = self.rng.below(ids.len() as u64 + 1) as usize;
        ids.insert(place, SeriesId(self.series() + self.rng.below(3) as u32));
        let values = self.values(ids.len());
        let at = self.moment();
        let before = self.subject.store.stats().accepted;
        let batch = Batch::new(Ids::Each(&ids), Times::One(at), &values);
        let result = self.subject.store.write(&batch, &mut Refusals::new());
        refused("a batch with an undefined id", result, "UnknownSeries", |error| {
            matches!(error, Error::UnknownSeries { .. })
        })?;
        equal("stats: accepted", &self.subject.store.stats().accepted, &before)?;
        self.subject.check()
    }

    fn reopen(&mut self) -> Result<(), Failure> {
        if self.context.capabilities.persistent {
            self.subject.reopen()?;
        }
        Ok(())
    }
}
