//! Hawkular's interface as Mohawk answers it: gauges written and read, lists, and tags.
//!
//! Read at Mohawk `79b0f45` (0.15.4) and `ad35ae5` (0.33.3), and specified in
//! docs/formats/hawkular.md. A metric of a tenant is a series whose label `tenant` names it; the
//! default tenant has no label. Unlike the other interfaces, this one is read through, too: a
//! [`SampleReader`] is what it knows of a store. A read runs where requests are decoded, on a thread
//! that may block.

mod behaviour;
mod body;
mod buckets;
mod data;
mod json;
mod metrics;
mod route;
mod service;
mod window;

pub use behaviour::{Backend, Behaviour, HawkularOptions};

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::decode::HttpDecoder;
use crate::time::Clock;
use crate::wire::{Room, SampleReader};
use metrics::TagTable;

/// One endpoint: what its connections share.
#[derive(Clone, Debug)]
pub struct Hawkular(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: HawkularOptions,
    room: Room,
    tags: Mutex<TagTable>,
    /// The newest time written, in milliseconds; `i64::MIN` before the first.
    newest_ms: AtomicI64,
}

impl Hawkular {
    /// An endpoint whose names, tags, bodies and answers take memory from `room`.
    pub fn new(options: HawkularOptions, room: Room) -> Self {
        Self(Arc::new(Shared {
            options,
            tags: Mutex::new(TagTable::new(&room.names)),
            room,
            newest_ms: AtomicI64::new(i64::MIN),
        }))
    }

    /// The decoder of one connection. `clock` says what "now" is.
    pub fn decoder(&self, clock: &Arc<dyn Clock>, reader: Box<dyn SampleReader>) -> HttpDecoder {
        let service = service::HawkularService::new(Arc::clone(&self.0), clock, reader);
        HttpDecoder::new(Box::new(service), &self.0.room.held)
    }
}

impl Shared {
    fn tags(&self) -> MutexGuard<'_, TagTable> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrote(&self, at_ms: i64) {
        self.newest_ms.fetch_max(at_ms, Ordering::Relaxed);
    }

    /// The newest time written through this endpoint, if there is one.
    fn newest(&self) -> Option<i64> {
        let newest = self.newest_ms.load(Ordering::Relaxed);
        (newest != i64::MIN).then_some(newest)
    }
}

#[cfg(test)]
mod tests;
