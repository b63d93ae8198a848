//! A whole run of tsb as a library: a [`Plan`] and a store in, a
//! [`Report`](tsb_core::report::Report) with audit, ledger, ceiling, staleness and verdict out.
//!
//! [`run_store`] runs a plan against a store that the caller has opened, [`run_client`] against one
//! that takes many writes at a time, [`run_plan`] and
//! [`run_each`] open the stores that a plan names, and [`WriteOnly`] makes a store of a closure
//! that only writes. [`place::Place`] is what a store keeps beyond its process, and
//! [`place::RoundPlace`] one that is removed after a round. [`Controls`] is what a run takes from
//! its surroundings: flags that end it, and an [`Observer`] that hears what it does. A run
//! returns an [`Error`] only if nothing was measured; what fails later is in its report. [`run_each`] also
//! returns the error of a later store, beside the reports of those before it.
//!
//! Nothing here prints, ends the process or reads the environment.

pub mod audit;
mod beside;
pub mod canary;
pub mod capacity;
pub mod compare;
mod controls;
pub mod dalmatiner;
pub mod damage;
pub mod device;
mod draws;
pub mod ends;
mod error;
pub mod experiment;
pub mod foreign;
pub mod hm9000;
#[cfg(feature = "hosts")]
pub mod hosts;
pub mod journal;
pub mod json;
pub mod loopback;
pub mod mohawk;
mod observer;
pub mod place;
pub mod plan;
pub mod records;
pub mod run;
pub mod simulate;
pub mod spec;
pub mod threshold;
pub mod units;
mod write_only;

pub use controls::{Controls, Provisional, RelayStarter, StartBarrier, StopFlags};
pub use error::{Error, Explanation, chain, panic_message};
pub use observer::{
    HostStatus, IntervalLatencies, Message, NullObserver, Observer, Phase, Progress, RoundInfo, RunInfo,
};
pub use plan::{AskedRate, Plan, Transport, WirePlan};
pub use run::{Finished, FinishedRuns, StoreTimeouts, open, run_client, run_each, run_plan, run_store};
pub use spec::OpenedStore;
pub use write_only::{Keys, WriteOnly};
