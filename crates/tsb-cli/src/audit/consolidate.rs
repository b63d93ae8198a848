//! What a consolidating store must hold of one series, computed from its samples.
//!
//! By definition and not by librrd's way of getting there: a sample says the rate since the
//! one before, a step is the mean over its known time, a row is made of its steps. It shares
//! no code with any store. Pure.

use std::collections::BTreeMap;

use tsb_core::Timestamp;
use tsb_stores::{ArchiveRule, Consolidated, Consolidation, Derivation};

use super::compare::{Columns, Difference, Tally};

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
    /// Ended by a sample that came after the heartbeat.
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
struct Stretch {
    from_us: i64,
    to_us: i64,
    rate: Option<f64>,
    is_late: bool,
}

impl Stretch {
    fn between(rule: &Consolidated, before: Option<f64>, from_us: i64, to_us: i64, value: f64) -> Self {
        let seconds = (to_us - from_us) as f64 / MICROS;
        let rate = match (rule.derivation, before) {
            (Derivation::Gauge, _) => Some(value),
            (Derivation::Absolute, _) => Some(value / seconds),
            (Derivation::Counter | Derivation::Derive, None) => None,
            (Derivation::Derive, Some(before)) => Some((value - before) / seconds),
            (Derivation::Counter, Some(before)) => Some(growth(before, value) / seconds),
        };
        let is_late = seconds > rule.heartbeat_s as f64;
        Self {
            from_us,
            to_us,
            rate: rate.filter(|_| !is_late),
            is_late,
        }
    }
}

/// How far a counter has grown that wraps at 32 or at 64 bits.
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
            steps.add(rule, &Stretch::between(rule, before, from_us, to_us, value));
            (from_us, before) = (to_us, Some(value));
        }
        Some(steps)
    }

    fn add(&mut self, rule: &Consolidated, stretch: &Stretch) {
        let step_us = rule.step_s as i64 * 1_000_000;
        let (first, last) = (stretch.from_us.div_euclid(step_us), stretch.to_us.div_euclid(step_us));
        if last - first > 1 {
            self.end_several(rule, stretch, first, last);
        } else if last > first {
            let seconds = (last * step_us - stretch.from_us) as f64 / MICROS;
            let step = self.by_number.entry(first).or_default();
            step.add(stretch.rate, seconds, true);
            step.is_late |= stretch.is_late;
        }
        let opened_us = (last * step_us).max(stretch.from_us);
        let seconds = (stretch.to_us - opened_us) as f64 / MICROS;
        self.by_number
            .entry(last)
            .or_default()
            .add(stretch.rate, seconds, false);
    }

    /// librrd first closes the whole seconds that are left of the open step, by themselves;
    /// the others share the rest. Where there is no whole second left, the open step shares
    /// with them what it has.
    fn end_several(&mut self, rule: &Consolidated, stretch: &Stretch, first: i64, last: i64) {
        let step_s = rule.step_s as f64;
        let until_s = (last * rule.step_s as i64 * 1_000_000 - stretch.from_us) as f64 / MICROS;
        let opened_s = until_s.floor() % step_s;
        let late_s = rule.heartbeat_s as f64;
        let whole_s = (stretch.to_us - stretch.from_us) as f64 / MICROS;
        let mut shared = Step::default();
        let mut sharing = first..last;
        if opened_s > 0.0 {
            let open = self.by_number.entry(first).or_default();
            open.add(stretch.rate, opened_s, true);
            open.is_late |= opened_s > late_s;
            sharing.start += 1;
        } else {
            shared = self.by_number.get(&first).copied().unwrap_or_default();
        }
        shared.steps = (sharing.end - sharing.start) as f64;
        shared.add(stretch.rate, until_s - opened_s, true);
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
    let may_be_unknown = length as f64 * (f64::from(archive.xff_permille) / 1000.0);
    if archive.steps > 1 && unknown as f64 > may_be_unknown {
        return None;
    }
    let tolerance = known.iter().map(|step| step.tolerance).fold(0.0, f64::max);
    let value = match archive.consolidation {
        Consolidation::Last => return values.last().copied().flatten(),
        Consolidation::Max => known.iter().map(|step| step.value).reduce(f64::max)?,
        Consolidation::Min => known.iter().map(|step| step.value).reduce(f64::min)?,
        _ if known.is_empty() => return None,
        _ => known.iter().map(|step| step.value).sum::<f64>() / known.len() as f64,
    };
    Some(Expected { value, tolerance })
}

/// What became of the row that a sample went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// As it must be, also where that is unknown.
    Right,
    Wrong,
    Missing,
    /// Overwritten: the archive reaches no further back.
    Gone,
    /// Not ended yet.
    Open,
}

/// One archive of one series, row by row.
struct Judged {
    span_us: i64,
    fates: BTreeMap<i64, Fate>,
    oldest: i64,
    open: i64,
}

impl Judged {
    fn of_sample(&self, at_us: i64) -> Fate {
        // A row holds the time up to its end, the end included.
        let number = (at_us - 1).div_euclid(self.span_us);
        if number >= self.open {
            Fate::Open
        } else if number < self.oldest {
            Fate::Gone
        } else {
            self.fates.get(&number).copied().unwrap_or(Fate::Right)
        }
    }
}

/// The known rows of an archive, as a query returned them, each with its end in seconds.
pub(super) type Found = Vec<(i64, f64)>;

/// Compares the rows of every archive with those that `sent` must have made, and counts the
/// samples by what became of their rows. `found` has an entry for each archive.
pub(super) fn compare(rule: &Consolidated, sent: &Columns, found: &[Found], note: &mut dyn FnMut(Difference)) -> Tally {
    let mut tally = Tally::default();
    let mut samples: Vec<(i64, f64)> = sent
        .times
        .iter()
        .map(|at| at.0.div_euclid(1_000))
        .zip(sent.values.iter().copied())
        .collect();
    samples.sort_by_key(|sample| sample.0);
    let Some(steps) = Steps::of(rule, &samples) else {
        tally.duplicated = found.iter().map(|rows| rows.len() as u64).sum();
        return tally;
    };
    let judged: Vec<Judged> = rule
        .archives()
        .zip(found)
        .map(|(archive, found)| judge(rule, archive, &steps, found, &mut tally, note))
        .collect();
    for &(at_us, _) in &samples {
        let has = |fate: Fate| judged.iter().any(|archive| archive.of_sample(at_us) == fate);
        let count = if has(Fate::Wrong) {
            &mut tally.altered
        } else if has(Fate::Missing) {
            &mut tally.missing
        } else if has(Fate::Right) {
            &mut tally.verified
        } else if has(Fate::Open) {
            &mut tally.unconsolidated
        } else {
            &mut tally.expired
        };
        *count += 1;
    }
    tally
}

fn judge(
    rule: &Consolidated,
    archive: ArchiveRule,
    steps: &Steps,
    found: &Found,
    tally: &mut Tally,
    note: &mut dyn FnMut(Difference),
) -> Judged {
    let length = i64::from(archive.steps);
    let span_s = rule.step_s as i64 * length;
    let open = steps.open.div_euclid(length);
    let oldest = (open - i64::from(archive.rows)).max(steps.first.div_euclid(length));
    let mut found: BTreeMap<i64, f64> = found.iter().map(|&(end_s, value)| (end_s, value)).collect();
    let mut fates = BTreeMap::new();
    for number in oldest..open {
        let end_s = (number + 1) * span_s;
        let at = Timestamp::from_secs(end_s);
        let fate = match (row(rule, archive, steps, number), found.remove(&end_s)) {
            (None, None) => Fate::Right,
            (Some(expected), Some(value)) if (value - expected.value).abs() <= expected.tolerance => Fate::Right,
            (Some(expected), Some(found)) => {
                let expected = expected.value;
                note(Difference::Altered { at, expected, found });
                Fate::Wrong
            }
            (Some(expected), None) => {
                let expected = expected.value;
                note(Difference::Missing { at, expected });
                Fate::Missing
            }
            (None, Some(found)) => {
                note(Difference::Invented { at, found });
                Fate::Wrong
            }
        };
        fates.insert(number, fate);
    }
    // Rows that no sample was sent for.
    for (end_s, found) in found {
        tally.duplicated += 1;
        let at = Timestamp::from_secs(end_s);
        note(Difference::Invented { at, found });
    }
    Judged {
        span_us: span_s * 1_000_000,
        fates,
        oldest,
        open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::{Batch, SeriesId, SeriesKey};
    use tsb_stores::rrd::{RrdOptions, RrdStore};
    use tsb_stores::{Refusals, Resample, Store, StoreExt, TimeRange};

    fn options(derivation: Derivation) -> RrdOptions {
        RrdOptions {
            step_s: 10,
            heartbeat_s: 25,
            derivation,
            archives: [
                (Consolidation::Average, 1, 40),
                (Consolidation::Average, 6, 30),
                (Consolidation::Max, 6, 30),
                (Consolidation::Min, 3, 20),
                (Consolidation::Last, 5, 20),
            ]
            .map(|(consolidation, steps, rows)| ArchiveRule::new(consolidation, steps, rows))
            .to_vec(),
            ..RrdOptions::default()
        }
    }

    /// Writes samples to a real store; what is expected, and what every archive returns.
    fn filled(derivation: Derivation, samples: &[(i64, f64)]) -> (Consolidated, Columns, Vec<Found>) {
        let folder = tempfile::tempdir().unwrap();
        let options = options(derivation);
        let store = RrdStore::open(folder.path(), options.clone()).unwrap();
        store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
        let mut sent = Columns::default();
        for &(at_ms, value) in samples {
            let at = Timestamp::from_millis(at_ms);
            let ack = store
                .write(&Batch::tick(SeriesId(0), at, &[value]), &mut Refusals::new())
                .unwrap();
            if ack.accepted == 1 {
                sent.push(at, value);
            }
        }
        let rule = options.consolidated().unwrap();
        let found = rule.archives().map(|archive| {
            let span_s = i64::from(archive.steps) * 10;
            let resample = Resample {
                step_ns: span_s * 1_000_000_000,
                consolidation: archive.consolidation,
            };
            let rows = store.rows(SeriesId(0), TimeRange::ALL, Some(resample)).unwrap();
            rows.into_iter()
                .map(|(at, value)| (at.as_secs() + span_s, value))
                .collect()
        });
        let found = found.collect();
        (rule, sent, found)
    }

    /// Irregular times, gaps beyond the heartbeat, phases within a second.
    fn irregular(seed: u64, derivation: Derivation) -> Vec<(i64, f64)> {
        let mut bits = seed * 0x9e37_79b9 + 1;
        let mut next = |below: u64| {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (bits >> 33) % below
        };
        let (mut at_ms, mut counter) = (1_700_000_003_000, 4_294_900_000_u64);
        let has_phase = next(2) == 0;
        (0..300)
            .map(|_| {
                at_ms += match next(10) {
                    0 => 60_000,
                    1 => 26_000,
                    2 => 20_000,
                    3 => 12_000,
                    4 => 1_000,
                    _ => 10_000,
                };
                counter = (counter + next(20_000)) % 4_294_967_296;
                let value = match derivation {
                    Derivation::Gauge | Derivation::Absolute => next(100_000) as f64 / 8.0 - 3_000.0,
                    Derivation::Counter | Derivation::Derive => counter as f64,
                };
                (at_ms + if has_phase { 437 } else { 0 }, value)
            })
            .collect()
    }

    #[test]
    fn every_row_of_a_real_store_is_as_computed() {
        for derivation in [
            Derivation::Gauge,
            Derivation::Counter,
            Derivation::Derive,
            Derivation::Absolute,
        ] {
            for seed in 0..12 {
                let (rule, sent, found) = filled(derivation, &irregular(seed, derivation));
                let mut notes = Vec::new();
                let tally = compare(&rule, &sent, &found, &mut |note| notes.push(note));
                assert!(notes.is_empty(), "{derivation:?}, seed {seed}: {notes:?}");
                assert_eq!(tally.verified + tally.unconsolidated + tally.expired, sent.len() as u64);
                assert!(tally.verified > 50 && tally.expired > 0, "{tally:?}");
            }
        }
    }

    #[test]
    fn a_wrong_a_missing_and_an_invented_row_are_seen() {
        let samples: Vec<_> = (0..30)
            .map(|tick| (1_700_000_000_000 + tick * 10_000, tick as f64))
            .collect();
        let (rule, sent, sound) = filled(Derivation::Gauge, &samples);
        let tally_of = |found: &[Found]| {
            let mut notes = 0;
            (compare(&rule, &sent, found, &mut |_| notes += 1), notes)
        };
        assert_eq!(tally_of(&sound).1, 0);
        let mut wrong = sound.clone();
        wrong[0][3].1 += 1e-3;
        let (tally, notes) = tally_of(&wrong);
        assert_eq!((tally.altered, notes), (1, 1));
        let mut missing = sound.clone();
        missing[2].remove(1);
        let (tally, notes) = tally_of(&missing);
        assert_eq!((tally.missing, notes), (6, 1));
        let mut invented = sound;
        invented[0].push((1_800_000_000, 1.0));
        let (tally, notes) = tally_of(&invented);
        assert_eq!((tally.duplicated, notes), (1, 1));
    }
}
