//! Fuzzes the parsers of untrusted bytes, on stable Rust and from a seed.
//!
//! `cargo run --release -p tsb-core --example fuzz -- graphite --seconds 60`, or `all --minutes
//! 10`: CPU time per target, with as many targets at once as there are processors. Inputs are
//! mutated from `fixtures/fuzz/<target>/`. A failure prints the seed, and the shrunk input is
//! written to `fixtures/fuzz/<target>/crash-<round>`, where `cargo test` replays it from then
//! on. For why not libFuzzer, see docs/adr/011-fuzzing.md.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod mutate;
mod targets;

use std::error::Error;
use std::io;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mutate::Mutator;
use targets::{TARGETS, Target};
use tsb_core::time::{SECOND_NS, thread_cpu_ns};

/// Rounds between two clock readings.
const ROUNDS: u64 = 64;

/// Attempts to shrink a failing input.
const SHRINKS: u64 = 2_000;

struct Options {
    target: String,
    seconds: u64,
    seed: u64,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        target: "all".to_owned(),
        seconds: 10,
        seed: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match word.as_str() {
            "--seconds" => options.seconds = number().ok_or("--seconds takes a number")?,
            "--minutes" => options.seconds = 60 * number().ok_or("--minutes takes a number")?,
            "--seed" => options.seed = number().ok_or("--seed takes a number")?,
            _ => options.target = word,
        }
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let wanted = |target: &&Target| options.target == "all" || options.target == target.name;
    let chosen: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("no target '{}'; known are {}", options.target, names.join(", ")).into());
    }
    let failures = fuzz_all(&chosen, &options);
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.join("\n").into())
}

/// Fuzzes all targets and returns their failures: one that fails does not stop the others.
fn fuzz_all(targets: &[&Target], options: &Options) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(fuzz(target, options).err());
        }
        failures
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .flat_map(|failures| failures.unwrap_or_else(|_| vec!["a worker panicked".to_owned()]))
            .collect()
    })
}

fn fuzz(target: &Target, options: &Options) -> Result<(), String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/fuzz")
        .join(target.name);
    let corpus = mutate::corpus(&directory).map_err(|error| format!("{}: {error}", target.name))?;
    let mut mutator = Mutator::new(options.seed, corpus);
    let end = thread_cpu_ns() + options.seconds * SECOND_NS;
    let (mut rounds, mut bytes) = (0_u64, 0_usize);
    while thread_cpu_ns() < end {
        for _ in 0..ROUNDS {
            let input = mutator.next_input();
            bytes += input.len();
            if !passes(target, &input) {
                let kept = report(target, &mut mutator, input, &directory, rounds);
                let kept = kept.map_or_else(|error| error.to_string(), |path| path.display().to_string());
                return Err(format!("{} fails on {kept}, seed {}", target.name, options.seed));
            }
            rounds += 1;
        }
    }
    println!(
        "{}: {rounds} inputs, {bytes} bytes, seed {}: no failure",
        target.name, options.seed
    );
    Ok(())
}

fn passes(target: &Target, input: &[u8]) -> bool {
    catch_unwind(|| (target.check)(input)).is_ok()
}

/// Shrinks the input while it still fails, and saves it.
fn report(
    target: &Target,
    mutator: &mut Mutator,
    mut input: Vec<u8>,
    directory: &Path,
    round: u64,
) -> io::Result<PathBuf> {
    for _ in 0..SHRINKS {
        let smaller = mutator.smaller(&input);
        if !passes(target, &smaller) {
            input = smaller;
        }
    }
    let path = directory.join(format!("crash-{round}"));
    std::fs::write(&path, input)?;
    Ok(path)
}
