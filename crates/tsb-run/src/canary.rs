//! A canary for a live store: writes a small known stream for as long as it is left running, and
//! reads it again and again.
//!
//! [`Canary::step`] writes what is due and asks what is due: the newest timestamps, what is fresh,
//! the last hour, day and week, a random time, and again what was missing or had another value. Each
//! acknowledged sample is judged at least once, and each fault is counted once, by the level that the
//! sample had reached and by its age. Values are functions of series and time (`stream`), so a canary
//! that starts again takes what is there for its own. What is known of samples lies in a ring that is
//! allocated once (`states`), answers are judged while they arrive (`judge`).
//!
//! A sample whose write was not answered may be there or not: nobody is blamed for either. How results
//! are shown is *not* known here.

mod judge;
mod questions;
mod states;
mod stream;
mod tally;

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_core::latency::Quantiles;
use tsb_core::report::canary::{CanaryReport, NamedFault};
use tsb_core::time::{Clock, SECOND_NS};
use tsb_core::{Batch, Durability, SeriesId, Timestamp};
use tsb_core::{batch::Ids, batch::Times};
use tsb_stores::{
    Capabilities, Error as StoreError, Exactness, OnConflict, Position, Query, Refusals, Store, TimeRange,
};

use crate::controls::StopFlags;
use crate::draws::Draws;
use crate::error::Error;
pub use questions::CallTimes;

use judge::{AnswerJudge, Asked, Deadlines, Moment};
use questions::{AnswerOutcome, QuestionKind, Questions, RANDOM_NS};
use states::{KnownSample, SampleState, SampleStates};
use stream::{LATE_TICKS, Stream, StreamPlace};
use tally::CanaryTally;

/// The longest wait before the stop flags are looked at again.
const LOOK_NS: u64 = 50_000_000;

/// The options of a canary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CanaryOptions {
    /// Its name, a label of its series: two canaries of one store have different names.
    pub name: String,
    /// What reports and metrics call the store; absent: as the store displays itself.
    pub store_name: Option<String>,
    /// Number of series. in [1, 10,000]
    pub series: u32,
    /// From one sample of a series to the next, in nanoseconds. at least one second
    pub interval_ns: u64,
    /// How far back it asks, in nanoseconds; no further than the store keeps samples.
    pub keeps_ns: u64,
    /// For how long a sample may be missing before it is lost, in nanoseconds, beyond the delay that
    /// the store states.
    pub lost_after_ns: u64,
}

impl Default for CanaryOptions {
    /// Ten series, each with one sample every ten seconds, for a week; lost after a minute.
    fn default() -> Self {
        Self {
            name: "canary".to_owned(),
            store_name: None,
            series: 10,
            interval_ns: 10 * SECOND_NS,
            keeps_ns: 7 * 86_400 * SECOND_NS,
            lost_after_ns: 60 * SECOND_NS,
        }
    }
}

/// The most samples within the time that a canary looks back: what is known of one takes 12 bytes.
const SAMPLES_MAX: u64 = 20_000_000;

impl CanaryOptions {
    /// The stream that a store with these capabilities can keep, and how far back it can be asked for, in
    /// nanoseconds.
    fn fit(&self, store: &str, capabilities: &Capabilities) -> Result<(Stream, i64), Error> {
        let refused = |why: String| Err(Error::plan(format!("cannot keep a canary in {store}")).because_of(why));
        if !capabilities.query {
            return refused("it cannot be read".to_owned());
        }
        let interval_ns = self.interval_ns as i64;
        if !(1..=10_000).contains(&self.series) || self.interval_ns < SECOND_NS || interval_ns < 1 {
            return refused("a canary has 1 to 10,000 series, and at least one second between samples".to_owned());
        }
        let mut keeps_ns = self.keeps_ns.min(i64::MAX as u64) as i64;
        let slot_ns = match capabilities.exactness {
            Exactness::Nothing | Exactness::Consolidated(_) => {
                return refused("it does not give back each sample; tsb run can check it".to_owned());
            }
            Exactness::OnePerSlot(slot_ns) => slot_ns,
            Exactness::Slots(slots) => match slots.archives().next() {
                Some(archive) => {
                    keeps_ns = keeps_ns.min(archive.retention_s().saturating_mul(SECOND_NS as i64));
                    archive.slot_s.saturating_mul(SECOND_NS as i64)
                }
                None => 1,
            },
            _ => 1,
        };
        let unit_ns = slot_ns.max(capabilities.resolution_ns).max(1);
        if interval_ns % unit_ns != 0 {
            let unit_s = unit_ns as f64 / SECOND_NS as f64;
            return refused(format!(
                "it keeps one sample every {unit_s} s: the interval has to be a multiple"
            ));
        }
        let keeps_ns = keeps_ns.min(capabilities.retention_ns.unwrap_or(i64::MAX));
        let ticks = (keeps_ns / interval_ns - 1).max(0) as u64;
        if ticks < 2 * LATE_TICKS as u64 {
            return refused(format!(
                "it looks back over {ticks} samples of a series: it needs at least 16"
            ));
        }
        if ticks.saturating_mul(u64::from(self.series)) > SAMPLES_MAX {
            return refused(format!(
                "it would look back over more than {SAMPLES_MAX} samples: take fewer series, a longer interval, or less time"
            ));
        }
        let late_ticks = match (capabilities.late, capabilities.takes_back_ns) {
            (OnConflict::Rejected, _) => 0,
            (_, Some(back_ns)) => back_ns / interval_ns / 2,
            (_, None) => LATE_TICKS,
        };
        Ok((Stream::new(self.series, interval_ns, late_ticks), keeps_ns))
    }
}

/// Hears what a canary finds.
pub trait CanaryObserver {
    /// Samples with a fault were found.
    fn fault(&self, fault: &NamedFault);

    /// A write or a question failed: its name, and why.
    fn failed(&self, what: &'static str, error: &StoreError);

    /// A step is over.
    fn stepped(&self, canary: &Canary);
}

/// The samples of one write that have not reached the highest level.
#[derive(Clone, Copy, Debug)]
struct Unsettled {
    position: Position,
    tick: i64,
}

/// A canary in a store.
#[derive(Debug)]
pub struct Canary {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    options: CanaryOptions,
    /// The store's highest level.
    reaches: Durability,
    stream: Stream,
    /// How far back it asks, in nanoseconds.
    keeps_ns: i64,
    deadlines: Deadlines,
    states: SampleStates,
    tally: CanaryTally,
    questions: Questions,
    write_times: CallTimes,
    /// Writes below the highest level, the oldest first.
    unsettled: VecDeque<Unsettled>,
    draws: Draws,
    started_ns: u64,
    /// The first tick that this canary writes, and the last that it wrote or skipped.
    first: i64,
    last: i64,
    /// Everything before this tick was settled, or is asked for as doubtful.
    settled_before: i64,
    doubtful_from: i64,
    newest_visible: Option<Timestamp>,
}

impl Canary {
    /// Defines the series, and takes what is there of an earlier canary of this name for its own.
    ///
    /// # Errors
    /// [`Error::Plan`] if the store cannot keep such a stream; [`Error::Unreachable`] if it cannot
    /// define the series or cannot be read.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: CanaryOptions,
        observer: &dyn CanaryObserver,
    ) -> Result<Self, Error> {
        let capabilities = store.capabilities();
        let name = store.to_string();
        let (stream, keeps_ns) = options.fit(&name, &capabilities)?;
        // The oldest sample may go at any moment.
        let ticks = (keeps_ns / stream.interval_ns() - 1) as usize;
        let keys = (0..options.series).map(|series| (SeriesId(series), Stream::key(&options.name, series)));
        let failed = |error: StoreError| Error::unreachable(format!("cannot start a canary in {name}")).because(&error);
        store.define(&keys.collect::<Vec<_>>()).map_err(failed)?;
        let now = stream.tick_before(clock.wall());
        let seconds = |ns: u64| ns.div_ceil(SECOND_NS).min(u64::from(u32::MAX)) as u32;
        let deadlines = Deadlines {
            visible_s: seconds(capabilities.visibility_delay_ms.saturating_mul(1_000_000)),
            lost_s: seconds(options.lost_after_ns),
        };
        let mut canary = Self {
            reaches: capabilities.reaches,
            deadlines,
            states: SampleStates::new(options.series, ticks, now),
            tally: CanaryTally::new(&options.name),
            questions: Questions::new(keeps_ns),
            write_times: CallTimes::default(),
            unsettled: VecDeque::with_capacity(ticks),
            draws: Draws::new(clock.wall().0 as u64),
            started_ns: clock.now(),
            first: now + 1,
            last: now,
            settled_before: now + 1,
            doubtful_from: now - (ticks as i64 - 1),
            newest_visible: None,
            store,
            clock,
            options,
            stream,
            keeps_ns,
        };
        let range = canary.states.oldest()..now + 1;
        let answered = canary.ask(QuestionKind::Start, 0..canary.stream.series(), range);
        canary.tell(observer);
        answered.map_err(failed)?;
        canary.tally.samples.found_at_start = canary.states.seen();
        Ok(canary)
    }

    /// Writes and asks until a flag is set, or for this long.
    ///
    /// # Errors
    /// As for [`Self::step`].
    pub fn run(&mut self, stops: &StopFlags, for_ns: Option<u64>, observer: &dyn CanaryObserver) -> Result<(), Error> {
        let is_over = |canary: &Self| {
            let elapsed_ns = canary.elapsed_ns();
            stops.stop.load(Ordering::Relaxed) || for_ns.is_some_and(|for_ns| elapsed_ns >= for_ns)
        };
        while !is_over(self) {
            let wait_ns = (self.next_due() - self.clock.wall()).max(0) as u64;
            if wait_ns > 0 {
                self.clock.wait_until(self.clock.now() + wait_ns.min(LOOK_NS));
                continue;
            }
            self.step(observer)?;
        }
        Ok(())
    }

    /// When the next sample is due, by the time of day.
    pub fn next_due(&self) -> Timestamp {
        self.stream.time(self.last + 1)
    }

    /// Writes the samples of the newest tick, and asks what is due. Ticks that have passed since the
    /// last step are counted as skipped.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if the store takes and answers nothing any more, such as one that was
    /// closed or is poisoned. A server that does not answer is no error: it may come back.
    pub fn step(&mut self, observer: &dyn CanaryObserver) -> Result<(), Error> {
        let tick = self.stream.tick_before(self.clock.wall());
        if tick > self.last {
            self.skip_to(tick);
            let written = self.write(tick);
            self.check("write", written, observer)?;
        }
        self.raise_levels();
        self.question(QuestionKind::Newest, Self::ask_newest, observer)?;
        self.question(QuestionKind::Fresh, Self::ask_fresh, observer)?;
        self.question(QuestionKind::Doubtful, Self::ask_doubtful, observer)?;
        for kind in self.questions.due(self.elapsed_s()) {
            let ask = move |canary: &mut Self| canary.ask_periodic(kind);
            self.question(kind, ask, observer)?;
        }
        observer.stepped(self);
        Ok(())
    }

    /// What was written and found until now.
    pub fn report(&self) -> CanaryReport {
        let store = self
            .options
            .store_name
            .clone()
            .unwrap_or_else(|| self.store.to_string());
        let mut report = CanaryReport::new(store, self.options.name.clone());
        report.series = u64::from(self.stream.series());
        report.interval_ns = self.options.interval_ns;
        report.keeps_ns = self.keeps_ns as u64;
        report.elapsed_ns = self.elapsed_ns();
        report.samples = self.tally.samples;
        report.samples.open = self.states.open();
        report.faults = self.tally.faults();
        report.questions = self.questions.report();
        report.write = Quantiles::new(self.write_times.histogram());
        report.newest_visible = self.newest_visible;
        report.named = self.tally.first_named();
        report
    }

    /// How long writes took, and answers by the name of the question.
    pub fn times(&self) -> impl Iterator<Item = (&'static str, &CallTimes)> {
        std::iter::once(("write", &self.write_times)).chain(self.questions.times())
    }

    /// Ends the canary: its samples stay, for the next one of this name.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if the store cannot be closed.
    pub fn close(&self) -> Result<(), Error> {
        let failed = |error| Error::unreachable(format!("cannot close {}", self.store)).because(&error);
        self.store.close().map_err(failed)
    }

    fn elapsed_ns(&self) -> u64 {
        self.clock.now().saturating_sub(self.started_ns)
    }

    fn elapsed_s(&self) -> u32 {
        (self.elapsed_ns() / SECOND_NS).min(u64::from(u32::MAX)) as u32
    }

    fn now(&self) -> Moment {
        Moment {
            wall: self.clock.wall(),
            elapsed_s: self.elapsed_s(),
        }
    }

    /// Makes room for a tick, and counts the samples of ticks before it that were not written.
    fn skip_to(&mut self, tick: i64) {
        let room = self.states.newest() - self.states.oldest() + 1;
        let skipped = (self.last + 1).max(tick - room)..tick;
        let more = (skipped.start - (self.last + 1)).max(0) as u64 * u64::from(self.stream.series());
        let counted: usize = skipped
            .map(|tick| self.stream.written_at(tick, self.first).count())
            .sum();
        self.tally.samples.skipped += counted as u64 + more;
        self.tally.samples.let_go_unseen += self.states.advance(tick);
        self.last = tick;
    }

    fn write(&mut self, tick: i64) -> Result<(), StoreError> {
        let places: Vec<StreamPlace> = self.stream.written_at(tick, self.first).collect();
        if places.is_empty() {
            return Ok(());
        }
        let ids: Vec<SeriesId> = places.iter().map(|place| SeriesId(place.series)).collect();
        let times: Vec<Timestamp> = places.iter().map(|place| self.stream.time(place.tick)).collect();
        let values: Vec<f64> = places.iter().map(|&place| Stream::value(place)).collect();
        let batch = Batch::new(Ids::Each(&ids), Times::Each(&times), &values);
        let mut refused = Refusals::new();
        let began_ns = self.clock.now();
        let answer = self.store.write(&batch, &mut refused);
        self.write_times.add(self.clock.now() - began_ns);
        let since_s = self.elapsed_s();
        let level = answer.as_ref().ok().map(|ack| ack.durability);
        let mut is_refused = vec![false; places.len()];
        for refusal in refused.as_slice() {
            if let Some(is_refused) = is_refused.get_mut(refusal.index as usize) {
                *is_refused = true;
            }
        }
        let samples = &mut self.tally.samples;
        for (place, is_refused) in places.into_iter().zip(is_refused) {
            let counted = match (level, is_refused) {
                (_, true) => &mut samples.refused,
                (None, false) => &mut samples.unknown,
                (Some(_), false) => &mut samples.acknowledged,
            };
            *counted += 1;
            let is_acknowledged = level.is_some() && !is_refused;
            let state = if is_acknowledged {
                SampleState::Expected
            } else {
                SampleState::Uncertain
            };
            let known = KnownSample {
                state,
                durability: level.unwrap_or_default(),
                is_acknowledged,
                since_s,
                ..KnownSample::default()
            };
            self.states.put(place, known);
        }
        let ack = answer?;
        if ack.durability < self.reaches {
            if self.unsettled.len() == self.unsettled.capacity() {
                self.unsettled.pop_front();
            }
            self.unsettled.push_back(Unsettled {
                position: ack.position,
                tick,
            });
        }
        Ok(())
    }

    /// Notes the levels that earlier writes have reached since.
    fn raise_levels(&mut self) {
        for level in [Durability::Buffered, Durability::Synced] {
            if level > self.reaches {
                break;
            }
            let reached = self.store.durable(level);
            for index in 0..self.unsettled.len() {
                let write = self.unsettled[index];
                if write.position > reached {
                    break;
                }
                for place in self.stream.written_at(write.tick, self.first) {
                    if let Some(mut known) = self.states.get(place).filter(|known| known.is_acknowledged) {
                        known.durability = known.durability.max(level);
                        self.states.put(place, known);
                    }
                }
            }
            if level == self.reaches {
                while self.unsettled.front().is_some_and(|write| write.position <= reached) {
                    self.unsettled.pop_front();
                }
            }
        }
    }

    /// Asks a question, tells what it showed, and notes a failure.
    fn question(
        &mut self,
        kind: QuestionKind,
        ask: impl FnOnce(&mut Self) -> Result<(), StoreError>,
        observer: &dyn CanaryObserver,
    ) -> Result<(), Error> {
        let answered = ask(self);
        if answered.is_err() {
            self.questions.failed(kind);
        }
        self.tell(observer);
        self.check(kind.name(), answered, observer)
    }

    fn tell(&mut self, observer: &dyn CanaryObserver) {
        for fault in self.tally.take_fresh() {
            observer.fault(&fault);
        }
    }

    /// Goes on after a failure, unless no later call can succeed.
    fn check(
        &self,
        what: &'static str,
        result: Result<(), StoreError>,
        observer: &dyn CanaryObserver,
    ) -> Result<(), Error> {
        let Err(error) = result else { return Ok(()) };
        if matches!(error, StoreError::Closed | StoreError::Poisoned { .. }) {
            return Err(Error::unreachable(format!("cannot go on with the canary in {}", self.store)).because(&error));
        }
        observer.failed(what, &error);
        Ok(())
    }

    fn ask_newest(&mut self) -> Result<(), StoreError> {
        let ids: Vec<SeriesId> = (0..self.stream.series()).map(SeriesId).collect();
        let mut newest = vec![None; ids.len()];
        let began_ns = self.clock.now();
        self.store.newest(&ids, &mut newest)?;
        let took_ns = self.clock.now() - began_ns;
        let last = self.stream.time(self.last);
        let is_right = newest.iter().zip(0..).all(|(&at, series)| {
            let seen = self.states.newest_seen(series).map(|tick| self.stream.time(tick));
            at >= seen && at.is_none_or(|at| at <= last)
        });
        let outcome = if is_right {
            AnswerOutcome::Right
        } else {
            AnswerOutcome::Wrong
        };
        self.questions.answered(QuestionKind::Newest, outcome, took_ns);
        self.newest_visible = newest.into_iter().min().flatten();
        Ok(())
    }

    fn ask_fresh(&mut self) -> Result<(), StoreError> {
        let end = self.last + 1;
        let from = self.settled_before.clamp(self.states.oldest(), end);
        self.ask(QuestionKind::Fresh, 0..self.stream.series(), from..end)?;
        let unsettled_s = i64::from(self.deadlines.visible_s) + i64::from(self.deadlines.lost_s);
        let ticks = self.stream.ticks_in(unsettled_s * SECOND_NS as i64) + LATE_TICKS + 2;
        self.settled_before = self.settled_before.max(end - ticks);
        Ok(())
    }

    fn ask_doubtful(&mut self) -> Result<(), StoreError> {
        let end = self.settled_before;
        let next = self.states.doubtful(self.doubtful_from, end);
        let next = next.or_else(|| self.states.doubtful(self.states.oldest(), end));
        let Some(from) = next else { return Ok(()) };
        let to = (from + self.stream.ticks_in(RANDOM_NS)).min(end);
        self.doubtful_from = to;
        self.ask(QuestionKind::Doubtful, 0..self.stream.series(), from..to)
    }

    /// Asks about a fixed time back; of a kind without [`QuestionKind::reaches_ns`], about a random time.
    fn ask_periodic(&mut self, kind: QuestionKind) -> Result<(), StoreError> {
        let (oldest, end) = (self.states.oldest(), self.last + 1);
        if let Some(back_ns) = kind.reaches_ns() {
            let from = (end - self.stream.ticks_in(back_ns)).max(oldest);
            return self.ask(kind, 0..self.stream.series(), from..end);
        }
        let most = self.stream.ticks_in(RANDOM_NS).clamp(1, end - oldest);
        let ticks = 1 + self.draws.below(most as u64) as i64;
        let from = oldest + self.draws.below((end - oldest - ticks + 1) as u64) as i64;
        let all = 0..self.stream.series();
        let series = match self.draws.below(2 * u64::from(all.end)) as u32 {
            one if one < all.end => one..one + 1,
            _ => all,
        };
        self.ask(kind, series, from..from + ticks)
    }

    /// Reads the samples of some series at some ticks, and judges them.
    fn ask(&mut self, kind: QuestionKind, series: Range<u32>, ticks: Range<i64>) -> Result<(), StoreError> {
        let ids: Vec<SeriesId> = series.clone().map(SeriesId).collect();
        let query = Query {
            series: &ids,
            range: TimeRange {
                start: self.stream.time(ticks.start),
                end: self.stream.time(ticks.end),
            },
            resample: None,
        };
        let began_ns = self.clock.now();
        let now = self.now();
        let mut judge = AnswerJudge::new(
            (&self.stream, &mut self.states, &mut self.tally),
            kind.name(),
            Asked { series, ticks },
            self.deadlines,
            now,
        );
        let answered = self.store.query(&query, &mut |series, times, values| {
            judge.take(series, times, values);
            ControlFlow::Continue(())
        });
        if let Err(error) = answered {
            judge.break_off();
            return Err(error);
        }
        let outcome = judge.end();
        let took_ns = self.clock.now() - began_ns;
        self.questions.answered(kind, outcome, took_ns);
        Ok(())
    }
}
