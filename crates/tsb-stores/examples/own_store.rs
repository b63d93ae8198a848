//! A store of your own: implement [`Store`], run the conformance suite, measure it.
//!
//! `cargo run --release --example own_store -p tsb-stores --features conformance` prints every
//! check, and then the cost of a write and of a query. Start from this file: replace the map,
//! keep the rest. It is *not* fast, and its figures say so.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::time::thread_cpu_ns;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::conformance::{self, Fresh, libtest_mimic::Arguments};
use tsb_stores::{
    Ack, Capabilities, Error, Footprint, Position, Query, Refusals, Result, Scope, Stats, Store, StoreExt, TimeRange,
    Visitor,
};

/// Sorted maps behind one lock.
#[derive(Debug, Default)]
struct OwnStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    keys: BTreeMap<SeriesId, SeriesKey>,
    samples: BTreeMap<SeriesId, BTreeMap<Timestamp, f64>>,
    accepted: u64,
    superseded: u64,
    is_closed: bool,
}

impl OwnStore {
    /// The state of an open store (clause 10).
    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed { Err(Error::Closed) } else { Ok(state) }
    }

    fn unsupported(&self, what: &'static str) -> Error {
        let store = self.to_string();
        Error::Unsupported { store, what }
    }
}

impl State {
    /// An undefined id is an error, before anything is applied (clause 3).
    fn check(&self, mut ids: impl Iterator<Item = SeriesId>) -> Result<()> {
        let unknown = ids.find(|id| !self.keys.contains_key(id));
        unknown.map_or(Ok(()), |id| Err(Error::UnknownSeries { id }))
    }
}

impl fmt::Display for OwnStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("own")
    }
}

impl Store for OwnStore {
    // Every claim made here is tested; what is not claimed must answer `Unsupported`.
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Durability::Volatile, Durability::Volatile)
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut state = self.open()?;
        for (id, key) in series {
            let conflict = match state.keys.get(id) {
                Some(existing) if existing == key => continue,
                Some(existing) => Some((*id, existing)),
                None => state
                    .keys
                    .iter()
                    .find(|(_, other)| *other == key)
                    .map(|(id, key)| (*id, key)),
            };
            if let Some((id, existing)) = conflict {
                let existing = existing.to_string();
                return Err(Error::Conflict { id, existing });
            }
            state.keys.insert(*id, key.clone());
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, _refused: &mut Refusals) -> Result<Ack> {
        let mut state = self.open()?;
        state.check(batch.iter().map(|(id, ..)| id))?;
        for (id, at, value) in batch.iter() {
            let replaced = state.samples.entry(id).or_default().insert(at, value);
            state.superseded += u64::from(replaced.is_some());
        }
        state.accepted += batch.len() as u64;
        Ok(Ack::new(batch.len(), 0, Position(state.accepted), Durability::Volatile))
    }

    fn durable(&self, level: Durability) -> Position {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Position(if level > Durability::Volatile {
            0
        } else {
            state.accepted
        })
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        drop(self.open()?);
        if level > Durability::Volatile {
            Err(self.unsupported("flush"))
        } else {
            Ok(())
        }
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.open()?.check(query.series.iter().copied())?;
        if query.resample.is_some() {
            return Err(self.unsupported("resample"));
        }
        for &id in query.series.iter().filter(|_| query.range.start < query.range.end) {
            // Copied under the lock, visited without it: a slow reader holds up no writer.
            let (times, values): (Vec<_>, Vec<_>) = match self.open()?.samples.get(&id) {
                Some(samples) => samples.range(query.range.start..query.range.end).unzip(),
                None => continue,
            };
            if !times.is_empty() && visit(id, &times, &values) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let state = self.open()?;
        state.check(series.iter().copied())?;
        for (id, slot) in series.iter().zip(into) {
            *slot = state
                .samples
                .get(id)
                .and_then(|samples| samples.keys().next_back().copied());
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = state.samples.values().map(|samples| samples.len() as u64).sum();
        let head_bytes = samples * size_of::<(Timestamp, f64)>() as u64;
        let mut stats = Stats::new(state.keys.len() as u64, samples, state.accepted);
        stats.superseded = state.superseded;
        stats.footprint = Footprint::of_heads(head_bytes);
        stats
    }

    fn close(&self) -> Result<()> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        Ok(())
    }
}

/// Writes whole ticks and reads them back. Returns CPU-nanoseconds of this thread per sample,
/// written and read.
fn measure(store: &dyn Store, series: u32, ticks: i64) -> Result<(f64, f64)> {
    let keys = (0..series).map(|id| (SeriesId(id), SeriesKey::new(format!("series{id}"))));
    store.define(&keys.collect::<Vec<_>>())?;
    let values: Vec<f64> = (0..series).map(f64::from).collect();
    let samples = f64::from(series) * ticks as f64;
    let start = thread_cpu_ns();
    for tick in 0..ticks {
        let _ = store.write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(tick), &values))?;
    }
    let written = thread_cpu_ns();
    let mut read = 0_usize;
    for id in 0..series {
        read += store.samples(SeriesId(id), TimeRange::ALL)?.len();
    }
    let end = thread_cpu_ns();
    assert_eq!(read as f64, samples, "what is measured must also be right");
    Ok(((written - start) as f64 / samples, (end - written) as f64 / samples))
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn main() -> ExitCode {
    let conclusion = conformance::run(&Arguments::from_args(), [Fresh::new("own", || Ok(OwnStore::default()))]);
    if conclusion.has_failed() {
        return conclusion.exit_code();
    }
    let store = OwnStore::default();
    match measure(&store, 1_000, 200) {
        Ok((write_ns, read_ns)) => {
            println!("{store}: {write_ns:.1} CPU-ns a sample written, {read_ns:.1} read; volatile");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{store}: {error}");
            ExitCode::FAILURE
        }
    }
}
