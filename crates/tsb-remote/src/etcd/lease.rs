//! Expiry: samples are attached to leases, and etcd removes them with the lease.
//!
//! A lease is shared by all samples of an eighth of the time to live, and lasts for twice the
//! time to live, so that unexpired samples are still there when a run is read back.

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::connection::{CallError, EtcdConnection};
use super::message::LeaseGrant;

/// The leases of one client, one after the other.
#[derive(Debug)]
pub(super) struct Leases {
    ttl_ns: u64,
    clock: MonotonicClock,
    current: tokio::sync::Mutex<Option<Lease>>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: i64,
    granted: u64,
}

impl Leases {
    pub(super) fn new(ttl_ns: i64) -> Self {
        Self {
            ttl_ns: ttl_ns.max(1) as u64,
            clock: MonotonicClock::new(),
            current: tokio::sync::Mutex::default(),
        }
    }

    /// The lease for samples written now.
    pub(super) async fn id(&self, connection: &EtcdConnection) -> std::result::Result<i64, CallError> {
        let mut current = self.current.lock().await;
        let now = self.clock.now();
        if let Some(lease) = current.filter(|lease| now < lease.granted + self.ttl_ns / 8) {
            return Ok(lease.id);
        }
        let ttl_s = (2 * self.ttl_ns).div_ceil(SECOND_NS) as i64;
        let id = connection.call(LeaseGrant { ttl_s }).await?.id;
        *current = Some(Lease { id, granted: now });
        Ok(id)
    }
}
