//! Sides that run in rounds, for real: their order, their places, and why they end. No figure in
//! time is asserted.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;
use std::sync::Mutex;

use tsb_core::report::{ComparisonEnd, RoundsPlan};
use tsb_core::time::SECOND_NS;
use tsb_run::compare::{Side, compare};
use tsb_run::{Controls, Observer, Plan, RoundInfo, Transport, open};

/// A side with a fleet of 50 series for a fifth of a second.
fn side(name: &str, store: &str) -> Side {
    let mut plan = Plan {
        stores: vec![store.parse().unwrap()],
        transport: Transport::Inproc,
        duration_ns: Some(SECOND_NS / 5),
        calibrate: false,
        report_interval_ns: SECOND_NS / 100,
        ..Plan::default()
    };
    plan.workload.series = Some(50);
    plan.workload.interval_ns = Some(SECOND_NS / 20);
    Side {
        name: name.to_owned(),
        about: store.to_owned(),
        plan: plan.complete().unwrap(),
    }
}

fn rounds(rounds_max: u32) -> RoundsPlan {
    RoundsPlan {
        seed: 3,
        rounds_max,
        budget_ns: 3600 * SECOND_NS,
        enough: 0.0,
        rank_unequal: false,
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<(u32, usize, String)>>);

impl Observer for Heard {
    fn round(&self, round: &RoundInfo<'_>) {
        let heard = (round.round, round.run, round.side.to_owned());
        self.0.lock().unwrap().push(heard);
    }
}

#[test]
fn each_round_runs_every_side_twice_in_mirrored_order() {
    let sides = [side("A", "memory:"), side("B", "memory:")];
    let heard = Arc::new(Heard::default());
    let controls = Controls {
        observer: Arc::clone(&heard) as Arc<dyn Observer>,
        ..Controls::default()
    };
    let saved = Mutex::new(Vec::new());
    let save = |so_far: &tsb_core::report::SideComparison| saved.lock().unwrap().push(so_far.runs.len());
    let compared = compare(&sides, rounds(3), &controls, &open, &save).unwrap();
    assert!(compared.failed.is_none());
    let comparison = compared.comparison;
    assert_eq!(comparison.ended, ComparisonEnd::Rounds);
    // A busy machine may leave a run without a result.
    let is_of_machine = |said: &String| said.contains("GENERATOR-LIMITED") || said.contains("NOISY");
    let unequal = &comparison.unequal;
    assert!(unequal.iter().all(is_of_machine), "{unequal:?}");
    assert_eq!(comparison.is_ranked, unequal.is_empty());
    assert_eq!((comparison.rounds.len(), comparison.runs.len()), (3, 12));
    for round in &comparison.rounds {
        let order: Vec<usize> = round.runs.iter().map(|run| run.side).collect();
        assert!(order == [0, 1, 1, 0] || order == [1, 0, 0, 1], "{order:?}");
    }
    // Every run wrote the same samples, so what does not depend on time is equal.
    let verified = comparison.comparisons.iter().find(|ratio| ratio.metric == "verified");
    let verified = verified.map(|ratio| (ratio.ratio, ratio.outcome.as_str()));
    assert!(
        verified == Some((1.0, "not_seen")) || !unequal.is_empty(),
        "{verified:?}"
    );
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard.len(), 12);
    assert_eq!((heard[11].0, heard[11].1), (3, 4));
    assert_eq!(saved.lock().unwrap().iter().max(), Some(&12));
    let json = serde_json::to_string(&comparison).unwrap();
    let read: tsb_core::report::SideComparison = serde_json::from_str(&json).unwrap();
    assert_eq!(read.comparisons, comparison.comparisons);
}

#[cfg(feature = "sqlite")]
#[test]
fn places_are_removed_and_another_durability_is_not_ranked() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("m.db").display());
    let sides = [side("A", "memory:"), side("B", &store)];
    let compared = compare(&sides, rounds(2), &Controls::default(), &open, &|_| ()).unwrap();
    let comparison = compared.comparison;
    assert_eq!(comparison.rounds.len(), 2);
    let said = &comparison.unequal[0];
    assert!(
        said.starts_with("Their acknowledgements are not worth the same"),
        "{said}"
    );
    assert!(!comparison.is_ranked);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_budget_that_is_used_up_still_gives_two_rounds() {
    let plan = RoundsPlan {
        budget_ns: 1,
        ..rounds(9)
    };
    let sides = [side("A", "memory:")];
    let compared = compare(&sides, plan, &Controls::default(), &open, &|_| ()).unwrap();
    assert_eq!(compared.comparison.ended, ComparisonEnd::Budget);
    assert_eq!(
        (compared.comparison.rounds.len(), compared.comparison.runs.len()),
        (2, 2)
    );
    assert!(compared.comparison.sides[0].figures.contains_key("verified"));
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_runs() {
    let refused = |sides: &[Side], plan: RoundsPlan| {
        let compared = compare(sides, plan, &Controls::default(), &open, &|_| ());
        compared.map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(&[], rounds(3)).contains("0 sides"));
    assert!(refused(&[side("A", "memory:")], rounds(1)).contains("at least two"));
    let mut appends = side("A", "memory:");
    appends.plan.append = true;
    assert!(refused(&[appends], rounds(3)).contains("fresh place"));
}
