//! Run a store of one's own whole: load over a wire, audit, verdict, report.
//!
//! ```text
//! cargo run --release -p tsb-cli --example run_own_store
//! ```
//! The store is a value in this program; no name in `--store` opens it. What comes out is
//! the report that `tsb run --format json` prints, as a value and as JSON.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_cli::failure::Failure;
use tsb_cli::plan::{AskedRate, Plan};
use tsb_cli::run::{Hooks, run_store};
use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::SECOND_NS;
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};

/// Two seconds of 2,000 series, over loopback TCP.
fn plan() -> Result<Plan, Failure> {
    let mut plan = Plan {
        duration_ns: Some(2 * SECOND_NS),
        rate: AskedRate::PerSecond(50_000),
        // A run that means something leaves this on: it measures what the generator can do.
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(2_000);
    plan.complete()
}

fn measure() -> Result<Run, Failure> {
    // Your store goes here: anything that implements `Store`, open and empty.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    // Set this from a signal handler, and the run ends early with what it has.
    let stop = Arc::new(AtomicBool::new(false));
    let finished = run_store(&plan()?, &store, &Hooks::new(stop, true))?;
    // It is yours: closing it is, too.
    let closed = store.close();
    closed.map_err(|error| Failure::usage("cannot close the store").because(&error))?;
    Ok(finished.run)
}

fn main() -> ExitCode {
    let run = match measure() {
        Ok(run) => run,
        Err(failure) => {
            println!("{failure}");
            return ExitCode::FAILURE;
        }
    };
    let count = |counter| run.ledger.counts.count(counter);
    println!("{}: {:?}", run.target.store, run.verdict.status);
    println!(
        "{} samples accepted, {} verified, {} lost",
        count(Counter::Accepted),
        count(Counter::Verified),
        count(Counter::Lost)
    );
    if let Ok(json) = serde_json::to_string_pretty(&run.latency) {
        println!("{json}");
    }
    let is_whole = count(Counter::Accepted) > 0 && count(Counter::Verified) == count(Counter::Accepted);
    ExitCode::from(u8::from(!is_whole))
}
