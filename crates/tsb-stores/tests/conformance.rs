//! Every store, every wrapper over every store, boxed and shared: one line each.

use std::process::ExitCode;
use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_stores::conformance::{self, Bounded, Fresh};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::null::NullStore;
use tsb_stores::ring::{RingOptions, RingStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};
use tsb_stores::{Result, Store};

const SECOND: i64 = 1_000_000_000;

/// A store to test: how to open it, and one that is soon full.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    open: fn() -> Result<Box<dyn Store>>,
    bounded: Option<fn() -> Result<Bounded>>,
}

/// The conformance list: a new store adds a line here.
const SUBJECTS: [Subject; 5] = [
    Subject {
        name: "null",
        open: || Ok(Box::new(NullStore::new())),
        bounded: None,
    },
    Subject {
        name: "memory",
        open: || Ok(Box::new(MemoryStore::new(MemoryOptions::default()))),
        bounded: Some(bounded_memory),
    },
    Subject {
        name: "memory-retention",
        open: || Ok(Box::new(MemoryStore::new(kept_for_an_hour()))),
        bounded: None,
    },
    Subject {
        name: "ring",
        open: || Ok(Box::new(RingStore::new(RingOptions::default())?)),
        bounded: Some(bounded_ring),
    },
    Subject {
        name: "ring-small",
        open: || Ok(Box::new(RingStore::new(small_ring())?)),
        bounded: None,
    },
];

fn small_ring() -> RingOptions {
    RingOptions {
        slot_ns: 100_000_000,
        retention_ns: 301 * SECOND,
        ..RingOptions::default()
    }
}

fn kept_for_an_hour() -> MemoryOptions {
    MemoryOptions {
        retention_ns: Some(3_600 * SECOND),
        ..MemoryOptions::default()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the list holds functions that may fail")]
fn bounded_memory() -> Result<Bounded> {
    let options = MemoryOptions {
        max_bytes: Some(1 << 20),
        max_series: Some(20),
        ..MemoryOptions::default()
    };
    Ok(Bounded {
        store: Box::new(MemoryStore::new(options)),
        max_series: 20,
        fills_up: true,
    })
}

fn bounded_ring() -> Result<Bounded> {
    let options = RingOptions {
        max_series: 20,
        max_bytes: 10 * 322_560,
        ..RingOptions::default()
    };
    Ok(Bounded {
        store: Box::new(RingStore::new(options)?),
        max_series: 20,
        fills_up: true,
    })
}

impl Subject {
    fn fixture<S: Store>(self, wrapper: &str, wrap: fn(Box<dyn Store>) -> Result<S>) -> Fresh {
        let name = match wrapper {
            "" => self.name.to_owned(),
            wrapper => format!("{wrapper}+{}", self.name),
        };
        let fixture = Fresh::new(name, move || wrap((self.open)()?));
        match self.bounded {
            None => fixture,
            Some(open) => fixture.bounded(move || {
                let bounded = open()?;
                Ok(Bounded {
                    store: Box::new(wrap(bounded.store)?),
                    ..bounded
                })
            }),
        }
    }

    /// The store itself, as an `Arc`, and behind a throttle.
    fn fixtures(self) -> [Fresh; 3] {
        [
            self.fixture("", Ok),
            self.fixture("arc", |store| Ok(Arc::new(store))),
            self.fixture("throttle", throttled),
        ]
    }
}

/// Slow and stalling in virtual time, but without faults: it must be as good as what it wraps.
fn throttled(inner: Box<dyn Store>) -> Result<Throttle<Box<dyn Store>>> {
    let options = ThrottleOptions {
        rate_per_second: Some(1_000_000),
        stall_every_ns: Some(1_000_000),
        stall_for_ns: Some(100_000),
        ..ThrottleOptions::default()
    };
    Throttle::new(inner, options, Arc::new(ManualClock::new()))
}

fn main() -> ExitCode {
    conformance::main(SUBJECTS.into_iter().flat_map(Subject::fixtures))
}
