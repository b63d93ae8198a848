//! What is really in the store, held against the simulator: every instance that was reported.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tsb_core::time::SECOND_NS;
use tsb_stores::Result;
use tsb_stores::keyed::{Key, KeyedStore};

use super::records::{ACTUAL, instance_key, instance_value, key};
use super::simulator::Simulator;

/// An instance that was reported this long ago has to be there: a sync begins within a second of
/// the report, and one that takes longer than another second does not count as fast enough.
const SETTLED_NS: u64 = 2 * SECOND_NS;

/// The instances that were reported, and when first.
#[derive(Debug, Default)]
pub(super) struct Truth {
    index: HashMap<Key, u32>,
    values: Vec<String>,
    /// In nanoseconds of the clock; `None` while its DEA has sent no heartbeat since it was added.
    reported_at: Vec<Option<u64>>,
}

/// What a complete scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// Instances that had to be there.
    pub(super) expected: u64,
    /// Those that were not, or had another value.
    pub(super) missing: u64,
}

impl Truth {
    /// Learns of apps that were added to the simulator.
    pub(super) fn learn(&mut self, simulator: &Simulator) -> Result<()> {
        for app in &simulator.apps()[self.values.len()..] {
            self.index.insert(instance_key(app)?, self.values.len() as u32);
            self.values.push(instance_value(simulator, app));
            self.reported_at.push(None);
        }
        Ok(())
    }

    /// A DEA sends a heartbeat at `now`.
    pub(super) fn report(&mut self, simulator: &Simulator, dea: u32, now: u64) {
        for app in &simulator.deas()[dea as usize].apps {
            self.reported_at[*app as usize].get_or_insert(now);
        }
    }

    /// Reads every instance of the store. `now` is when it begins.
    pub(super) fn gap(&self, store: &impl KeyedStore, now: u64) -> Result<Gap> {
        let mut is_right = vec![false; self.values.len()];
        store.list(Some(&key(ACTUAL)?), &mut |key, value| {
            if let Some(app) = self.index.get(key) {
                is_right[*app as usize] = self.values[*app as usize] == value;
            }
            ControlFlow::Continue(())
        })?;
        let expected = |at: &Option<u64>| at.is_some_and(|at| at + SETTLED_NS <= now);
        let mut gap = Gap::default();
        for (reported_at, is_right) in self.reported_at.iter().zip(is_right) {
            if expected(reported_at) {
                gap.expected += 1;
                gap.missing += u64::from(!is_right);
            }
        }
        Ok(gap)
    }
}
