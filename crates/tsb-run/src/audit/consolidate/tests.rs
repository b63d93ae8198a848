//! The computed rows held against those of a real store.

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
fn filled(derivation: Derivation, samples: &[(i64, f64)]) -> (Consolidated, Columns, StoreAnswer) {
    filled_but(derivation, samples, |_| false)
}

/// The same of a store to which some of the samples, by number, never come.
fn filled_but(
    derivation: Derivation,
    samples: &[(i64, f64)],
    is_lost: impl Fn(usize) -> bool,
) -> (Consolidated, Columns, StoreAnswer) {
    let folder = tempfile::tempdir().unwrap();
    let options = options(derivation);
    let store = RrdStore::open(folder.path(), options.clone()).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
    let mut sent = Columns::default();
    for (index, &(at_ms, value)) in samples.iter().enumerate() {
        let at = Timestamp::from_millis(at_ms);
        if is_lost(index) {
            sent.push(at, value);
            continue;
        }
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
    let rows = found.collect();
    let mut admitted = [None];
    store.newest_accepted(&[SeriesId(0)], &mut admitted).unwrap();
    let [admitted] = admitted;
    (rule, sent, answer_of(rows, admitted))
}

/// The answer of a store that was empty before.
fn answer_of(rows: Vec<ArchiveRows>, admitted: Option<Timestamp>) -> StoreAnswer {
    StoreAnswer {
        rows,
        admitted,
        is_continued: false,
    }
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
            let tally = compare(&rule, &sent, &UncertainSamples::None, &found, &mut |note| {
                notes.push(note);
            });
            assert!(notes.is_empty(), "{derivation:?}, seed {seed}: {notes:?}");
            let compared = tally.verified + tally.unconsolidated + tally.expired + tally.unrepresented;
            assert_eq!(compared, sent.len() as u64);
            assert!(
                tally.verified > 50 && tally.expired > 0 && tally.unrepresented > 0,
                "{tally:?}"
            );
        }
    }
}

#[test]
fn a_row_is_made_of_its_known_steps_by_the_function_of_its_archive() {
    let rule = options(Derivation::Gauge).consolidated().unwrap();
    // One row of six steps from 1_700_000_040 s on: 1, 2 and 3 with a gap beyond the heartbeat
    // before it, so the first three steps are unknown.
    let samples: Vec<(i64, f64)> = [(0, 9.0), (70, 9.0), (80, 1.0), (90, 2.0), (100, 3.0), (110, 9.0)]
        .map(|(at_s, value)| ((1_700_000_000 + at_s) * 1_000_000, value))
        .to_vec();
    let steps = Steps::of(&rule, &samples).unwrap();
    let made = |consolidation| {
        let archive = ArchiveRule::new(consolidation, 6, 10);
        row(&rule, archive, &steps, 1_700_000_040 / 60).map(|expected| expected.value)
    };
    assert_eq!(made(Consolidation::Sum), Some(6.0));
    assert_eq!(made(Consolidation::Average), Some(2.0));
    assert_eq!(made(Consolidation::Min), Some(1.0));
    assert_eq!(made(Consolidation::Max), Some(3.0));
    assert_eq!(made(Consolidation::Count), Some(3.0));
    assert_eq!(made(Consolidation::First), None);
    assert_eq!(made(Consolidation::Last), Some(3.0));
}

#[test]
fn a_wrong_a_missing_and_an_invented_row_are_seen() {
    let samples: Vec<_> = (0..30)
        .map(|tick| (1_700_000_000_000 + tick * 10_000, tick as f64))
        .collect();
    let (rule, sent, sound) = filled(Derivation::Gauge, &samples);
    let tally_of = |answer: &StoreAnswer| {
        let mut notes = 0;
        (
            compare(&rule, &sent, &UncertainSamples::None, answer, &mut |_| notes += 1),
            notes,
        )
    };
    assert_eq!(tally_of(&sound).1, 0);
    let mut wrong = sound.clone();
    wrong.rows[0][3].1 += 1e-3;
    let (tally, notes) = tally_of(&wrong);
    assert_eq!((tally.altered, notes), (1, 1));
    let mut missing = sound.clone();
    missing.rows[2].remove(1);
    let (tally, notes) = tally_of(&missing);
    assert_eq!((tally.missing, notes), (6, 1));
    let mut invented = sound;
    invented.rows[0].push((1_800_000_000, 1.0));
    let (tally, notes) = tally_of(&invented);
    assert_eq!((tally.duplicated, notes), (1, 1));
}
fn tally(rule: &Consolidated, sent: &Columns, answer: &StoreAnswer) -> (Tally, Vec<Difference>) {
    let mut notes = Vec::new();
    let tally = compare(rule, sent, &UncertainSamples::None, answer, &mut |note| {
        notes.push(note);
    });
    (tally, notes)
}

#[test]
fn rows_unknown_by_heartbeat_are_unrepresented_and_not_verified() {
    // An interval of 30 s and a heartbeat of 25 s: no step is ever known.
    let samples: Vec<_> = (0..30)
        .map(|tick| (1_700_000_000_000 + tick * 30_000, tick as f64))
        .collect();
    let (rule, sent, answer) = filled(Derivation::Gauge, &samples);
    assert!(answer.rows.iter().all(Vec::is_empty), "{answer:?}");
    let (tally, notes) = tally(&rule, &sent, &answer);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!((tally.verified, tally.expired), (0, 0));
    assert_eq!(tally.unrepresented + tally.unconsolidated, 30);
    assert!(tally.unrepresented >= 29, "{tally:?}");
}

#[test]
fn a_row_says_nothing_of_a_step_that_is_unknown_and_an_unknown_row_of_no_step() {
    let rule = RrdOptions {
        archives: vec![ArchiveRule::new(Consolidation::Average, 6, 30)],
        ..options(Derivation::Gauge)
    };
    let rule = rule.consolidated().unwrap();
    // Rows of a minute; the second begins at 1,700,000,040.
    let columns = |seconds: &[i64]| {
        let mut sent = Columns::default();
        for &at in seconds {
            sent.push(Timestamp::from_secs(1_699_999_980 + at), 4.0);
        }
        sent
    };
    // 30 seconds of the first minute are unknown: its row is known, the sample at 50 is in none.
    let sent = columns(&[0, 10, 20, 50, 60, 70]);
    let rows = vec![vec![(1_700_000_040, 4.0)]];
    let answer = answer_of(rows, None);
    let (tally_of, notes) = tally(&rule, &sent, &answer);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(
        (tally_of.verified, tally_of.unrepresented, tally_of.unconsolidated),
        (3, 2, 1),
        "{tally_of:?}"
    );
    // Ten of sixty seconds are known: the row is not.
    let sent = columns(&[0, 10, 60, 70]);
    let answer = answer_of(vec![Vec::new()], None);
    let (tally_of, notes) = tally(&rule, &sent, &answer);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!((tally_of.verified, tally_of.unrepresented), (0, 3), "{tally_of:?}");
}

#[test]
fn a_sample_that_left_every_archive_is_expired() {
    // The longest archive keeps 30 rows of 6 steps of 10 s: half an hour.
    let samples: Vec<_> = (0..400)
        .map(|tick| (1_700_000_000_000 + tick * 10_000, tick as f64))
        .collect();
    let (rule, sent, answer) = filled(Derivation::Gauge, &samples);
    let (tally, notes) = tally(&rule, &sent, &answer);
    assert!(notes.is_empty(), "{notes:?}");
    let kept = tally.verified + tally.unconsolidated + tally.unrepresented;
    assert_eq!(tally.expired + kept, 400);
    assert!((170..=187).contains(&kept), "{tally:?}");
}

#[test]
fn of_an_unfinished_step_what_the_store_did_not_take_is_missing() {
    let samples: Vec<_> = (0..36)
        .map(|tick| (1_700_000_000_000 + tick * 1_000, tick as f64))
        .collect();
    let (rule, mut sent, answer) = filled(Derivation::Gauge, &samples);
    let whole = tally(&rule, &sent, &answer).0;
    assert!(whole.missing == 0 && whole.unconsolidated > 0, "{whole:?}");
    // Acknowledged and thrown away, all within the step that is open.
    for tick in 36..39 {
        sent.push(Timestamp::from_millis(1_700_000_000_000 + tick * 1_000), 7.0);
    }
    let (short, notes) = tally(&rule, &sent, &answer);
    assert_eq!((short.missing, short.unconsolidated), (3, whole.unconsolidated));
    let at = Timestamp::from_millis(1_700_000_036_000);
    assert_eq!(notes[0], Difference::Missing { at, expected: 7.0 });
    // A store that need not say what it took last.
    let silent = StoreAnswer {
        admitted: None,
        ..answer
    };
    assert_eq!(tally(&rule, &sent, &silent).0.missing, 0);
}

const DERIVATIONS: [Derivation; 4] = [
    Derivation::Gauge,
    Derivation::Counter,
    Derivation::Derive,
    Derivation::Absolute,
];

/// Drops a few samples, some of them in a row, the first and the last; some of those in doubt
/// came all the same.
fn with_losses(seed: u64, derivation: Derivation) -> (Consolidated, Columns, UncertainSamples, StoreAnswer) {
    let is_lost = |index: usize| index == 0 || index == 299 || (index as u64 * 7 + seed) % 43 < 2;
    let samples = irregular(seed, derivation);
    let (rule, sent, answer) = filled_but(derivation, &samples, is_lost);
    let in_doubt = |index: usize| is_lost(index) || (index as u64 + seed).is_multiple_of(61);
    let uncertain = samples.iter().enumerate().filter(|(index, _)| in_doubt(*index));
    let uncertain = uncertain.map(|(_, &(at_ms, _))| (Timestamp::from_millis(at_ms), 1));
    (rule, sent, UncertainSamples::Of(uncertain.collect()), answer)
}

#[test]
fn rows_that_depend_on_lost_samples_are_not_compared_and_the_others_are() {
    for derivation in DERIVATIONS {
        for seed in 0..12 {
            let (rule, sent, uncertain, answer) = with_losses(seed, derivation);
            let mut notes = Vec::new();
            let tally = compare(&rule, &sent, &uncertain, &answer, &mut |note| notes.push(note));
            assert!(notes.is_empty(), "{derivation:?}, seed {seed}: {notes:?}");
            assert_eq!((tally.altered, tally.missing, tally.duplicated), (0, 0, 0));
            let others = tally.unconsolidated + tally.expired + tally.unrepresented;
            assert_eq!(tally.verified + tally.uncompared + others, sent.len() as u64);
            assert!(tally.verified > 25 && tally.uncompared > 14, "seed {seed}: {tally:?}");
            // Nobody says which were lost: the rows of a sound store differ from all that was sent.
            let blind = compare(&rule, &sent, &UncertainSamples::None, &answer, &mut |_| ());
            assert!(blind.altered + blind.missing > 0, "{blind:?}");
            let none = compare(&rule, &sent, &UncertainSamples::OfAny, &answer, &mut |_| ());
            assert_eq!((none.uncompared, none.verified), (sent.len() as u64, 0));
        }
    }
}

#[test]
fn a_row_that_can_be_compared_is_compared_beside_lost_samples() {
    let (rule, sent, uncertain, sound) = with_losses(3, Derivation::Gauge);
    let whole = compare(&rule, &sent, &uncertain, &sound, &mut |_| ());
    let (mut altered, mut missing) = (0, 0);
    for row in 0..sound.rows[0].len() {
        let mut wrong = sound.clone();
        wrong.rows[0][row].1 += 1.0;
        altered += u64::from(compare(&rule, &sent, &uncertain, &wrong, &mut |_| ()).altered > 0);
        let mut gone = sound.clone();
        gone.rows[0].remove(row);
        missing += u64::from(compare(&rule, &sent, &uncertain, &gone, &mut |_| ()).missing > 0);
    }
    // Of the finest archive at least every second row is compared.
    let rows = sound.rows[0].len() as u64;
    assert!(
        altered * 2 > rows && missing * 2 > rows,
        "{altered}, {missing} of {rows}: {whole:?}"
    );
}

/// A store that held the first samples already, and was then sent the others.
#[test]
fn of_a_series_that_is_continued_only_the_later_samples_are_judged() {
    for derivation in DERIVATIONS {
        for (seed, earlier) in [(1, 3), (2, 50), (3, 51), (4, 150), (5, 290)] {
            let (rule, all, answer) = filled(derivation, &irregular(seed, derivation));
            let answer = StoreAnswer {
                is_continued: true,
                ..answer
            };
            let mut sent = Columns::default();
            for (&at, &value) in all.times.iter().zip(&all.values).skip(earlier) {
                sent.push(at, value);
            }
            let (tally_of, notes) = tally(&rule, &sent, &answer);
            assert!(notes.is_empty(), "{derivation:?}, {seed}: {notes:?}");
            assert_eq!(
                (tally_of.missing, tally_of.altered, tally_of.duplicated),
                (0, 0, 0),
                "{tally_of:?}"
            );
            assert!(earlier > 200 || tally_of.verified > 0, "{tally_of:?}");
            // What is lost of the later samples is still found.
            let mut short = answer.clone();
            let last_s = short.rows[0].pop().map(|(end_s, _)| end_s);
            let first_s = sent.times[0].as_secs() + 20;
            if last_s.is_some_and(|end_s| end_s > first_s) {
                assert!(!tally(&rule, &sent, &short).1.is_empty(), "{derivation:?}, {seed}");
            }
            // A series to which this run sent nothing.
            let (none, notes) = tally(&rule, &Columns::default(), &answer);
            assert!(notes.is_empty() && none == Tally::default(), "{none:?}");
        }
    }
}
