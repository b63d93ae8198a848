//! Fuzzes the replay of the write cache's journals from a seed, for a given number of rounds.
//!
//! `cargo run --release -p tsb-rrdcached --example fuzz_journal -- 10000 1`. Each input is tried as
//! it is and with corrected checksums, as damage would otherwise get no further. In addition, a
//! fifth as many journals with known samples are damaged in one place, and the replayed samples
//! and the reported damage are checked against them.
#![expect(clippy::print_stdout, reason = "an example prints its result")]
#![expect(clippy::unwrap_used, reason = "an example may stop with a message")]

#[path = "../tests/support/damage.rs"]
mod damage;
#[path = "../tests/support/lossy.rs"]
#[expect(dead_code, reason = "nothing cuts the power here")]
mod lossy;
#[path = "../../tsb-core/examples/fuzz/mutate.rs"]
#[expect(dead_code, reason = "the corpus here is made, not read")]
mod mutate;

use mutate::Mutator;

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().unwrap());
    let (rounds, seed) = (words.next().unwrap_or(200), words.next().unwrap_or(1));
    let folder = std::env::temp_dir().join(format!("tsb-journal-fuzz-{}", std::process::id()));
    let mut mutator = Mutator::new(seed, damage::corpus(&folder));
    let sound: usize = (0..rounds).map(|_| damage::check(&folder, &mutator.next_input())).sum();
    let mut state = seed * 2 + 1;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let rounds_of_known = rounds / 5;
    let outcomes = damage::losses(&folder, rounds_of_known, &mut random);
    println!("{rounds_of_known} journals of known samples, damaged in one place: {outcomes:?}, none lost in silence");
    println!("{rounds} journals from seed {seed}, twice each, {sound} taken for sound: no failure");
    std::fs::remove_dir_all(&folder).unwrap();
}
