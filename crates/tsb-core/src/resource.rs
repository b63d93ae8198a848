//! Resources that tsb, its threads and other processes used, and the machine that they ran on.
//!
//! Most figures come from `/proc`, through `proc`; clock source, frequency governor and limits of
//! control groups are read here. What cannot be read is absent, never 0.

mod cgroup;
mod listening;
mod machine;
mod noise;
mod process;
mod thread;

pub use crate::proc::Listening;
pub use listening::listeners;
pub use machine::Machine;
pub use noise::{LATE_NS_MIN, MeasuredProcesses, Noise, NoiseMeter, NoiseSnapshot, own_thread_waited_ns};
pub use process::{Process, Usage};
pub use thread::{cpu_of_thread, own_thread};

use crate::proc::CpuTimes;

/// A reading of the CPU time that the hypervisor stole.
#[derive(Clone, Copy, Debug)]
pub struct Steal(Option<CpuTimes>);

impl Steal {
    /// Reads the current counters.
    pub fn read() -> Self {
        Self(CpuTimes::read(None))
    }

    /// Share of all CPU time since `earlier` that was stolen. in [0, 1]
    pub fn share_since(&self, earlier: &Self) -> Option<f64> {
        Some(self.0?.stolen_since(earlier.0?))
    }
}
