//! The listener over a store that can be slow and can fail, in virtual time.

use std::sync::Mutex;

use tsb_core::time::ManualClock;
use tsb_stores::keyed::{KeyedCapabilities, KeyedMemory, KeyedMemoryOptions, KeyedVisitor, PutAck};
use tsb_stores::parts::lock;

use super::*;
use crate::hm9000::{App, Event, SimulatorOptions};

/// A store in memory that takes time for each key, and that can fail.
#[derive(Debug)]
struct Slow {
    inner: KeyedMemory,
    clock: Arc<ManualClock>,
    ns_per_key: Mutex<u64>,
    fails: Mutex<bool>,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("slow")
    }
}

impl KeyedStore for Slow {
    fn capabilities(&self) -> KeyedCapabilities {
        self.inner.capabilities()
    }
    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        self.clock.advance(*lock(&self.ns_per_key) * puts.len() as u64);
        if *lock(&self.fails) {
            return Err(Error::Overloaded {
                store: self.to_string(),
                what: "on purpose".to_owned(),
            });
        }
        self.inner.put(puts, refused)
    }
    fn delete(&self, keys: &[Key]) -> Result<usize> {
        self.inner.delete(keys)
    }
    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.inner.delete_below(prefix)
    }
    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.inner.get(key)
    }
    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        self.inner.list(prefix, visit)
    }
    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

struct Scene {
    clock: Arc<ManualClock>,
    simulator: Simulator,
    listener: Listener<Slow>,
}

impl Scene {
    fn new(apps: usize) -> Self {
        Self::without(apps, &[])
    }

    fn without(apps: usize, defects: &[Defect]) -> Self {
        let clock: Arc<ManualClock> = Arc::default();
        let store = Slow {
            inner: KeyedMemory::new(KeyedMemoryOptions::default(), clock.clone()),
            clock: clock.clone(),
            ns_per_key: Mutex::new(0),
            fails: Mutex::new(false),
        };
        let simulator = Simulator::new(SimulatorOptions {
            apps,
            ..SimulatorOptions::default()
        });
        let defects = Defects {
            without: defects.to_vec(),
        };
        let listener = Listener::with_defects(store, clock.clone(), defects);
        listener.fetch_desired(&simulator).unwrap();
        Self {
            clock,
            simulator,
            listener,
        }
    }

    /// A second of the document's loop: a tick, a sync, the sleep, and a poll. Returns whether an
    /// advertise was heard, and what the store is called.
    fn second(&mut self) -> (bool, FreshKeys) {
        let now = self.clock.now();
        let (listener, mut advertised) = (&mut self.listener, false);
        self.simulator.tick(|simulator, event| match event {
            Event::Advertise(_) => {
                advertised = true;
                listener.hear_advertise(now).unwrap();
            }
            Event::Heartbeat(dea) => {
                let heartbeat = Heartbeat::of(simulator, dea).unwrap();
                let _ = listener.hear_heartbeat(heartbeat, now);
            }
        });
        let _ = listener.sync();
        self.clock.advance(SECOND_NS);
        (advertised, poll(listener.store(), &*self.clock).unwrap())
    }

    fn count(&self, prefix: &str) -> usize {
        listed(self.listener.store(), prefix).unwrap().len()
    }
}

/// The acceptance number of the experiment: whatever the store holds, the first poll at least
/// 30 s after the first advertise is the first that is fresh.
#[test]
fn fresh_is_a_timer_that_starts_with_the_first_advertise() {
    for apps in [10, 1_000, 30_000] {
        let mut scene = Scene::new(apps);
        let (mut first_advertise, mut first_fresh) = (None, None);
        for second in 1..=40 {
            let began = scene.clock.wall().as_secs();
            let (advertised, fresh) = scene.second();
            if advertised {
                first_advertise.get_or_insert(began);
            }
            if fresh.is_fresh() {
                first_fresh.get_or_insert(second);
            } else {
                assert_eq!(fresh.to_string(), "Actual state is not fresh");
            }
        }
        assert_eq!(first_fresh, first_advertise.map(|at| at + 30), "{apps} apps");
    }
}

#[test]
fn the_store_holds_each_instance_once_and_presence_of_each_dea() {
    let mut scene = Scene::new(995);
    for _ in 0..10 {
        scene.second();
    }
    assert_eq!(
        (scene.count(ACTUAL), scene.count(PRESENCE), scene.count(DESIRED)),
        (995, 10, 995)
    );
    let metric = scene
        .listener
        .store()
        .get(&key("v1/metrics/ReceivedHeartbeats").unwrap());
    assert_eq!(metric.unwrap().as_deref(), Some("10.00000"));
    for app in &scene.simulator.apps()[..995] {
        let stored = scene.listener.store().get(&instance_key(app).unwrap()).unwrap();
        assert_eq!(stored, Some(instance_value(&scene.simulator, app)));
    }
    // An interval later the ten new apps are there as well, and nothing was written twice.
    for _ in 0..10 {
        scene.second();
    }
    assert_eq!(scene.count(ACTUAL), 1_005);
}

/// What the document's criterion does not see: no instance was ever written.
#[test]
fn a_store_without_instances_is_called_fresh() {
    let mut scene = Scene::new(1_000);
    for _ in 0..40 {
        // No heartbeat at all: advertises alone.
        let listener = &scene.listener;
        scene.simulator.tick(|_, event| {
            if matches!(event, Event::Advertise(_)) {
                listener.hear_advertise(listener.clock.now()).unwrap();
            }
        });
        scene.clock.advance(SECOND_NS);
    }
    let fresh = poll(scene.listener.store(), &*scene.clock).unwrap();
    assert!(fresh.is_fresh());
    assert_eq!(scene.count(ACTUAL), 0);
}

#[test]
fn a_slow_sync_does_not_bump_and_a_failed_one_revokes() {
    let mut scene = Scene::new(1_000);
    for _ in 0..35 {
        scene.second();
    }
    let fresh = key(ACTUAL_FRESH).unwrap();
    assert!(scene.listener.store().get(&fresh).unwrap().is_some());
    // Each sync takes more than a second, so the key lapses after its time to live.
    *lock(&scene.listener.store().ns_per_key) = SECOND_NS;
    let mut seconds = 0;
    while scene.listener.store().get(&fresh).unwrap().is_some() {
        assert!(seconds < 60);
        seconds += 1;
        scene.second();
    }
    *lock(&scene.listener.store().ns_per_key) = 0;
    while scene.listener.store().get(&fresh).unwrap().is_none() {
        scene.second();
    }
    *lock(&scene.listener.store().fails) = true;
    // Ten DEAs have a heartbeat within ten seconds.
    for _ in 0..10 {
        scene.second();
    }
    assert_eq!(scene.listener.store().get(&fresh).unwrap(), None);
}

#[test]
fn instances_of_a_silent_dea_are_removed_and_of_a_changed_heartbeat_too() {
    let mut scene = Scene::new(20);
    for _ in 0..10 {
        scene.second();
    }
    let store = || scene.listener.store();
    assert_eq!(listed(store(), ACTUAL).unwrap().len(), 20);
    // The first DEA has two of the twenty, and one of the ten apps that were added since, which
    // no heartbeat has named yet. It reports one; the other DEAs send nothing.
    let mut heartbeat = Heartbeat::of(&scene.simulator, 0).unwrap();
    assert_eq!(heartbeat.instances.len(), 3);
    heartbeat.instances = heartbeat.instances[..1].into();
    scene
        .listener
        .hear_heartbeat(heartbeat.clone(), scene.clock.now())
        .unwrap();
    scene.listener.sync().unwrap();
    assert_eq!(scene.count(ACTUAL), 19);
    scene.clock.advance(TTL_NS);
    scene.listener.hear_heartbeat(heartbeat, scene.clock.now()).unwrap();
    scene.listener.sync().unwrap();
    // The presence of the first had expired as well when the cache was read, so its instance is
    // written again.
    assert_eq!(scene.count(ACTUAL), 1);
}

/// A failed sync is not made good by the next heartbeats, because the cache knows its instances.
#[test]
fn a_cache_that_changes_first_hides_a_failed_write() {
    let instances_after_a_failure = |without: &[Defect]| {
        // An advertise that bumps fails as well.
        let mut scene = Scene::without(1_000, &[&[Defect::AdvertiseBump], without].concat());
        *lock(&scene.listener.store().fails) = true;
        for _ in 0..10 {
            scene.second();
        }
        *lock(&scene.listener.store().fails) = false;
        // The cache is read from the store after 20 s.
        for _ in 0..5 {
            scene.second();
        }
        let store = scene.listener.store();
        let is_there = |app: &&App| store.get(&instance_key(app).unwrap()).unwrap().is_some();
        scene.simulator.apps()[..1_000].iter().filter(is_there).count()
    };
    assert_eq!(instances_after_a_failure(&[]), 0);
    assert!(instances_after_a_failure(&[Defect::CacheFirst]) > 0);
}

/// An app with instances on two DEAs, of which one falls silent.
#[test]
fn a_silent_dea_takes_the_instances_of_others_with_it() {
    let instance_of_the_other = |without: &[Defect]| {
        let mut scene = Scene::without(1_000, without);
        let silent = Heartbeat::of(&scene.simulator, 0).unwrap();
        let mut other = Heartbeat::of(&scene.simulator, 1).unwrap();
        let third = Heartbeat::of(&scene.simulator, 2).unwrap();
        let shared = key(format!("{}/instance", app_of(&silent.instances[0].0))).unwrap();
        other.instances = vec![(shared.clone(), format!("1,RUNNING,0.0,{}", other.dea))].into();
        let mut hear = |heartbeat: &Heartbeat, seconds: u64| {
            let now = scene.clock.now();
            scene.listener.hear_heartbeat(heartbeat.clone(), now).unwrap();
            scene.listener.sync().unwrap();
            scene.clock.advance(seconds * SECOND_NS);
        };
        hear(&silent, 10);
        hear(&other, 21);
        // The presence of the first has expired when the cache is read.
        hear(&third, 0);
        assert_eq!(scene.listener.store().get(&silent.instances[0].0).unwrap(), None);
        scene.listener.store().get(&shared).unwrap()
    };
    assert_eq!(instance_of_the_other(&[]), None);
    assert!(instance_of_the_other(&[Defect::DeleteApps]).is_some());
}

#[test]
fn heartbeats_are_counted_in_the_store_unless_that_is_left_out() {
    let count = |without: &[Defect]| {
        let mut scene = Scene::without(1_000, without);
        for _ in 0..10 {
            scene.second();
        }
        let count = key("v1/metrics/ReceivedHeartbeats").unwrap();
        scene.listener.store().get(&count).unwrap()
    };
    assert_eq!(count(&[]).as_deref(), Some("10.00000"));
    assert_eq!(count(&[Defect::CountPerHeartbeat]), None);
}
