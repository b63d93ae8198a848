//! HM9000's listener, with its rules as they were: what it writes for heartbeats, and when it
//! calls the actual state fresh. It looks at no instance to say so.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::keyed::{Key, KeyedStore, Put};
use tsb_stores::{Error, Refusals, Result};

use super::defects::{Defect, Defects};
use super::records::{ACTUAL, ACTUAL_FRESH, DESIRED_FRESH, instance_key, instance_value, key, presence_key};
use super::simulator::Simulator;

/// Time to live of presence and of `actual-fresh`, in nanoseconds.
const TTL_NS: u64 = 30 * SECOND_NS;
/// Time to live of `desired-fresh`, in nanoseconds.
const DESIRED_TTL_NS: u64 = 120 * SECOND_NS;
/// A sync that takes this long is too slow to count, in nanoseconds.
const SLOW_NS: u64 = SECOND_NS;
/// Age at which the cache of instances is read from the store again, in nanoseconds.
const CACHE_NS: u64 = 20 * SECOND_NS;
/// Seconds that must have passed since the first bump before the actual state is fresh.
const GRACE_S: i64 = 30;
const DESIRED: &str = "v1/apps/desired";
const PRESENCE: &str = "v1/dea-presence";

/// The heartbeat of a DEA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    dea: String,
    presence: Key,
    /// Key and value of each instance.
    instances: Arc<[(Key, String)]>,
}

impl Heartbeat {
    /// The heartbeat that a DEA sends now, by its number.
    ///
    /// # Errors
    /// As [`instance_key`].
    ///
    /// # Panics
    /// If there is no such DEA.
    pub fn of(simulator: &Simulator, dea: u32) -> Result<Self> {
        let dea = &simulator.deas()[dea as usize];
        let apps = dea.apps.iter().map(|app| &simulator.apps()[*app as usize]);
        Ok(Self {
            dea: dea.guid.to_string(),
            presence: presence_key(dea.guid)?,
            instances: apps
                .map(|app| Ok((instance_key(app)?, instance_value(simulator, app))))
                .collect::<Result<_>>()?,
        })
    }
}

/// The heartbeats of all DEAs, of which those that did not change are made once.
#[derive(Debug, Default)]
pub(super) struct Heartbeats(Vec<Option<Heartbeat>>);

impl Heartbeats {
    /// As [`Heartbeat::of`].
    pub(super) fn of(&mut self, simulator: &Simulator, dea: u32) -> Result<Heartbeat> {
        let index = dea as usize;
        self.0.resize_with(self.0.len().max(index + 1), || None);
        let apps = simulator.deas()[index].apps.len();
        match &self.0[index] {
            Some(made) if made.instances.len() == apps => Ok(made.clone()),
            _ => {
                let made = Heartbeat::of(simulator, dea)?;
                self.0[index] = Some(made.clone());
                Ok(made)
            }
        }
    }
}

/// The listener: hears the bus, and writes what it heard once per second.
#[derive(Debug)]
pub struct Listener<S> {
    store: S,
    clock: Arc<dyn Clock>,
    defects: Defects,
    pending: Vec<Heartbeat>,
    /// The instances in the store, as far as the listener knows, by their DEA.
    cache: HashMap<String, HashMap<Key, String>>,
    cached_at: Option<u64>,
    /// When the last heartbeat came.
    heard_at: Option<u64>,
    heartbeats: u64,
}

impl<S: KeyedStore> Listener<S> {
    /// A listener that has heard nothing, as it was.
    pub fn new(store: S, clock: Arc<dyn Clock>) -> Self {
        Self::with_defects(store, clock, Defects::default())
    }

    /// A listener without some of the original's defects.
    pub fn with_defects(store: S, clock: Arc<dyn Clock>, defects: Defects) -> Self {
        Self {
            store,
            clock,
            defects,
            pending: Vec::new(),
            cache: HashMap::new(),
            cached_at: None,
            heard_at: None,
            heartbeats: 0,
        }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// An advertise that came at `at`, in nanoseconds of the clock: while no heartbeat has come
    /// for 30 s it bumps `actual-fresh`, so before the first heartbeat as well. Messages come
    /// while a sync goes on, so `at` may be past.
    ///
    /// # Errors
    /// Those of the store.
    pub fn hear_advertise(&self, at: u64) -> Result<()> {
        let before_the_first = self.defects.has(Defect::AdvertiseBump);
        if self
            .heard_at
            .map_or(before_the_first, |heard_at| at.saturating_sub(heard_at) >= TTL_NS)
        {
            self.bump()?;
        }
        Ok(())
    }

    /// A heartbeat that came at `at`, in nanoseconds of the clock: it waits for the next sync. The
    /// count of all heartbeats is written at once, while the bus waits.
    ///
    /// # Errors
    /// Those of the store.
    pub fn hear_heartbeat(&mut self, heartbeat: Heartbeat, at: u64) -> Result<()> {
        self.heard_at = Some(at);
        self.pending.push(heartbeat);
        self.heartbeats += 1;
        if !self.defects.has(Defect::CountPerHeartbeat) {
            return Ok(());
        }
        let count = Put::new(
            key("v1/metrics/ReceivedHeartbeats")?,
            format!("{}.00000", self.heartbeats),
        );
        put_all(&self.store, &[count])
    }

    /// Writes the heartbeats since the last sync, as the listener did once per second. `actual-fresh`
    /// is bumped after a sync of less than a second, and revoked after an error.
    ///
    /// # Errors
    /// Those of the store; that of the sync if the revocation fails as well.
    pub fn sync(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let began = self.clock.now();
        if let Err(error) = self.write_pending() {
            let revoked = self.store.delete(&[key(ACTUAL_FRESH)?]);
            return revoked.and(Err(error));
        }
        if self.clock.now() - began < SLOW_NS {
            self.bump()?;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let now = self.clock.now();
        if self.cached_at.is_none_or(|at| now - at >= CACHE_NS) {
            self.reload_cache()?;
            self.cached_at = Some(self.clock.now());
        }
        let (mut puts, mut gone, mut written) = (Vec::new(), Vec::new(), Vec::new());
        let is_cached_first = self.defects.has(Defect::CacheFirst);
        for heartbeat in pending {
            puts.push(Put::new(heartbeat.presence, heartbeat.dea.as_str()).expiring(TTL_NS));
            // The cache changes before the store does, so it hides what was not written.
            let cached = self.cache.entry(heartbeat.dea.clone()).or_default();
            let reported: HashSet<&Key> = heartbeat.instances.iter().map(|(key, _)| key).collect();
            gone.extend(cached.extract_if(|key, _| !reported.contains(key)).map(|(key, _)| key));
            for (key, value) in &*heartbeat.instances {
                if cached.get(key) != Some(value) {
                    puts.push(Put::new(key.clone(), value.as_str()));
                    if is_cached_first {
                        cached.insert(key.clone(), value.clone());
                    } else {
                        written.push((heartbeat.dea.clone(), key.clone(), value.clone()));
                    }
                }
            }
        }
        put_all(&self.store, &puts)?;
        for (dea, key, value) in written {
            self.cache.entry(dea).or_default().insert(key, value);
        }
        self.store.delete(&gone).map(drop)
    }

    /// Reads all instances. Those of a DEA without presence are removed, with all other instances
    /// of their apps, which was a mistake.
    fn reload_cache(&mut self) -> Result<()> {
        let present = listed(&self.store, PRESENCE)?;
        let present: HashSet<&str> = present.iter().map(|(_, dea)| dea.as_str()).collect();
        self.cache.clear();
        let mut absent: HashSet<Key> = HashSet::new();
        for (instance, value) in listed(&self.store, ACTUAL)? {
            let dea = value.rsplit(',').next().unwrap_or_default();
            if present.contains(dea) {
                self.cache.entry(dea.to_owned()).or_default().insert(instance, value);
            } else if self.defects.has(Defect::DeleteApps) {
                absent.insert(key(app_of(&instance))?);
            } else {
                self.store.delete(&[instance])?;
            }
        }
        for app in &absent {
            self.store.delete_below(Some(app))?;
        }
        for of_dea in self.cache.values_mut() {
            of_dea.retain(|instance, _| !absent.contains(app_of(instance)));
        }
        Ok(())
    }

    /// Renews `actual-fresh`; the time of the first bump is kept.
    fn bump(&self) -> Result<()> {
        bump(&self.store, &*self.clock, ACTUAL_FRESH, TTL_NS)
    }

    /// Writes the desired state of all apps, as the fetcher did every 60 s.
    ///
    /// # Errors
    /// Those of the store.
    pub fn fetch_desired(&self, simulator: &Simulator) -> Result<()> {
        fetch_desired(&self.store, &*self.clock, simulator)
    }
}

/// Writes the desired state of all apps, as the fetcher did every 60 s. Apps never go, so nothing
/// has to be deleted.
pub(super) fn fetch_desired(store: &impl KeyedStore, clock: &dyn Clock, simulator: &Simulator) -> Result<()> {
    let puts = desired_puts(store, simulator)?;
    put_all(store, &puts)?;
    mark_desired_fresh(store, clock)
}

/// The desired state that is not in the store.
pub(super) fn desired_puts(store: &impl KeyedStore, simulator: &Simulator) -> Result<Vec<Put>> {
    let stored: HashMap<Key, String> = listed(store, DESIRED)?.into_iter().collect();
    let mut puts = Vec::new();
    for app in simulator.apps() {
        let key = key(format!("{DESIRED}/{},{}", app.guid, app.version))?;
        let wanted = Put::new(key, "1,STARTED,STAGED");
        if stored.get(&wanted.key) != Some(&wanted.value) {
            puts.push(wanted);
        }
    }
    Ok(puts)
}

/// Says that the desired state is complete.
pub(super) fn mark_desired_fresh(store: &impl KeyedStore, clock: &dyn Clock) -> Result<()> {
    bump(store, clock, DESIRED_FRESH, DESIRED_TTL_NS)
}

/// The directory of an instance: that of its app and version.
fn app_of(instance: &Key) -> &str {
    instance.as_str().rsplit_once('/').map_or("", |(app, _)| app)
}

fn bump(store: &impl KeyedStore, clock: &dyn Clock, text: &str, ttl_ns: u64) -> Result<()> {
    let key = key(text)?;
    let value = match store.get(&key)? {
        Some(value) => value,
        None => format!(r#"{{"timestamp":{}}}"#, clock.wall().as_secs()),
    };
    put_all(store, &[Put::new(key, value).expiring(ttl_ns)])
}

fn put_all(store: &impl KeyedStore, puts: &[Put]) -> Result<()> {
    let mut refused = Refusals::new();
    let ack = store.put(puts, &mut refused)?;
    match refused.as_slice().first() {
        None => Ok(()),
        Some(first) => Err(Error::Backend {
            action: format!("write {} keys", puts.len()),
            source: format!("{store} refused {}, the first as {}", ack.rejected, first.reason.name()).into(),
        }),
    }
}

fn listed(store: &impl KeyedStore, prefix: &str) -> Result<Vec<(Key, String)>> {
    let mut found = Vec::new();
    store.list(Some(&key(prefix)?), &mut |key, value| {
        found.push((key.clone(), value.to_owned()));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// What the document's program called the state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshKeys {
    /// The first bump is 30 s past, and its key is there.
    pub actual: bool,
    /// The key is there.
    pub desired: bool,
}

impl FreshKeys {
    /// Whether the document called the store fresh.
    pub const fn is_fresh(self) -> bool {
        self.actual && self.desired
    }
}

/// What the program printed behind the elapsed time.
impl fmt::Display for FreshKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.actual, self.desired) {
            (true, true) => "",
            (false, true) => "Actual state is not fresh",
            (true, false) => "Desired state is not fresh",
            (false, false) => "Actual and desired state are not fresh",
        })
    }
}

/// Asks the store twice, as the document's program did once per second.
///
/// # Errors
/// Those of the store.
pub fn poll(store: &impl KeyedStore, clock: &dyn Clock) -> Result<FreshKeys> {
    let since = store.get(&key(ACTUAL_FRESH)?)?;
    let since = since.as_deref().and_then(timestamp_of);
    Ok(FreshKeys {
        actual: since.is_some_and(|since| clock.wall().as_secs() - since >= GRACE_S),
        desired: store.get(&key(DESIRED_FRESH)?)?.is_some(),
    })
}

/// The seconds in `{"timestamp":17}`.
fn timestamp_of(value: &str) -> Option<i64> {
    let parsed: serde_json::Value = serde_json::from_str(value).ok()?;
    parsed.get("timestamp")?.as_i64()
}

#[cfg(test)]
mod tests;
