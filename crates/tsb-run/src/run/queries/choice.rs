//! Chooses the series and the range of each query: seeded, biased towards now, and only of
//! samples that must be there.
//!
//! Series are drawn uniformly from those that report at present. Half of the ranges end where the
//! known samples end; the others end earlier, by an age that is distributed exponentially with the
//! length of the range as its mean, where samples were sent for all of it. All draws are functions of the seed, the stream, and the
//! number of the query; only the present itself depends on how far the run has come.

use std::ops::Range;

use tsb_core::schedule::{Frontier, Slot};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::TimeRange;

use super::known::KnownSamples;
use crate::plan::QueryShape;
use crate::run::run_context::RunContext;

/// Number of series drawn for a query; if none of them still reports, one that has ended is taken.
const TRIES: u32 = 64;

/// Chooses what the queries of one stream ask.
#[derive(Debug)]
pub(super) struct QueryChoice<'a> {
    context: &'a RunContext,
    known: &'a KnownSamples,
    base: Timestamp,
    shape: QueryShape,
    seed: u64,
    /// The number of this host's first thread among those of all hosts.
    first_worker: u64,
}

impl<'a> QueryChoice<'a> {
    /// Of the stream at place `stream` of the plan's list, in a run that starts at `base`.
    pub(super) fn new(
        context: &'a RunContext,
        known: &'a KnownSamples,
        base: Timestamp,
        shape: QueryShape,
        stream: usize,
    ) -> Self {
        let seed = Draws::new(context.plan.workload.seed, stream as u64).next();
        Self {
            context,
            known,
            base,
            shape,
            seed,
            first_worker: context
                .plan
                .query_turn
                .map_or(0, |turn| (turn.host * context.plan.query_workers) as u64),
        }
    }

    /// Chooses the series, appended to `ids`, and the range of a query. For the newest sample the
    /// range is everything before the end of the known samples. `None` while there is nothing to
    /// ask for.
    pub(super) fn choose(&self, slot: &Slot, ids: &mut Vec<SeriesId>) -> Option<TimeRange> {
        let worker = self.first_worker + u64::from(slot.group);
        let number = slot.tick.wrapping_mul(1 << 16).wrapping_add(worker);
        let mut draws = Draws::new(self.seed, number);
        let mut end = Timestamp::MAX;
        for _ in 0..self.shape.series() {
            let (id, until) = self.series(&mut draws, ids)?;
            ids.push(id);
            end = end.min(until);
        }
        let Some(span_ns) = self.shape.span_ns() else {
            return Some(TimeRange {
                start: Timestamp::MIN,
                end,
            });
        };
        let end = self.earlier(end, span_ns, &mut draws);
        Some(TimeRange {
            start: end + -(span_ns as i64),
            end,
        })
    }

    /// A series that is not among `ids`, and until when its samples are known.
    fn series(&self, draws: &mut Draws, ids: &[SeriesId]) -> Option<(SeriesId, Timestamp)> {
        let workload = &self.context.workload;
        let series = workload.catalog().len() as u64;
        let mut silent = None;
        for _ in 0..TRIES {
            let id = SeriesId(draws.below(series) as u32);
            let Some(group) = workload.group_of(id).filter(|_| !ids.contains(&id)) else {
                continue;
            };
            let until = self.known.until(group);
            let ticks = self.ticks_before(group, until);
            // Of a series that has a history, the samples before the run are known from its start.
            let has_history = self.context.plan.preload_ns.is_some();
            let newest = ticks.end.checked_sub(1).or(has_history.then_some(0));
            let Some((life, newest)) = workload.lifetime(id).zip(newest) else {
                continue;
            };
            if life.contains(&newest) {
                return Some((id, until));
            }
            // It has samples, and has ended: that is asked only if no other is found.
            silent = silent.or_else(|| (life.start < newest).then_some((id, until)));
        }
        silent
    }

    /// The ticks of a group whose samples have timestamps before `until`.
    fn ticks_before(&self, group: usize, until: Timestamp) -> Range<u64> {
        let offset_ns = u64::try_from(until - self.base).unwrap_or(0);
        let frontier = offset_ns.checked_sub(1).map(|offset_ns| Frontier {
            offset_ns,
            group: u32::MAX,
        });
        self.context.timetable.ticks_through(group as u32, frontier)
    }

    /// An end of the range at or before `end`.
    fn earlier(&self, end: Timestamp, span_ns: u64, draws: &mut Draws) -> Timestamp {
        let (coin, age) = (draws.unit(), -draws.unit().ln());
        let earlier = end + -((age * span_ns as f64) as i64);
        // Before the run and its history there was nothing.
        let history_ns = self.context.plan.preload_ns.unwrap_or(0) as i64;
        let oldest = self.base + -history_ns + span_ns as i64;
        if coin <= 0.5 || earlier < oldest { end } else { earlier }
    }
}

/// Random numbers that follow from a seed and a number (splitmix64).
#[derive(Debug)]
struct Draws(u64);

impl Draws {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    const fn new(seed: u64, number: u64) -> Self {
        Self(seed.wrapping_add(number.wrapping_mul(0xd1b5_4a32_d192_ed03)))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number in [0, n).
    const fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// A number in (0, 1].
    const fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tsb_core::Batch;
    use tsb_core::emit::Live;
    use tsb_core::time::SECOND_NS;

    use super::super::known::WrittenTimes;
    use super::*;
    use crate::plan::{Plan, QueryStream};

    const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn context() -> RunContext {
        let mut plan = Plan::default();
        plan.workload.series = Some(540);
        RunContext::new(&plan.complete().unwrap(), 1).unwrap()
    }

    fn shape(text: &str) -> QueryShape {
        let stream: QueryStream = text.parse().unwrap();
        stream.kind.shape()
    }

    fn slot(tick: u64) -> Slot {
        Slot {
            tick,
            ..Slot::default()
        }
    }

    #[test]
    fn only_known_samples_are_asked_for_and_half_of_the_ranges_end_now() {
        let context = context();
        let written = Arc::new(WrittenTimes::new(&context, BASE));
        let known = KnownSamples::new(&context, BASE, &Arc::new(Live::new(1)), Some(&written));
        let choice = QueryChoice::new(&context, &known, BASE, shape("range(60s)@1/s"), 0);
        assert_eq!(choice.choose(&slot(0), &mut Vec::new()), None, "nothing is there yet");
        let now = BASE + 600 * SECOND_NS as i64;
        written.note(&Batch::tick(SeriesId(0), now, &[1.0]));
        let until = known.until(0);
        let (mut at_the_end, mut age_ns) = (0, 0.0);
        for tick in 0..1_000 {
            let mut ids = Vec::new();
            let range = choice.choose(&slot(tick), &mut ids).unwrap();
            assert!(range.end <= until && range.end > BASE);
            assert_eq!(range.end - range.start, 60 * SECOND_NS as i64);
            assert_eq!(ids.len(), 1);
            at_the_end += u32::from(range.end == until);
            age_ns += (until - range.end) as f64;
            let mut again = Vec::new();
            assert_eq!(choice.choose(&slot(tick), &mut again), Some(range));
            assert_eq!(again, ids);
        }
        assert!((450..=550).contains(&at_the_end), "{at_the_end}");
        let mean_s = age_ns / 1_000.0 / SECOND_NS as f64;
        assert!((25.0..35.0).contains(&mean_s), "half of them 60 s on average: {mean_s}");
    }

    #[test]
    fn the_series_of_a_query_differ_and_streams_differ_from_each_other() {
        let context = context();
        let written = Arc::new(WrittenTimes::new(&context, BASE));
        let known = KnownSamples::new(&context, BASE, &Arc::new(Live::new(1)), Some(&written));
        written.note(&Batch::tick(SeriesId(0), BASE + 10 * SECOND_NS as i64, &[1.0]));
        let chosen = |stream, tick| {
            let mut ids = Vec::new();
            let choice = QueryChoice::new(&context, &known, BASE, shape("q2@1/s"), stream);
            choice.choose(&slot(tick), &mut ids).unwrap();
            ids
        };
        let ids = chosen(0, 0);
        let different: std::collections::BTreeSet<_> = ids.iter().copied().collect();
        assert_eq!((ids.len(), different.len()), (7, 7));
        assert_ne!(chosen(0, 1), ids);
        assert_ne!(chosen(1, 0), ids);
        assert_eq!(chosen(0, 0), ids);
    }
}
