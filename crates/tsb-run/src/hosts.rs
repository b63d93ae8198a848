//! One run by many hosts: each sends, measures and audits a part of the fleet, and their results
//! are added.
//!
//! The hosts share nothing but a [`Coordination`]: documents under keys of etcd, or of a folder for
//! processes of one machine. The leader ([`lead`]) publishes the plan and waits for the hosts; a
//! host ([`join`]) measures its clock and its ceiling, gets a contiguous range of series in
//! proportion to that ceiling, and starts when all start. Each publishes its part of the report
//! with full histograms, from which the leader computes the figures of the whole ([`merge`]):
//! counts and histograms add, so no quantile is computed from quantiles.
//!
//! Response times never span two clocks. The start does, and its uncertainty is in the report.
//!
//! The documents are listed in `docs/formats/hosts.md`.

mod clock;
mod coordination;
mod documents;
mod folder;
mod lead;
mod liveness;
mod member;
mod merge;
mod part;

pub use clock::{ClockReading, ClockServer, best_of, measure_offset};
pub use coordination::{Coordination, CoordinatorAddress};
pub use lead::{LeadOptions, VerifyLost, WATCHED_MAX, lead};
pub use member::{JoinOptions, join, join_each};
pub use merge::{LostPart, MeasuredPart, Whole, merge};
pub use part::HostPart;
