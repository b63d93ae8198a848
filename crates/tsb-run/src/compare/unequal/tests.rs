//! Which sentences are said of unequal sides, and in which order.

use super::super::example_run as run;
use super::*;

fn said(a: &Run, b: &Run) -> Vec<String> {
    let side = |name, run| SideRuns {
        name,
        runs: vec![run, run],
    };
    unequal(&[side("A", a), side("B", b)])
}

#[test]
fn equal_sides_have_nothing_to_be_said_first() {
    assert_eq!(said(&run(), &run()), Vec::<String>::new());
}

#[test]
fn work_durability_exactness_and_losses_are_said_in_this_order() {
    let mut other = run();
    other.fingerprint = "0123456789abcdef".to_owned();
    other.durability.level = tsb_core::Durability::Synced;
    other.target.exactness = "float32".to_owned();
    other.rate.asked_per_second = Some(1.0);
    other.ledger.counts.set(Counter::Lost, 3);
    other.verdict.status = Status::Invalid;
    other.verdict.reasons = vec!["3 samples are lost".to_owned()];
    let said = said(&run(), &other);
    let starts = [
        "They did not do the same work",
        "Their acknowledgements",
        "Their stores",
        "They were asked",
    ];
    for (sentence, start) in said.iter().zip(starts) {
        assert!(sentence.starts_with(start), "{said:?}");
    }
    assert!(said[1].contains("A volatile on 1 copy, B synced on 1 copy"), "{said:?}");
    assert!(said[4].starts_with("B lost 6 of "), "{said:?}");
    assert_eq!(
        said[5],
        "B has 2 of 2 runs without a result, the first INVALID: 3 samples are lost"
    );
}
