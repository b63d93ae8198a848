//! What the SQLite store keeps when its process is killed, when the power goes, when a sync
//! fails, and when the disk is full.
//!
//! Writes are a function of their number, so that after each accident the file must hold
//! exactly the first so many of them: all that had been `Synced`, and nothing by halves.
//! `TSB_CRASH_ROUNDS` says how often each accident happens; `cargo xtask ci` asks for 200.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]
#![expect(clippy::print_stdout, reason = "what an accident cost is its result")]

mod kill;
mod medium;
mod power;
mod script;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// How often each accident happens by default.
const ROUNDS: u32 = 12;

fn rounds() -> u32 {
    std::env::var("TSB_CRASH_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == kill::CHILD) {
        kill::child(&arguments[2..]);
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, run: fn() -> Result<(), String>| Trial::test(name, move || run().map_err(Into::into));
    let trials = vec![
        trial("kill::each_full", || kill::rounds("each", "full", rounds() / 4 + 1)),
        trial("kill::each_normal", || kill::rounds("each", "normal", rounds() / 4 + 1)),
        trial("kill::every_100ms", || kill::rounds("100ms", "full", rounds() / 4 + 1)),
        trial("kill::every_1s", || kill::rounds("1s", "full", rounds() / 4 + 1)),
        trial("power::each_full", || power::cuts("each", "full", rounds())),
        trial("power::each_normal_flushed", || power::cuts("each", "normal", rounds())),
        trial("power::every_1s", || power::cuts("1s", "full", rounds())),
        trial("power::a_failing_sync_poisons", power::failing_sync),
        trial("power::a_full_disk_poisons", power::full_disk),
        trial("power::a_bound_of_the_file_poisons", power::bounded_file),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
