//! The documents of a run of many hosts, and their keys.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tsb_core::proc::boot_id;
use tsb_core::report::Interval;
use tsb_core::workload::FleetPart;

use super::clock::ClockReading;
use crate::observer::IntervalLatencies;
use crate::plan::{Plan, QueryTurn};

/// Version of the documents: hosts of another version are refused.
pub(super) const VERSION: u32 = 2;

/// How long a host is taken to be there after it last said so, in nanoseconds. A pause of 5 s is
/// survived.
pub(super) const ALIVE_NS: u64 = 10 * tsb_core::time::SECOND_NS;

pub(super) const LEADER: &str = "leader";
pub(super) const PLAN: &str = "plan";
pub(super) const START: &str = "start";
pub(super) const STOP: &str = "stop";
pub(super) const ALIVE: &str = "alive";
pub(super) const JOINED: &str = "joined";
pub(super) const SHARE: &str = "share";
pub(super) const READY: &str = "ready";
pub(super) const JOURNAL: &str = "journal";
pub(super) const PART: &str = "part";
pub(super) const FAILED: &str = "failed";
pub(super) const ENDED: &str = "ended";

/// The key of a host's document.
pub(super) fn of(kind: &str, host: &str) -> String {
    format!("{kind}/{host}")
}

/// `plan`: what all hosts do together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SharedPlan {
    /// [`VERSION`] of the leader.
    pub version: u32,
    /// The version of its program.
    pub tsb_version: String,
    /// Tells this run from others at the same address: when it was published, in nanoseconds since the Unix
    /// epoch.
    pub run: i64,
    /// The plan of the whole.
    pub plan: Plan,
    /// Number of hosts.
    pub hosts: usize,
    /// Whether hosts publish their intervals, because the whole is watched.
    pub is_watched: bool,
    /// Where the leader answers for its clocks.
    pub clock: SocketAddr,
}

/// `joined/HOST`: a host that takes part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Joined {
    /// Samples per second that it can generate; absent if the plan does not measure it.
    #[serde(default)]
    pub ceiling_per_second: Option<f64>,
    /// Its clock before the run.
    pub clock: ClockReading,
    /// The process.
    pub process: HostProcess,
}

/// A process, and where its number means something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostProcess {
    /// Its number.
    pub pid: u32,
    /// The machine since its start, and the namespace of process numbers; absent where unknown.
    #[serde(default)]
    pub namespace: Option<String>,
}

impl HostProcess {
    /// This process.
    pub(super) fn of_this() -> Self {
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
        Self {
            pid: std::process::id(),
            namespace: boot_id()
                .zip(namespace)
                .map(|(boot, namespace)| format!("{boot} {}", namespace.display())),
        }
    }

    /// Whether it is another process that `other` sees by this number.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.namespace.is_some() && self.namespace == other.namespace && self.pid != other.pid
    }
}

/// `share/HOST`: what it sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Share {
    /// Its groups.
    pub part: FleetPart,
    /// The speed of fleet time as a fraction; absent for a closed loop and for a schedule.
    pub speed: Option<(u64, u64)>,
    /// Its turn to ask queries.
    pub query_turn: QueryTurn,
    /// The timestamp at which the history of all hosts ends, in nanoseconds since the Unix epoch; absent if the
    /// plan asks for none.
    #[serde(default)]
    pub history_end_ns: Option<i64>,
    /// Processes of the same run on its machine: what they use does not disturb it.
    #[serde(default)]
    pub neighbours: Vec<u32>,
}

/// `start`: when all begin.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Start {
    /// On the leader's steady clock.
    pub at_ns: u64,
    /// The first timestamp, in nanoseconds since the Unix epoch: that of the moment, or where the history ends.
    pub base_ns: i64,
}

/// `leader`: what all hosts hear of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LeaderState {
    /// The run that it leads; 0 before there is one.
    #[serde(default)]
    pub run: i64,
    /// The leader's process.
    pub pid: u32,
    /// Who ended the run early.
    #[serde(default)]
    pub stopped_by: Option<String>,
    /// The hosts without which the run goes on.
    #[serde(default)]
    pub lost: BTreeSet<String>,
    /// The hosts among which the fleet is divided; empty before it is.
    #[serde(default)]
    pub chosen: BTreeSet<String>,
}

impl LeaderState {
    /// Whether the fleet is divided among other hosts.
    pub(super) fn is_without(&self, host: &str) -> bool {
        !self.chosen.is_empty() && !self.chosen.contains(host)
    }
}

/// `alive/HOST`: that a host is there, and how far it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct HostProgress {
    /// Its phase, in a word.
    pub phase: String,
    /// Time since it began to send, in nanoseconds.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Operations sent.
    #[serde(default)]
    pub operations: u64,
    /// Samples sent.
    pub sent: u64,
    /// Samples accepted.
    pub accepted: u64,
    /// Samples refused.
    #[serde(default)]
    pub rejected: u64,
    /// Samples of which nothing is known.
    #[serde(default)]
    pub unknown: u64,
    /// Samples that were not sent.
    #[serde(default)]
    pub shed: u64,
    /// Age of its stalest series, in milliseconds, if it was measured.
    #[serde(default)]
    pub staleness_ms: Option<f64>,
    /// The intervals that ended since the last two times that it said so; empty if nobody watches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<HostInterval>,
}

/// An interval of a host, for those who watch the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct HostInterval {
    /// Its number, from 0; intervals of one number are of the same time.
    pub number: u64,
    /// The interval.
    pub interval: Interval,
    /// Its times, except the response times.
    pub timed: IntervalLatencies,
}
