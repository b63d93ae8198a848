//! A store with a model beside it: every operation is applied to both, and every answer is
//! compared.

use std::collections::HashSet;
use std::ops::ControlFlow;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, Ids, SeriesId, SeriesKey, Times, Timestamp};

use super::failure::{Failure, ensure, equal};
use super::model::{Model, Row, same_row, same_value};
use super::{BoxedStore, Context, Place};
use crate::error::Error;
use crate::store::{Ack, Capabilities, Exactness, OnConflict, Position, Query, Reason, Refusals, Resample, TimeRange};

/// The time at which samples of the checks start: 2023-11-14, which is the start of a slot for
/// every length in seconds that divides ten minutes.
const START_SECONDS: i64 = 1_700_000_400;

impl Context {
    /// The timestamp of tick `tick`: ticks are one second apart, or the store's resolution if
    /// that is coarser.
    pub(super) fn at(&self, tick: i64) -> Timestamp {
        time_of(&self.capabilities, tick)
    }

    pub(super) fn tick_ns(&self) -> i64 {
        tick_ns(&self.capabilities)
    }

    /// The same, or the length of a slot if that is longer.
    pub(super) fn slot_tick_ns(&self) -> i64 {
        slot_tick_ns(&self.capabilities)
    }

    /// Number of ticks that a check may write without exceeding the retention; at most `wanted`.
    pub(super) fn kept_ticks(&self, wanted: i64) -> i64 {
        let kept = self
            .capabilities
            .retention_ns
            .map_or(i64::MAX, |keeps_ns| keeps_ns / self.tick_ns());
        wanted.min(kept - 1).max(2)
    }

    /// An empty store with `series` series defined, ids from 0, and its model.
    pub(super) fn subject(&self, series: u32) -> Result<Subject, Failure> {
        let place = self.fixture.place()?;
        let mut subject = Subject::new(self, place)?;
        subject.define(0..series)?;
        Ok(subject)
    }

    /// An empty store.
    pub(super) fn store(&self) -> Result<BoxedStore, Failure> {
        Ok(self.fixture.place()?.open()?)
    }
}

/// The timestamp of a tick for a store with these capabilities.
pub(super) fn time_of(capabilities: &Capabilities, tick: i64) -> Timestamp {
    Timestamp::from_secs(START_SECONDS) + tick * tick_ns(capabilities)
}

fn tick_ns(capabilities: &Capabilities) -> i64 {
    capabilities.resolution_ns.max(SECOND_NS as i64)
}

/// The timestamp of a tick of which no two share a slot, if the store has slots.
pub(super) fn time_of_slot(capabilities: &Capabilities, tick: i64) -> Timestamp {
    Timestamp::from_secs(START_SECONDS) + tick * slot_tick_ns(capabilities)
}

fn slot_tick_ns(capabilities: &Capabilities) -> i64 {
    let tick_ns = tick_ns(capabilities);
    match capabilities.exactness {
        Exactness::OnePerSlot(slot_ns) => slot_ns.max(tick_ns),
        _ => tick_ns,
    }
}

/// Reopens a place. A child process, such as those of the kill checks, has copies of all file
/// locks until it executes its program. So a lock that was just released may still seem to be
/// held, and opening is retried for a while.
pub(super) fn open_again(place: &dyn Place) -> Result<BoxedStore, Failure> {
    let clock = MonotonicClock::new();
    loop {
        let now = clock.now();
        match place.open() {
            Err(Error::Backend { .. }) if now < PATIENCE_NS => clock.wait_until(now + PATIENCE_NS / 50),
            result => return Ok(result?),
        }
    }
}

/// How long a lock may seem to be held, in nanoseconds.
const PATIENCE_NS: u64 = 500_000_000;

/// The key that the checks bind to an id.
pub(super) fn key(id: u32) -> SeriesKey {
    let host = format!("host-{}", id / 8);
    SeriesKey::with_labels(
        format!("check.series{}", id % 8),
        [("host", host), ("id", id.to_string())],
    )
}

/// The definitions of some ids.
pub(super) fn definitions(ids: impl IntoIterator<Item = u32>) -> Vec<(SeriesId, SeriesKey)> {
    ids.into_iter().map(|id| (SeriesId(id), key(id))).collect()
}

pub(super) struct Subject {
    pub(super) store: BoxedStore,
    place: Box<dyn Place>,
    pub(super) capabilities: Capabilities,
    pub(super) model: Model,
    pub(super) defined: Vec<SeriesId>,
    last_position: Position,
    /// Number of samples in the store when it was opened.
    held_before: u64,
}

impl Subject {
    fn new(context: &Context, place: Box<dyn Place>) -> Result<Self, Failure> {
        Ok(Self {
            store: place.open()?,
            place,
            capabilities: context.capabilities,
            model: Model::new(context.capabilities),
            defined: Vec::new(),
            last_position: Position(0),
            held_before: 0,
        })
    }

    /// Defines ids, some of which may be defined already.
    pub(super) fn define(&mut self, ids: impl IntoIterator<Item = u32>) -> Result<(), Failure> {
        let definitions = definitions(ids);
        self.store.define(&definitions)?;
        for (id, _) in definitions {
            if !self.defined.contains(&id) {
                self.defined.push(id);
            }
        }
        Ok(())
    }

    /// Closes the store, and reopens the place with the same ids.
    pub(super) fn reopen(&mut self) -> Result<(), Failure> {
        self.store.close()?;
        self.store = open_again(&*self.place)?;
        self.held_before = self.store.stats().samples;
        self.last_position = Position(0);
        self.model.reopened();
        let ids: Vec<_> = self.defined.iter().map(|id| id.0).collect();
        self.define(ids)
    }

    /// Reopens the place after a close, with nothing defined.
    pub(super) fn open_again(&self) -> Result<BoxedStore, Failure> {
        open_again(&*self.place)
    }

    /// Writes one tick: `values` to the ids from `first` on.
    pub(super) fn tick(&mut self, first: u32, at: Timestamp, values: &[f64]) -> Result<Ack, Failure> {
        self.write(&Batch::tick(SeriesId(first), at, values))
    }

    /// Writes samples in any order.
    pub(super) fn samples(&mut self, samples: &[(u32, Timestamp, f64)]) -> Result<Ack, Failure> {
        let ids: Vec<_> = samples.iter().map(|sample| SeriesId(sample.0)).collect();
        let times: Vec<_> = samples.iter().map(|sample| sample.1).collect();
        let values: Vec<_> = samples.iter().map(|sample| sample.2).collect();
        self.write(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values))
    }

    /// Writes to the store, compares the ack and every refusal with the model, and updates the
    /// model.
    pub(super) fn write(&mut self, batch: &Batch<'_>) -> Result<Ack, Failure> {
        let mut refused = Refusals::new();
        let ack = self.store.write(batch, &mut refused)?;
        self.check_ack(batch, &ack, &refused)?;
        let refusals = refused.as_slice();
        for (index, (id, at, value)) in batch.iter().enumerate() {
            let admission = self.model.admission(id, at, value);
            let refusal = refusals.iter().find(|refusal| refusal.index as usize == index);
            let sample = || format!("sample {index} of the batch ({id} at {at} = {value})");
            match refusal {
                None => {
                    let may = &admission.may_refuse_as;
                    ensure(admission.may_accept, || {
                        format!("{} was accepted, should be refused as {may:?}", sample())
                    })?;
                    self.model.apply(id, at, value);
                }
                Some(refusal) => ensure(admission.may_refuse_as.contains(&refusal.reason), || {
                    format!("{} was refused as {}, should not be", sample(), refusal.reason.name())
                })?,
            }
        }
        Ok(ack)
    }

    /// Checks clauses 4 and 5, as far as one ack shows them.
    fn check_ack(&mut self, batch: &Batch<'_>, ack: &Ack, refused: &Refusals) -> Result<(), Failure> {
        equal("accepted + rejected", &(ack.accepted + ack.rejected), &batch.len())?;
        equal("refusals beside the ack's count", &refused.len(), &ack.rejected)?;
        let indices: HashSet<_> = refused.as_slice().iter().map(|refusal| refusal.index).collect();
        equal("distinct refused indices", &indices.len(), &refused.len())?;
        let outside = indices.iter().find(|&&index| index as usize >= batch.len());
        equal("a refused index outside the batch", &outside, &None)?;
        let floor = self.capabilities.acknowledges;
        ensure(ack.durability >= floor, || {
            format!("the ack says {}, the capabilities promise {floor}", ack.durability)
        })?;
        let durable = self.store.durable(ack.durability);
        ensure(durable >= ack.position, || {
            format!(
                "the ack says {} at {:?}, durable() only {durable:?}",
                ack.durability, ack.position
            )
        })?;
        let has_grown = if ack.accepted > 0 {
            ack.position > self.last_position
        } else {
            ack.position >= self.last_position
        };
        ensure(has_grown, || {
            format!(
                "{} accepted samples moved the position from {:?} to {:?}",
                ack.accepted, self.last_position, ack.position
            )
        })?;
        self.last_position = ack.position;
        Ok(())
    }

    /// Whether raw samples can be compared with the model.
    pub(super) fn reads(&self) -> bool {
        reads(&self.capabilities)
    }

    /// Compares everything: samples, newest timestamps, statistics.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.reads() {
            for &id in &self.defined {
                self.check_rows(id, TimeRange::ALL)?;
            }
            self.check_newest(&self.defined)?;
        }
        self.check_stats()
    }

    /// Compares the raw rows of one series.
    pub(super) fn check_rows(&self, id: SeriesId, range: TimeRange) -> Result<(), Failure> {
        self.eventually(|| {
            let got = self.rows(id, range, None)?;
            self.compare(id, &got, &self.model.rows(id, range))
        })
    }

    /// Compares the rows of a resampled query; nothing in the range may have expired.
    pub(super) fn check_resampled(&self, id: SeriesId, range: TimeRange, resample: Resample) -> Result<(), Failure> {
        self.eventually(|| {
            let got = self.rows(id, range, Some(resample))?;
            let expected = self.model.resampled(id, range, resample);
            let is_same = got.len() == expected.len()
                && got.iter().zip(&expected).all(|(got, (at, values))| {
                    let is_one = |value: &f64| same_row(self.capabilities.exactness, got.1, *value);
                    got.0 == *at && values.iter().any(is_one)
                });
            ensure(is_same, || {
                let first: Vec<Row> = expected.iter().map(|(at, values)| (*at, values[0])).collect();
                format!("{resample:?} of {id} in {range:?}: {}", difference(&got, &first))
            })
        })
    }

    /// Compares the newest timestamps of several series, queried in one call.
    pub(super) fn check_newest(&self, ids: &[SeriesId]) -> Result<(), Failure> {
        self.eventually(|| {
            // A wrong value in each slot: the store must overwrite all.
            let mut newest = vec![Some(Timestamp(42)); ids.len()];
            self.store.newest(ids, &mut newest)?;
            for (&id, &got) in ids.iter().zip(&newest) {
                let expected = self.model.newest(id);
                let is_gone = got.is_none() && expected.is_some_and(|at| at < self.model.kept_from());
                if !is_gone {
                    equal(&format!("newest of {id}"), &got, &expected)?;
                }
            }
            Ok(())
        })
    }

    /// Compares the statistics.
    pub(super) fn check_stats(&self) -> Result<(), Failure> {
        let stats = self.store.stats();
        equal("stats: series", &stats.series, &(self.defined.len() as u64))?;
        equal("stats: accepted", &stats.accepted, &self.model.accepted)?;
        if !self.reads() || !self.capabilities.counts_samples {
            return Ok(());
        }
        if self.model.expires() {
            let balance = stats.samples + stats.superseded + stats.expired;
            ensure(balance == stats.accepted + self.held_before, || {
                format!(
                    "stats: samples + superseded + expired is not accepted + {} before: {stats:?}",
                    self.held_before
                )
            })
        } else {
            equal("stats: expired", &stats.expired, &0)?;
            equal("stats: superseded", &stats.superseded, &self.model.superseded)?;
            equal("stats: samples", &stats.samples, &self.model.samples())
        }
    }

    /// The rows that the store returns; also checks the form of its chunks.
    pub(super) fn rows(&self, id: SeriesId, range: TimeRange, resample: Option<Resample>) -> Result<Vec<Row>, Failure> {
        let query = Query {
            series: &[id],
            range,
            resample,
        };
        let mut rows: Vec<Row> = Vec::new();
        let mut wrong = None;
        self.store.query(&query, &mut |of, times, values| {
            let is_ascending = times.is_sorted() && rows.last().is_none_or(|last| times.first() >= Some(&last.0));
            if of != id {
                wrong = Some(format!("a chunk of {of} in an answer about {id}"));
            } else if times.is_empty() {
                wrong = Some(format!("an empty chunk of {id}"));
            } else if times.len() != values.len() {
                wrong = Some(format!(
                    "a chunk of {} timestamps and {} values",
                    times.len(),
                    values.len()
                ));
            } else if !is_ascending {
                wrong = Some(format!("the timestamps of {id} do not ascend"));
            }
            rows.extend(times.iter().copied().zip(values.iter().copied()));
            ControlFlow::Continue(())
        })?;
        match wrong {
            Some(wrong) => Err(wrong.into()),
            None => Ok(rows),
        }
    }

    fn compare(&self, id: SeriesId, got: &[Row], expected: &[Row]) -> Result<(), Failure> {
        if self.capabilities.duplicate == OnConflict::KeptBoth {
            let ordered = |rows: &[Row]| {
                let mut rows = rows.to_vec();
                rows.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
                rows
            };
            return self.compare_in_order(id, &ordered(got), &ordered(expected));
        }
        self.compare_in_order(id, got, expected)
    }

    fn compare_in_order(&self, id: SeriesId, got: &[Row], expected: &[Row]) -> Result<(), Failure> {
        let is_same = |got: &Row, expected: &Row| {
            got.0 == expected.0 && same_value(self.capabilities.exactness, got.1, expected.1)
        };
        let kept_from = self.model.kept_from();
        let mut left = got.iter().peekable();
        for row in expected {
            let is_there = left.next_if(|got| is_same(got, row)).is_some();
            if !is_there && row.0 >= kept_from {
                return Err(format!("raw rows of {id}: {}", difference(got, expected)).into());
            }
        }
        ensure(left.next().is_none(), || {
            format!("raw rows of {id}: {}", difference(got, expected))
        })
    }

    /// Retries a check while the store may still hide accepted samples.
    pub(super) fn eventually(&self, check: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
        let delay_ns = self.capabilities.visibility_delay_ms.saturating_mul(1_000_000);
        if delay_ns == 0 {
            return check();
        }
        let clock = MonotonicClock::new();
        loop {
            let now = clock.now();
            match check() {
                Err(_) if now < delay_ns => clock.wait_until((now + 1_000_000).min(delay_ns)),
                result => return result,
            }
        }
    }
}

/// Whether raw samples can be read and compared with what was written.
pub(super) fn reads(capabilities: &Capabilities) -> bool {
    let is_row = matches!(
        capabilities.exactness,
        Exactness::Consolidated(_) | Exactness::Slots(_) | Exactness::Nothing
    );
    capabilities.query && !is_row
}

/// Describes the first difference between two lists of rows.
fn difference(got: &[Row], expected: &[Row]) -> String {
    let pairs = got.iter().zip(expected);
    let at = pairs
        .take_while(|(a, b)| a.0 == b.0 && a.1.to_bits() == b.1.to_bits())
        .count();
    let show = |row: Option<&Row>| row.map_or("nothing".to_owned(), |(at, value)| format!("{value:?} at {at}"));
    format!(
        "row {at} is {}, expected {}; {} rows in all, expected {}",
        show(got.get(at)),
        show(expected.get(at)),
        got.len(),
        expected.len()
    )
}

/// The reasons for which a bounded store may refuse.
pub(super) fn is_full(reason: Reason) -> bool {
    reason == Reason::Full
}
