//! HM9000 over a store of keys whose calls cost what a model says, in simulated time.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tsb_core::report::device::DeviceProfile;
use tsb_core::time::{Clock, ManualClock, SECOND_NS};
use tsb_stores::keyed::{
    Key, KeyedCapabilities, KeyedMemory, KeyedMemoryOptions, KeyedStore, KeyedVisitor, Put, PutAck,
};
use tsb_stores::parts::lock;
use tsb_stores::{Refusals, Result};

use super::fingerprint::Fingerprint;
use crate::device::{Device, Request};
use crate::hm9000::{ACTUAL, Event, Heartbeat, Listener, Simulator, SimulatorOptions, key, poll};

/// What the calls of a store of keys cost on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyCosts {
    /// Time of each call, in nanoseconds.
    pub call_ns: u64,
    /// Time of each key that is put, deleted or listed, in nanoseconds.
    pub key_ns: u64,
    /// Bytes that a put key writes to the device.
    pub key_bytes: u64,
    /// Keys that share a sync: those of a whole put for a store with transactions, those in flight
    /// for a server with a request per key. 0: nothing is synced.
    pub keys_per_sync: usize,
}

/// A store in memory whose calls move a clock by what they would cost.
#[derive(Debug)]
pub struct ModelledKeys {
    inner: KeyedMemory,
    clock: Arc<ManualClock>,
    costs: KeyCosts,
    device: Mutex<Device>,
}

impl ModelledKeys {
    /// An empty store on an idle device. Only its calls and the caller may move the clock.
    pub fn new(costs: KeyCosts, device: &DeviceProfile, seed: u64, clock: Arc<ManualClock>) -> Self {
        Self {
            inner: KeyedMemory::new(KeyedMemoryOptions::default(), clock.clone()),
            clock,
            costs,
            device: Mutex::new(Device::new(device, seed)),
        }
    }

    /// Keys below a prefix, at no cost.
    fn count(&self, prefix: &Key) -> Result<usize> {
        let mut count = 0;
        self.inner.list(Some(prefix), &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// Moves the clock by the cost of a call with `keys` keys.
    fn charge(&self, keys: usize) {
        self.clock.advance(self.costs.call_ns + self.costs.key_ns * keys as u64);
    }

    /// Moves the clock by the cost of writing keys and of their syncs.
    fn charge_writes(&self, keys: usize) {
        self.charge(keys);
        let mut left = keys;
        while left > 0 && self.costs.keys_per_sync > 0 {
            let some = left.min(self.costs.keys_per_sync);
            left -= some;
            let mut device = lock(&self.device);
            let written = device.submit(self.clock.now(), Request::Write(self.costs.key_bytes * some as u64));
            self.clock.wait_until(device.sync(written));
        }
    }
}

impl fmt::Display for ModelledKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys in simulated time")
    }
}

impl KeyedStore for ModelledKeys {
    fn capabilities(&self) -> KeyedCapabilities {
        self.inner.capabilities()
    }
    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        self.charge_writes(puts.len());
        self.inner.put(puts, refused)
    }
    fn delete(&self, keys: &[Key]) -> Result<usize> {
        if !keys.is_empty() {
            self.charge_writes(keys.len());
        }
        self.inner.delete(keys)
    }
    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.charge_writes(1);
        self.inner.delete_below(prefix)
    }
    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.charge(1);
        self.inner.get(key)
    }
    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        let mut count = 0;
        self.inner.list(prefix, &mut |key, value| {
            count += 1;
            visit(key, value)
        })?;
        self.charge(count);
        Ok(())
    }
    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

/// What a simulated run of HM9000 found. The desired state is left out: it is written by another
/// process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freshness {
    /// The first second at whose end HM9000's rule called the actual state fresh.
    pub called_fresh_s: Option<u64>,
    /// The first second at whose end every instance was there.
    pub complete_s: Option<u64>,
    /// Polls that called the state fresh while an instance was missing.
    pub wrongly_fresh: u64,
    /// Syncs that took a second or longer, which do not count.
    pub slow_syncs: u64,
    /// The longest sync, in nanoseconds.
    pub sync_max_ns: u64,
    /// A hash of what was found after each second, with its time.
    pub fingerprint: u64,
}

/// Runs the simulator and the listener with its rules as they were, for `seconds` of simulated
/// time. Ticks come every second, whatever the store does; the listener hears them when it has time.
///
/// # Errors
/// If a key of the simulator were invalid, which none is.
pub fn freshness(apps: usize, seconds: u64, costs: KeyCosts, device: &DeviceProfile, seed: u64) -> Result<Freshness> {
    let clock: Arc<ManualClock> = Arc::default();
    let mut simulator = Simulator::new(SimulatorOptions {
        apps,
        new_apps: 0,
        seed,
        ..SimulatorOptions::default()
    });
    let mut listener = Listener::new(ModelledKeys::new(costs, device, seed, clock.clone()), clock.clone());
    let actual = key(ACTUAL)?;
    let (mut found, mut fingerprint) = (Freshness::default(), Fingerprint::default());
    for second in 0.. {
        let published = second * SECOND_NS;
        clock.wait_until(published);
        let mut heard = Ok(());
        simulator.tick(|simulator, event| {
            if heard.is_ok() {
                heard = match event {
                    Event::Advertise(_) => listener.hear_advertise(published),
                    Event::Heartbeat(dea) => Heartbeat::of(simulator, dea)
                        .and_then(|heartbeat| listener.hear_heartbeat(heartbeat, published)),
                };
            }
        });
        heard?;
        // While the listener is late it hears the next tick first.
        if clock.now() >= (second + 1) * SECOND_NS && second + 1 < seconds {
            continue;
        }
        let began = clock.now();
        listener.sync()?;
        let took_ns = clock.now() - began;
        found.slow_syncs += u64::from(took_ns >= SECOND_NS);
        found.sync_max_ns = found.sync_max_ns.max(took_ns);
        let is_fresh = poll(listener.store(), &*clock)?.actual;
        let count = listener.store().count(&actual)?;
        let at_s = clock.now().div_ceil(SECOND_NS);
        if count >= apps {
            found.complete_s.get_or_insert(at_s);
        } else {
            found.wrongly_fresh += u64::from(is_fresh);
        }
        if is_fresh {
            found.called_fresh_s.get_or_insert(at_s);
        }
        fingerprint.add([clock.now(), count as u64, u64::from(is_fresh)]);
        if second + 1 >= seconds || clock.now() >= seconds * SECOND_NS {
            break;
        }
    }
    found.fingerprint = fingerprint.value();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::profile;

    /// A server that takes 1,000 keys per second: thirty in flight share a sync of 30 ms.
    fn server() -> (KeyCosts, DeviceProfile) {
        let mut device = profile();
        device.sync = tsb_core::report::device::DeviceTimes::constant(29_000_000);
        let costs = KeyCosts {
            call_ns: 100_000,
            key_ns: 30_000,
            key_bytes: 300,
            keys_per_sync: 30,
        };
        (costs, device)
    }

    fn of(apps: usize, seconds: u64) -> Freshness {
        let (costs, device) = server();
        freshness(apps, seconds, costs, &device, 1).unwrap()
    }

    #[test]
    fn a_put_costs_its_keys_and_its_syncs() {
        let (costs, device) = server();
        let clock: Arc<ManualClock> = Arc::default();
        let store = ModelledKeys::new(costs, &device, 1, clock.clone());
        let put = |count: usize| {
            let puts: Vec<Put> = (0..count)
                .map(|n| Put::new(Key::new(format!("a/{n}")).unwrap(), "x"))
                .collect();
            let before = clock.now();
            assert_eq!(store.put(&puts, &mut Refusals::new()).unwrap().accepted, count);
            clock.now() - before
        };
        // A write of 60 us and a sync of 29 ms for each thirty.
        assert_eq!(put(1), 100_000 + 30_000 + 60_000 + 29_000_000);
        assert_eq!(put(90), 100_000 + 90 * 30_000 + 3 * 29_060_000);
        let free = ModelledKeys::new(
            KeyCosts {
                keys_per_sync: 0,
                ..costs
            },
            &device,
            1,
            clock.clone(),
        );
        let before = clock.now();
        assert_eq!(free.get(&Key::new("a").unwrap()).unwrap(), None);
        assert_eq!(clock.now() - before, 130_000);
    }

    /// As in the document: fresh after 30 s with few apps, and not in that time beyond 30,000.
    #[test]
    fn the_state_is_fresh_in_time_only_while_the_server_keeps_up() {
        let few = of(2_000, 80);
        assert_eq!((few.called_fresh_s, few.slow_syncs), (Some(31), 0));
        assert!(few.complete_s.is_some_and(|at| at < 12), "{few:?}");
        let more = of(30_000, 46);
        assert!(more.complete_s.is_some_and(|at| (28..60).contains(&at)), "{more:?}");
        assert!(
            more.slow_syncs > 0 && more.called_fresh_s.is_none_or(|at| at >= 30),
            "{more:?}"
        );
        let many = of(60_000, 40);
        assert_eq!(many.called_fresh_s, None, "{many:?}");
        assert_eq!(format!("{:016x}", few.fingerprint), "0e46020a84a986b8");
        assert_eq!(of(2_000, 80), few);
    }
}
