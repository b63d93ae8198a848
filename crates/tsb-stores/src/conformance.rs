//! The conformance suite: every clause of [`Store`], tested on anybody's store.
//!
//! A store of your own takes one line:
//!
//! ```no_run
//! use tsb_stores::conformance::{self, Fresh};
//! use tsb_stores::ring::{RingOptions, RingStore};
//!
//! // The `main` of a test target with `harness = false`.
//! fn main() -> std::process::ExitCode {
//!     let ring = Fresh::new("ring", || RingStore::new(RingOptions::default()));
//!     conformance::main([ring])
//! }
//! ```
//!
//! Checks are generated from the store's [`Capabilities`] and bear the number of their
//! clause: `ring::c6_of_equal_timestamps_the_later_wins`. What a store claims must work,
//! what it does not claim must answer [`Error::Unsupported`](crate::Error::Unsupported). The oracle is a naive model
//! (a sorted map with a resampler of its own), not one of our stores. That the suite sees
//! what it should is itself tested, on stores broken on purpose.
//!
//! A store with retention must keep five minutes at least, or there is nothing to check.
//!
//! A [`Fixture`] of one's own shows what survives: its places are opened again after a drop
//! without a close, after the process that wrote was killed ([`Place::address`]), and after
//! the power went under a medium that loses what was not synced ([`Fixture::lossy`]; a
//! [`LossyDisk`] is one). The example `file_store` of this package is such a store, whole.
//!
//! A place that copies its files and damages one of them ([`Place::after_damage`], with
//! [`corrupt`]) shows that the store says what it has lost.
//!
//! What takes many samples to show is in [`Tier::Long`]: those checks are listed as ignored,
//! and run with `cargo test --test NAME -- --include-ignored`.

use std::process::ExitCode;
use std::sync::Arc;

pub use libtest_mimic;
use libtest_mimic::{Arguments, Conclusion, Trial};

use crate::store::{Capabilities, Store};

#[cfg(test)]
mod broken;
mod cases;
mod corrupt;
pub(crate) mod failure;
mod fixture;
mod kill;
mod lossy;
mod model;
pub(crate) mod rng;
mod subject;

pub use corrupt::{Corruption, CorruptionKind, corrupt};
use failure::Failure;
pub use fixture::{Bounded, Damaged, Faulty, Fixture, Fresh, LossyPlace, Place};
pub use kill::was_writer;
pub use lossy::{Fault, LossyDisk, LossyFile};

/// The input of a check: a fixture, and the capabilities of its store.
pub(crate) struct Context {
    fixture: Arc<dyn Fixture>,
    capabilities: Capabilities,
}

/// The definition of a check: its name, the stores that it applies to, and its function.
pub(crate) struct Case {
    // Starts with its clause: `c6_`.
    name: &'static str,
    applies: fn(&Capabilities) -> bool,
    run: fn(&Context) -> Result<CheckOutcome, Failure>,
    tier: Tier,
}

/// When a check is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// By default: it takes milliseconds, or up to two seconds on a store that syncs.
    Usual,
    /// Only on request: it writes a million samples.
    Long,
}

/// The result of a check that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckOutcome {
    /// The clause holds.
    Holds,
    /// The fixture cannot show it; the reason.
    NotShown(&'static str),
}

/// One check on one store: a name, a clause, and a function to run.
pub struct Check {
    name: String,
    clause: u8,
    tier: Tier,
    run: Box<dyn Fn() -> Result<CheckOutcome, String> + Send + Sync>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Check {
    /// A check that is always run, named `store::case`, where `case` begins with its clause.
    pub(crate) fn new(
        store: &str,
        case: &str,
        run: impl Fn() -> Result<CheckOutcome, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: format!("{store}::{case}"),
            clause: clause_of(case),
            tier: Tier::Usual,
            run: Box::new(move || run().map_err(|failure| failure.to_string())),
        }
    }

    /// `store::cN_what_holds`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clause of the contract that it tests, from 1, or 0 for opening the store.
    pub fn clause(&self) -> u8 {
        self.clause
    }

    /// When it is to be run.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Runs it; the error says what does not hold. A panic of the store is passed on.
    pub fn run(&self) -> Result<CheckOutcome, String> {
        (self.run)()
    }
}

/// All checks that apply to the store of a fixture.
///
/// ```
/// use tsb_stores::conformance::{CheckOutcome, Fresh, checks};
/// use tsb_stores::memory::{MemoryOptions, MemoryStore};
///
/// let memory = Fresh::new("memory", || Ok(MemoryStore::new(MemoryOptions::default())));
/// let close = checks(memory).into_iter().find(|check| check.name() == "memory::c10_close_is_idempotent");
/// assert_eq!(close.map(|check| check.run()), Some(Ok(CheckOutcome::Holds)));
/// ```
pub fn checks(fixture: impl Fixture) -> Vec<Check> {
    let fixture: Arc<dyn Fixture> = Arc::new(fixture);
    let name = fixture.name();
    let opened = match fixture.unavailable() {
        Some(_) => return Vec::new(),
        None => fixture.place().and_then(|place| place.open()),
    };
    let capabilities = match opened {
        Ok(store) => store.capabilities(),
        Err(error) => {
            let what = format!("the fixture opens no store: {}", Failure::from(error));
            return vec![Check {
                name: format!("{name}::c0_opens"),
                clause: 0,
                tier: Tier::Usual,
                run: Box::new(move || Err(what.clone())),
            }];
        }
    };
    let context = Arc::new(Context { fixture, capabilities });
    let applying = cases::all().filter(|case| (case.applies)(&capabilities));
    let check = |case: &'static Case| {
        let context = Arc::clone(&context);
        Check {
            name: format!("{name}::{}", case.name),
            clause: clause_of(case.name),
            tier: case.tier,
            run: Box::new(move || (case.run)(&context).map_err(|failure| failure.to_string())),
        }
    };
    applying.map(check).collect()
}

/// The checks as trials of libtest-mimic; checks that a fixture cannot show are listed as
/// ignored.
pub fn trials(fixture: impl Fixture) -> Vec<Trial> {
    let (name, unavailable) = (fixture.name(), fixture.unavailable());
    trials_of(name, unavailable, || checks(fixture))
}

/// The checks of a store as trials; if it is unavailable, one ignored trial with the reason.
pub(crate) fn trials_of(name: String, unavailable: Option<String>, checks: impl FnOnce() -> Vec<Check>) -> Vec<Trial> {
    if let Some(why) = unavailable {
        let skipped = Trial::ignorable_test(name, move || Ok(libtest_mimic::Completion::ignored_with(why)));
        return vec![skipped];
    }
    let trial = |check: Check| {
        let is_long = check.tier == Tier::Long;
        let trial = Trial::ignorable_test(check.name.clone(), move || match check.run() {
            Ok(CheckOutcome::Holds) => Ok(libtest_mimic::Completion::Completed),
            Ok(CheckOutcome::NotShown(why)) => Ok(libtest_mimic::Completion::ignored_with(why)),
            Err(what) => Err(what.into()),
        });
        trial.with_ignored_flag(is_long)
    };
    checks().into_iter().map(trial).collect()
}

/// Runs the checks of fixtures of one kind according to `arguments`. In a process that a check
/// has started in order to kill it, writes samples instead, and runs no checks.
pub fn run<F: Fixture>(arguments: &Arguments, fixtures: impl IntoIterator<Item = F>) -> Conclusion {
    let fixtures: Vec<F> = fixtures.into_iter().collect();
    if was_writer(arguments, &fixtures) {
        return libtest_mimic::run(arguments, Vec::new());
    }
    let trials = fixtures.into_iter().flat_map(trials).collect();
    libtest_mimic::run(arguments, trials)
}

/// The complete `main` of a test target: reads the arguments that `cargo test` passes.
pub fn main<F: Fixture>(fixtures: impl IntoIterator<Item = F>) -> ExitCode {
    run(&Arguments::from_args(), fixtures).exit_code()
}

/// The number in `c6_name`; 0 if there is none.
fn clause_of(name: &str) -> u8 {
    let digits = name.trim_start_matches('c').split('_').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// A store under test.
pub(crate) type BoxedStore = Box<dyn Store>;
