//! Replays the corpus of every fuzz target, and a few seeded mutations of it.
//!
//! The long run is `cargo run --release -p tsb-core --example fuzz -- all --minutes 10`.

#[path = "../examples/fuzz/mutate.rs"]
mod mutate;
#[path = "../examples/fuzz/targets.rs"]
mod targets;

use std::path::Path;

use mutate::Mutator;
use targets::TARGETS;

/// Mutations a target in the ordinary tests.
const ROUNDS: usize = 400;

#[test]
fn every_target_passes_its_corpus_and_mutations_of_it() {
    for target in TARGETS {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures/fuzz")
            .join(target.name);
        let corpus = mutate::corpus(&directory).unwrap();
        assert!(!corpus.is_empty(), "{} has a corpus", target.name);
        for input in &corpus {
            (target.check)(input);
        }
        let mut mutator = Mutator::new(7, corpus);
        for _ in 0..ROUNDS {
            let input = mutator.next_input();
            let smaller = mutator.smaller(&input);
            assert!(smaller.len() <= input.len());
            let shown = String::from_utf8_lossy(&input).into_owned();
            let passes = std::panic::catch_unwind(|| (target.check)(&input)).is_ok();
            assert!(passes, "{} fails on {shown:?}", target.name);
        }
    }
}
