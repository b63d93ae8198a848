//! The store behind a listener through which samples are read, too.

use std::ops::ControlFlow;
use std::sync::Arc;

use tsb_core::net::Registry;
use tsb_core::wire::{SampleReader, Take};
use tsb_core::{SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Query, Store, TimeRange};

use crate::error::chain;

/// What connections read: a store, by the names of their listener.
#[derive(Clone, Debug)]
pub struct ReadThrough {
    /// The store that is read.
    pub store: Arc<dyn Store>,
    /// The ids of series in the store.
    pub registry: Arc<Registry>,
}

impl ReadThrough {
    /// The reader of one connection.
    pub(super) fn reader(&self) -> Box<dyn SampleReader> {
        Box::new(StoreReader {
            store: Arc::clone(&self.store),
            registry: Arc::clone(&self.registry),
        })
    }
}

/// Reads a store by the names of a listener. A series that is new is defined by a read, since only
/// then a store says what it kept of it.
#[derive(Debug)]
struct StoreReader {
    store: Arc<dyn Store>,
    registry: Arc<Registry>,
}

impl StoreReader {
    fn id(&self, key: &SeriesKey) -> Result<SeriesId, String> {
        let resolved = self.registry.resolve(key);
        resolved.map_err(|why| format!("the series is not admitted: {}", why.reason()))
    }
}

impl SampleReader for StoreReader {
    fn samples(
        &mut self,
        key: &SeriesKey,
        start: Timestamp,
        end: Timestamp,
        take: &mut Take<'_>,
    ) -> Result<(), String> {
        let query = Query {
            series: &[self.id(key)?],
            range: TimeRange { start, end },
            resample: None,
        };
        let mut visit = |_: SeriesId, times: &[Timestamp], values: &[f64]| -> ControlFlow<()> { take(times, values) };
        self.store.query(&query, &mut visit).map_err(|error| chain(&error))
    }

    fn newest(&mut self, keys: &[SeriesKey]) -> Result<Vec<Option<Timestamp>>, String> {
        let ids: Result<Vec<SeriesId>, String> = keys.iter().map(|key| self.id(key)).collect();
        let ids = ids?;
        let mut newest = vec![None; ids.len()];
        let asked = self.store.newest(&ids, &mut newest);
        asked.map_err(|error| chain(&error))?;
        Ok(newest)
    }

    fn keys(&self) -> Vec<SeriesKey> {
        self.registry.catalog().keys().to_vec()
    }
}
