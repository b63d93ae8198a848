//! Compares the answer to a query with what was sent, which is generated again as the audit does.

use std::ops::Range;

use tsb_core::schedule::{Frontier, Timetable};
use tsb_core::workload::{Replay, Sent, Workload};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Capabilities, Consolidation, TimeRange};

use super::answer::QueryAnswer;
use super::derive::is_right;
use crate::audit::{Columns, Difference, History, NamedSamples, Rules, compare, supersede};
use crate::plan::QueryShape;
use crate::run::run_context::RunContext;

/// Ticks before the end of the known samples among which the newest sample is looked for first.
const NEWEST_TICKS: u64 = 64;

/// A query that was answered, and what its answer has to agree with.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredQuery<'q> {
    /// The series, in the order asked.
    pub(super) ids: &'q [SeriesId],
    /// The range. For the newest sample it ends where the known samples ended when it was asked.
    pub(super) range: TimeRange,
    /// Samples before this time may have expired when the answer came.
    pub(super) kept_from: Timestamp,
    /// No sample with a later timestamp had been handed over when the answer came.
    pub(super) handed_over: Timestamp,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The first series of which it is wrong.
    pub(super) series: SeriesId,
    /// What was sent.
    pub(super) expected: String,
    /// What came instead.
    pub(super) came: String,
}

/// Samples that need not be in the store: known by name only when the run is over.
#[derive(Debug, Default)]
pub(super) struct AbsentSamples {
    /// Those with a name.
    pub(super) named: NamedSamples,
    /// Number of others.
    pub(super) unnamed: u64,
}

impl AbsentSamples {
    /// Whether there is none at all.
    pub(super) fn is_empty(&self) -> bool {
        self.unnamed == 0
            && self.named.rejected.is_empty()
            && self.named.unsent.is_empty()
            && self.named.in_doubt.is_empty()
    }
}

/// Checks the answers of one thread.
#[derive(Debug)]
pub(super) struct AnswerCheck<'w> {
    workload: &'w Workload,
    timetable: &'w Timetable,
    base: Timestamp,
    shape: QueryShape,
    rules: Rules,
    replay: Replay<'w>,
    history: &'w History,
    before: Replay<'w>,
    sent: Columns,
    rows: Columns,
    found: Columns,
}

impl<'w> AnswerCheck<'w> {
    /// Of queries of one shape to a store with these capabilities, in a run that starts at `base`,
    /// behind its history.
    pub(super) fn new(
        context: &'w RunContext,
        (base, history): (Timestamp, &'w History),
        shape: QueryShape,
        capabilities: &Capabilities,
    ) -> Self {
        Self {
            workload: &context.workload,
            timetable: &context.timetable,
            base,
            shape,
            rules: Rules::of(capabilities, Timestamp::MIN),
            replay: context.workload.replay(base),
            history,
            before: context.workload.replay(history.base()),
            sent: Columns::default(),
            rows: Columns::default(),
            found: Columns::default(),
        }
    }

    /// What is wrong with an answer, if something is. Without `absent`, every sample that was
    /// handed over is expected; one that was refused then looks like a mistake.
    pub(super) fn mistake(
        &mut self,
        asked: &AnsweredQuery<'_>,
        answer: &QueryAnswer,
        absent: Option<&AbsentSamples>,
    ) -> Option<Mistake> {
        let of = |series, expected: &str, came: String| Mistake {
            series,
            expected: expected.to_owned(),
            came,
        };
        if let Some(stray) = answer.stray {
            return Some(of(
                stray,
                "rows of the series asked for, in their order",
                format!("rows of {stray}"),
            ));
        }
        let first = asked.ids.first().copied()?;
        if answer.is_cut {
            return Some(of(
                first,
                "rows of samples that were sent",
                "more rows than are taken".to_owned(),
            ));
        }
        for (place, &id) in asked.ids.iter().enumerate() {
            let rows = answer.rows.get(place)?;
            let mistake = match self.shape {
                QueryShape::Last { .. } => {
                    let newest = answer.newest.get(place).copied().flatten();
                    self.last(asked, id, newest, rows, absent)
                }
                QueryShape::Raw { .. } | QueryShape::Outside { .. } | QueryShape::Statistics { .. } => {
                    self.send(id, asked.range, absent);
                    self.rules.keeps_from = asked.kept_from;
                    different(&mut self.sent, rows, &self.rules)
                }
                QueryShape::Steps { step_ns, by, .. } | QueryShape::Difference { step_ns, by, .. } => {
                    self.steps(asked, id, (step_ns as i64, by), rows, absent)
                }
            };
            if let Some((expected, came)) = mistake {
                return Some(of(id, &expected, came));
            }
        }
        let derived = is_right(self.shape, &answer.rows, &answer.derived).err();
        derived.map(|(expected, came)| of(first, &expected, came))
    }

    /// Whether a query asks for samples of which nobody knows whether they are in the store.
    pub(super) fn is_in_doubt(&mut self, asked: &AnsweredQuery<'_>, absent: &AbsentSamples) -> bool {
        let end = match self.shape {
            QueryShape::Last { .. } => asked.handed_over + 1,
            _ => asked.range.end,
        };
        let range = TimeRange { end, ..asked.range };
        absent.unnamed > 0
            || asked.ids.iter().any(|&id| {
                let samples = absent.named.in_doubt.samples_of(id, self.workload, &mut self.replay);
                samples.is_some_and(|samples| samples.keys().any(|at| range.contains(*at)))
            })
    }

    /// Generates the samples of a series in a range, in sending order, without those that are
    /// absent by name.
    fn send(&mut self, id: SeriesId, range: TimeRange, absent: Option<&AbsentSamples>) {
        self.sent.clear();
        let Some(group) = self.workload.group_of(id) else {
            return;
        };
        let ticks = self.ticks(group, range, self.base);
        let (before, written) = (self.ticks(group, range, self.history.base()), self.history.ticks(group));
        let before = before.start.max(written.start)..before.end.min(written.end);
        let sent = &mut self.sent;
        let mut take = |chunk: &Sent<'_>| {
            for (_, at, value, _) in chunk.iter() {
                if range.contains(at) {
                    sent.push(at, value);
                }
            }
        };
        self.before.series(id, before, &mut take);
        self.replay.series(id, ticks, &mut take);
        let Some(absent) = absent else { return };
        if let Some(unsent) = absent.named.unsent.samples_of(id, self.workload, &mut self.replay) {
            self.sent.remove(unsent);
        }
        if let Some(rejected) = absent.named.rejected.get(&id) {
            self.sent.remove(rejected.clone());
        }
    }

    /// The ticks of a group, counted from `base`, whose operations may hold samples with timestamps
    /// in a range.
    fn ticks(&self, group: usize, range: TimeRange, base: Timestamp) -> Range<u64> {
        let spec = self.workload.spec();
        let through = |at: Timestamp| {
            let offset_ns = u64::try_from(at - base).ok();
            let frontier = offset_ns.map(|offset_ns| Frontier {
                offset_ns,
                group: u32::MAX,
            });
            self.timetable.ticks_through(group as u32, frontier).end
        };
        // A timestamp is its tick's time, cut to the resolution, with the jitter added.
        let first = through(range.start + -(spec.jitter.max_ns as i64 + 1));
        let end = through(range.end + spec.resolution_ns as i64);
        first..end.saturating_add(self.workload.late_ticks_max())
    }

    /// Compares the value of each step. Steps of which a sample may have expired are left out.
    fn steps(
        &mut self,
        asked: &AnsweredQuery<'_>,
        id: SeriesId,
        (step_ns, by): (i64, Consolidation),
        rows: &Columns,
        absent: Option<&AbsentSamples>,
    ) -> Option<(String, String)> {
        self.send(id, asked.range, absent);
        self.rules.keeps_from = Timestamp::MIN;
        supersede(&mut self.sent, &self.rules);
        let (expected, found) = (&mut self.rows, &mut self.found);
        consolidate(&self.sent, step_ns, by, expected);
        found.clear();
        let came = rows.times.iter().zip(&rows.values);
        came.for_each(|(&at, &value)| found.push(at, canonical(value)));
        for columns in [&mut *expected, &mut *found] {
            let kept = columns.times.iter().map(|at| *at >= asked.kept_from);
            let kept: Vec<bool> = kept.collect();
            let mut keep = kept.iter();
            columns.times.retain(|_| keep.next().copied().unwrap_or(true));
            let mut keep = kept.iter();
            columns.values.retain(|_| keep.next().copied().unwrap_or(true));
        }
        different(expected, found, &self.rules)
    }

    /// Compares the newest sample: it has to be one that was sent, and not older than the newest
    /// that was known when it was asked for.
    fn last(
        &mut self,
        asked: &AnsweredQuery<'_>,
        id: SeriesId,
        newest: Option<Timestamp>,
        rows: &Columns,
        absent: Option<&AbsentSamples>,
    ) -> Option<(String, String)> {
        let known = self.newest_known(asked, id, absent);
        let Some(at) = newest else {
            let (at, value) = known.filter(|(at, _)| *at >= asked.kept_from)?;
            return Some((format!("{value} at {at} or a newer sample"), "no sample".to_owned()));
        };
        if let Some((known, value)) = known.filter(|(known, _)| at < *known) {
            return Some((
                format!("{value} at {known} or a newer sample"),
                format!("the newest at {at}"),
            ));
        }
        let matching = self.sent.times.iter().zip(&self.sent.values);
        let mut matching = matching
            .filter(|(sent, _)| **sent == at)
            .map(|(_, value)| *value)
            .peekable();
        let Some(&value) = matching.peek() else {
            return Some((
                format!("a sample that was sent by {}", asked.handed_over),
                format!("the newest at {at}"),
            ));
        };
        let rules = &self.rules;
        let values: Vec<f64> = matching.collect();
        let largest = rules.largest(&values);
        let is_right = |found: &f64| values.iter().any(|value| rules.is_same(*value, *found, largest));
        let is_there = rows.times.iter().all(|found| *found == at) && rows.values.iter().all(is_right);
        let may_be_gone = at < asked.kept_from;
        if is_there && (may_be_gone || !rows.is_empty()) {
            return None;
        }
        let came = rows
            .times
            .iter()
            .zip(&rows.values)
            .map(|(at, value)| format!("{value} at {at}"));
        let came: Vec<String> = came.take(3).collect();
        let came = if came.is_empty() {
            format!("the newest at {at}, and no sample there")
        } else {
            came.join(", ")
        };
        Some((format!("{value} at {at}"), came))
    }

    /// The newest sample of a series that was known when it was asked for. Leaves the samples from
    /// it on in `sent`, those that had been handed over when the answer came.
    fn newest_known(
        &mut self,
        asked: &AnsweredQuery<'_>,
        id: SeriesId,
        absent: Option<&AbsentSamples>,
    ) -> Option<(Timestamp, f64)> {
        let group = self.workload.group_of(id)?;
        let interval_ns = self.workload.groups().get(group)?.interval_ns;
        let near_ns = interval_ns.saturating_mul(NEWEST_TICKS + self.workload.late_ticks_max());
        let near = asked.range.end + -i64::try_from(near_ns).unwrap_or(i64::MAX);
        for start in [near, Timestamp::MIN] {
            let end = asked.handed_over.max(asked.range.end) + 1;
            self.send(id, TimeRange { start, end }, absent);
            supersede(&mut self.sent, &self.rules);
            let known = self.sent.times.partition_point(|at| *at < asked.range.end);
            if let Some(place) = known.checked_sub(1) {
                return Some((self.sent.times[place], self.sent.values[place]));
            }
        }
        None
    }
}

/// The first difference between what was sent and what came.
fn different(sent: &mut Columns, found: &Columns, rules: &Rules) -> Option<(String, String)> {
    let mut first = None;
    compare(sent, found, rules, &mut |difference| {
        first.get_or_insert(difference);
    });
    first.map(|difference| match difference {
        Difference::Missing { at, expected } => (format!("{expected} at {at}"), "nothing there".to_owned()),
        Difference::Altered { at, expected, found } => (format!("{expected} at {at}"), found.to_string()),
        Difference::Copy { at, found } => (format!("one sample at {at}"), format!("{found} once more")),
        Difference::Invented { at, found } => (format!("nothing at {at}"), found.to_string()),
    })
}

/// One value for each step of samples in time order, as [`Resample`](tsb_stores::Resample) defines
/// it: the naive way, which shares nothing with a store's.
fn consolidate(samples: &Columns, step_ns: i64, by: Consolidation, into: &mut Columns) {
    into.clear();
    let step_of = |at: &Timestamp| at.0.div_euclid(step_ns);
    let mut first = 0;
    for step in samples.times.chunk_by(|one, next| step_of(one) == step_of(next)) {
        let values = &samples.values[first..first + step.len()];
        first += step.len();
        into.push(Timestamp(step_of(&step[0]) * step_ns), canonical(value_of(values, by)));
    }
}

/// The value of one step, of which `values` are the samples in time order, at least one.
fn value_of(values: &[f64], by: Consolidation) -> f64 {
    let numbers = || values.iter().copied().filter(|value| !value.is_nan());
    let sum = || numbers().fold(0.0, |sum, value| sum + value);
    let extreme = |is_beyond: fn(f64, f64) -> bool| {
        let choose = |best, value| if is_beyond(value, best) { value } else { best };
        numbers().reduce(choose).unwrap_or(f64::NAN)
    };
    match by {
        Consolidation::Min => extreme(|value, best| value < best),
        Consolidation::Max => extreme(|value, best| value > best),
        Consolidation::Average if numbers().next().is_none() => f64::NAN,
        Consolidation::Average => sum() / numbers().count() as f64,
        Consolidation::Sum => sum(),
        Consolidation::Count => values.len() as f64,
        Consolidation::First => values[0],
        Consolidation::Last => values[values.len() - 1],
    }
}

/// One form of values that compare alike as rows: which NaN, and which of two zeros, is not said by
/// the contract.
fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

#[cfg(test)]
mod tests;
