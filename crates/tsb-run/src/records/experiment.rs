//! The whole experiment: every cell of every store has one sample per round, in a random order, each
//! in a fresh place.

mod absent;
mod budget;
mod published;
mod summary;

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::report::experiment::records::{AppSample, RecordSample, RecordsDetails, RecordsPlan, TestedStore};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_stores::keyed::{Key, KeyedStore, Put};

use super::INSTANCES;
use super::answer::{Read, check, read};
use super::batch::RecordBatch;
use super::content::{APPS, RECORDS, instances, records};
use super::requests::{kept_by, tested};
use crate::error::{Error, chain};
use crate::experiment::{Folder, in_rounds};
use crate::hm9000::{Layout, Opening, key};
use budget::Budget;

pub use published::{MISTAKES, rows};

/// A store takes no further part after this many failures.
const FAILURES_MAX: u32 = 3;

/// What is asked of the experiment.
#[derive(Debug)]
pub struct Request<'a> {
    /// The settings, which the report repeats.
    pub plan: RecordsPlan,
    /// The stores of `plan.stores`.
    pub layouts: Vec<Layout>,
    /// The folder for files of stores.
    pub folder: &'a Path,
    /// Ends it early, with what was found.
    pub stop: Arc<AtomicBool>,
}

/// What has a turn in each round: a cell of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TestedCell {
    /// The index of the store.
    store: usize,
    of: CellKind,
}

/// What a sample of a cell writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellKind {
    /// A batch of records.
    Records { in_flight: usize, size: usize },
    /// A heartbeat of this number of apps.
    Apps(usize),
}

impl fmt::Display for CellKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records { in_flight, size } => write!(f, "{in_flight} in flight, {size} bytes"),
            Self::Apps(apps) => write!(f, "{apps} apps"),
        }
    }
}

struct Experiment<'a> {
    request: &'a Request<'a>,
    clock: Arc<dyn Clock>,
    places: u32,
    budget: Budget,
    /// What is known of each store that was opened.
    stores: Vec<Option<TestedStore>>,
    /// Number of failures of each store.
    failed: Vec<u32>,
    details: RecordsDetails,
}

/// Runs the experiment. A store that cannot be used is a failure in the result, and the others go
/// on.
pub fn measure(request: &Request<'_>, say: &mut dyn FnMut(&str)) -> RecordsDetails {
    let plan = &request.plan;
    let stores = request.layouts.len();
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let mut experiment = Experiment {
        request,
        budget: Budget::new(plan.budget_seconds, stores, clock.now()),
        clock,
        places: 0,
        stores: vec![None; stores],
        failed: vec![0; stores],
        details: RecordsDetails::default(),
    };
    let cells = cells(plan, stores);
    let mut rounds_begun = 0;
    in_rounds(plan.seed, plan.samples, cells.len(), |turn| {
        if experiment.is_stopped() {
            return ControlFlow::Break(());
        }
        if turn.round == rounds_begun {
            rounds_begun += 1;
            say(&format!(
                "round {rounds_begun} of {}: {} cells of {stores} stores, in random order",
                plan.samples,
                cells.len()
            ));
        }
        experiment.turn(cells[turn.of], turn.round);
        ControlFlow::Continue(())
    });
    experiment.ended()
}

/// Every cell of every store.
fn cells(plan: &RecordsPlan, stores: usize) -> Vec<TestedCell> {
    let mut cells = Vec::new();
    for store in 0..stores {
        for &in_flight in &plan.in_flight {
            let of_sizes = plan.sizes.iter().map(|&size| CellKind::Records { in_flight, size });
            cells.extend(of_sizes.map(|of| TestedCell { store, of }));
        }
        let of_apps = plan.apps.iter().map(|&apps| CellKind::Apps(apps));
        cells.extend(of_apps.map(|of| TestedCell { store, of }));
    }
    cells
}

impl Experiment<'_> {
    fn is_stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    /// Takes a sample, unless its store has failed too often or the time is over.
    fn turn(&mut self, cell: TestedCell, round: u32) {
        let keys = match cell.of {
            CellKind::Records { .. } => self.request.plan.records,
            CellKind::Apps(apps) => apps * INSTANCES,
        };
        let began = self.clock.now();
        if self.failed[cell.store] >= FAILURES_MAX || !self.budget.allows(cell.store, keys, began) {
            return;
        }
        let taken = self.sample(cell, round);
        self.budget.note(cell.store, keys, began, self.clock.now());
        let Err(error) = taken else { return };
        if !self.is_stopped() {
            self.failed[cell.store] += 1;
            let store = &self.request.plan.stores[cell.store];
            let about = format!("{store}, {}, round {}: {}", cell.of, round + 1, chain(&error));
            self.details.failures.push(about);
        }
    }

    fn sample(&mut self, cell: TestedCell, round: u32) -> Result<(), Error> {
        let request = self.request;
        let layout = &request.layouts[cell.store];
        // Of this sample alone, so that files do not pile up.
        let folder = Folder::make(request.folder, "sample")?;
        let in_flight = match cell.of {
            CellKind::Records { in_flight, .. } => in_flight,
            CellKind::Apps(_) => request.plan.apps_in_flight,
        };
        self.places += 1;
        let opened = layout.open(&Opening {
            experiment: "records",
            place: self.places,
            folder: folder.path(),
            in_flight,
            clock: Arc::clone(&self.clock),
        });
        // What cannot be opened once is not tried for every cell.
        let opened = opened.inspect_err(|_| self.failed[cell.store] = FAILURES_MAX)?;
        let store = opened.store();
        self.stores[cell.store].get_or_insert_with(|| tested(layout, &store.capabilities()));
        let taken = match cell.of {
            CellKind::Records { in_flight, size } => self.of_records(cell.store, &*store, (in_flight, size), round),
            CellKind::Apps(apps) => self.of_apps(cell.store, &*store, apps, round),
        };
        drop(store);
        let removed = opened.remove();
        taken.and(removed)
    }

    fn of_records(
        &mut self,
        number: usize,
        store: &dyn KeyedStore,
        (in_flight, size): (usize, usize),
        round: u32,
    ) -> Result<(), Error> {
        let plan = &self.request.plan;
        let puts = records(plan.seed, round, plan.records, size).map_err(|error| unnamed(&error))?;
        let (write_seconds, read) = self.written_and_read(number, store, &puts, (in_flight, RECORDS))?;
        self.details.samples.push(RecordSample {
            store: plan.stores[number].clone(),
            in_flight,
            size,
            round,
            write_seconds,
            read_seconds: read.seconds,
            read: check(&puts, &read.pairs),
        });
        Ok(())
    }

    fn of_apps(&mut self, number: usize, store: &dyn KeyedStore, apps: usize, round: u32) -> Result<(), Error> {
        let plan = &self.request.plan;
        let puts = instances(plan.seed, round, apps).map_err(|error| unnamed(&error))?;
        let (write_seconds, read) = self.written_and_read(number, store, &puts, (plan.apps_in_flight, APPS))?;
        let below = folder_of(APPS)?;
        let began = self.clock.now();
        store
            .delete_below(Some(&below))
            .map_err(|error| failed("empty", store, &error))?;
        let delete_seconds = (self.clock.now() - began) as f64 / SECOND_NS as f64;
        self.details.app_samples.push(AppSample {
            store: plan.stores[number].clone(),
            apps,
            round,
            write_seconds,
            read_seconds: read.seconds,
            delete_seconds,
            read: check(&puts, &read.pairs),
            left: self.read(store, &below)?.pairs.len(),
        });
        Ok(())
    }

    /// Writes a batch, and reads what is below a key afterwards. Returns the seconds of the write.
    fn written_and_read(
        &self,
        number: usize,
        store: &dyn KeyedStore,
        puts: &[Put],
        (in_flight, below): (usize, &str),
    ) -> Result<(f64, Read), Error> {
        let batch = RecordBatch {
            puts,
            in_flight,
            kept_by: kept_by(&self.request.layouts[number]),
        };
        let seconds = batch.write(store, &*self.clock, &self.request.stop)?;
        Ok((seconds, self.read(store, &folder_of(below)?)?))
    }

    fn read(&self, store: &dyn KeyedStore, below: &Key) -> Result<Read, Error> {
        read(store, below, &*self.clock).map_err(|error| failed("read", store, &error))
    }

    fn ended(self) -> RecordsDetails {
        let mut details = self.details;
        details.interrupted = self.request.stop.load(Ordering::Relaxed);
        details.absent = absent::absent(&self.request.layouts);
        details.absent.extend(self.budget.left_out(&self.request.plan.stores));
        details.stores = self.stores.into_iter().flatten().collect();
        summary::summarize(&mut details, &self.request.plan);
        details
    }
}

fn folder_of(text: &str) -> Result<Key, Error> {
    key(text).map_err(|error| unnamed(&error))
}

fn unnamed(error: &tsb_stores::Error) -> Error {
    Error::internal("cannot name keys").because(error)
}

fn failed(verb: &str, store: &dyn KeyedStore, error: &tsb_stores::Error) -> Error {
    Error::unreachable(format!("cannot {verb} {store}")).because(error)
}

#[cfg(test)]
mod tests;
