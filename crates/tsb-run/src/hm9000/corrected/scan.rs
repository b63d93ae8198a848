//! Which heartbeats were put and acknowledged, and a complete scan that is held against them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::report::experiment::hm9000::Scan;
use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::Result;
use tsb_stores::keyed::{Key, KeyedStore, Put};

use super::TTL_NS;
use super::schedule::Due;
use crate::hm9000::records::{ACTUAL, instance_key, key, presence_key};
use crate::hm9000::simulator::{AppState, HEARTBEAT_INTERVAL_S, Simulator};

/// The heartbeats of a fixed cluster.
#[derive(Debug)]
pub(super) struct Beats {
    deas: Vec<BeatingDea>,
    apps: Vec<BeatingApp>,
    index: HashMap<Key, u32>,
}

#[derive(Debug)]
struct BeatingDea {
    guid: String,
    presence: Key,
    apps: Vec<u32>,
    first_second: u64,
    /// The second after that of the newest heartbeat whose put was begun; 0 before the first.
    attempted: AtomicU64,
    /// The same of the newest one that was acknowledged.
    acknowledged: AtomicU64,
}

#[derive(Debug)]
struct BeatingApp {
    key: Key,
    state: AppState,
    dea: u32,
}

/// What a scan found of an instance.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    Wrong,
    /// The heartbeat of this second.
    Beat(u64),
}

impl Beats {
    pub(super) fn new(simulator: &Simulator) -> Result<Self> {
        let apps: Vec<BeatingApp> = simulator
            .apps()
            .iter()
            .map(|app| {
                Ok(BeatingApp {
                    key: instance_key(app)?,
                    state: app.state,
                    dea: app.dea,
                })
            })
            .collect::<Result<_>>()?;
        let deas = simulator.deas().iter().map(|dea| {
            Ok(BeatingDea {
                guid: dea.guid.to_string(),
                presence: presence_key(dea.guid)?,
                apps: dea.apps.clone(),
                first_second: dea.heartbeat_second,
                attempted: AtomicU64::new(0),
                acknowledged: AtomicU64::new(0),
            })
        });
        Ok(Self {
            deas: deas.collect::<Result<_>>()?,
            index: (0..)
                .zip(&apps)
                .map(|(number, app)| (app.key.clone(), number))
                .collect(),
            apps,
        })
    }

    /// The puts of heartbeats, over what is in `into`.
    pub(super) fn puts(&self, due: Due<'_>, into: &mut Vec<Put>) {
        into.clear();
        for dea in due.deas.iter().map(|dea| &self.deas[*dea as usize]) {
            into.push(Put::new(dea.presence.clone(), dea.guid.as_str()).expiring(TTL_NS));
            into.extend(dea.apps.iter().map(|app| {
                let app = &self.apps[*app as usize];
                Put::new(app.key.clone(), self.value(app, due.second)).expiring(TTL_NS)
            }));
        }
    }

    /// What the heartbeat of a second says of an instance.
    fn value(&self, app: &BeatingApp, second: u64) -> String {
        format!("0,{},{second}.0,{}", app.state, self.deas[app.dea as usize].guid)
    }

    pub(super) fn attempt(&self, due: Due<'_>) {
        for dea in due.deas {
            self.deas[*dea as usize]
                .attempted
                .store(due.second + 1, Ordering::Release);
        }
    }

    pub(super) fn acknowledge(&self, due: Due<'_>) {
        for dea in due.deas {
            self.deas[*dea as usize]
                .acknowledged
                .store(due.second + 1, Ordering::Release);
        }
    }

    /// Whether a heartbeat of every DEA that has apps was acknowledged.
    pub(super) fn are_all_acknowledged(&self) -> bool {
        let is_done = |dea: &BeatingDea| dea.apps.is_empty() || dea.acknowledged.load(Ordering::Acquire) > 0;
        self.deas.iter().all(is_done)
    }

    /// Reads every instance, and compares it with what was acknowledged before. `None` if the
    /// store cannot be read.
    pub(super) fn scan(&self, store: &impl KeyedStore, clock: &dyn Clock, start: u64) -> Option<Scan> {
        let load = |count: fn(&BeatingDea) -> &AtomicU64| -> Vec<u64> {
            self.deas.iter().map(|dea| count(dea).load(Ordering::Acquire)).collect()
        };
        let acknowledged = load(|dea| &dea.acknowledged);
        let began = clock.now();
        let mut scan = Scan {
            at_seconds: (began - start) as f64 / SECOND_NS as f64,
            ..Scan::default()
        };
        let mut found = vec![Found::Nothing; self.apps.len()];
        let listed = store.list(Some(&key(ACTUAL).ok()?), &mut |key, value| {
            match self.index.get(key) {
                Some(app) => found[*app as usize] = self.beat_of(*app, value),
                None => scan.foreign += 1,
            }
            ControlFlow::Continue(())
        });
        listed.ok()?;
        let ended = clock.now();
        scan.took_seconds = (ended - began) as f64 / SECOND_NS as f64;
        let attempted = load(|dea| &dea.attempted);
        for (app, found) in self.apps.iter().zip(found) {
            let dea = app.dea as usize;
            if start + self.deas[dea].first_second * SECOND_NS <= began {
                let beats = (acknowledged[dea], attempted[dea]);
                scan.count(found, beats, (began - start, ended - start));
            }
        }
        Some(scan)
    }

    /// The heartbeat that a value is of.
    fn beat_of(&self, app: u32, value: &str) -> Found {
        let app = &self.apps[app as usize];
        let second = value
            .split(',')
            .nth(2)
            .and_then(|time| time.strip_suffix(".0")?.parse().ok());
        match second {
            Some(second) if value == self.value(app, second) => Found::Beat(second),
            _ => Found::Wrong,
        }
    }
}

/// How one instance counts.
trait Count {
    /// `beats`: the second after that of the newest heartbeat that was acknowledged before the
    /// scan, and of the newest one whose put had begun when it ended. `times`: its begin and end,
    /// from the start.
    fn count(&mut self, found: Found, beats: (u64, u64), times: (u64, u64));
}

impl Count for Scan {
    fn count(&mut self, found: Found, (acknowledged, attempted): (u64, u64), (began, ended): (u64, u64)) {
        self.expected += 1;
        // What was acknowledged and cannot have expired by the end of the scan.
        let is_owed = acknowledged > 0 && ended < (acknowledged - 1) * SECOND_NS + TTL_NS;
        match found {
            Found::Nothing => {
                self.missing += 1;
                self.lost += u64::from(is_owed);
            }
            Found::Wrong => self.wrong += 1,
            Found::Beat(second) if second + 1 > attempted || second + 1 < acknowledged => {
                // Of a heartbeat that was not put yet, or replaced by an older one.
                self.wrong += u64::from(second + 1 > attempted);
                self.lost += u64::from(second + 1 < acknowledged);
            }
            Found::Beat(second) => {
                let age = began.saturating_sub(second * SECOND_NS);
                self.stale += u64::from(age > TTL_NS);
                self.oldest_seconds = self.oldest_seconds.max(age as f64 / SECOND_NS as f64);
            }
        }
    }
}

const _: () = assert!(
    TTL_NS > HEARTBEAT_INTERVAL_S * SECOND_NS,
    "a heartbeat lives longer than the interval"
);
