//! Each rule from both sides of its threshold.

use super::*;

fn sound() -> Evidence {
    Evidence {
        due: 540_000,
        sent: 540_000,
        received: 540_000,
        accepted: 540_000,
        compared: 540_000,
        verified: 540_000,
        asked_per_second: Some(54_000.0),
        held_per_second: 54_000.0,
        ceiling_per_second: Some(2e7),
        own_lag_p99_ns: Some(2_000),
        interval_ns: Some(1_000_000_000),
        noise: Some(noise(0.001, 0.002, 0.0)),
        ..Evidence::default()
    }
}

fn noise(stolen: f64, foreign: f64, late: f64) -> Noise {
    Noise {
        stolen_share: Some(stolen),
        foreign_share: Some(foreign),
        own_wait_share: Some(0.9),
        late_share: late,
        late_max_ms: late * 1e4,
    }
}

fn undelivered(samples: u64) -> Vec<Undelivered> {
    vec![
        Undelivered {
            samples,
            place: "in a full receive buffer".to_owned(),
        },
        Undelivered {
            samples: 0,
            place: "elsewhere".to_owned(),
        },
    ]
}

#[test]
fn a_sound_run_is_valid_and_says_why() {
    let verdict = sound().verdict();
    assert_eq!(verdict.status, Status::Valid);
    assert_eq!(
        verdict.reasons,
        [
            "the ledger balances, 540000 samples verified, 1.0000 of the asked rate held, 0.0027 of the generator's ceiling used"
        ]
    );
    let doubtful = Evidence {
        lost_at_most: Some(7),
        ..sound()
    };
    let verdict = doubtful.verdict();
    assert_eq!(verdict.status, Status::Valid);
    assert!(
        verdict.reasons[0].contains("; 7 may have been lost by the store or on the way, and it is unknown which"),
        "{:?}",
        verdict.reasons
    );
    let closed = Evidence {
        asked_per_second: None,
        held_per_second: 5e6,
        ..sound()
    };
    assert_eq!(
        closed.verdict().reasons,
        ["the ledger balances, 540000 samples verified, 0.2500 of the generator's ceiling held"]
    );
}

#[test]
fn every_figure_stands_beside_its_threshold_whether_it_is_crossed_or_not() {
    let measured: Vec<String> = sound().verdict().measured.iter().map(ToString::to_string).collect();
    assert_eq!(
        measured,
        [
            "compared, of the accepted samples 1.000 (at least 0.99)",
            "asked, of the generator's ceiling 0.003 (at most 0.9)",
            "p99 of the generator's own lag 0.0 ms (at most 100 ms)",
            "lost between emitter and store, of the samples sent 0.000 (at most 0.01)",
            "held, of the asked rate 1.000 (at least 0.99)",
            "refused, of the samples that the store received 0.000 (at most 0.01)",
            "CPU taken from the run by others, of the time 0.003 (at most 0.02)",
            "the process stood still, of the time 0.000 (at most 0.02)",
        ]
    );
}

fn kept(phases: &[(&str, f64)]) -> Vec<PhaseKept> {
    let phases = phases.iter().map(|&(name, kept_share)| PhaseKept {
        name: name.to_owned(),
        kept_share,
    });
    phases.collect()
}

type Change = fn(&mut Evidence);

/// What is changed so that the threshold is just kept, so that it is just crossed, and the
/// status then.
const CASES: &[(&str, Change, Change, Status)] = &[
    (
        "compared",
        |run| run.compared = 534_600,
        |run| run.compared = 534_599,
        Status::Unverified,
    ),
    (
        "perhaps lost",
        |run| run.lost_at_most = Some(5_400),
        |run| run.lost_at_most = Some(5_401),
        Status::Unverified,
    ),
    ("nothing due", |_| (), |run| run.accepted = 0, Status::Unverified),
    (
        "ceiling at the highest rate",
        |run| (run.ceiling_per_second, run.peak_asked_per_second) = (Some(100_000.0), Some(90_000.0)),
        |run| (run.ceiling_per_second, run.peak_asked_per_second) = (Some(100_000.0), Some(90_001.0)),
        Status::GeneratorLimited,
    ),
    (
        "held at the highest rate",
        |run| (run.peak_asked_per_second, run.peak_kept_share) = (Some(60_000.0), Some(0.99)),
        |run| (run.peak_asked_per_second, run.peak_kept_share) = (Some(60_000.0), Some(0.989_9)),
        Status::StoreLimited,
    ),
    (
        "held by the end of a phase",
        |run| run.phases = kept(&[("load", 1.0), ("recovery", 0.99)]),
        |run| run.phases = kept(&[("load", 1.0), ("recovery", 0.989_9)]),
        Status::StoreLimited,
    ),
    (
        "ceiling",
        |run| run.ceiling_per_second = Some(60_000.0),
        |run| run.ceiling_per_second = Some(59_999.0),
        Status::GeneratorLimited,
    ),
    (
        "own lag",
        |run| run.own_lag_p99_ns = Some(100_000_000),
        |run| run.own_lag_p99_ns = Some(100_000_001),
        Status::GeneratorLimited,
    ),
    (
        "own lag at a long interval",
        |run| (run.own_lag_p99_ns, run.interval_ns) = (Some(100_000_000), Some(60_000_000_000)),
        |run| (run.own_lag_p99_ns, run.interval_ns) = (Some(100_000_001), Some(60_000_000_000)),
        Status::GeneratorLimited,
    ),
    (
        "own lag at a short interval",
        |run| (run.own_lag_p99_ns, run.interval_ns) = (Some(1_000_000), Some(10_000_000)),
        |run| (run.own_lag_p99_ns, run.interval_ns) = (Some(1_000_001), Some(10_000_000)),
        Status::GeneratorLimited,
    ),
    (
        "undelivered",
        |run| run.undelivered = undelivered(5_400),
        |run| run.undelivered = undelivered(5_401),
        Status::TransportLimited,
    ),
    (
        "held",
        |run| run.held_per_second = 53_460.0,
        |run| run.held_per_second = 53_459.9,
        Status::StoreLimited,
    ),
    (
        "refused",
        |run| run.refused = 5_400,
        |run| run.refused = 5_401,
        Status::StoreLimited,
    ),
    (
        "stolen and used",
        |run| run.noise = Some(noise(0.01, 0.01, 0.0)),
        |run| run.noise = Some(noise(0.01, 0.010_1, 0.0)),
        Status::Noisy,
    ),
    (
        "used in a closed loop",
        |run| (run.asked_per_second, run.noise) = (None, Some(noise(0.0, 0.02, 0.0))),
        |run| (run.asked_per_second, run.noise) = (None, Some(noise(0.0, 0.020_01, 0.0))),
        Status::Noisy,
    ),
    (
        "stood still",
        |run| run.noise = Some(noise(0.0, 0.0, 0.02)),
        |run| run.noise = Some(noise(0.0, 0.0, 0.020_000_1)),
        Status::Noisy,
    ),
];

#[test]
fn each_rule_is_decided_at_its_threshold() {
    for &(name, keep, cross, status) in CASES {
        let (mut kept, mut crossed) = (sound(), sound());
        keep(&mut kept);
        cross(&mut crossed);
        assert_eq!(kept.verdict().status, Status::Valid, "{name}: {:?}", kept.verdict());
        let verdict = crossed.verdict();
        assert_eq!(
            (verdict.status, verdict.reasons.len()),
            (status, 1),
            "{name}: {verdict:?}"
        );
    }
}

#[test]
fn the_first_word_that_applies_is_the_status_and_all_of_them_are_reasons() {
    let noisy = Evidence {
        noise: Some(noise(0.0, 0.05, 0.0)),
        ..sound()
    };
    let slow_store = Evidence {
        held_per_second: 53_000.0,
        ..noisy.clone()
    };
    let losing_wire = Evidence {
        undelivered: undelivered(100_000),
        ..slow_store.clone()
    };
    let starved = Evidence {
        own_lag_p99_ns: Some(200_000_000),
        ..losing_wire.clone()
    };
    let unread = Evidence {
        unread: Some("told not to".to_owned()),
        ..starved.clone()
    };
    let broken = Evidence {
        lost: 1,
        ..unread.clone()
    };
    let order = [broken, unread, starved, losing_wire, slow_store, noisy, sound()];
    for (index, (evidence, status)) in order.iter().zip(Status::ALL).enumerate() {
        let verdict = evidence.verdict();
        assert_eq!(verdict.status, status, "{verdict:?}");
        assert_eq!(verdict.reasons.len(), (6 - index).max(1), "{verdict:?}");
    }
}

#[test]
fn a_store_is_not_blamed_for_the_time_in_which_the_process_stood_still() {
    let paused = |held: f64| Evidence {
        held_per_second: 54_000.0 * held,
        noise: Some(noise(0.0, 0.0, 0.5)),
        ..sound()
    };
    assert_eq!(paused(0.5).verdict().status, Status::Noisy);
    assert_eq!(paused(0.4).verdict().status, Status::StoreLimited);
}

#[test]
fn each_kind_of_damage_alone_makes_a_run_invalid() {
    let damages = [
        Evidence { lost: 1, ..sound() },
        Evidence { altered: 1, ..sound() },
        Evidence {
            duplicated: 1,
            ..sound()
        },
        Evidence {
            violations: vec!["due 2 is not shed + sent = 1".to_owned()],
            ..sound()
        },
    ];
    for damage in damages {
        let verdict = damage.verdict();
        assert_eq!(verdict.status, Status::Invalid, "{damage:?}");
        assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
    }
}

#[test]
fn a_run_that_verified_nothing_names_the_step_at_which_it_ended() {
    let nothing = Evidence {
        accepted: 0,
        compared: 0,
        verified: 0,
        ..Evidence::default()
    };
    for (due, sent, received, words) in [
        (0, 0, 0, "nothing was due"),
        (9, 0, 0, "none of the 9 samples due was sent"),
        (9, 8, 0, "none of the 8 samples sent reached the store"),
        (9, 8, 7, "the store refused 7 of the 7 samples"),
    ] {
        let verdict = Evidence {
            due,
            sent,
            received,
            refused: received,
            ..nothing.clone()
        }
        .verdict();
        assert_eq!(verdict.status, Status::Unverified);
        assert!(verdict.reasons[0].contains(words), "{:?}", verdict.reasons);
    }
}

#[test]
fn uncompared_samples_are_named_with_their_count() {
    let waiting = Evidence {
        compared: 100_000,
        uncompared: vec![Uncompared {
            samples: 440_000,
            why: "wait for the end of their step".to_owned(),
        }],
        ..sound()
    };
    assert_eq!(
        waiting.verdict().reasons,
        [
            "100000 of 540000 accepted samples could be compared with what was sent, 0.185 (at least 0.99): \
             440000 wait for the end of their step"
        ]
    );
}

#[test]
fn where_a_sample_was_lost_is_in_the_reason() {
    let verdict = Evidence {
        undelivered: undelivered(500_000),
        ..sound()
    }
    .verdict();
    assert_eq!(
        verdict.reasons,
        [
            "500000 of 540000 samples sent did not reach the store, 0.926 (at most 0.01): 500000 in a full receive buffer"
        ]
    );
}

#[test]
fn a_figure_shows_on_which_side_of_its_threshold_it_is() {
    for (value, limit, text) in [
        (0.5, 0.99, "0.500"),
        (0.989_96, 0.99, "0.98996"),
        (0.989_999_999, 0.99, "0.989999999"),
        (0.99, 0.99, "0.990"),
        (0.990_04, 0.99, "0.99004"),
        (0.020_000_1, 0.02, "0.0200001"),
        (0.02, 0.02, "0.020"),
        (0.1 + 0.2, 0.3, "0.30000000000000004"),
        (1.0, 0.99, "1.000"),
    ] {
        assert_eq!(beside(value, limit, 3), text);
    }
    let held = Evidence {
        held_per_second: 53_458.0,
        ..sound()
    };
    assert_eq!(
        held.verdict().reasons,
        ["held 53458/s of 54000/s asked: 0.98996 (at least 0.99)"]
    );
}

#[test]
fn the_json_has_the_words_of_the_design() {
    for status in Status::ALL {
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
    }
    let old: Verdict = serde_json::from_str(r#"{"status":"VALID","reasons":["x"]}"#).unwrap();
    assert_eq!((old.status, old.measured.len()), (Status::Valid, 0));
}
