//! HM9000 on etcd, the third published benchmark: its simulated Cloud Foundry, and
//! the rules by which it called a store fresh, over any store of keys and in virtual time.
//!
//! ```
//! use tsb_run::hm9000::{Event, Simulator, SimulatorOptions};
//!
//! let mut simulator = Simulator::new(SimulatorOptions { apps: 30_000, ..SimulatorOptions::default() });
//! assert_eq!(simulator.deas().len(), 300);
//! let mut heartbeats = 0;
//! for _second in 0..10 {
//!     simulator.tick(|_, event| heartbeats += usize::from(matches!(event, Event::Heartbeat(_))));
//! }
//! assert_eq!(heartbeats, 300);
//! ```

mod as_it_was;
mod corrected;
mod defects;
mod experiment;
mod guid;
mod layout;
mod listener;
mod records;
mod simulator;
mod truth;

pub use as_it_was::{RealTime, Report as AsItWasReport, VirtualTime};
pub use corrected::{CorrectedOptions, OutageOptions, corrected, with_outages};
pub use defects::{Defect, Defects};
pub use experiment::{DISTURBANCE_MAX_S, Disturb, MISTAKES, Request, measure, rows};
pub use guid::Guid;
pub use layout::{EtcdInterface, Layout, OpenedKeys, Opening};
pub use listener::{FreshKeys, Heartbeat, Listener, poll};
pub(crate) use records::{ACTUAL, key};
pub use records::{
    ACTUAL_FRESH, DESIRED_FRESH, advertise_payload, heartbeat_payload, instance_key, instance_value, presence_key,
};
pub use simulator::{
    ADVERTISE_INTERVAL_S, App, AppState, DEA_CAPACITY, Dea, Event, HEARTBEAT_INTERVAL_S, Simulator, SimulatorOptions,
};
