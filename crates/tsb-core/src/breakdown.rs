//! Response time taken apart: how long each operation waited, was sent late, was encoded, was on
//! its way, and was in the store.
//!
//! ```text
//!   due              start      encoded         read              done
//!    |-waiting-|-late-|-encoding-|-transport-...-|------store-------|
//!                                     \-waiting-/
//! ```
//! - **waiting**: behind earlier operations: in the emitter's worker while its target was busy, and
//!   at the receiver of a wire while that was busy with earlier operations of the connection;
//! - **late**: the rest of the time from due until start, in which the emitter itself was late;
//! - **encoding**: from start until the operation was encoded;
//! - **transport**: from there until the receiver had read it, without waiting;
//! - **store**: from there, or from start where there is no wire, until it was done. On a wire it
//!   includes decoding. Where the operation ends with an answer from elsewhere, it is everything
//!   from start until the answer, of which no more is known.
//!
//! The parts of an operation add up to its response time. A [`Breakdown`] keeps their sums by cell of
//! response time, so the composition of a quantile is the mean of the operations whose response
//! time lies in the cell of that quantile: in a band that is 1/8 to 1/16 of the quantile wide. The
//! slowest operations are kept one by one.

mod events;
mod worst;

use crate::latency::{CELLS, cell, cell_highest, cell_lowest};
use crate::schedule::Slot;

pub use events::{EVENTS_MAX, EventLog};
pub use worst::{WORST_MAX, WorstOperation};

use worst::Worst;

/// The parts of one response time, or their sums over several, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Behind earlier operations.
    pub waiting_ns: u64,
    /// In which the emitter itself was late.
    pub late_ns: u64,
    /// Encoding.
    pub encoding_ns: u64,
    /// From encoded until read, without waiting.
    pub transport_ns: u64,
    /// In the store; on a wire, in decoder and store; everything from start until the answer where
    /// no more is known.
    pub store_ns: u64,
}

impl Parts {
    /// The parts of an operation that waited `lag_ns` for its start, `late_ns` of them because of
    /// the emitter. The rest is to be added.
    #[inline]
    pub fn of_lag(lag_ns: u64, late_ns: u64) -> Self {
        let late_ns = late_ns.min(lag_ns);
        Self {
            waiting_ns: lag_ns - late_ns,
            late_ns,
            ..Self::default()
        }
    }

    /// The response time: the sum of the parts.
    #[inline]
    pub const fn response_ns(&self) -> u64 {
        self.waiting_ns + self.late_ns + self.encoding_ns + self.transport_ns + self.store_ns
    }

    /// Adds the parts of other operations. Sums wrap, after 584 years of response time.
    #[inline]
    pub const fn add(&mut self, other: &Self) {
        self.waiting_ns = self.waiting_ns.wrapping_add(other.waiting_ns);
        self.late_ns = self.late_ns.wrapping_add(other.late_ns);
        self.encoding_ns = self.encoding_ns.wrapping_add(other.encoding_ns);
        self.transport_ns = self.transport_ns.wrapping_add(other.transport_ns);
        self.store_ns = self.store_ns.wrapping_add(other.store_ns);
    }
}

/// The operations whose response time lies in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
struct Composition {
    parts: Parts,
    operations: u64,
}

/// The operations around a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Band {
    /// The shortest response time of the band, in nanoseconds.
    pub from_ns: u64,
    /// The longest.
    pub to_ns: u64,
    /// Number of operations in it. in [1, ..)
    pub operations: u64,
    /// The sums of their parts.
    pub parts: Parts,
}

/// What response times consist of. Takes about 40 KiB, all reserved when it is made; recording
/// allocates nothing.
#[derive(Clone, Debug)]
pub struct Breakdown {
    // Invariant: CELLS entries.
    cells: Box<[Composition]>,
    worst: Worst,
}

impl Default for Breakdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Breakdown {
    /// A breakdown of no operation.
    pub fn new() -> Self {
        Self {
            cells: vec![Composition::default(); CELLS].into_boxed_slice(),
            worst: Worst::new(),
        }
    }

    /// Adds an operation that was due at `due_ns` of the run's clock and took `parts`.
    #[inline]
    pub fn record(&mut self, slot: Slot, due_ns: u64, parts: &Parts) {
        let response_ns = parts.response_ns();
        if let Some(composition) = self.cells.get_mut(cell(response_ns)) {
            composition.parts.add(parts);
            composition.operations += 1;
        }
        if response_ns > self.worst.floor_ns() {
            self.worst.keep(WorstOperation {
                response_ns,
                group: slot.group,
                tick: slot.tick,
                due_ns,
                parts: *parts,
            });
        }
    }

    /// Adds the operations of another one.
    pub fn merge(&mut self, other: &Self) {
        for (mine, other) in self.cells.iter_mut().zip(&other.cells) {
            mine.parts.add(&other.parts);
            mine.operations += other.operations;
        }
        self.worst.merge(&other.worst);
    }

    /// Removes all operations and keeps the allocations.
    pub fn clear(&mut self) {
        self.cells.fill(Composition::default());
        self.worst.clear();
    }

    /// The operations around a response time of `response_ns`; `None` if there is none in its cell.
    pub fn around(&self, response_ns: u64) -> Option<Band> {
        let place = cell(response_ns);
        let composition = self.cells.get(place).filter(|cell| cell.operations > 0)?;
        Some(Band {
            from_ns: cell_lowest(place),
            to_ns: cell_highest(place),
            operations: composition.operations,
            parts: composition.parts,
        })
    }

    /// The [`WORST_MAX`] slowest operations, slowest first.
    pub fn worst(&self) -> Vec<WorstOperation> {
        self.worst.list()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(tick: u64) -> Slot {
        Slot {
            group: 7,
            tick,
            offset_ns: tick,
        }
    }

    #[test]
    fn the_parts_of_a_lag_never_exceed_it() {
        let parts = Parts::of_lag(100, 30);
        assert_eq!((parts.waiting_ns, parts.late_ns, parts.response_ns()), (70, 30, 100));
        let parts = Parts::of_lag(100, 130);
        assert_eq!((parts.waiting_ns, parts.late_ns), (0, 100));
    }

    #[test]
    fn a_band_holds_the_operations_of_its_cell_and_no_others() {
        let mut breakdown = Breakdown::new();
        for tick in 0..1_000 {
            let parts = Parts {
                store_ns: 1_000,
                waiting_ns: if tick % 10 == 0 { 9_000 } else { 0 },
                ..Parts::default()
            };
            breakdown.record(slot(tick), tick, &parts);
        }
        let fast = breakdown.around(1_000).unwrap();
        assert_eq!((fast.operations, fast.parts.waiting_ns), (900, 0));
        assert_eq!(fast.parts.store_ns, 900_000);
        let slow = breakdown.around(10_000).unwrap();
        assert_eq!((slow.operations, slow.parts.waiting_ns), (100, 900_000));
        assert!(slow.from_ns <= 10_000 && slow.to_ns >= 10_000, "{slow:?}");
        assert!((slow.to_ns - slow.from_ns) * 8 <= slow.from_ns, "{slow:?}");
        assert_eq!(breakdown.around(5_000), None);

        let mut both = Breakdown::new();
        both.merge(&breakdown);
        both.merge(&breakdown);
        assert_eq!(both.around(1_000).unwrap().operations, 1_800);
        assert_eq!(both.worst().len(), WORST_MAX);
        both.clear();
        assert_eq!((both.around(1_000), both.worst().len()), (None, 0));
    }
}
