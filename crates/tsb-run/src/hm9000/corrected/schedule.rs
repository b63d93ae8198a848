//! When which heartbeats are due: a function of the simulator.

use tsb_core::time::SECOND_NS;

use crate::hm9000::simulator::{HEARTBEAT_INTERVAL_S, Simulator};

/// The heartbeats of one worker. A DEA belongs to one worker, so its heartbeats stay in order.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The DEAs of each second of an interval, with the number of their keys.
    by_second: [(Vec<u32>, u64); HEARTBEAT_INTERVAL_S as usize],
    seconds: u64,
}

/// Heartbeats that are due together, and are one put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<'a> {
    /// The second, from the start.
    pub(super) second: u64,
    /// The DEAs.
    pub(super) deas: &'a [u32],
    /// Number of their keys: presence and instances.
    pub(super) keys: u64,
}

impl Due<'_> {
    /// When, in nanoseconds from the start.
    pub(super) const fn ns(self) -> u64 {
        self.second * SECOND_NS
    }
}

impl Schedule {
    /// The share of `worker`, of `workers`.
    pub(super) fn new(simulator: &Simulator, worker: usize, workers: usize, seconds: u64) -> Self {
        let mut by_second: [(Vec<u32>, u64); HEARTBEAT_INTERVAL_S as usize] = Default::default();
        let deas = (0..).zip(simulator.deas()).skip(worker).step_by(workers);
        for (number, dea) in deas {
            let (deas, keys) = &mut by_second[dea.heartbeat_second as usize];
            deas.push(number);
            *keys += 1 + dea.apps.len() as u64;
        }
        Self { by_second, seconds }
    }

    /// What is due, in order.
    pub(super) fn due(&self) -> impl Iterator<Item = Due<'_>> {
        (0..self.seconds).filter_map(|second| {
            let (deas, keys) = &self.by_second[(second % HEARTBEAT_INTERVAL_S) as usize];
            (!deas.is_empty()).then_some(Due {
                second,
                deas,
                keys: *keys,
            })
        })
    }

    /// Number of keys that are due before `end`, in nanoseconds from the start.
    pub(super) fn keys_before(&self, end: u64) -> u64 {
        let due = self.due().take_while(|due| due.ns() < end);
        due.map(|due| due.keys).sum()
    }
}
