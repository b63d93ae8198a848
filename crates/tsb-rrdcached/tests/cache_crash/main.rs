//! What a write cache with a journal keeps when its process is killed and when the power
//! goes: all that its acks promised, and nothing else.
//!
//! RRD files stand behind it, and what is recovered is compared with files that were written
//! directly: byte for byte. `TSB_CRASH_ROUNDS` says how often each accident happens.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]
#![expect(clippy::print_stdout, reason = "what an accident cost is its result")]

#[path = "../support/damage.rs"]
mod damage;
mod files;
mod kill;
#[path = "../support/lossy.rs"]
mod lossy;
#[path = "../../../tsb-core/examples/fuzz/mutate.rs"]
#[expect(dead_code, reason = "the corpus here is made, not read")]
mod mutate;
mod order;
mod power;
mod script;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// How often each accident happens by default.
const ROUNDS: u32 = 4;

fn rounds() -> u32 {
    std::env::var("TSB_CRASH_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

/// Numbers that look random, the same for each round.
fn random_of(round: u32) -> impl FnMut(usize) -> usize {
    let mut state = u64::from(round) * 2 + 1;
    move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    }
}

/// A few of what the example `fuzz_journal` tries by the thousand.
fn any_journal_is_replayed_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = damage::corpus(folder.path());
    for journal in &corpus {
        assert_eq!(damage::check(folder.path(), journal), 2);
    }
    let mut mutator = mutate::Mutator::new(3, corpus);
    let sound: usize = (0..100)
        .map(|_| damage::check(folder.path(), &mutator.next_input()))
        .sum();
    assert!((1..200).contains(&sound), "{sound} of 200");
}

/// Journals of both kinds, damaged at random places: what does not come back is spoken of.
fn every_loss_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let outcomes = damage::losses(folder.path(), 600, &mut random_of(5));
    println!("{outcomes:?}");
    assert!(outcomes["said"] > 100 && outcomes["nothing lost"] > 100, "{outcomes:?}");
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == kill::CHILD) {
        kill::child(&arguments[2..]);
        return ExitCode::SUCCESS;
    }
    let mut trials = Vec::new();
    for policy in script::POLICIES {
        for acks in [10, 100, 1000] {
            trials.push(Trial::test(format!("kill::{policy}_after_{acks}"), move || {
                kill::rounds(policy, acks, rounds()).map_err(Into::into)
            }));
        }
        trials.push(Trial::test(format!("power::{policy}"), move || {
            power::cuts(policy, rounds() * 3).map_err(Into::into)
        }));
    }
    for policy in ["group", "each"] {
        trials.push(Trial::test(format!("power::files_{policy}"), move || {
            files::cuts(policy, rounds() * 3).map_err(Into::into)
        }));
    }
    trials.push(Trial::test("order::a_record_is_written_before_any_file", || {
        order::a_record_is_written_before_any_file();
        Ok(())
    }));
    trials.push(Trial::test("damage::any_journal_is_replayed_or_refused", || {
        any_journal_is_replayed_or_refused();
        Ok(())
    }));
    trials.push(Trial::test("damage::every_loss_is_reported", || {
        every_loss_is_reported();
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
