//! As it was, in virtual time over a store that takes a fixed time per key: the same bits each
//! time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use tsb_core::time::{Clock, ManualClock, SECOND_NS};
use tsb_stores::keyed::{
    Key, KeyedCapabilities, KeyedMemory, KeyedMemoryOptions, KeyedStore, KeyedVisitor, Put, PutAck,
};
use tsb_stores::parts::lock;
use tsb_stores::{Refusals, Result};

use super::{FETCH_S, Heard, Report, cluster};
use crate::hm9000::defects::{Defect, Defects};
use crate::hm9000::listener::{Heartbeats, Listener, desired_puts, mark_desired_fresh, poll};
use crate::hm9000::simulator::{Event, Simulator, SimulatorOptions};
use crate::hm9000::truth::Truth;

/// A run as it was in virtual time.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    /// The cluster.
    pub simulator: SimulatorOptions,
    /// The defects in force.
    pub defects: Defects,
    /// Time that the store takes to put, delete or read a key, in nanoseconds; one key at a time.
    pub ns_per_key: u64,
    /// Length of the run, in seconds.
    pub seconds: u64,
}

impl VirtualTime {
    /// Runs it.
    ///
    /// # Errors
    /// None that a caller can cause: a store in memory does not fail.
    pub fn run(&self) -> Result<Report> {
        let clock: Arc<ManualClock> = Arc::default();
        let store = Arc::new(SlowKeys::new(self, Arc::clone(&clock))?);
        let mut listener = Listener::with_defects(Arc::clone(&store), clock.clone(), self.defects.clone());
        let (end, mut next_sync) = (self.seconds * SECOND_NS, SECOND_NS);
        let mut report = Report::default();
        while clock.now() < end {
            for (at, event) in store.heard() {
                match event {
                    Heard::Advertise => listener.hear_advertise(at)?,
                    Heard::Heartbeat(heartbeat) => listener.hear_heartbeat(heartbeat, at)?,
                }
            }
            let began = clock.now();
            if began < next_sync {
                store.idle_until(next_sync)?;
                continue;
            }
            listener.sync()?;
            report.syncs_slow += u64::from(clock.now() - began >= SECOND_NS);
            next_sync = (next_sync + SECOND_NS).max(clock.now());
        }
        let seen = std::mem::take(&mut lock(&store.world).report);
        Ok(Report {
            syncs_slow: report.syncs_slow,
            ..seen
        })
    }
}

/// A store in memory that takes time for each key. While time passes, the cluster ticks, the
/// fetcher writes, and the ticker polls.
struct SlowKeys {
    keys: KeyedMemory,
    clock: Arc<ManualClock>,
    ns_per_key: u64,
    is_coordinated: bool,
    world: Mutex<World>,
}

/// Everything outside the store and the listener.
struct World {
    simulator: Simulator,
    truth: Truth,
    heartbeats: Heartbeats,
    /// With the time at which each was published.
    bus: Vec<(u64, Heard)>,
    /// What the fetcher has still to write.
    desired: VecDeque<Put>,
    is_fetching: bool,
    next_fetch: u64,
    next_tick: u64,
    report: Report,
}

impl SlowKeys {
    fn new(options: &VirtualTime, clock: Arc<ManualClock>) -> Result<Self> {
        let cluster = cluster(options.simulator, &options.defects);
        let device = Self {
            keys: KeyedMemory::new(KeyedMemoryOptions::default(), clock.clone()),
            clock,
            ns_per_key: options.ns_per_key,
            is_coordinated: options.defects.has(Defect::CoordinatedTick),
            world: Mutex::new(World {
                simulator: Simulator::new(cluster),
                truth: Truth::default(),
                heartbeats: Heartbeats::default(),
                bus: Vec::new(),
                desired: VecDeque::new(),
                is_fetching: false,
                next_fetch: 0,
                next_tick: 0,
                report: Report::default(),
            }),
        };
        device.pass(&mut lock(&device.world), 0)?;
        Ok(device)
    }

    /// What was published since the last call.
    fn heard(&self) -> Vec<(u64, Heard)> {
        std::mem::take(&mut lock(&self.world).bus)
    }

    /// The listener waits for a time or for the next second of the bus; the fetcher goes on.
    fn idle_until(&self, until: u64) -> Result<()> {
        let world = &mut *lock(&self.world);
        let until = until.min(world.next_tick);
        while self.clock.now() < until {
            let is_put = self.put_desired(world)?;
            let step = if is_put {
                self.ns_per_key
            } else {
                until - self.clock.now()
            };
            self.pass(world, step)?;
        }
        Ok(())
    }

    /// The listener uses the store for one key. The fetcher has every second turn.
    fn spend(&self) -> Result<()> {
        let world = &mut *lock(&self.world);
        let turns = 1 + u64::from(self.put_desired(world)?);
        self.pass(world, turns * self.ns_per_key)
    }

    fn put_desired(&self, world: &mut World) -> Result<bool> {
        let Some(put) = world.desired.pop_front() else {
            if world.is_fetching {
                world.is_fetching = false;
                mark_desired_fresh(&self.keys, &*self.clock)?;
            }
            return Ok(false);
        };
        let _ = self.keys.put(&[put], &mut Refusals::new())?;
        Ok(true)
    }

    /// Time passes.
    fn pass(&self, world: &mut World, ns: u64) -> Result<()> {
        let until = self.clock.now() + ns;
        while world.next_tick <= until {
            self.clock.advance(world.next_tick.saturating_sub(self.clock.now()));
            self.second(world)?;
        }
        self.clock.advance(until.saturating_sub(self.clock.now()));
        Ok(())
    }

    /// A second of the ticker: it polls, unless it has only begun, and ticks.
    fn second(&self, world: &mut World) -> Result<()> {
        let now = self.clock.now();
        if now > 0 {
            let answer = poll(&self.keys, &*self.clock);
            let is_fresh = matches!(&answer, Ok(keys) if keys.is_fresh());
            let gap = is_fresh.then(|| world.truth.gap(&self.keys, now)).transpose()?;
            world.report.polled(now, &answer, gap);
        }
        world.truth.learn(&world.simulator)?;
        let mut bus = Vec::new();
        let (truth, heartbeats) = (&mut world.truth, &mut world.heartbeats);
        world.simulator.tick(|simulator, event| match event {
            Event::Advertise(_) => bus.push(Ok((now, Heard::Advertise))),
            Event::Heartbeat(dea) => {
                truth.report(simulator, dea, now);
                bus.push(
                    heartbeats
                        .of(simulator, dea)
                        .map(|heartbeat| (now, Heard::Heartbeat(heartbeat))),
                );
            }
        });
        world.bus.extend(bus.into_iter().collect::<Result<Vec<_>>>()?);
        world.report.ticked(0);
        if now >= world.next_fetch && !world.is_fetching {
            world.next_fetch = now + FETCH_S * SECOND_NS;
            world.is_fetching = true;
            world.desired = desired_puts(&self.keys, &world.simulator)?.into();
        }
        // Two reads before the next second begins.
        let reads = if self.is_coordinated { 2 * self.ns_per_key } else { 0 };
        world.next_tick += SECOND_NS + reads;
        Ok(())
    }
}

impl fmt::Debug for SlowKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowKeys")
            .field("ns_per_key", &self.ns_per_key)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for SlowKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device that takes {} per key", super::go::duration(self.ns_per_key))
    }
}

impl KeyedStore for SlowKeys {
    fn capabilities(&self) -> KeyedCapabilities {
        self.keys.capabilities()
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        for put in puts {
            self.spend()?;
            let _ = self.keys.put(std::slice::from_ref(put), refused)?;
        }
        self.keys
            .put(&[], refused)
            .map(|ack| PutAck::new(puts.len(), 0, ack.durability))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        let mut deleted = 0;
        for key in keys {
            self.spend()?;
            deleted += self.keys.delete(std::slice::from_ref(key))?;
        }
        Ok(deleted)
    }

    /// A directory is one request.
    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.spend()?;
        self.keys.delete_below(prefix)
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.spend()?;
        self.keys.get(key)
    }

    /// A list is one request.
    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        self.spend()?;
        self.keys.list(prefix, visit)
    }

    fn close(&self) -> Result<()> {
        self.keys.close()
    }
}

#[cfg(test)]
mod tests;
