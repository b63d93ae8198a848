//! The slots of one series: selects the slot of a sample, and detects what it replaces.

use tsb_core::Timestamp;

use crate::store::TimeRange;

/// The division of time into slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotGrid {
    slot_ns: i64,
    // in [2, MAX_SLOTS]
    slots: i64,
}

/// Maximum number of slots per series (2 GiB), so that a typing error in the options is reported
/// as such, and not as a failed allocation.
pub(super) const MAX_SLOTS: i64 = 1 << 27;

impl SlotGrid {
    /// A grid of `retention_ns / slot_ns` slots; `None` if these are fewer than two, or too many.
    pub(super) fn new(slot_ns: i64, retention_ns: i64) -> Option<Self> {
        let slots = (slot_ns > 0).then(|| retention_ns / slot_ns)?;
        if !(2..=MAX_SLOTS).contains(&slots) {
            return None;
        }
        Some(Self { slot_ns, slots })
    }

    /// How far back samples are kept for certain, in nanoseconds: all whole slots but the one
    /// that is being filled.
    pub(super) fn kept_ns(self) -> i64 {
        (self.slots - 1) * self.slot_ns
    }

    /// Bytes of the slots of one series.
    pub(super) fn bytes(self) -> u64 {
        (self.slots as u64).saturating_mul(size_of::<[u64; 2]>() as u64)
    }

    fn slot_of(self, at: Timestamp) -> i64 {
        at.0.div_euclid(self.slot_ns)
    }

    fn place_of(self, slot: i64) -> usize {
        slot.rem_euclid(self.slots) as usize
    }

    /// A timestamp that can never be at `place`: it marks the place as empty.
    fn never_at(self, place: usize) -> u64 {
        // Timestamp 0 belongs to place 0, and `slot_ns` to place 1.
        if place == 0 { self.slot_ns as u64 } else { 0 }
    }
}

/// The outcome of writing a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutOutcome {
    /// Stored in an empty slot; `expired` older samples fell out of the ring.
    Stored { expired: u64 },
    /// Stored in the place of another sample of the same slot.
    Replaced,
    /// Refused: its slot holds a newer lap.
    TooOld,
}

/// One series: (timestamp, value bits) by place. All samples are within one lap of the newest.
#[derive(Debug)]
pub(super) struct Slots {
    // Two words per slot, as in Mohawk, in zeroed memory that the system commits page by page. An
    // empty slot holds a timestamp that belongs to another place (`never_at`).
    places: Vec<[u64; 2]>,
    newest: i64,
}

impl Slots {
    /// Empty slots; the newest is that of the first sample.
    pub(super) fn new(grid: SlotGrid, at: Timestamp) -> Self {
        let mut places = vec![[0; 2]; grid.slots as usize];
        if let Some(place) = places.first_mut() {
            place[0] = grid.never_at(0);
        }
        Self {
            places,
            newest: grid.slot_of(at),
        }
    }

    /// Writes one sample to its slot, overwriting what is there.
    pub(super) fn put(&mut self, grid: SlotGrid, at: Timestamp, value: f64) -> PutOutcome {
        let slot = grid.slot_of(at);
        if self.newest.checked_sub(grid.slots).is_some_and(|gone| slot <= gone) {
            return PutOutcome::TooOld;
        }
        let expired = if slot > self.newest {
            self.advance(grid, slot)
        } else {
            0
        };
        let place = grid.place_of(slot);
        let Some(entry) = self.places.get_mut(place) else {
            return PutOutcome::TooOld;
        };
        let was_taken = is_taken(grid, place, *entry);
        *entry = [at.0 as u64, value.to_bits()];
        if was_taken {
            PutOutcome::Replaced
        } else {
            PutOutcome::Stored { expired }
        }
    }

    /// Makes `slot` the newest, and empties slots that are now a lap behind. Returns how many
    /// samples they held.
    fn advance(&mut self, grid: SlotGrid, slot: i64) -> u64 {
        // The difference of two i64 in order always fits a u64.
        let passed = (slot.wrapping_sub(self.newest) as u64).min(grid.slots as u64) as i64;
        let mut expired = 0;
        for slot in slot - passed + 1..=slot {
            let place = grid.place_of(slot);
            if let Some(entry) = self.places.get_mut(place) {
                expired += u64::from(is_taken(grid, place, *entry));
                entry[0] = grid.never_at(place);
            }
        }
        self.newest = slot;
        expired
    }

    /// The samples within `range`, in time order.
    pub(super) fn samples(&self, grid: SlotGrid, range: TimeRange) -> impl Iterator<Item = (Timestamp, f64)> + '_ {
        let lap = self.newest.saturating_sub(grid.slots - 1);
        let from = lap.max(grid.slot_of(range.start));
        let to = self.newest.min(grid.slot_of(range.end));
        let count = if from > to { 0 } else { (to - from) as usize + 1 };
        let first = grid.place_of(from);
        // Iterate over places from the first on, wrapping around: this avoids a division per
        // slot.
        let places = (first..self.places.len()).chain(0..first).take(count);
        let taken = places.filter_map(move |place| self.get(grid, place));
        taken.filter(move |(at, _)| range.contains(*at))
    }

    /// The newest sample; the newest slot always has one.
    pub(super) fn newest(&self, grid: SlotGrid) -> Option<Timestamp> {
        self.get(grid, grid.place_of(self.newest)).map(|(at, _)| at)
    }

    fn get(&self, grid: SlotGrid, place: usize) -> Option<(Timestamp, f64)> {
        let entry = *self.places.get(place)?;
        is_taken(grid, place, entry).then(|| (Timestamp(entry[0] as i64), f64::from_bits(entry[1])))
    }
}

fn is_taken(grid: SlotGrid, place: usize, entry: [u64; 2]) -> bool {
    entry[0] != grid.never_at(place)
}
