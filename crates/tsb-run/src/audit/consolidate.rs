//! Computes what a consolidating store must hold of one series, from the samples sent to it.
//!
//! It follows the definitions (a sample gives the rate since the previous sample, a step is the mean over
//! its known time, and a row is made of its steps), and librrd where that differs from them: the start of
//! a file, gaps over several steps, and what a counter adds when it wraps. It shares no code with any
//! store. Rows that depend on samples which may not have arrived are not
//! judged. Pure: no I/O, no clock.

mod uncertain;

use std::collections::BTreeMap;

use tsb_core::Timestamp;
use tsb_stores::{ArchiveRule, Consolidated, Consolidation, Derivation};

use super::compare::{Columns, Difference, Tally};
use uncertain::Samples;
pub(super) use uncertain::UncertainSamples;

const MICROS: f64 = 1e6;
/// The largest relative error that adding up in another order may make.
const ROUNDING: f64 = 1e-9;
/// Seconds by which a store may misplace the time of a sample: times are read as floats.
const JITTER_S: f64 = 4e-6;
/// A value that must come back, and how far off it may be.
#[derive(Clone, Copy, Debug)]
struct Expected {
    value: f64,
    tolerance: f64,
}

/// What one step is made of, or several that share it.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Rate times seconds, of the known time.
    amount: f64,
    /// The sizes of the rates, for the tolerance.
    largest: f64,
    /// Whether any of it is known.
    has_known: bool,
    /// Unknown seconds before the sample that ended the step, each stretch in whole seconds.
    unknown_s: f64,
    /// Unknown seconds at its end.
    unknown_at_end_s: f64,
    /// Ended by a sample that came after the longest gap.
    is_late: bool,
    /// How many steps share all this, because one sample ended them; 0 is one.
    steps: f64,
}

impl Step {
    /// Adds some seconds of a rate, or of not knowing it.
    fn add(&mut self, rate: Option<f64>, seconds: f64, is_at_end: bool) {
        match rate {
            Some(rate) if seconds > 0.0 => {
                self.amount += rate * seconds;
                self.largest = self.largest.max(rate.abs());
                self.has_known = true;
            }
            Some(_) => {}
            None if is_at_end => self.unknown_at_end_s += seconds,
            None => self.unknown_s += seconds.floor(),
        }
    }

    fn value(&self, rule: &Consolidated) -> Option<Expected> {
        let step_s = rule.step_s as f64;
        if self.is_late || !self.has_known || self.unknown_s > step_s / 2.0 {
            return None;
        }
        let known_s = step_s * self.steps.max(1.0) - self.unknown_s - self.unknown_at_end_s;
        Some(Expected {
            value: self.amount / known_s,
            // Of a step of which little is known, a misplaced time changes more.
            tolerance: self.largest * (ROUNDING + 4.0 * JITTER_S / known_s.min(step_s)),
        })
    }
}

/// The steps that some samples make: those that have ended.
struct Steps {
    by_number: BTreeMap<i64, Step>,
    first: i64,
    // The first that is still open.
    open: i64,
}

/// The time from one sample to the next, and the rate that the later one says.
struct RateSpan {
    from_us: i64,
    to_us: i64,
    rate: Option<f64>,
    is_late: bool,
}

impl RateSpan {
    fn between(rule: &Consolidated, before: Option<f64>, from_us: i64, to_us: i64, value: f64) -> Self {
        let seconds = (to_us - from_us) as f64 / MICROS;
        let rate = match (rule.derivation, before) {
            (Derivation::Gauge, _) => Some(value),
            (Derivation::Absolute, _) => Some(value / seconds),
            (Derivation::Counter | Derivation::Derive, None) => None,
            (Derivation::Derive, Some(before)) => Some((value - before) / seconds),
            (Derivation::Counter, Some(before)) => Some(growth(before, value) / seconds),
        };
        let is_late = seconds > rule.longest_gap_s as f64;
        Self {
            from_us,
            to_us,
            rate: rate.filter(|_| !is_late),
            is_late,
        }
    }
}

/// How far a counter has grown that wraps at 32 or at 64 bits, with librrd's constants.
fn growth(before: f64, after: f64) -> f64 {
    let mut grown = after - before;
    if grown < 0.0 {
        grown += 4_294_967_295.0;
    }
    if grown < 0.0 {
        grown += 18_446_744_069_414_584_320.0;
    }
    grown
}

impl Steps {
    /// Of samples in the order of time, in microseconds.
    fn of(rule: &Consolidated, samples: &[(i64, f64)]) -> Option<Self> {
        let step_us = rule.step_s as i64 * 1_000_000;
        let (first_us, last_us) = (samples.first()?.0, samples.last()?.0);
        // A file starts one second before its first sample.
        let start_us = (first_us.div_euclid(1_000_000) - 1) * 1_000_000;
        let mut steps = Self {
            by_number: BTreeMap::new(),
            first: start_us.div_euclid(step_us),
            open: last_us.div_euclid(step_us),
        };
        let unknown_s = start_us.rem_euclid(step_us) as f64 / MICROS;
        steps.by_number.entry(steps.first).or_default().unknown_s = unknown_s;
        let (mut from_us, mut before) = (start_us, None);
        for &(to_us, value) in samples {
            steps.add(rule, &RateSpan::between(rule, before, from_us, to_us, value));
            (from_us, before) = (to_us, Some(value));
        }
        Some(steps)
    }

    fn add(&mut self, rule: &Consolidated, span: &RateSpan) {
        let step_us = rule.step_s as i64 * 1_000_000;
        let (first, last) = (span.from_us.div_euclid(step_us), span.to_us.div_euclid(step_us));
        if last - first > 1 {
            self.end_several(rule, span, first, last);
        } else if last > first {
            let seconds = (last * step_us - span.from_us) as f64 / MICROS;
            let step = self.by_number.entry(first).or_default();
            step.add(span.rate, seconds, true);
            step.is_late |= span.is_late;
        }
        let opened_us = (last * step_us).max(span.from_us);
        let seconds = (span.to_us - opened_us) as f64 / MICROS;
        self.by_number.entry(last).or_default().add(span.rate, seconds, false);
    }

    /// librrd first closes the whole seconds that are left of the open step, by themselves;
    /// the others share the rest. Where there is no whole second left, the open step shares
    /// with them what it has.
    fn end_several(&mut self, rule: &Consolidated, span: &RateSpan, first: i64, last: i64) {
        let step_s = rule.step_s as f64;
        let until_s = (last * rule.step_s as i64 * 1_000_000 - span.from_us) as f64 / MICROS;
        let opened_s = until_s.floor() % step_s;
        let late_s = rule.longest_gap_s as f64;
        let whole_s = (span.to_us - span.from_us) as f64 / MICROS;
        let mut shared = Step::default();
        let mut sharing = first..last;
        if opened_s > 0.0 {
            let open = self.by_number.entry(first).or_default();
            open.add(span.rate, opened_s, true);
            open.is_late |= opened_s > late_s;
            sharing.start += 1;
        } else {
            shared = self.by_number.get(&first).copied().unwrap_or_default();
        }
        shared.steps = (sharing.end - sharing.start) as f64;
        shared.add(span.rate, until_s - opened_s, true);
        shared.is_late |= whole_s - opened_s > late_s;
        self.by_number.extend(sharing.map(|number| (number, shared)));
    }

    fn value(&self, rule: &Consolidated, number: i64) -> Option<Expected> {
        self.by_number.get(&number)?.value(rule)
    }
}

/// The row of an archive that covers the steps from `number * steps`.
fn row(rule: &Consolidated, archive: ArchiveRule, steps: &Steps, number: i64) -> Option<Expected> {
    let length = i64::from(archive.steps);
    let values: Vec<Option<Expected>> = (number * length..(number + 1) * length)
        .map(|step| steps.value(rule, step))
        .collect();
    let known: Vec<Expected> = values.iter().copied().flatten().collect();
    let unknown = values.len() - known.len();
    let may_be_unknown = length as f64 * (f64::from(archive.unknown_permille_max) / 1000.0);
    if archive.steps > 1 && unknown as f64 > may_be_unknown {
        return None;
    }
    if known.is_empty() {
        return None;
    }
    let rates = || known.iter().map(|step| step.value);
    let tolerances = || known.iter().map(|step| step.tolerance);
    let (sum, widest) = (rates().sum::<f64>(), tolerances().fold(0.0, f64::max));
    let (value, tolerance) = match archive.consolidation {
        Consolidation::First => return values.first().copied().flatten(),
        Consolidation::Last => return values.last().copied().flatten(),
        Consolidation::Max => (rates().reduce(f64::max)?, widest),
        Consolidation::Min => (rates().reduce(f64::min)?, widest),
        Consolidation::Average => (sum / known.len() as f64, widest),
        Consolidation::Sum => (sum, tolerances().sum()),
        Consolidation::Count => (known.len() as f64, 0.0),
    };
    Some(Expected { value, tolerance })
}

/// What became of the row that a sample went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowOutcome {
    /// Known, and as it must be.
    Right,
    /// Unknown, as it must be: it says nothing of the sample.
    Unknown,
    Wrong,
    Missing,
    /// Overwritten: the archive reaches no further back.
    Gone,
    /// Not ended yet.
    Open,
    /// It depends on a sample of which nobody knows whether it came.
    Unsure,
}

/// One archive of one series, row by row.
struct ArchiveComparison {
    span_us: i64,
    outcomes: BTreeMap<i64, RowOutcome>,
    oldest: i64,
    open: i64,
}

/// The row of an archive with this number, in steps.
fn steps_of(archive: ArchiveRule, number: i64) -> std::ops::RangeInclusive<i64> {
    let length = i64::from(archive.steps);
    number * length..=number * length + length - 1
}

impl ArchiveComparison {
    fn of_sample(&self, at_us: i64) -> RowOutcome {
        // A row holds the time up to its end, the end included.
        let number = (at_us - 1).div_euclid(self.span_us);
        match self.outcomes.get(&number) {
            Some(outcome) => *outcome,
            None if number >= self.open => RowOutcome::Open,
            None if number < self.oldest => RowOutcome::Gone,
            None => RowOutcome::Unknown,
        }
    }
}

/// The known rows of an archive, as a query returned them, each with its end in seconds.
pub(super) type ArchiveRows = Vec<(i64, f64)>;

/// Microseconds by which a store may misplace the newest sample that it admitted.
const ADMITTED_US: i64 = 4;

/// What a store shows of one series.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreAnswer {
    /// The known rows of each archive.
    pub rows: Vec<ArchiveRows>,
    /// The newest sample that it says it took; absent: it need not say.
    pub admitted: Option<Timestamp>,
    /// Whether it may hold earlier samples of the series, which are not compared.
    pub is_continued: bool,
}

/// Compares the rows of every archive with those that `sent` must have made, and counts the
/// samples by what became of their rows. Of a step that no row says yet, a store that refuses
/// late samples shows only the newest sample that it took: what was sent after it is missing.
pub(super) fn compare(
    rule: &Consolidated,
    sent: &Columns,
    uncertain: &UncertainSamples,
    answer: &StoreAnswer,
    note: &mut dyn FnMut(Difference),
) -> Tally {
    let mut tally = Tally::default();
    if matches!(uncertain, UncertainSamples::OfAny) {
        tally.uncompared = sent.len() as u64;
        return tally;
    }
    let step_us = rule.step_s as i64 * 1_000_000;
    let samples = Samples::new(sent, uncertain, step_us, answer.is_continued);
    let Some(steps) = Steps::of(rule, &samples.sure) else {
        tally.uncompared = sent.len() as u64;
        if sent.is_empty() && !answer.is_continued {
            tally.duplicated = answer.rows.iter().map(|rows| rows.len() as u64).sum();
        }
        return tally;
    };
    let expected_rows = ExpectedRows {
        rule,
        steps: &steps,
        samples: &samples,
    };
    let comparisons: Vec<ArchiveComparison> = rule
        .archives()
        .zip(&answer.rows)
        .map(|(archive, found)| expected_rows.judge(archive, found, &mut tally, note))
        .collect();
    let admitted_us = answer.admitted.map(|at| at.0.div_euclid(1_000) + ADMITTED_US);
    for &(at_us, value) in &samples.all {
        let has = |outcome: RowOutcome| comparisons.iter().any(|archive| archive.of_sample(at_us) == outcome);
        let step = (at_us - 1).div_euclid(step_us);
        let is_sure = !samples.is_uncertain(step..=step);
        let is_known = is_sure && (step >= steps.open || steps.value(rule, step).is_some());
        let count = if has(RowOutcome::Wrong) {
            &mut tally.altered
        } else if has(RowOutcome::Missing) {
            &mut tally.missing
        } else if is_known && has(RowOutcome::Right) {
            &mut tally.verified
        } else if is_known && has(RowOutcome::Open) {
            if admitted_us.is_some_and(|admitted| at_us > admitted) {
                let (at, expected) = (Timestamp(at_us * 1_000), value);
                note(Difference::Missing { at, expected });
                &mut tally.missing
            } else {
                &mut tally.unconsolidated
            }
        } else if has(RowOutcome::Unsure) {
            &mut tally.uncompared
        } else if is_sure && !is_known || has(RowOutcome::Unknown) {
            &mut tally.unrepresented
        } else {
            &mut tally.expired
        };
        *count += 1;
    }
    tally
}

/// What the samples of one series must have made.
struct ExpectedRows<'a> {
    rule: &'a Consolidated,
    steps: &'a Steps,
    samples: &'a Samples,
}

impl ExpectedRows<'_> {
    fn judge(
        &self,
        archive: ArchiveRule,
        found: &ArchiveRows,
        tally: &mut Tally,
        note: &mut dyn FnMut(Difference),
    ) -> ArchiveComparison {
        let Self { rule, steps, samples } = self;
        let length = i64::from(archive.steps);
        let span_s = rule.step_s as i64 * length;
        let first = samples.first_step(rule.step_s).min(steps.first).div_euclid(length);
        let oldest = |open: i64| (open - i64::from(archive.rows)).max(first);
        let open = steps.open.div_euclid(length);
        // Where it ends, if all came; rows before what it keeps then may be gone.
        let last_us = samples.all.last().map_or(0, |sample| sample.0);
        let open_if_all = last_us.div_euclid(span_s * 1_000_000);
        let mut found: BTreeMap<i64, f64> = found.iter().map(|&(end_s, value)| (end_s, value)).collect();
        let mut outcomes = BTreeMap::new();
        for number in oldest(open)..=open_if_all {
            let end_s = (number + 1) * span_s;
            let at = Timestamp::from_secs(end_s);
            if samples.is_uncertain(steps_of(archive, number)) {
                found.remove(&end_s);
                outcomes.insert(number, RowOutcome::Unsure);
                continue;
            }
            if number >= open {
                break;
            }
            let outcome = match (row(rule, archive, steps, number), found.remove(&end_s)) {
                (None, None) => RowOutcome::Unknown,
                (Some(_), None) if number < oldest(open_if_all) => RowOutcome::Gone,
                (Some(expected), Some(value)) if (value - expected.value).abs() <= expected.tolerance => {
                    RowOutcome::Right
                }
                (Some(expected), Some(found)) => {
                    let expected = expected.value;
                    note(Difference::Altered { at, expected, found });
                    RowOutcome::Wrong
                }
                (Some(expected), None) => {
                    let expected = expected.value;
                    note(Difference::Missing { at, expected });
                    RowOutcome::Missing
                }
                (None, Some(found)) => {
                    note(Difference::Invented { at, found });
                    RowOutcome::Wrong
                }
            };
            outcomes.insert(number, outcome);
        }
        // Rows that no sample was sent for.
        for (end_s, found) in found {
            if samples.is_uncertain(steps_of(archive, end_s.div_euclid(span_s) - 1)) {
                continue;
            }
            tally.duplicated += 1;
            let at = Timestamp::from_secs(end_s);
            note(Difference::Invented { at, found });
        }
        ArchiveComparison {
            span_us: span_s * 1_000_000,
            outcomes,
            oldest: oldest(open),
            open,
        }
    }
}

#[cfg(test)]
mod tests;
