//! The rules of slots, on samples whose rows are worked out by hand.

use super::*;

fn rule(archives: &[(i64, i64)], known_permille_min: u16) -> SlotArchives {
    let mut rule = SlotArchives {
        archives: [None; 6],
        consolidation: Consolidation::Average,
        known_permille_min,
    };
    for (place, &(slot_s, slots)) in rule.archives.iter_mut().zip(archives) {
        *place = Some(SlotArchive { slot_s, slots });
    }
    rule
}

fn columns(samples: &[(i64, f64)]) -> Columns {
    let mut columns = Columns::default();
    for &(second, value) in samples {
        columns.push(Timestamp::from_secs(second), value);
    }
    columns
}

/// What the archives return, with the first second that each keeps.
fn answer(archives: &[(&[(i64, f64)], i64)]) -> SlotAnswer {
    SlotAnswer {
        archives: archives
            .iter()
            .map(|(slots, _)| slots.iter().copied().collect())
            .collect(),
        keeps_from_s: archives.iter().map(|(_, from_s)| *from_s).collect(),
        since_s: None,
    }
}

fn check(
    rule: &SlotArchives,
    sent: &[(i64, f64)],
    may_be_absent: bool,
    answer: &SlotAnswer,
) -> (Tally, Vec<Difference>) {
    let mut notes = Vec::new();
    let tally = compare(rule, &columns(sent), may_be_absent, answer, &mut |difference| {
        notes.push(difference);
    });
    (tally, notes)
}

#[test]
fn the_last_sample_of_a_slot_is_kept_and_stamped_with_its_start() {
    let rule = rule(&[(10, 100)], 500);
    let sent = [(1_003, 1.0), (1_007, 2.0), (1_012, 3.0), (1_025, 4.0)];
    let found = answer(&[(&[(1_000, 2.0), (1_010, 9.0)], 0)]);
    let (tally, notes) = check(&rule, &sent, false, &found);
    let expected = Tally {
        verified: 1,
        superseded: 1,
        altered: 1,
        missing: 1,
        ..Tally::default()
    };
    assert_eq!(tally, expected);
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[test]
fn a_later_sample_that_never_came_leaves_the_earlier_one_of_its_slot() {
    let rule = rule(&[(10, 100)], 500);
    let sent = [(1_003, 1.0), (1_005, 2.0), (1_007, 3.0)];
    let found = answer(&[(&[(1_000, 2.0)], 0)]);
    let (tally, notes) = check(&rule, &sent, true, &found);
    let expected = Tally {
        verified: 1,
        superseded: 1,
        missing: 1,
        ..Tally::default()
    };
    assert_eq!(tally, expected);
    let at = Timestamp::from_secs(1_007);
    assert_eq!(notes, [Difference::Missing { at, expected: 3.0 }]);
    // Where every sample was acknowledged, the slot has a wrong value.
    assert_eq!(check(&rule, &sent, false, &found).0.altered, 1);
}

#[test]
fn a_sample_that_came_after_a_later_one_of_its_slot_may_be_superseded() {
    let rule = rule(&[(10, 100)], 500);
    let sent = [(1_003, 1.0), (1_007, 2.0), (1_005, 3.0)];
    let expected = Tally {
        verified: 1,
        superseded: 2,
        ..Tally::default()
    };
    for kept in [2.0, 3.0] {
        let found = answer(&[(&[(1_000, kept)], 0)]);
        for may_be_absent in [false, true] {
            assert_eq!(check(&rule, &sent, may_be_absent, &found), (expected, Vec::new()));
        }
    }
    let found = answer(&[(&[(1_000, 1.0)], 0)]);
    assert_eq!(check(&rule, &sent, false, &found).0.altered, 1);
    // Neither of the others came.
    assert_eq!(check(&rule, &sent, true, &found).0.missing, 2);
}

#[test]
fn a_coarser_slot_follows_from_the_finer_ones_that_are_known() {
    let rule = rule(&[(1, 100), (4, 100)], 500);
    let sent: Vec<(i64, f64)> = (1_000..1_008).map(|second| (second, second as f64)).collect();
    let fine: Vec<(i64, f64)> = sent
        .iter()
        .copied()
        .filter(|(second, _)| ![1_001, 1_005, 1_006, 1_007].contains(second))
        .collect();
    let mean = (1_000.0 + 1_002.0 + 1_003.0) / 3.0;
    // Of the second coarse slot a quarter is known, which is too little.
    let right = answer(&[(&fine, 0), (&[(1_000, mean)], 0)]);
    let (tally, _) = check(&rule, &sent, true, &right);
    assert_eq!((tally.verified, tally.missing, tally.altered), (4, 4, 0));
    let wrong = answer(&[(&fine, 0), (&[(1_000, mean + 0.1), (1_004, 1_004.0)], 0)]);
    let (tally, notes) = check(&rule, &sent, true, &wrong);
    assert_eq!((tally.verified, tally.missing, tally.altered), (0, 4, 4));
    assert!(notes.contains(&Difference::Invented {
        at: Timestamp::from_secs(1_004),
        found: 1_004.0
    }));
    // One that is missing is as wrong as one with another value.
    let absent = answer(&[(&fine, 0), (&[], 0)]);
    assert_eq!(check(&rule, &sent, true, &absent).0.altered, 3);
}

#[test]
fn what_the_finest_archive_no_longer_keeps_is_compared_in_a_coarser_one() {
    let rule = rule(&[(1, 4), (4, 2)], 500);
    let sent: Vec<(i64, f64)> = (1_000..1_012).map(|second| (second, 1.0)).collect();
    let fine: Vec<(i64, f64)> = sent[8..].to_vec();
    let found = answer(&[(&fine, 1_008), (&[(1_004, 1.0), (1_008, 1.0)], 1_004)]);
    let (tally, notes) = check(&rule, &sent, false, &found);
    assert_eq!((tally.verified, tally.expired), (8, 4), "{notes:?}");
    // If nothing was acknowledged, which samples the old slot was made of cannot be known.
    let (tally, _) = check(&rule, &sent, true, &found);
    assert_eq!((tally.verified, tally.uncompared, tally.expired), (4, 4, 4));
}

#[test]
fn slots_of_earlier_runs_are_left_out_and_others_are_named() {
    let rule = rule(&[(10, 100)], 500);
    let mut found = answer(&[(&[(980, 5.0), (990, 6.0), (1_000, 1.0)], 0)]);
    found.since_s = Some(1_000);
    assert_eq!(check(&rule, &[(1_003, 1.0)], true, &found).0.duplicated, 0);
    found.since_s = None;
    let (tally, notes) = check(&rule, &[(1_003, 1.0)], true, &found);
    assert_eq!((tally.verified, tally.duplicated, notes.len()), (1, 2, 2));
}

#[test]
fn consolidation_is_that_of_the_rule() {
    let known = [3.0, 1.0, 2.0];
    let of = |consolidation| consolidate(consolidation, &known);
    assert_eq!(
        [Consolidation::Average, Consolidation::Sum, Consolidation::Count].map(of),
        [2.0, 6.0, 3.0]
    );
    assert_eq!([Consolidation::Min, Consolidation::Max].map(of), [1.0, 3.0]);
    assert_eq!([Consolidation::First, Consolidation::Last].map(of), [3.0, 2.0]);
}
