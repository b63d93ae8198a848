//! Operations that did not end as done or handed over, by name.
//!
//! Runs of ticks of one group are one entry, even when other groups lie between them, so
//! that a lost connection does not fill the list. All room is reserved before the start.

use std::ops::Range;

use super::report::{Exception, ExceptionKind};
use crate::schedule::Slot;

/// Operations without an ordinary end, as ticks of groups, up to a bound that is reserved at once.
#[derive(Clone, Debug)]
pub struct ExceptionList {
    list: Vec<Exception>,
    max: usize,
    dropped: u64,
    first_group: u32,
    // The last entry of each group; u32::MAX: none.
    last_of: Vec<u32>,
}

impl ExceptionList {
    /// Room for `max` entries of these groups.
    pub fn new(groups: &Range<u32>, max: usize) -> Self {
        let max = max.min(u32::MAX as usize - 1);
        Self {
            list: Vec::with_capacity(max),
            max,
            dropped: 0,
            first_group: groups.start,
            last_of: vec![u32::MAX; groups.len()],
        }
    }

    /// Adds an operation: to the last entry of its group, if it is the next tick and of the same kind.
    pub fn add(&mut self, slot: Slot, kind: ExceptionKind) {
        let place = slot.group.wrapping_sub(self.first_group) as usize;
        let last = self.last_of.get(place).copied().unwrap_or(u32::MAX);
        if let Some(last) = self.list.get_mut(last as usize)
            && (last.group, last.kind, last.ticks.end) == (slot.group, kind, slot.tick)
        {
            last.ticks.end += 1;
            return;
        }
        if self.list.len() >= self.max {
            self.dropped += 1;
            return;
        }
        if let Some(last) = self.last_of.get_mut(place) {
            *last = self.list.len() as u32;
        }
        self.list.push(Exception {
            group: slot.group,
            ticks: slot.tick..slot.tick + 1,
            kind,
        });
    }

    /// The entries, and how many operations found no room.
    pub fn finish(self) -> (Vec<Exception>, u64) {
        (self.list, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_groups_make_one_entry_each_and_the_bound_holds() {
        let slot = |group, tick| Slot {
            group,
            tick,
            offset_ns: tick,
        };
        let mut exceptions = ExceptionList::new(&(10..13), 3);
        for tick in 5..1_000 {
            exceptions.add(slot(10, tick), ExceptionKind::Shed);
            exceptions.add(slot(12, tick), ExceptionKind::Shed);
        }
        exceptions.add(slot(10, 1_000), ExceptionKind::Unknown);
        exceptions.add(slot(11, 0), ExceptionKind::Shed);
        let (list, dropped) = exceptions.finish();
        let named: Vec<_> = list.iter().map(|one| (one.group, one.ticks.clone())).collect();
        assert_eq!(named, [(10, 5..1_000), (12, 5..1_000), (10, 1_000..1_001)]);
        assert_eq!(dropped, 1);
    }
}
