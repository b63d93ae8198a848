//! A store over an embedded database, [redb](https://docs.rs/redb), written the way you would
//! for a database of your own: rows of (series, timestamp) and value in one file.
//!
//! `src/main.rs` makes a complete run with it; `tests/conformance.rs` checks it against the
//! store contract. Clauses are those of the contract, in the docs of [`tsb_stores::Store`].

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{
    Ack, Capabilities, Error, Footprint, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor,
};

/// Series names, each with its number in this file.
const NAMES: TableDefinition<'_, &str, u32> = TableDefinition::new("names");
/// Values as bits, by series number and timestamp in nanoseconds.
const SAMPLES: TableDefinition<'_, (u32, i64), u64> = TableDefinition::new("samples");

/// Rows in a file of redb. A write is acknowledged as volatile; a flush makes it synced.
#[derive(Debug)]
pub struct RedbStore {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once closed: dropping it releases the file's lock.
    database: Option<Database>,
    /// The first failed commit: after it, the contents of the file are unknown (clause 9).
    poison: Option<String>,
    series: BTreeMap<SeriesId, Series>,
    /// Samples in the file, including those of earlier openings.
    samples: u64,
    accepted: u64,
    superseded: u64,
    synced: u64,
}

#[derive(Debug)]
struct Series {
    key: SeriesKey,
    number: u32,
    /// Kept here, so that `newest` reads nothing (clause 11).
    newest: Option<Timestamp>,
}

fn failed(action: &str, path: &Path, source: redb::Error) -> Error {
    Error::Backend {
        action: format!("{action} {}", path.display()),
        source: source.into(),
    }
}

impl RedbStore {
    /// Opens a file, or creates it.
    ///
    /// # Errors
    /// If it cannot be opened: another process has it open, or it is not a redb file.
    pub fn open(path: &Path) -> Result<Self> {
        let open = || -> std::result::Result<(Database, u64), redb::Error> {
            let database = Database::create(path)?;
            let tables = database.begin_write()?;
            tables.open_table(NAMES)?;
            let samples = tables.open_table(SAMPLES)?.len()?;
            tables.commit()?;
            Ok((database, samples))
        };
        let (database, samples) = open().map_err(|error| failed("open", path, error))?;
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                database: Some(database),
                poison: None,
                series: BTreeMap::new(),
                samples,
                accepted: 0,
                superseded: 0,
                synced: 0,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of an open store on which nothing has failed.
    fn enter(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        match &state.poison {
            _ if state.database.is_none() => Err(Error::Closed),
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(state),
        }
    }

    /// Runs `change` in a transaction and commits it.
    fn commit<T>(
        &self,
        state: &mut State,
        level: redb::Durability,
        change: impl FnOnce(&WriteTransaction) -> std::result::Result<T, redb::Error>,
    ) -> Result<T> {
        let Some(database) = &state.database else {
            return Err(Error::Closed);
        };
        let committed = || -> std::result::Result<T, redb::Error> {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(level).map_err(redb::Error::from)?;
            let changed = change(&transaction)?;
            transaction.commit()?;
            Ok(changed)
        };
        committed().map_err(|error| {
            state.poison = Some(error.to_string());
            failed("commit to", &self.path, error)
        })
    }
}

impl State {
    fn series(&self, id: SeriesId) -> Result<&Series> {
        self.series.get(&id).ok_or(Error::UnknownSeries { id })
    }

    /// Checks whether an id is bound to a key already; refuses one that is bound to something
    /// else.
    fn is_defined(&self, id: SeriesId, key: &SeriesKey) -> Result<bool> {
        let bound = self.series.get(&id).map(|series| (id, series));
        let bound = bound.or_else(|| {
            let mut all = self.series.iter();
            all.find(|(_, series)| series.key == *key)
                .map(|(id, series)| (*id, series))
        });
        match bound {
            None => Ok(false),
            Some((bound, series)) if bound == id && series.key == *key => Ok(true),
            Some((id, series)) => Err(Error::Conflict {
                id,
                existing: series.key.to_string(),
            }),
        }
    }
}

impl fmt::Display for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redb {}", self.path.display())
    }
}

impl Store for RedbStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Volatile, Durability::Synced);
        capabilities.persistent = true;
        capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let state = &mut *self.enter()?;
        for (id, key) in series {
            if state.is_defined(*id, key)? {
                continue;
            }
            // Names are few, so they are synced: otherwise a power cut could give one number to
            // two names.
            let (number, newest) = self.commit(state, redb::Durability::Immediate, |tables| {
                let (mut names, samples) = (tables.open_table(NAMES)?, tables.open_table(SAMPLES)?);
                let (name, next) = (key.to_string(), names.len()? as u32);
                let known = names.get(name.as_str())?.map(|number| number.value());
                let number = known.unwrap_or(next);
                names.insert(name.as_str(), number)?;
                let newest = samples.range((number, i64::MIN)..=(number, i64::MAX))?.next_back();
                let newest = newest.transpose()?.map(|(row, _)| Timestamp(row.value().1));
                Ok((number, newest))
            })?;
            let key = key.clone();
            state.series.insert(*id, Series { key, number, newest });
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, _refused: &mut Refusals) -> Result<Ack> {
        let state = &mut *self.enter()?;
        // Before anything is applied (clause 3).
        let rows = batch
            .iter()
            .map(|(id, at, value)| Ok((state.series(id)?.number, at.0, value.to_bits())));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let superseded = self.commit(state, redb::Durability::None, |tables| {
            let (mut samples, mut superseded) = (tables.open_table(SAMPLES)?, 0);
            for (number, at, value) in rows {
                superseded += u64::from(samples.insert((number, at), value)?.is_some());
            }
            Ok(superseded)
        })?;
        for (id, at, _) in batch.iter() {
            if let Some(series) = state.series.get_mut(&id) {
                series.newest = series.newest.max(Some(at));
            }
        }
        state.accepted += batch.len() as u64;
        state.superseded += superseded;
        state.samples += batch.len() as u64 - superseded;
        Ok(Ack::new(batch.len(), 0, Position(state.accepted), Durability::Volatile))
    }

    fn durable(&self, level: Durability) -> Position {
        let state = self.state();
        Position(if level <= Durability::Volatile {
            state.accepted
        } else {
            state.synced
        })
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        let state = &mut *self.enter()?;
        if level > Durability::Volatile {
            // A durable commit includes all earlier commits.
            self.commit(state, redb::Durability::Immediate, |_| Ok(()))?;
            state.synced = state.accepted;
        }
        Ok(())
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        if query.resample.is_some() {
            let (store, what) = (self.to_string(), "resample");
            return Err(Error::Unsupported { store, what });
        }
        // A snapshot: the rows are read and visited without the lock (clause 7).
        let (numbers, snapshot) = {
            let state = self.enter()?;
            let numbers = query.series.iter().map(|id| Ok((*id, state.series(*id)?.number)));
            let database = state.database.as_ref().ok_or(Error::Closed)?;
            let snapshot = database.begin_read().map_err(redb::Error::from);
            (numbers.collect::<Result<Vec<_>>>()?, snapshot)
        };
        let read = |number| -> std::result::Result<(Vec<Timestamp>, Vec<f64>), redb::Error> {
            let range = (number, query.range.start.0)..(number, query.range.end.0);
            let rows = snapshot
                .as_ref()
                .map_err(|error| redb::Error::Corrupted(error.to_string()))?;
            let rows = rows.open_table(SAMPLES)?.range(range)?;
            let rows = rows.map(|row| row.map(|(at, value)| (Timestamp(at.value().1), f64::from_bits(value.value()))));
            Ok(rows.collect::<std::result::Result<Vec<_>, _>>()?.into_iter().unzip())
        };
        for (id, number) in numbers.into_iter().filter(|_| query.range.start < query.range.end) {
            let (times, values) = read(number).map_err(|error| failed("read", &self.path, error))?;
            if !times.is_empty() && visit(id, &times, &values) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let state = self.enter()?;
        for (id, slot) in series.iter().zip(into) {
            *slot = state.series(*id)?.newest;
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let state = self.state();
        let mut stats = Stats::new(state.series.len() as u64, state.samples, state.accepted);
        stats.superseded = state.superseded;
        let bytes = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        stats.footprint = Footprint::of_sealed(bytes, state.samples);
        stats
    }

    fn close(&self) -> Result<()> {
        let state = &mut *self.state();
        let is_sound = state.poison.is_none() && state.database.is_some();
        let flushed = if is_sound {
            self.commit(state, redb::Durability::Immediate, |_| Ok(()))
        } else {
            Ok(())
        };
        if flushed.is_ok() && is_sound {
            state.synced = state.accepted;
        }
        state.database = None;
        flushed
    }
}
