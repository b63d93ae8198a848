//! Cloud Foundry as the document simulated it: apps on DEAs (the hosts of instances), which send
//! heartbeats and advertises. A pure function of its options.

use std::collections::BTreeSet;
use std::fmt;

use super::guid::Guid;
use crate::draws::Draws;

/// Maximum number of apps on a DEA.
pub const DEA_CAPACITY: usize = 100;
/// Seconds between heartbeats of a DEA, and between additions of apps.
pub const HEARTBEAT_INTERVAL_S: u64 = 10;
/// Seconds between advertises of a DEA.
pub const ADVERTISE_INTERVAL_S: u64 = 5;

/// What is simulated. The default is what the document had, but for the number of apps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatorOptions {
    /// Number of apps at the start. Each has one instance.
    pub apps: usize,
    /// Number of DEAs at the start.
    pub deas: usize,
    /// Number of apps added after each heartbeat interval; 0 keeps their number fixed.
    pub new_apps: usize,
    /// The probability that an app is crashed, in [0, 1].
    pub crashed: f64,
    /// Seed of all identifiers, states and phases.
    pub seed: u64,
}

impl Default for SimulatorOptions {
    fn default() -> Self {
        Self {
            apps: 1_000,
            deas: 10,
            new_apps: 10,
            crashed: 0.1,
            seed: 1,
        }
    }
}

/// The state of an instance, which it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppState {
    /// It runs.
    Running,
    /// It has crashed.
    Crashed,
}

impl fmt::Display for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "RUNNING",
            Self::Crashed => "CRASHED",
        })
    }
}

/// An app and its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// The app.
    pub guid: Guid,
    /// Its version.
    pub version: Guid,
    /// Its instance, with the index 0.
    pub instance: Guid,
    /// The state of the instance.
    pub state: AppState,
    /// The number of its DEA.
    pub dea: u32,
}

/// A host of instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dea {
    /// The DEA.
    pub guid: Guid,
    /// The second of each heartbeat interval in which it sends one, in [0, 10).
    pub heartbeat_second: u64,
    /// The second of each advertise interval in which it sends one, in [0, 5).
    pub advertise_second: u64,
    /// The numbers of its apps, at most [`DEA_CAPACITY`].
    pub apps: Vec<u32>,
}

/// A message on the bus, from the DEA of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The DEA has room.
    Advertise(u32),
    /// The state of its instances.
    Heartbeat(u32),
}

/// The simulated cluster.
#[derive(Clone, Debug)]
pub struct Simulator {
    options: SimulatorOptions,
    draws: Draws,
    apps: Vec<App>,
    deas: Vec<Dea>,
    /// The DEAs with room: number of apps, and number of the DEA.
    with_room: BTreeSet<(usize, u32)>,
    seconds: u64,
}

impl Simulator {
    /// The cluster at second 0.
    pub fn new(options: SimulatorOptions) -> Self {
        let mut simulator = Self {
            options,
            draws: Draws::new(options.seed),
            apps: Vec::with_capacity(options.apps),
            deas: Vec::new(),
            with_room: BTreeSet::new(),
            seconds: 0,
        };
        for _ in 0..options.deas {
            simulator.add_dea();
        }
        simulator.add_apps(options.apps);
        simulator
    }

    /// All apps, in the order in which they were added. Numbers of apps are indices here.
    pub fn apps(&self) -> &[App] {
        &self.apps
    }

    /// All DEAs. Numbers of DEAs are indices here.
    pub fn deas(&self) -> &[Dea] {
        &self.deas
    }

    /// Seconds that have passed.
    pub const fn seconds(&self) -> u64 {
        self.seconds
    }

    /// One second: first all advertises that are due, then all heartbeats, each in the order of
    /// the DEAs; after every tenth second the new apps.
    pub fn tick(&mut self, mut hear: impl FnMut(&Self, Event)) {
        let (advertise, heartbeat) = (self.seconds % ADVERTISE_INTERVAL_S, self.seconds % HEARTBEAT_INTERVAL_S);
        for (number, dea) in (0..).zip(&self.deas) {
            if dea.advertise_second == advertise {
                hear(self, Event::Advertise(number));
            }
        }
        for (number, dea) in (0..).zip(&self.deas) {
            if dea.heartbeat_second == heartbeat {
                hear(self, Event::Heartbeat(number));
            }
        }
        self.seconds += 1;
        if self.seconds.is_multiple_of(HEARTBEAT_INTERVAL_S) {
            self.add_apps(self.options.new_apps);
        }
    }

    fn add_dea(&mut self) {
        let dea = Dea {
            guid: Guid::draw(&mut self.draws),
            heartbeat_second: self.draws.below(HEARTBEAT_INTERVAL_S),
            advertise_second: self.draws.below(ADVERTISE_INTERVAL_S),
            apps: Vec::new(),
        };
        self.with_room.insert((0, self.deas.len() as u32));
        self.deas.push(dea);
    }

    /// Places apps, each on the DEA with the fewest apps; of several the first, where the document
    /// took any. A new DEA is made if none has room.
    fn add_apps(&mut self, count: usize) {
        for _ in 0..count {
            if self.with_room.is_empty() {
                self.add_dea();
            }
            let Some((load, dea)) = self.with_room.pop_first() else {
                return;
            };
            if load + 1 < DEA_CAPACITY {
                self.with_room.insert((load + 1, dea));
            }
            let (guid, version, instance) = (
                Guid::draw(&mut self.draws),
                Guid::draw(&mut self.draws),
                Guid::draw(&mut self.draws),
            );
            let state = if self.draws.unit() < self.options.crashed {
                AppState::Crashed
            } else {
                AppState::Running
            };
            self.deas[dea as usize].apps.push(self.apps.len() as u32);
            self.apps.push(App {
                guid,
                version,
                instance,
                state,
                dea,
            });
        }
    }
}

#[cfg(test)]
mod tests;
