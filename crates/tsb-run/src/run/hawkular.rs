//! Hawkular's interface over a store: the one listener through which samples are read, too.

use std::ops::ControlFlow;
use std::sync::Arc;

use tsb_core::net::{Address, AnyListener, Carrier, Intake, IntakeSink, ListenOptions, NetError, Registry, Runtime};
use tsb_core::time::Clock;
use tsb_core::wire::Room;
use tsb_core::wire::http::hawkular::{Hawkular, HawkularOptions, SampleReader, Take};
use tsb_core::{SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Query, Store, TimeRange};

use crate::error::chain;

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

/// A listener for Hawkular's clients: how it answers, and the store that it reads.
#[derive(Debug)]
pub struct HawkularListen {
    /// Whose answers it gives.
    pub answers: HawkularOptions,
    /// Memory for names, tags, bodies and answers of all its connections.
    pub room: Room,
    /// The store that is read.
    pub store: Arc<dyn Store>,
    /// The ids of series in the store.
    pub registry: Arc<Registry>,
}

impl HawkularListen {
    /// Listens at `address`. Samples go to a sink that `sink` makes for each connection, which
    /// knows series by the same registry. Reads and writes block the ingest thread of their
    /// connection and no other, so `options.ingest_threads` requests are worked on at once.
    ///
    /// # Errors
    /// [`NetError::Bind`], or [`NetError::Start`] when there is no thread to spare.
    pub fn listen<S: IntakeSink + 'static>(
        self,
        runtime: &Runtime,
        address: &Address,
        options: ListenOptions,
        clock: &Arc<dyn Clock>,
        sink: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<AnyListener, NetError> {
        let endpoint = Hawkular::new(self.answers, self.room);
        let (store, registry, its_clock) = (self.store, self.registry, Arc::clone(clock));
        let intake = move |_: &Address| {
            let reader = StoreReader {
                store: Arc::clone(&store),
                registry: Arc::clone(&registry),
            };
            Intake {
                decoder: Box::new(endpoint.decoder(&its_clock, Box::new(reader))),
                sink: Box::new(sink()),
            }
        };
        let (handle, clock) = (runtime.handle(), Arc::clone(clock));
        AnyListener::bind(handle, Carrier::Requests, address, options, intake, clock, None)
    }
}
