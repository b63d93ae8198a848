//! Makes a complete run with your own store: load over a wire, audit, verdict, report.
//!
//! ```text
//! cargo run --release -p tsb-run --example run_own_store -- own.json
//! tsb report own.json --html own.html
//! ```
//! The store is a value in this program; `--store` cannot open it.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_core::ledger::Counter;
use tsb_core::report::Report;
use tsb_core::time::SECOND_NS;
use tsb_run::{AskedRate, Controls, Plan, json, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};

/// Two seconds of 2,000 series, over loopback TCP.
fn plan() -> Result<Plan, tsb_run::Error> {
    let mut plan = Plan {
        duration_ns: Some(2 * SECOND_NS),
        rate: AskedRate::PerSecond(50_000),
        ..Plan::default()
    };
    plan.workload.series = Some(2_000);
    plan.complete()
}

fn main() -> Result<(), Box<dyn Error>> {
    // Your store goes here: anything that implements `Store`, open and empty.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    // Set this from a signal handler, and the run ends early with what it has.
    let stop = Arc::new(AtomicBool::new(false));
    let finished = run_store(&plan()?, &store, &Controls::stopped_by(stop))?;
    // It is yours: closing it is, too.
    store.close()?;

    let run = &finished.run;
    let count = |counter| run.ledger.counts.count(counter);
    println!("{}: {:?}", run.target.store, run.verdict.status);
    println!(
        "{} samples accepted, {} verified, {} lost",
        count(Counter::Accepted),
        count(Counter::Verified),
        count(Counter::Lost)
    );
    if let Some(path) = std::env::args_os().nth(1) {
        json::write(&Report::new(vec![finished.run.clone()]), &mut File::create(path)?)?;
    }
    if count(Counter::Accepted) == 0 || count(Counter::Verified) != count(Counter::Accepted) {
        return Err("not everything that was accepted could be read back".into());
    }
    Ok(())
}
