//! CPU time of a worker, split into preparing and sending.
//!
//! The thread's CPU clock costs a system call, so it is read around whole phases of some
//! operations only: of every operation for which there is time (due 100 us or more after
//! the worker was free), and of one in 64 at random otherwise. Each of the two kinds is
//! scaled by its own number of operations. What a reading costs itself is measured at
//! the start and taken off. The reading before `send` is taken 5 us ahead of the due
//! time, so that it does not become lag.

use serde::{Deserialize, Serialize};

use crate::schedule::Slot;
use crate::time::thread_cpu_ns;

/// Time that makes sampling an operation harmless.
const RELAXED_NS: u64 = 100_000;
/// The mean distance of sampled operations when there is no time to spare.
const SAMPLED_ONE_IN: u64 = 64;

/// CPU time by phase, estimated as this module's documentation says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseCpu {
    /// The worker thread's whole CPU time; exact.
    pub total_ns: u64,
    /// Preparing operations.
    pub prepare_ns: u64,
    /// Inside the target's `send`.
    pub send_ns: u64,
    /// Operations behind the estimates.
    pub sampled_operations: u64,
}

impl PhaseCpu {
    /// Adds another worker.
    pub fn merge(&mut self, other: &Self) {
        self.total_ns += other.total_ns;
        self.prepare_ns += other.prepare_ns;
        self.send_ns += other.send_ns;
        self.sampled_operations += other.sampled_operations;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stratum {
    operations: u64,
    sampled: u64,
    prepare_ns: u64,
    send_ns: u64,
}

impl Stratum {
    fn scaled(&self, sum_ns: u64) -> u64 {
        let scaled = u128::from(sum_ns) * u128::from(self.operations);
        scaled.checked_div(u128::from(self.sampled)).unwrap_or(0) as u64
    }
}

/// Decides which operations are sampled and keeps their sums.
#[derive(Debug)]
pub(super) struct CpuSampler {
    start_ns: u64,
    reading_ns: u64,
    // [busy, relaxed]
    strata: [Stratum; 2],
    countdown: u64,
}

/// The readings of one sampled operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    is_relaxed: bool,
    prepare_ns: u64,
    last: u64,
}

impl CpuSampler {
    pub(super) fn new() -> Self {
        let readings = || {
            let before = thread_cpu_ns();
            thread_cpu_ns() - before
        };
        Self {
            reading_ns: (0..16).map(|_| readings()).min().unwrap_or(0),
            start_ns: thread_cpu_ns(),
            strata: [Stratum::default(); 2],
            countdown: 0,
        }
    }

    /// Before an operation is prepared; `spare_ns` is what is left until it is due.
    #[inline]
    pub(super) fn begin(&mut self, spare_ns: u64, slot: &Slot) -> Option<Sampled> {
        let is_relaxed = spare_ns >= RELAXED_NS;
        self.strata[usize::from(is_relaxed)].operations += 1;
        if !is_relaxed {
            if self.countdown > 0 {
                self.countdown -= 1;
                return None;
            }
            // A fixed distance could meet the same host each time.
            let noise = crate::schedule::mix(slot.offset_ns ^ u64::from(slot.group));
            self.countdown = noise % (2 * SAMPLED_ONE_IN - 1);
        }
        Some(Sampled {
            is_relaxed,
            prepare_ns: 0,
            last: thread_cpu_ns(),
        })
    }

    pub(super) fn prepared(&self, sampled: &mut Sampled) {
        sampled.prepare_ns = (thread_cpu_ns() - sampled.last).saturating_sub(self.reading_ns);
    }

    pub(super) fn about_to_send(sampled: &mut Sampled) {
        sampled.last = thread_cpu_ns();
    }

    pub(super) fn sent(&mut self, sampled: Sampled) {
        let send_ns = (thread_cpu_ns() - sampled.last).saturating_sub(self.reading_ns);
        let stratum = &mut self.strata[usize::from(sampled.is_relaxed)];
        stratum.sampled += 1;
        stratum.prepare_ns += sampled.prepare_ns;
        stratum.send_ns += send_ns;
    }

    pub(super) fn finish(&self) -> PhaseCpu {
        let strata = self.strata.iter();
        PhaseCpu {
            total_ns: thread_cpu_ns() - self.start_ns,
            prepare_ns: strata.clone().map(|s| s.scaled(s.prepare_ns)).sum(),
            send_ns: strata.clone().map(|s| s.scaled(s.send_ns)).sum(),
            sampled_operations: strata.map(|s| s.sampled).sum(),
        }
    }
}
