//! Fuzzes the parser of RRD files from a seed, for about a given number of seconds.
//!
//! `cargo run --release -p tsb-rrd --example fuzz_files -- 60 1`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[path = "../tests/support/damage.rs"]
mod damage;
#[path = "../../tsb-core/examples/fuzz/mutate.rs"]
#[expect(dead_code, reason = "the corpus here is made, not read")]
mod mutate;

use mutate::Mutator;

/// Approximate inputs per second: seconds are converted to a number of inputs.
const PER_SECOND: u64 = 5_000;

fn main() -> Result<(), damage::Failure> {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let seconds = words.next().transpose()?.unwrap_or(3);
    let seed = words.next().transpose()?.unwrap_or(1);
    let folder = std::env::temp_dir().join(format!("tsb-rrd-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut mutator = Mutator::new(seed, damage::corpus(&folder)?);
    let rounds = seconds * PER_SECOND;
    let mut sound = 0_u64;
    for _ in 0..rounds {
        sound += u64::from(damage::check(&folder, &mutator.next_input())?);
    }
    println!("{rounds} files from seed {seed}, {sound} of them taken for sound: no failure");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
