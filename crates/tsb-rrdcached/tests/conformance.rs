//! The suite on the real rrdcached, and what the daemon breaks of it.

#[path = "support/daemon.rs"]
#[expect(dead_code, reason = "killing it is another test's")]
mod daemon;
#[path = "../../tsb-stores/tests/support/lock.rs"]
#[expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]
mod lock;
#[path = "conformance/rrdcached.rs"]
mod rrdcached;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use rrdcached::Rrdcached;
use tsb_stores::conformance::{self, Fixture, was_writer};

fn main() -> ExitCode {
    if lock::was_holder() {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let daemon = Rrdcached::start();
    let breaks = daemon.breaks();
    let fixtures = [Box::new(daemon) as Box<dyn Fixture>];
    if was_writer(&arguments, &fixtures) {
        return ExitCode::SUCCESS;
    }
    let trials = fixtures
        .into_iter()
        .flat_map(conformance::trials)
        .chain(breaks)
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
