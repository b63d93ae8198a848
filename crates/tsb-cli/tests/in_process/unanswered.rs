//! A store that does not always answer: what it took is settled by reading back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_cli::args::RunOptions;
use tsb_core::Batch;
use tsb_core::ledger::Counter;
use tsb_core::verdict::Status;
use tsb_run::Finished;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Ack, Error, Refusals, Result, Store};

use crate::faulty_store::{Fault, FaultyStore};
use crate::runs::run_into;

/// Of ten writes it takes one without saying so, keeps silent over one that it has not
/// taken, and cannot be reached for one.
#[derive(Debug, Default)]
struct SilentStore {
    writes: AtomicU64,
    taken: AtomicU64,
    dropped: AtomicU64,
    unreached: AtomicU64,
}

fn unknown() -> Error {
    Error::Unknown {
        action: "write".to_owned(),
        source: "nobody answers".into(),
    }
}

impl Fault for SilentStore {
    fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let samples = batch.len() as u64;
        match self.writes.fetch_add(1, Ordering::Relaxed) % 10 {
            3 => {
                let _ = inner.write(batch, refused)?;
                self.taken.fetch_add(samples, Ordering::Relaxed);
                Err(unknown())
            }
            6 => {
                self.dropped.fetch_add(samples, Ordering::Relaxed);
                Err(unknown())
            }
            9 => {
                self.unreached.fetch_add(samples, Ordering::Relaxed);
                Err(Error::Unreachable {
                    action: "write".to_owned(),
                    source: "nobody listens".into(),
                })
            }
            _ => inner.write(batch, refused),
        }
    }
}

fn run(transport: &str) -> (Arc<FaultyStore<SilentStore>>, Finished) {
    let store = FaultyStore::new(MemoryStore::new(MemoryOptions::default()), SilentStore::default());
    let options = RunOptions {
        workload: Some("mix".to_owned()),
        series: Some("2000".to_owned()),
        rate: Some("200k".to_owned()),
        duration: Some("500ms".to_owned()),
        transport: Some(transport.to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    let finished = run_into(&(Arc::clone(&store) as Arc<dyn Store>), &options);
    (store, finished)
}

#[test]
fn unanswered_samples_are_settled_exactly() {
    let (store, finished) = run("inproc");
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (taken, dropped, unreached) = (
        of(&store.fault.taken),
        of(&store.fault.dropped),
        of(&store.fault.unreached),
    );
    assert!(taken > 0 && dropped > 0 && unreached > 0);
    let run = &finished.run;
    let count = |counter: Counter| run.ledger.counts.get(counter);
    assert!(run.ledger.violated.is_empty(), "{:?}", run.ledger.violated);
    assert_eq!(count(Counter::Unknown), Some(taken + dropped));
    assert_eq!(count(Counter::LostInTransport), Some(dropped));
    assert!(count(Counter::Shed) >= Some(unreached));
    assert_eq!(count(Counter::Verified), count(Counter::Accepted));
    assert_eq!(
        count(Counter::Accepted),
        count(Counter::Confirmed).map(|confirmed| confirmed + taken)
    );
    assert_eq!(count(Counter::Lost), Some(0));
    assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
    let note = run.notes.iter().find(|note| note.contains("never answered")).unwrap();
    assert!(
        note.contains(&format!("of which {taken} were there")) && note.contains("nobody answers"),
        "{note}"
    );
}

#[test]
fn silence_behind_a_listener_is_not_fatal_and_is_settled_by_reading_back() {
    let (store, finished) = run("tcp");
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (taken, dropped, unreached) = (
        of(&store.fault.taken),
        of(&store.fault.dropped),
        of(&store.fault.unreached),
    );
    assert!(taken > 0 && dropped > 0 && unreached > 0);
    let run = &finished.run;
    let count = |counter: Counter| run.ledger.counts.get(counter);
    assert!(run.ledger.violated.is_empty(), "{:?}", run.ledger.violated);
    assert_eq!(count(Counter::LostInTransport), Some(dropped));
    assert_eq!(count(Counter::Rejected), Some(unreached));
    assert_eq!(run.ledger.rejected_by_reason.get("unreachable"), Some(&unreached));
    assert_eq!(count(Counter::Verified), count(Counter::Accepted));
    assert_eq!(count(Counter::Lost), Some(0));
    assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
    let said = format!("{} samples were never answered for", taken + dropped);
    assert!(run.notes.iter().any(|note| note.contains(&said)), "{:?}", run.notes);
}
