//! Hawkular's interface over a store.

use std::sync::Arc;

use tsb_core::net::{Address, AnyListener, Carrier, Intake, IntakeSink, ListenOptions, NetError, Runtime};
use tsb_core::time::Clock;
use tsb_core::wire::Room;
use tsb_core::wire::http::hawkular::{Hawkular, HawkularOptions};

use super::read_through::ReadThrough;

/// A listener for Hawkular's clients: how it answers, and the store that it reads.
#[derive(Debug)]
pub struct HawkularListen {
    /// Whose answers it gives.
    pub answers: HawkularOptions,
    /// Memory for names, tags, bodies and answers of all its connections.
    pub room: Room,
    /// What is read.
    pub read: ReadThrough,
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
        let (read, its_clock) = (self.read, Arc::clone(clock));
        let intake = move |_: &Address| Intake {
            decoder: Box::new(endpoint.decoder(&its_clock, read.reader())),
            sink: Box::new(sink()),
        };
        let (handle, clock) = (runtime.handle(), Arc::clone(clock));
        AnyListener::bind(handle, Carrier::Requests, address, options, intake, clock, None)
    }
}
