//! Checks of stores of slots, as Whisper has them: the last value of each slot, and longer slots
//! that follow from shorter ones.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use super::{Case, CheckOutcome, CheckResult, of};
use crate::conformance::failure::{Failure, ensure, equal, is_unsupported, refused};
use crate::conformance::subject::Subject;
use crate::conformance::{Context, model::Row};
use crate::store::{Capabilities, Consolidation, Exactness, Query, Resample, SlotArchive, SlotArchives, TimeRange};

pub(in crate::conformance) const CASES: &[Case] = &[
    of(
        "c6_the_last_of_a_slot_by_time_or_arrival_is_kept_at_its_start",
        has_slots,
        last_wins,
    ),
    of(
        "c7_a_longer_slot_follows_from_known_shorter_ones",
        has_several,
        longer_slots_follow,
    ),
    of(
        "c7_other_steps_than_those_of_slots_are_unsupported",
        has_slots,
        other_steps,
    ),
    of("c7_a_range_cuts_slots_at_their_start", has_slots, range_cuts_slots),
    of(
        "c10_slots_are_there_when_it_is_opened_again",
        comes_back,
        slots_come_back,
    ),
    of(
        "c11_newest_is_the_start_of_the_last_slot",
        has_slots,
        newest_is_last_slot,
    ),
];

fn rule_of(capabilities: &Capabilities) -> Option<SlotArchives> {
    match capabilities.exactness {
        Exactness::Slots(rule) if capabilities.query => Some(rule),
        _ => None,
    }
}

fn has_slots(capabilities: &Capabilities) -> bool {
    rule_of(capabilities).is_some()
}

fn has_several(capabilities: &Capabilities) -> bool {
    rule_of(capabilities).is_some_and(|rule| rule.archives().count() > 1)
}

fn comes_back(capabilities: &Capabilities) -> bool {
    has_slots(capabilities) && capabilities.persistent
}

/// A store with three series, its rule, and a time at which a slot of every archive begins.
struct SlotSubject {
    subject: Subject,
    rule: SlotArchives,
    finest: SlotArchive,
    start_s: i64,
}

const SERIES: u32 = 3;

impl SlotSubject {
    fn new(context: &Context) -> Result<Self, Failure> {
        let no_rule = || Failure::from("the store has no slots".to_owned());
        let rule = rule_of(&context.capabilities).ok_or_else(no_rule)?;
        let finest = rule.archives().next().ok_or_else(no_rule)?;
        let longest_s = rule.archives().last().map_or(1, |archive| archive.slot_s);
        Ok(Self {
            subject: context.subject(SERIES)?,
            rule,
            finest,
            start_s: (context.at(0).as_secs().div_euclid(longest_s) + 1) * longest_s,
        })
    }

    /// The start of a slot of the finest archive.
    fn slot(&self, number: i64) -> Timestamp {
        Timestamp::from_secs(self.start_s + number * self.finest.slot_s)
    }

    /// Writes the number of the slot, to which `offset_s` is added, to all series.
    fn fill(&mut self, slots: impl IntoIterator<Item = i64>, offset_s: i64) -> Result<(), Failure> {
        for number in slots {
            let at = Timestamp::from_secs(self.slot(number).as_secs() + offset_s);
            let values: Vec<f64> = (0..SERIES).map(|id| value_of(id, number)).collect();
            let _ = self.subject.tick(0, at, &values)?;
        }
        Ok(())
    }

    fn check(&self, id: u32, range: TimeRange, resample: Option<Resample>, expected: &[Row]) -> Result<(), Failure> {
        self.subject.eventually(|| {
            let rows = self.subject.rows(SeriesId(id), range, resample)?;
            equal(&format!("slots of #{id}, {resample:?}"), &rows.as_slice(), &expected)
        })
    }
}

fn value_of(id: u32, number: i64) -> f64 {
    f64::from(id) * 1_000.0 + number as f64
}

fn last_wins(context: &Context) -> CheckResult {
    let mut slots = SlotSubject::new(context)?;
    let middle_s = slots.finest.slot_s / 2;
    slots.fill([0, 1], middle_s)?;
    // Earlier in its slot, and written later: the store may keep either.
    let (first, second) = (slots.slot(0), slots.slot(1));
    let _ = slots.subject.tick(0, first, &[7.25, 8.25, 9.25])?;
    // Last in both orders. Once it is visible, so is what was written before it.
    let end_s = second.as_secs() + slots.finest.slot_s - 1;
    let _ = slots
        .subject
        .tick(0, Timestamp::from_secs(end_s), &[17.25, 18.25, 19.25])?;
    for id in 0..SERIES {
        let by_time = if middle_s > 0 { value_of(id, 0) } else { f64::NAN };
        slots.subject.eventually(|| {
            let rows = slots.subject.rows(SeriesId(id), TimeRange::ALL, None)?;
            let of = |kept: f64| [(first, kept), (second, 17.25 + f64::from(id))];
            let is_right = [7.25 + f64::from(id), by_time].iter().any(|kept| rows == of(*kept));
            ensure(is_right, || format!("slots of #{id}: {rows:?}"))
        })?;
    }
    Ok(CheckOutcome::Holds)
}

fn longer_slots_follow(context: &Context) -> CheckResult {
    let mut slots = SlotSubject::new(context)?;
    let archives: Vec<SlotArchive> = slots.rule.archives().collect();
    let (Some(finer), Some(longer)) = (archives.first(), archives.get(1)) else {
        return Err("the store has one archive".to_owned().into());
    };
    let covered = longer.slot_s / finer.slot_s;
    let needed = (covered * i64::from(slots.rule.known_permille_min)).div_euclid(1_000);
    // The first is full; the second has too few, if any number is too few.
    slots.fill(0..covered, 0)?;
    let few = (needed - 1).max(0);
    slots.fill(covered..covered + few, 0)?;
    let resample = Resample {
        step_ns: longer.slot_s * 1_000_000_000,
        consolidation: slots.rule.consolidation,
    };
    for id in 0..SERIES {
        let value = match slots.rule.consolidation {
            Consolidation::Average => f64::from(id) * 1_000.0 + (covered - 1) as f64 / 2.0,
            Consolidation::Sum => f64::from(id) * 1_000.0 * covered as f64 + (covered * (covered - 1) / 2) as f64,
            Consolidation::Count => covered as f64,
            Consolidation::Min | Consolidation::First => value_of(id, 0),
            Consolidation::Max | Consolidation::Last => value_of(id, covered - 1),
        };
        slots.check(id, TimeRange::ALL, Some(resample), &[(slots.slot(0), value)])?;
    }
    Ok(CheckOutcome::Holds)
}

fn other_steps(context: &Context) -> CheckResult {
    let slots = SlotSubject::new(context)?;
    for consolidation in super::resample::CONSOLIDATIONS {
        for step_ns in [1, slots.finest.slot_s * 1_000_000_000 + 1, i64::MAX] {
            let query = Query {
                series: &[SeriesId(0)],
                range: TimeRange::ALL,
                resample: Some(Resample { step_ns, consolidation }),
            };
            let answer = slots
                .subject
                .store
                .query(&query, &mut |_, _, _| ControlFlow::Continue(()));
            let what = format!("{consolidation:?} of {step_ns} ns");
            refused(&what, answer, "Unsupported", is_unsupported)?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn range_cuts_slots(context: &Context) -> CheckResult {
    let mut slots = SlotSubject::new(context)?;
    slots.fill(0..4, 0)?;
    let all: Vec<Row> = (0..4).map(|number| (slots.slot(number), value_of(1, number))).collect();
    slots.check(1, TimeRange::ALL, None, &all)?;
    for (from, to) in [(0, 3), (1, 2), (2, 4), (3, 3)] {
        for shift_ns in [0, 1] {
            let range = TimeRange {
                start: slots.slot(from) + shift_ns,
                end: slots.slot(to) + shift_ns,
            };
            let expected: Vec<Row> = all.iter().copied().filter(|row| range.contains(row.0)).collect();
            slots.check(1, range, None, &expected)?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn slots_come_back(context: &Context) -> CheckResult {
    let mut slots = SlotSubject::new(context)?;
    slots.fill(0..3, 0)?;
    let all: Vec<Row> = (0..3).map(|number| (slots.slot(number), value_of(2, number))).collect();
    slots.check(2, TimeRange::ALL, None, &all)?;
    slots.subject.reopen()?;
    slots.check(2, TimeRange::ALL, None, &all)?;
    Ok(CheckOutcome::Holds)
}

fn newest_is_last_slot(context: &Context) -> CheckResult {
    let mut slots = SlotSubject::new(context)?;
    let (subject, one) = (&slots.subject, [SeriesId(0)]);
    let mut newest = [Some(Timestamp(42))];
    subject.store.newest(&one, &mut newest)?;
    equal("newest of a series without samples", &newest, &[None])?;
    slots.fill([0, 2], slots.finest.slot_s / 2)?;
    // A late one changes nothing.
    slots.fill([1], 0)?;
    let expected = Some(slots.slot(2));
    slots.subject.eventually(|| {
        let mut newest = [Some(Timestamp(42)); SERIES as usize];
        let ids: Vec<SeriesId> = (0..SERIES).map(SeriesId).collect();
        slots.subject.store.newest(&ids, &mut newest)?;
        ensure(newest.iter().all(|at| *at == expected), || {
            format!("newest is {newest:?}, expected {expected:?}")
        })
    })?;
    Ok(CheckOutcome::Holds)
}
