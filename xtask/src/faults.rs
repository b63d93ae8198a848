//! `cargo xtask faults`: subjects the real program to kills, power cuts, I/O errors, damaged
//! files, disturbances and hostile peers, and prints one table of the outcomes for the samples.
//!
//! An acknowledged sample that is lost without a report is a failure, and so is a panic. It is
//! *not* a proof: docs/results/faults.md says what the trials cannot reach.

mod client;
mod cuts;
mod damages;
mod disturbance;
mod errors;
mod judge;
mod kills;
mod medium;
mod peers;
mod runs;
mod service;
mod stores;
mod tally;
mod trace;
mod trial;

// Shared with the conformance suite by their files, as this program imports nothing of ours.
#[path = "../../crates/tsb-stores/src/conformance/corrupt.rs"]
#[expect(
    unreachable_pub,
    reason = "the suite is public, and this program is nobody's library"
)]
mod corrupt;
#[path = "../../crates/tsb-stores/src/conformance/rng.rs"]
#[expect(dead_code, reason = "not every kind of number is drawn here")]
mod rng;

use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};

use crate::shell::{Stopwatch, capture, cargo, run, target_folder};
use cuts::Recording;
use damages::Template;
use judge::Outcome;
use peers::{LISTENERS, TargetListener};
use runs::KilledRun;
use stores::{SUBJECTS, StoreUnderTest, Wire};
use tally::{Results, Tally};
use trial::Trial;

/// Default number of trials per kind and store.
const ROUNDS: u64 = 100;
/// Number of concurrent trials; most of their time is waiting.
const JOBS: usize = 6;
/// Damages of one template.
const PER_TEMPLATE: u64 = 50;
/// Kills of one place.
const PER_CHAIN: u64 = 10;

/// The parsed command line.
#[derive(Debug)]
struct Options {
    rounds: u64,
    seed: u64,
    jobs: usize,
    stores: Vec<&'static StoreUnderTest>,
    kinds: Vec<&'static str>,
    program: Option<PathBuf>,
    out: Option<PathBuf>,
}

/// The kinds of faults, in the order in which they are tried; each has an arm in `one_batch` and a line in
/// `LEGEND`.
const KINDS: &[&str] = &[
    "kills",
    "cuts",
    "damages",
    "errors",
    "disturbance",
    "runs",
    "verify",
    "peers",
];

/// Runs the command.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    let options = parse(arguments)?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    let folder = target_folder()?.join("faults");
    std::fs::create_dir_all(&folder)?;
    let watch = Stopwatch::start();
    let mut results = Results::default();
    for &kind in &options.kinds {
        // Each listener is attacked once, whatever stores are named.
        let first = if kind == "peers" {
            &options.stores[..1]
        } else {
            &options.stores[..]
        };
        for (subject, name) in first.iter().flat_map(|subject| rows_of(kind, subject)) {
            let trial = Trial {
                program: &program,
                subject,
                folder: &folder,
            };
            let tally = trials(kind, name, &trial, &options)?;
            println!(
                "{kind} {name}: {} wrong, {:.0} s",
                tally.failures(),
                watch.elapsed().as_secs_f64()
            );
            let told = tally.wrong.iter().chain(tally.examples.values());
            told.for_each(|sentence| println!("  {sentence}"));
            results.add(kind, name, tally);
        }
    }
    print!("{}", results.table().render());
    if let Some(out) = &options.out {
        std::fs::write(out, page(&results, arguments)?).with_context(|| format!("cannot write {}", out.display()))?;
    }
    if results.failures() > 0 {
        bail!(
            "{} trials lost data silently, panicked or hung:\n{}",
            results.failures(),
            results.wrong().join("\n")
        );
    }
    Ok(())
}

/// The rows of the table that a kind has for a store.
fn rows_of(kind: &str, subject: &'static StoreUnderTest) -> Vec<(&'static StoreUnderTest, &'static str)> {
    if kind == "peers" {
        return LISTENERS.iter().map(|&listener| (subject, listener)).collect();
    }
    // `tsb run` has no client of rrdcached's files by name.
    if matches!(kind, "runs" | "verify") && subject.wire == Wire::Rrdcached {
        return Vec::new();
    }
    vec![(subject, subject.name)]
}

/// All trials of a kind on a store or listener, several at a time.
fn trials(kind: &str, name: &'static str, trial: &Trial<'_>, options: &Options) -> Result<Tally> {
    let per_batch = if kind == "kills" { PER_CHAIN } else { PER_TEMPLATE };
    let batches = options.rounds.div_ceil(per_batch);
    let (next, all) = (AtomicU64::new(0), Mutex::new((Tally::default(), Ok(()))));
    let work = || {
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return;
            }
            let count = per_batch.min(options.rounds - batch * per_batch);
            let mut tally = Tally::default();
            let seed = options.seed * 1_000_000 + batch * per_batch;
            let ended = one_batch(kind, name, trial, seed..seed + count, &mut tally);
            let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.0.merge(&tally);
            if let Err(error) = ended {
                all.1 = Err(error);
                next.store(batches, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(work);
        }
    });
    let (tally, ended) = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    ended.with_context(|| format!("{kind} of {name}"))?;
    Ok(tally)
}

fn one_batch(kind: &str, name: &'static str, trial: &Trial<'_>, seeds: Range<u64>, tally: &mut Tally) -> Result<()> {
    let first = seeds.start;
    let mut each = |seeds: Range<u64>, one: &dyn Fn(u64) -> Result<(Outcome, String)>| {
        for seed in seeds {
            let (outcome, how) = one(seed)?;
            tally.add(&outcome, &how);
        }
        Ok(())
    };
    match kind {
        "kills" => kills::chain(trial, first, seeds.end - first, |outcome, how| tally.add(outcome, how)),
        "cuts" => {
            let recording = Recording::new(trial, first)?;
            each(seeds, &|seed| recording.cut(trial, seed))
        }
        "damages" => {
            let template = Template::new(trial, first)?;
            each(seeds, &|seed| template.corrupted(trial, seed))
        }
        "errors" => each(seeds, &|seed| errors::meet(trial, seed)),
        "disturbance" => each(seeds, &|seed| disturbance::disturb(trial, seed)),
        "runs" => each(seeds, &|seed| {
            let (outcome, how, killed) = KilledRun::new(trial, seed, runs::LIFE_US)?.verified(trial, seed)?;
            killed.keep_if_wrong(&outcome);
            Ok((outcome, how))
        }),
        "verify" => {
            let (_, _, killed) = template_of_a_run(trial, first)?;
            each(seeds, &|seed| killed.damaged(trial, seed))
        }
        "peers" => {
            let victim = TargetListener::new(trial, name)?;
            each(seeds, &|seed| victim.attacked(trial, seed))
        }
        _ => bail!("no such kind of fault: {kind}"),
    }
}

/// Finds a killed run that left samples.
fn template_of_a_run(trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String, KilledRun)> {
    for seed in seed..seed + 50 {
        let killed = KilledRun::new(trial, seed, runs::LONG_LIFE_US)?.verified(trial, seed)?;
        if killed.2.holds_something() {
            return Ok(killed);
        }
    }
    bail!("no run of {} leaves anything", trial.subject.name)
}

/// The program as users run it.
fn build() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--release", "--quiet", "--bin", "tsb"]))?;
    Ok(target_folder()?.join("release/tsb"))
}

fn parse(arguments: &[&str]) -> Result<Options> {
    let mut options = Options {
        rounds: ROUNDS,
        seed: 1,
        jobs: JOBS,
        stores: Vec::new(),
        kinds: Vec::new(),
        program: None,
        out: None,
    };
    let mut words = arguments.iter();
    while let Some(&word) = words.next() {
        let mut text = || words.next().copied().with_context(|| format!("{word} needs a value"));
        match word {
            "--rounds" => options.rounds = text()?.parse().context("--rounds is a number")?,
            "--seed" => options.seed = text()?.parse().context("--seed is a number")?,
            "--jobs" => options.jobs = text()?.parse().context("--jobs is a number")?,
            "--program" => options.program = Some(text()?.into()),
            "--out" => options.out = Some(text()?.into()),
            "--only" => {
                let kind = text()?;
                let known = KINDS.iter().find(|known| **known == kind);
                options
                    .kinds
                    .push(known.with_context(|| format!("no fault {kind}; there are {}", KINDS.join(", ")))?);
            }
            flag if flag.starts_with('-') => bail!("no such flag: {flag}"),
            store => options.stores.extend(named(store)?),
        }
    }
    if options.stores.is_empty() {
        options.stores.extend(SUBJECTS);
    }
    if options.kinds.is_empty() {
        options.kinds.extend(KINDS);
    }
    Ok(options)
}

/// The stores whose names begin with `word`.
fn named(word: &str) -> Result<Vec<&'static StoreUnderTest>> {
    let found: Vec<_> = SUBJECTS
        .iter()
        .filter(|subject| subject.name.starts_with(word))
        .collect();
    if found.is_empty() {
        let names: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
        bail!("no store begins with {word}; there are {}", names.join(", "));
    }
    Ok(found)
}

/// What the columns and rows of the table mean, and what no trial here reaches.
const LEGEND: &str = "\
Each row is one kind of fault on one store; `xtask/src/faults/stores.rs` has the specs by name.
[ADR 094](../adr/094-faults-from-outside.md) says how faults are made and judged.

| column | a trial after which |
| --- | --- |
| all there | every acknowledged sample is there, with its value |
| all there, said | the same, and the program reported an error or damage |
| lost, not covered | what is missing is what the level of its acknowledgement does not cover: a commit interval, or what was not synced when the power went |
| lost, said | something is missing or changed, and the program says so: as many samples at least, or that it does not know how many |
| refused | the store or its listener refuses, and says why |
| unseen | something is missing or changed in a file whose format cannot show it, as its page in docs/formats says: RRD files, pages of a database, a database that is gone |
| silent losses, panics, hangs | must be 0 |

- `kills` ends `tsb ingest` at any moment, every third time while it opens what an earlier kill left.
- `cuts` takes the power away at any call of a trace; the files get what was synced and, by turns, nothing, all, a prefix or any part of the rest.
  Half of the cuts keep the writes to an RRD file in their order, and those are judged in full.
- `damages` flips bits, garbles, zeroes, cuts off, extends, swaps or removes one file.
- `errors` makes a call on a file of the store fail, once or from then on.
- `disturbance` stops and continues the program, lets four busy processes run beside it, or gives it another monotonic clock.
- `runs` kills `tsb run`, and `tsb verify` reads back what its journal says was acknowledged; `verify` damages what such a run left, and `tsb verify` has to notice.
- `peers` is a round of twelve peers for each trial: garbage, half and mutated messages, 3,000 names, 80 connections; the listener has to account for all, to end in order, and to stay below 256 MiB.
";

/// The results as a page of docs/results.
fn page(results: &Results, arguments: &[&str]) -> Result<String> {
    let commit = capture(std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]))?;
    // Where the page went and which program was tried are of one machine.
    let mut words = Vec::new();
    let mut all = arguments.iter();
    while let Some(&word) = all.next() {
        if matches!(word, "--out" | "--program") {
            all.next();
        } else {
            words.push(word);
        }
    }
    let (asked, commit) = (words.join(" "), commit.trim());
    let mut text = format!("# Faults\n\n`cargo xtask faults {asked}`, with the release build of commit {commit}.\n\n");
    let _ = write!(text, "{LEGEND}\n{}", results.table().markdown());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_named_by_how_they_begin() {
        let names = |arguments: &[&str]| -> Result<Vec<&str>> {
            Ok(parse(arguments)?.stores.iter().map(|subject| subject.name).collect())
        };
        assert_eq!(names(&["rrd"]).ok(), Some(vec!["rrd", "rrdcached-group"]));
        assert_eq!(names(&[]).map(|names| names.len()).ok(), Some(SUBJECTS.len()));
        assert!(names(&["oracle"]).is_err());
        assert!(parse(&["--rounds", "many"]).is_err() && parse(&["--rounds"]).is_err());
        assert!(parse(&["--only", "quakes"]).is_err() && parse(&["--fast"]).is_err());
        assert_eq!(
            parse(&["--only", "kills"]).map(|options| options.kinds).ok(),
            Some(vec!["kills"])
        );
    }
}
