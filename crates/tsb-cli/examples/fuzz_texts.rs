//! Fuzzes the parsers of reports, plans, run files and specs from a seed, each for a given CPU
//! time in seconds.
//!
//! `cargo run --release -p tsb-cli --example fuzz_texts -- 60 1`, optionally followed by the
//! name of one of them. JSON is mutated as text and as a tree: byte mutations alone rarely leave
//! it valid. A failure prints the path of the input in a temporary folder, which is then kept.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[path = "fuzz_texts/change.rs"]
mod change;
#[path = "../../tsb-core/examples/fuzz/mutate.rs"]
#[expect(dead_code, reason = "the corpus here is made, not read")]
mod mutate;
#[path = "fuzz_texts/targets.rs"]
mod targets;

use std::error::Error;
use std::panic::catch_unwind;
use std::path::Path;

use change::Changer;
use mutate::Mutator;
use targets::{TARGETS, Target};
use tsb_core::time::{SECOND_NS, thread_cpu_ns};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, otherwise: u64| words.get(index).map_or(Ok(otherwise), |word| word.parse::<u64>());
    let (seconds, seed) = (number(0, 3)?, number(1, 1)?);
    let folder = std::env::temp_dir().join(format!("tsb-fuzz-texts-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for target in TARGETS {
        if words.get(2).is_none_or(|name| name == target.name) {
            fuzz(target, &folder, seconds, seed)?;
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn fuzz(target: &Target, folder: &Path, seconds: u64, seed: u64) -> Result<(), Box<dyn Error>> {
    let corpus = (target.corpus)()?;
    let mut changer = Changer::new(seed, &corpus);
    let mut mutator = Mutator::new(seed, corpus.into_iter().map(String::into_bytes).collect());
    let path = folder.join(target.name);
    let end = thread_cpu_ns() + seconds * SECOND_NS;
    let (mut inputs, mut taken) = (0_u64, 0_u64);
    while thread_cpu_ns() < end {
        let input = match changer.next_input() {
            Some(text) if inputs % 2 == 0 => text.into_bytes(),
            _ => mutator.next_input(),
        };
        std::fs::write(&path, &input)?;
        let checked = catch_unwind(|| (target.check)(&path));
        let is_taken = checked.map_err(|_| format!("{} fails on {}", target.name, path.display()))?;
        taken += u64::from(is_taken);
        inputs += 1;
    }
    println!(
        "{}: {inputs} inputs from seed {seed}, {taken} of them taken: no failure",
        target.name
    );
    Ok(())
}
