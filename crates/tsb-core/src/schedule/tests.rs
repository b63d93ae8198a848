//! Tests of the schedule: no drift, no float, one grammar.

use proptest::prelude::*;

use super::*;
use crate::time::SECOND_NS;

fn schedule(text: &str) -> Schedule {
    text.parse().unwrap()
}

#[test]
fn a_constant_rate_does_not_drift_over_two_to_the_forty_operations() {
    // 54,000 a second does not divide a second: a step that is added up would drift.
    let constant = schedule("54000");
    for exponent in 0..=40 {
        let n = 1u64 << exponent;
        let exact = (u128::from(n) * u128::from(SECOND_NS)).div_ceil(54_000) as u64;
        assert_eq!(constant.due(n), Some(exact));
    }
    let third = schedule("1/3ns");
    assert_eq!(third.due(1 << 40), Some(3 << 40));
    // Whole seconds fall on whole seconds, for 34 years.
    for second in [1, 60, 86_400, 20_000_000] {
        assert_eq!(constant.due(54_000 * second), Some(second * SECOND_NS));
    }
}

#[test]
fn a_ramp_reaches_each_area_at_the_first_nanosecond() {
    let ramp = schedule("ramp:1000..54000/60s");
    // The mean rate is 27,500: the ramp holds 1,650,000 operations.
    assert_eq!(ramp.due(1_650_000), Some(60 * SECOND_NS));
    assert_eq!(ramp.due(1_650_054), Some(60 * SECOND_NS + 1_000_000));
    assert_eq!(ramp.due(0), Some(0));
    let area = |t: u128| 2 * 60_000_000_000 * 1_000 * t + 53_000 * t * t;
    for n in [1u64, 2, 999, 1_000, 777_777, 1_649_999] {
        let target = 2 * 60_000_000_000 * u128::from(SECOND_NS) * u128::from(n);
        let due = u128::from(ramp.due(n).unwrap());
        assert!(area(due) >= target && area(due - 1) < target, "{n}");
    }
    let down = schedule("ramp:54000..0/60s");
    assert_eq!(down.due(1_620_000), Some(60 * SECOND_NS));
    assert_eq!(down.due(1_620_001), None);
}

#[test]
fn steps_pauses_bursts_and_records() {
    let steps = schedule("steps:1000*1s,0*2s,10*1s");
    assert_eq!(steps.due(1_000), Some(SECOND_NS));
    assert_eq!(steps.due(1_001), Some(3 * SECOND_NS + SECOND_NS / 10));
    assert_eq!(steps.due(1_100), Some(13 * SECOND_NS));
    // A quiet second, a rise to four times the rate, and the top of it.
    let morning = schedule("steps:1000*1s,1000..4000*2s,4000*1s");
    assert_eq!(morning.due(1_000), Some(SECOND_NS));
    assert_eq!(morning.due(6_000), Some(3 * SECOND_NS));
    assert_eq!(morning.due(10_000), Some(4 * SECOND_NS));
    let burst = schedule("burst:100/250ms");
    assert_eq!((burst.due(99), burst.due(100)), (Some(0), Some(250_000_000)));
    let once = schedule("recorded:0s,1ms,1.5ms");
    assert_eq!(once.cursor().collect::<Vec<_>>(), [0, 1_000_000, 1_500_000]);
    let again = schedule("recorded:0s,1ms/2ms");
    assert_eq!(again.due((1 << 40) + 1), Some((1 << 39) * 2_000_000 + 1_000_000));
    assert!(!schedule("max").is_open_loop());
    assert_eq!(schedule("max").due(0), None);
}

#[test]
fn poisson_is_seeded_and_keeps_its_rate() {
    let poisson = schedule("poisson:54000,seed=3");
    let due: Vec<u64> = poisson.cursor().take(540_000).collect();
    assert!(due.is_sorted());
    // 10 s of arrivals; the standard error is 10 s / sqrt(540,000) = 13.6 ms.
    let last = *due.last().unwrap() as f64 / 1e9;
    assert!((last - 10.0).abs() < 0.05, "{last}");
    assert_eq!(poisson.due(1_000), Some(due[1_000]));
    let other: Vec<u64> = schedule("poisson:54000,seed=4").cursor().take(100).collect();
    assert_ne!(due[..100], other);
}

#[test]
fn an_error_names_the_place() {
    let check = |text: &str, column: usize, what: &str| {
        let error = text.parse::<Schedule>().unwrap_err();
        assert_eq!(error.column, column, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    check("constant:fast", 10, "expected a rate");
    check("ramp:1000..54000", 12, "FROM..TO/DURATION");
    check("ramp:1000..x/60s", 12, "expected a rate");
    check("ramp:1000..2000/60", 17, "expected a duration");
    check("steps:10*1s,20", 13, "RATE*DURATION");
    check("poisson:5,sed=1", 11, "seed=NUMBER");
    check("burst:0/1s", 7, "may be 0");
    check("recorded:2ms,1ms", 10, "due time 1");
    check("uniform:5", 1, "constant:");
    check("0", 1, "rate of 0");
    check("\u{e9}", 1, "expected max");
    check("constant:99999999999999999999", 10, "expected a rate");
    check("steps:1*1.0000000001s", 9, "expected a duration");
}

#[test]
fn a_schedule_is_serialized_as_its_text() {
    let ramp = schedule("ramp:0.5..54000/1.5s");
    let json = serde_json::to_string(&ramp).unwrap();
    assert_eq!(json, r#""ramp:1/2s..54000/1500ms""#);
    assert_eq!(serde_json::from_str::<Schedule>(&json).unwrap(), ramp);
    assert!(serde_json::from_str::<Schedule>(r#""ramp:1""#).is_err());
}

#[test]
fn samples_per_second_become_operations_per_second_exactly() {
    // 54,000 samples/s in operations of 37 samples.
    let scaled = schedule("54000").scaled(1, 37).unwrap().unwrap();
    assert_eq!(scaled.due(54_000), Some(37 * SECOND_NS));
    assert_eq!(scaled.to_string().parse(), Ok(scaled));
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let group = (1u64..6, 0u64..60, 0u64..4, 0u64..12, 1u32..9).prop_map(|(interval, phase, first, life, samples)| {
        let interval_ns = interval * 10;
        Group {
            interval_ns,
            phase_ns: phase % interval_ns,
            first_tick: first,
            end_tick: if life > 9 { u64::MAX } else { first + life },
            samples,
        }
    });
    prop::collection::vec(group, 1..12)
}

/// Every slot before `end`, the naive way.
fn naive(groups: &[Group], end: u64) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for tick in group.first_tick..group.end_tick.min(1_000) {
            let offset_ns = group.phase_ns + tick * group.interval_ns;
            if offset_ns < end {
                let group = index as u32;
                slots.push(Slot { group, tick, offset_ns });
            }
        }
    }
    slots.sort_unstable_by_key(|slot| (slot.offset_ns, slot.group));
    slots
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn text_never_panics_and_what_it_says_it_says_again(text in "\\PC{0,24}|(ramp|steps|burst|constant|poisson|recorded):[0-9a-z./*,=]{0,24}") {
        if let Ok(parsed) = text.parse::<Schedule>() {
            prop_assert_eq!(parsed.to_string().parse(), Ok(parsed.clone()));
            let mut cursor = parsed.cursor();
            prop_assert_eq!(cursor.next(), parsed.due(0));
        }
    }

    #[test]
    fn due_times_never_go_back(from in 0u64..2_000_000, to in 0u64..2_000_000, length in 1u64..1 << 50, n in 0u64..1 << 40) {
        prop_assume!(from + to > 0);
        let rates = (Rate::per_second(from).unwrap(), Rate::per_second(to).unwrap());
        let curve = Curve::ramp(rates.0, rates.1, length).unwrap();
        if let (Some(a), Some(b)) = (curve.due(n), curve.due(n + 1)) {
            prop_assert!(a <= b);
        }
    }

    #[test]
    fn the_roster_gives_every_tick_once_in_order(groups in groups(), end in 0u64..2_000) {
        let roster = Roster::new(groups.clone()).unwrap();
        let expected = naive(&groups, end);
        let got: Vec<Slot> = roster.walk().take_while(|slot| slot.offset_ns < end).collect();
        prop_assert_eq!(&got, &expected);
        // Workers together do what one does, each in the same order.
        let mut parts = Vec::new();
        for range in roster.split(3) {
            let part: Vec<Slot> = roster.walk_range(range.clone()).take_while(|slot| slot.offset_ns < end).collect();
            prop_assert!(part.iter().all(|slot| range.contains(&slot.group)));
            parts.extend(part);
        }
        parts.sort_unstable_by_key(|slot| (slot.offset_ns, slot.group));
        prop_assert_eq!(&parts, &expected);
    }

    #[test]
    fn a_frontier_says_exactly_which_ticks_came_before(groups in groups(), taken in 0usize..60) {
        let roster = Roster::new(groups.clone()).unwrap();
        let slots: Vec<Slot> = roster.walk().take(taken).collect();
        let frontier = slots.last().map(|&slot| Frontier::from(slot));
        for group in 0..groups.len() as u32 {
            let ticks: Vec<u64> = slots.iter().filter(|slot| slot.group == group).map(|slot| slot.tick).collect();
            let range = roster.ticks_through(group, frontier);
            prop_assert_eq!(ticks, range.collect::<Vec<u64>>());
        }
    }

    #[test]
    fn a_shape_gives_the_times_and_the_roster_the_order(groups in groups(), seed in any::<u64>()) {
        let shape = Schedule::Poisson { rate: Rate::per_second(1_000_000).unwrap(), seed };
        let timetable = Timetable {
            roster: Roster::new(groups.clone()).unwrap(),
            pace: Pace::Shape(shape.clone()),
            end_ns: Some(100_000),
            fleet_end_ns: None,
        };
        let mut got: Vec<Planned> = timetable.roster.split(2).into_iter().flat_map(|range| timetable.agenda(range)).collect();
        got.sort_unstable_by_key(|planned| (planned.slot.offset_ns, planned.slot.group));
        let dues = shape.cursor().take_while(|&due| due < 100_000);
        let expected = timetable.roster.walk().zip(dues).map(|(slot, due)| Planned { slot, due_ns: Some(due) });
        prop_assert_eq!(got, expected.collect::<Vec<_>>());
    }

    #[test]
    fn parts_have_together_the_due_times_of_the_whole(groups in groups(), cut in 0usize..12, seed in any::<u64>()) {
        let cut = cut % groups.len();
        let roster = Roster::new(groups.clone()).unwrap();
        let shapes = [Schedule::Poisson { rate: Rate::per_second(1_000_000).unwrap(), seed }, schedule("ramp:0..40000000/10us")];
        for shape in shapes {
            let timetable = |roster: Roster| Timetable { roster, pace: Pace::Shape(shape.clone()), end_ns: Some(50_000), fleet_end_ns: None };
            let whole: Vec<Planned> = timetable(roster.clone()).agenda(0..u32::MAX).collect();
            let mut both = Vec::new();
            for range in [0..cut, cut..groups.len()] {
                let own = Roster::new(groups[range.clone()].to_vec()).unwrap();
                let part = timetable(own.part_of(roster.clone(), range.start as u32));
                both.extend(part.agenda(0..u32::MAX).map(|mut planned| {
                    planned.slot.group += range.start as u32;
                    planned
                }));
            }
            both.sort_unstable_by_key(|planned| (planned.slot.offset_ns, planned.slot.group));
            prop_assert_eq!(&both, &whole, "{}", shape);
        }
    }
}

#[test]
fn an_operation_is_due_when_its_first_sample_is() {
    let sizes = [54, 7, 1, 0];
    let groups = sizes.map(|samples| Group::new(SECOND_NS, 0, samples)).to_vec();
    let due = |text: &str, take: usize| {
        let timetable = Timetable {
            roster: Roster::new(groups.clone()).unwrap(),
            pace: Pace::Shape(
                schedule(text)
                    .of_operations(&Roster::new(groups.clone()).unwrap())
                    .unwrap(),
            ),
            end_ns: None,
            fleet_end_ns: None,
        };
        let agenda = timetable.agenda(0..4).take(take);
        agenda.map(|planned| planned.due_ns.unwrap()).collect::<Vec<u64>>()
    };
    // An operation without samples takes the turn of one.
    assert_eq!(
        due("1000", 6),
        [0, 54, 61, 62, 63, 117].map(|millis| millis * 1_000_000)
    );
    assert_eq!(due("burst:62/1s", 5), [0, 0, 0, SECOND_NS, SECOND_NS]);
    assert_eq!(due("recorded:0s,1ms,5ms", 9), [0, 1_000_000, 5_000_000]);
    // 62 samples come in 4 operations.
    let (of_samples, of_operations) = (due("poisson:62000,seed=3", 50), schedule("poisson:4000,seed=3"));
    assert_eq!(of_samples, of_operations.cursor().take(50).collect::<Vec<_>>());
    // Two workers together do what one does.
    let timetable = Timetable {
        roster: Roster::new(groups.clone()).unwrap(),
        pace: Pace::Shape(schedule("1000")),
        end_ns: Some(SECOND_NS),
        fleet_end_ns: None,
    };
    let mut parts: Vec<_> = [0..1, 1..4]
        .into_iter()
        .flat_map(|range| timetable.agenda(range))
        .collect();
    parts.sort_unstable_by_key(|planned| planned.due_ns);
    assert_eq!(parts, timetable.agenda(0..4).collect::<Vec<_>>());
}

#[test]
fn how_long_a_timetable_takes_is_known_before_it_ends() {
    let timetable = |pace, end_ns, fleet_end_ns| Timetable {
        roster: Roster::new(vec![Group::new(SECOND_NS, 0, 1)]).unwrap(),
        pace,
        end_ns,
        fleet_end_ns,
    };
    let double = Pace::Fleet(Speed::new(2, 1).unwrap());
    let second = Some(SECOND_NS);
    assert_eq!(
        timetable(double.clone(), None, second).planned_ns(),
        Some(SECOND_NS / 2)
    );
    assert_eq!(timetable(double.clone(), Some(7), second).planned_ns(), Some(7));
    assert_eq!(timetable(double, None, None).planned_ns(), None);
    assert_eq!(timetable(Pace::Shape(schedule("max")), None, second).planned_ns(), None);
}

#[test]
fn speed_is_exact_and_rates_are_summed_exactly() {
    let second = Group::new(SECOND_NS, 0, 10);
    let minute = Group::new(60 * SECOND_NS, 5, 30);
    let roster = Roster::new(vec![second, second, minute]).unwrap();
    // 20 + 1/2 samples a second; 2 + 1/60 operations.
    assert_eq!(roster.rate_at(0).unwrap(), "20.5".parse().unwrap());
    assert_eq!(roster.operations_at(0).unwrap(), "121/60s".parse().unwrap());
    let asked = Rate::per_second(54_000).unwrap();
    let speed = Speed::from_rates(asked, roster.rate_at(0).unwrap()).unwrap();
    assert_eq!(speed.wall_ns(54_000 * SECOND_NS), 20_500_000_000);
    assert_eq!(speed.fleet_ns(20_500_000_000), 54_000 * SECOND_NS);
    assert_eq!(Speed::NATURAL.wall_ns(u64::MAX), u64::MAX);
    // On both sides of a product of 64 bits.
    let speed = Speed::new(9, 7).unwrap();
    for fleet_ns in [0, 1, u64::MAX / 7, u64::MAX / 7 + 1, u64::MAX] {
        let expected = (u128::from(fleet_ns) * 7).div_ceil(9) as u64;
        assert_eq!(speed.wall_ns(fleet_ns), expected, "{fleet_ns}");
    }
    assert!(Speed::from_rates(Rate::ZERO, asked).is_err());
}

#[test]
fn bad_rosters_are_refused_by_name() {
    let late = Group::new(10, 10, 1);
    let error = Roster::new(vec![Group::new(10, 9, 1), late]).unwrap_err();
    assert_eq!(error.to_string(), "group 1: the phase is not below the interval");
    let many = (1..=65).map(|interval| Group::new(interval, 0, 1)).collect();
    assert!(matches!(
        Roster::new(many),
        Err(ScheduleError::Intervals { intervals: 65, .. })
    ));
    let empty = Roster::new(Vec::new()).unwrap();
    assert_eq!(empty.walk().next(), None);
    assert_eq!(empty.split(4).len(), 1);
}
