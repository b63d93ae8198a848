//! Samples that were written before the clock of a run started.

use std::ops::Range;

use tsb_core::Timestamp;
use tsb_core::schedule::{Frontier, Roster};
use tsb_core::workload::Workload;

/// The history of a store before a run: the first ticks of the same fleet, counted from an earlier
/// moment. It ends where the run begins.
#[derive(Clone, Debug, Default)]
pub struct History {
    base: Timestamp,
    ticks: Vec<Range<u64>>,
}

impl History {
    /// A history of `length_ns` of fleet time before a run that begins at `base`; none for a
    /// length of 0.
    pub fn before(base: Timestamp, length_ns: u64, workload: &Workload, roster: &Roster) -> Self {
        let Some(last_ns) = length_ns.checked_sub(1) else {
            return Self::default();
        };
        let frontier = Frontier {
            offset_ns: last_ns,
            group: u32::MAX,
        };
        let groups = 0..workload.groups().len() as u32;
        Self {
            base: base + -i64::try_from(length_ns).unwrap_or(i64::MAX),
            ticks: groups
                .map(|group| roster.ticks_through(group, Some(frontier)))
                .collect(),
        }
    }

    /// Whether nothing was written before the run.
    pub fn is_empty(&self) -> bool {
        self.ticks.is_empty()
    }

    /// The timestamp of its tick 0 at phase 0.
    pub fn base(&self) -> Timestamp {
        self.base
    }

    /// The ticks of a group that were written.
    pub fn ticks(&self, group: usize) -> Range<u64> {
        self.ticks.get(group).cloned().unwrap_or(0..0)
    }
}
