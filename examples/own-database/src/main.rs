//! Makes a complete run with the store: a fleet over loopback TCP, every sample read back, a
//! verdict.
//!
//! ```text
//! cargo run --release -p own-database -- redb.json
//! tsb report redb.json --html redb.html
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error;
use std::fs::File;
use std::sync::Arc;

use own_database::RedbStore;
use tsb_core::report::{Interval, Report};
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::{AskedRate, Controls, IntervalLatencies, Message, Observer, Phase, Plan, json, run_store};
use tsb_stores::Store;

/// Prints the progress of the run.
struct Lines;

impl Observer for Lines {
    fn phase(&self, phase: Phase) {
        if matches!(phase, Phase::Flushing) {
            eprintln!("{}", phase.name());
        }
    }

    fn interval(&self, interval: &Interval, _timed: &IntervalLatencies) {
        eprintln!("{:>3} s: {} accepted", interval.end_ns / SECOND_NS, interval.accepted);
    }

    fn message(&self, message: Message<'_>) {
        if let Message::Warning(text) | Message::Note(text) = message {
            eprintln!("{text}");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&folder.path().join("samples.redb"))?);

    let mut plan = Plan {
        duration_ns: Some(3 * SECOND_NS),
        rate: AskedRate::PerSecond(5_000),
        ..Plan::default()
    };
    plan.workload.series = Some(540);
    let controls = Controls {
        observer: Arc::new(Lines),
        ..Controls::default()
    };
    let finished = run_store(&plan.complete()?, &store, &controls)?;
    store.close()?;

    let verdict = finished.run.verdict.clone();
    println!("{}: {:?}", finished.run.target.store, verdict.status);
    for reason in &verdict.reasons {
        println!("  {reason}");
    }
    if let Some(path) = std::env::args_os().nth(1) {
        json::write(&Report::new(vec![finished.run]), &mut File::create(path)?)?;
    }
    match verdict.status {
        Status::Invalid => Err("acknowledged samples are lost or altered".into()),
        _ => Ok(()),
    }
}
