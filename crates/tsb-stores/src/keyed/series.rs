//! Keys in any store of samples, so that a metric store can be asked what HM9000 asked etcd.
//!
//! The mapping: a key is a series, and a put of it (a heartbeat) is a sample. Its timestamp is
//! the time of the put, and its value is the number of *what* was put: a table in memory has the
//! text and the time to live for each number. A deletion is a sample with the value 0. So a key
//! is there if its newest sample is not 0, and younger than the time to live that it names.
//!
//! Every answer is read from the store of samples; the table only says what a number means. Keys,
//! series and that table are of one opening: the contract of a store of samples has no list of
//! series, so nothing is there when the place is opened again.

mod names;

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, RwLock};

use tsb_core::time::Clock;
use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::contract::{KeyedCapabilities, KeyedStore, KeyedVisitor, MAX_VALUE_BYTES, Put, PutAck};
use super::key::Key;
use crate::error::{Error, Result};
use crate::locks::{lock, read, write};
use crate::open_state::ClosedFlag;
use crate::store::{Exactness, OnConflict, Query, Reason, Refusals, Store, TimeRange};
use names::{DELETED, Names};

/// Number of keys that are read with one query.
const PAGE: usize = 1024;
/// Coarsest resolution of timestamps that can be used, in nanoseconds.
const RESOLUTION_MAX_NS: i64 = 1_000_000;

/// Limits of keys in a store of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedSeriesOptions {
    /// Maximum number of keys that are ever put.
    pub max_keys: usize,
    /// Maximum number of different values, each with its time to live, that are ever put.
    pub max_values: usize,
}

impl Default for KeyedSeriesOptions {
    fn default() -> Self {
        Self {
            max_keys: 1_000_000,
            max_values: 1_000_000,
        }
    }
}

/// Keys in a store of samples; see the module's documentation.
#[derive(Debug)]
pub struct KeyedSeries<S> {
    store: S,
    clock: Arc<dyn Clock>,
    /// The time of day at the start of the clock, in nanoseconds since the epoch.
    start_ns: i64,
    resolution_ns: i64,
    names: RwLock<Names>,
    /// Held while what is there is counted and deleted.
    deleting: Mutex<()>,
    closed: ClosedFlag,
}

/// Samples to be written, one per put that was not refused before.
#[derive(Default)]
struct Samples {
    /// The index of the put.
    indices: Vec<usize>,
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl<S: Store> KeyedSeries<S> {
    /// Keys in an empty store, which expire by the time of day of this clock.
    ///
    /// # Errors
    /// [`Error::Spec`] for a store that cannot carry the mapping: it must keep exact values for
    /// ever, with timestamps of a millisecond or finer, accept late samples and let the later of
    /// two samples of one time win, and show what it has accepted at once.
    pub fn new(store: S, options: KeyedSeriesOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let capabilities = store.capabilities();
        let needs = [
            (capabilities.query, "be readable"),
            (capabilities.exactness == Exactness::Exact, "keep exact values"),
            (capabilities.resolution_ns <= RESOLUTION_MAX_NS, "keep milliseconds"),
            (
                capabilities.duplicate == OnConflict::Accepted,
                "let the later of two samples of one time win",
            ),
            (capabilities.late == OnConflict::Accepted, "accept late samples"),
            (capabilities.retention_ns.is_none(), "have no retention"),
            (
                capabilities.visibility_delay_ms == 0,
                "show at once what it has accepted",
            ),
        ];
        if let Some((_, need)) = needs.iter().find(|(has, _)| !has) {
            return Err(Error::Spec {
                spec: format!("series+{store}"),
                what: format!("a store that holds keys must {need}; memory: and sqlite: do"),
            });
        }
        Ok(Self {
            start_ns: clock.wall().0.saturating_sub(clock.now() as i64),
            resolution_ns: capabilities.resolution_ns,
            store,
            clock,
            names: RwLock::new(Names::new(options.max_keys, options.max_values)),
            deleting: Mutex::default(),
            closed: ClosedFlag::new(),
        })
    }

    /// Nanoseconds since the epoch.
    fn now(&self) -> i64 {
        self.start_ns.saturating_add(self.clock.now() as i64)
    }

    /// The time for samples of now: rounded up, so that no key expires early.
    fn sample_time(&self) -> Timestamp {
        let now = self.now();
        let over = now.rem_euclid(self.resolution_ns);
        Timestamp(if over == 0 {
            now
        } else {
            now + self.resolution_ns - over
        })
    }

    /// Writes samples; what the store refuses is appended to `refused`. Returns how many that was,
    /// and the level that the others have.
    fn write(&self, samples: &Samples, refused: &mut Refusals) -> Result<(usize, tsb_core::Durability)> {
        let batch = Batch::new(Ids::Each(&samples.ids), Times::Each(&samples.times), &samples.values);
        let mut own = Refusals::new();
        let ack = self.store.write(&batch, &mut own)?;
        for refusal in own.as_slice() {
            refused.push(samples.indices[refusal.index as usize], refusal.reason);
        }
        Ok((ack.rejected, ack.durability))
    }

    /// The values of the keys that are there, of at most [`PAGE`] ones.
    fn values(&self, ids: &[SeriesId]) -> Result<HashMap<SeriesId, Arc<str>>> {
        let mut newest = vec![None; ids.len()];
        self.store.newest(ids, &mut newest)?;
        let mut written: Vec<(Timestamp, SeriesId)> = newest
            .iter()
            .zip(ids)
            .filter_map(|(at, id)| at.map(|at| (at, *id)))
            .collect();
        written.sort_unstable();
        let mut found: HashMap<SeriesId, (Timestamp, f64)> = HashMap::with_capacity(written.len());
        // One query for all keys that were put at one time, as those of one call are. It is open
        // to the end, since a key may be put again meanwhile.
        for group in written.chunk_by(|one, other| one.0 == other.0) {
            let series: Vec<SeriesId> = group.iter().map(|(_, id)| *id).collect();
            let query = Query {
                series: &series,
                range: TimeRange {
                    start: group[0].0,
                    end: Timestamp::MAX,
                },
                resample: None,
            };
            self.store.query(&query, &mut |id, times, values| {
                if let (Some(at), Some(value)) = (times.last(), values.last()) {
                    found.insert(id, (*at, *value));
                }
                ControlFlow::Continue(())
            })?;
        }
        let (now, names) = (self.now(), read(&self.names));
        let value = |(id, (at, number)): (SeriesId, (Timestamp, f64))| Some((id, names.value(number, at, now)?));
        Ok(found.into_iter().filter_map(value).collect())
    }

    /// Writes that these keys are deleted. Returns how many were there.
    fn delete_series(&self, ids: &[SeriesId]) -> Result<usize> {
        let _deleting = lock(&self.deleting);
        let mut deleted = 0;
        for page in ids.chunks(PAGE) {
            let there = self.values(page)?;
            if there.is_empty() {
                continue;
            }
            let at = self.sample_time();
            let mut samples = Samples::default();
            let mut names = write(&self.names);
            for (index, id) in page.iter().enumerate().filter(|(_, id)| there.contains_key(id)) {
                samples.push(index, *id, names.advance(*id, at), DELETED);
            }
            drop(names);
            let (rejected, _) = self.write(&samples, &mut Refusals::new())?;
            if rejected > 0 {
                return Err(Error::Overloaded {
                    store: self.to_string(),
                    what: format!("it refused {rejected} of {} deletions", samples.ids.len()),
                });
            }
            deleted += there.len();
        }
        Ok(deleted)
    }
}

impl Samples {
    fn push(&mut self, index: usize, id: SeriesId, at: Timestamp, value: f64) {
        self.indices.push(index);
        self.ids.push(id);
        self.times.push(at);
        self.values.push(value);
    }
}

impl<S: Store> fmt::Display for KeyedSeries<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "series+{}", self.store)
    }
}

impl<S: Store> KeyedStore for KeyedSeries<S> {
    fn capabilities(&self) -> KeyedCapabilities {
        let of_store = self.store.capabilities();
        KeyedCapabilities {
            copies: of_store.copies,
            // What rounding a time to the resolution adds.
            late_expiry_ns: (self.resolution_ns - 1) as u64,
            names_stay: true,
            ..KeyedCapabilities::new(of_store.acknowledges)
        }
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        self.closed.check_open()?;
        let before = refused.len();
        let (mut samples, mut new) = (Samples::default(), Vec::new());
        let at = self.sample_time();
        let mut names = write(&self.names);
        for (index, put) in puts.iter().enumerate() {
            let named = if put.value.len() > MAX_VALUE_BYTES {
                Err(Reason::Unrepresentable)
            } else {
                names
                    .number(&put.value, put.ttl_ns)
                    .and_then(|number| Ok((names.id(&put.key, &mut new)?, number)))
            };
            match named {
                Ok((id, number)) => samples.push(index, id, names.advance(id, at), number),
                Err(reason) => refused.push(index, reason),
            }
        }
        // Under the lock: no other call may write a series before it is defined.
        if let Err(error) = self.store.define(&new) {
            names.forget(&new);
            return Err(error);
        }
        drop(names);
        let (_, durability) = self.write(&samples, refused)?;
        let rejected = refused.len() - before;
        Ok(PutAck::new(puts.len() - rejected, rejected, durability))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        self.closed.check_open()?;
        let mut ids: Vec<SeriesId> = {
            let names = read(&self.names);
            keys.iter().filter_map(|key| names.known(key)).collect()
        };
        ids.sort_unstable();
        ids.dedup();
        self.delete_series(&ids)
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.closed.check_open()?;
        let all = read(&self.names).below(prefix, None, usize::MAX);
        let ids: Vec<SeriesId> = all.into_iter().map(|(_, id)| id).collect();
        self.delete_series(&ids).map(drop)
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.closed.check_open()?;
        let Some(id) = read(&self.names).known(key) else {
            return Ok(None);
        };
        Ok(self.values(&[id])?.get(&id).map(|value| value.as_ref().to_owned()))
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        self.closed.check_open()?;
        let mut after: Option<Key> = None;
        loop {
            let page = read(&self.names).below(prefix, after.as_ref(), PAGE);
            let ids: Vec<SeriesId> = page.iter().map(|(_, id)| *id).collect();
            let values = self.values(&ids)?;
            for (key, id) in &page {
                if values.get(id).is_some_and(|value| visit(key, value).is_break()) {
                    return Ok(());
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(()),
            }
        }
    }

    fn close(&self) -> Result<()> {
        self.closed.close();
        self.store.close()
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::time::ManualClock;

    use super::*;
    use crate::memory::{MemoryOptions, MemoryStore};
    use crate::ring::{RingOptions, RingStore};

    #[test]
    fn a_key_is_a_series_and_each_put_a_sample() {
        let clock: Arc<ManualClock> = Arc::default();
        let keys = KeyedSeries::new(
            Arc::new(MemoryStore::new(MemoryOptions::default())),
            KeyedSeriesOptions::default(),
            clock.clone(),
        )
        .unwrap();
        let key = Key::new("presence/a").unwrap();
        let put = |value: &str| keys.put(&[Put::new(key.clone(), value)], &mut Refusals::new()).unwrap();
        for value in ["up", "up", "down", "up"] {
            clock.advance(1_000);
            assert_eq!(put(value).accepted, 1);
        }
        assert_eq!(keys.delete(std::slice::from_ref(&key)).unwrap(), 1);
        let store = &keys.store;
        assert_eq!((store.stats().series, store.stats().accepted), (1, 5));
        let mut samples = Vec::new();
        let query = Query {
            series: &[SeriesId(0)],
            range: TimeRange::ALL,
            resample: None,
        };
        let visit = &mut |_, times: &[Timestamp], values: &[f64]| {
            samples.extend(times.iter().map(|at| at.0).zip(values.iter().copied()));
            ControlFlow::Continue(())
        };
        store.query(&query, visit).unwrap();
        // The deletion came at the time of the last put, so it replaced that sample.
        assert_eq!(samples, [(1_000, 1.0), (2_000, 1.0), (3_000, 2.0), (4_000, 0.0)]);
    }

    #[test]
    fn a_store_that_would_lose_keys_is_refused_with_what_is_missing() {
        let new = |store: Box<dyn Store>| {
            let keys = KeyedSeries::new(store, KeyedSeriesOptions::default(), Arc::new(ManualClock::new()));
            keys.unwrap_err().to_string()
        };
        let error = new(Box::new(RingStore::new(RingOptions::default()).unwrap()));
        assert!(
            error.contains("series+ring") && error.contains("must keep exact values"),
            "{error}"
        );
        let forgets = MemoryOptions {
            retention_ns: Some(1),
            ..MemoryOptions::default()
        };
        let error = new(Box::new(MemoryStore::new(forgets)));
        assert!(error.contains("must have no retention"), "{error}");
    }
}
