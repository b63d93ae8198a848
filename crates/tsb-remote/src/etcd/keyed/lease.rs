//! Leases for times to live. Keys that are put within a second, with one time to live, share a
//! lease, which lasts a second longer.

use std::collections::HashMap;

use tokio::sync::Mutex;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::super::connection::{CallError, EtcdConnection};
use super::super::message::LeaseGrant;
use super::batch::whole_seconds;

/// How long keys are attached to one lease, in nanoseconds.
const SHARED_NS: u64 = SECOND_NS;
/// Number of leases that are known at a time; a caller with more times to live gets a new lease
/// more often.
const KNOWN_MAX: usize = 1_000;

/// How much longer than asked for a key may be there, in nanoseconds: the fraction of a second,
/// the second in which a lease is shared, and two in which etcd removes what has expired (it
/// looks every half second, and waits for a majority).
pub(super) const LATE_EXPIRY_NS: u64 = 4 * SECOND_NS;

/// The leases of one client.
#[derive(Debug, Default)]
pub(super) struct SharedLeases {
    clock: MonotonicClock,
    /// The lease for each time to live in seconds, and when it was asked for.
    current: Mutex<HashMap<u64, (i64, u64)>>,
}

impl SharedLeases {
    /// A lease for a put that begins now.
    pub(super) async fn id(&self, connection: &EtcdConnection, ttl_ns: u64) -> Result<i64, CallError> {
        let seconds = whole_seconds(ttl_ns);
        let mut current = self.current.lock().await;
        let now = self.clock.now();
        current.retain(|_, (_, asked)| now < *asked + SHARED_NS);
        if let Some((id, _)) = current.get(&seconds) {
            return Ok(*id);
        }
        let ttl_s = i64::try_from(seconds).unwrap_or(i64::MAX - 1) + 1;
        let id = connection.call(LeaseGrant { ttl_s }).await?.id;
        if current.len() < KNOWN_MAX {
            current.insert(seconds, (id, now));
        }
        Ok(id)
    }
}
