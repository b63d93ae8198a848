//! The experiment as it was: a ticker that sleeps for a second and then asks the store for two
//! keys. Beside each poll that says fresh, what is really there.

mod go;
mod real_time;
mod until;
mod virtual_time;

pub use real_time::RealTime;
pub use virtual_time::VirtualTime;

use tsb_core::report::experiment::hm9000::Poll;
use tsb_core::time::SECOND_NS;
use tsb_stores::Result;

use super::defects::{Defect, Defects};
use super::listener::{FreshKeys, Heartbeat};
use super::simulator::SimulatorOptions;
use super::truth::Gap;

/// Seconds between fetches of the desired state.
const FETCH_S: u64 = 60;

/// What the bus carries.
enum Heard {
    Advertise,
    Heartbeat(Heartbeat),
}

/// The cluster, which adds no apps where that defect is off.
fn cluster(options: SimulatorOptions, defects: &Defects) -> SimulatorOptions {
    if defects.has(Defect::AppsAdded) {
        options
    } else {
        SimulatorOptions { new_apps: 0, ..options }
    }
}

/// What a run as it was has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The polls, one per second.
    pub polls: Vec<Poll>,
    /// What the original program would have printed.
    pub lines: Vec<String>,
    /// Failed syncs.
    pub syncs_failed: u64,
    /// Syncs that took a second or longer.
    pub syncs_slow: u64,
}

impl Report {
    /// The first poll that said fresh.
    pub fn first_fresh(&self) -> Option<&Poll> {
        self.polls.iter().find(|poll| poll.is_fresh)
    }

    fn ticked(&mut self, took_ns: u64) {
        self.lines
            .push(format!("TICKING SIMULATOR TOOK: {}", go::duration(took_ns)));
    }

    fn polled(&mut self, elapsed_ns: u64, answer: &Result<FreshKeys>, gap: Option<Gap>) {
        let elapsed = go::duration(elapsed_ns);
        let is_fresh = matches!(answer, Ok(keys) if keys.is_fresh());
        self.lines.push(match answer {
            Ok(_) if is_fresh => format!("~~~~ STORE IS FRESH: {elapsed}"),
            Ok(keys) => format!("~~~~ STORE IS NOT FRESH: {elapsed} ({keys})"),
            Err(error) => format!("~~~~ STORE IS NOT FRESH: {elapsed} ({})", crate::error::chain(error)),
        });
        self.polls.push(Poll {
            at_seconds: elapsed_ns as f64 / SECOND_NS as f64,
            is_fresh,
            expected: gap.map(|gap| gap.expected),
            missing: gap.map(|gap| gap.missing),
        });
    }
}
