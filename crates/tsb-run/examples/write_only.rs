//! Measures a target that can only be written to: here a file of lines, in your case a client
//! that sends to a server.
//!
//! ```text
//! cargo run --release -p tsb-run --example write_only -- out.json
//! tsb report out.json --html out.html
//! ```
//! Nothing can be read back, so the verdict is `UNVERIFIED`; rate, latency, cost and what
//! limited the run are measured as for any other store.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tsb_core::report::Report;
use tsb_core::time::SECOND_NS;
use tsb_core::{Batch, Durability};
use tsb_run::{Controls, Keys, Plan, Transport, WriteOnly, json, run_store};
use tsb_stores::Store;

fn failed(error: std::io::Error) -> tsb_stores::Error {
    tsb_stores::Error::Backend {
        action: "write into the file of lines".to_owned(),
        source: Box::new(error),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = Mutex::new(std::io::BufWriter::new(tempfile::tempfile()?));
    // Gets the keys of all series and a batch; takes the whole batch, or says why not.
    let write = move |keys: &Keys, batch: &Batch<'_>| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, at, value) in batch.iter() {
            if let Some(key) = keys.get(id) {
                writeln!(file, "{key} {value} {}", at.0).map_err(failed)?;
            }
        }
        Ok(())
    };
    // What an `Ok` of it is worth: the bytes may still be in this process.
    let store: Arc<dyn Store> = Arc::new(WriteOnly::new("a file of lines", Durability::Volatile, write));

    let mut plan = Plan {
        transport: Transport::Inproc,
        duration_ns: Some(2 * SECOND_NS),
        ..Plan::default()
    };
    plan.workload.series = Some(2_000);
    let finished = run_store(&plan.complete()?, &store, &Controls::default())?;
    store.close()?;

    let run = &finished.run;
    println!("{}: {:?}", run.target.store, run.verdict.status);
    println!("{:.0} samples/s held", run.rate.held_per_second);
    for reason in &run.verdict.reasons {
        println!("  {reason}");
    }
    if let Some(path) = std::env::args_os().nth(1) {
        json::write(&Report::new(vec![finished.run.clone()]), &mut File::create(path)?)?;
    }
    Ok(())
}
