//! The instrument of `tsb`: everything between a schedule and a verified result.
//!
//! It knows no store and no terminal. The emitter drives a closure, so this crate alone is enough
//! to measure any database. The pure part (schedule, workload, wire, ledger, latency) has no
//! socket, no wall clock and no unseeded randomness.
//!
//! In this example, a fleet of two hosts reports ten times per second for a fifth of a second of
//! virtual time, and a closure receives what it sends:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use tsb_core::emit::{Fill, Live, Operation, Outcome, Run, Settings, Worker, run};
//! use tsb_core::schedule::{Group, Pace, Roster, Slot, Speed, Timetable};
//! use tsb_core::time::{ManualClock, SECOND_NS};
//! use tsb_core::{BatchBuf, SeriesId, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hosts = (0..2).map(|host| Group::new(SECOND_NS / 10, host * SECOND_NS / 20, 3));
//! let timetable = Timetable {
//!     roster: Roster::new(hosts.collect())?,
//!     pace: Pace::Fleet(Speed::NATURAL),
//!     end_ns: Some(SECOND_NS / 5),
//!     fleet_end_ns: None,
//! };
//! let fill = |slot: &Slot, batch: &mut BatchBuf| {
//!     for series in slot.group * 3..slot.group * 3 + 3 {
//!         batch.push(SeriesId(series), Timestamp(slot.offset_ns as i64), 1.5);
//!     }
//! };
//! let worker = Worker {
//!     groups: 0..2,
//!     source: Fill::new(fill),
//!     // Your database goes here.
//!     target: |operation: &Operation<'_>| Outcome::Done {
//!         accepted: operation.payload.len() as u32,
//!         rejected: 0,
//!     },
//! };
//! let report = run(
//!     &Run {
//!         clock: &ManualClock::new(),
//!         timetable: &timetable,
//!         stop: &AtomicBool::new(false),
//!         live: &Live::new(1),
//!         settings: Settings::default(),
//!     },
//!     vec![worker],
//! )?;
//! assert_eq!(report.counts.accepted, 4 * 3);
//! # Ok(())
//! # }
//! ```
//!
//! Documents that are named `docs/...` are in the [repository](https://github.com/tsb-bench/tsb).
//!
//! It is *not* a store, and it prints nothing. Stores are in `tsb-stores`, the
//! program in `tsb-cli`.

pub mod batch;
pub mod breakdown;
pub mod bytes;
mod cpu;
pub mod durability;
pub mod emit;
pub mod latency;
pub mod ledger;
#[cfg(feature = "net")]
pub mod net;
pub mod proc;
pub mod report;
pub mod resource;
pub mod schedule;
pub mod series;
pub mod staleness;
pub mod stats;
pub mod time;
pub mod trace;
pub mod verdict;
pub mod wire;
pub mod workload;

pub use batch::{Batch, BatchBuf, Ids, Times};
pub use durability::Durability;
pub use series::{Catalog, SeriesId, SeriesKey};
pub use time::Timestamp;
