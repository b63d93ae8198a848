//! Resources: what tsb, its threads and any other process used, on which machine.
//!
//! Everything comes from files of the kernel (`proc(5)`); parsing is pure and lives in
//! `parse`, reading is the thin shell here. What cannot be read is absent, never 0.

mod cgroup;
mod listening;
mod machine;
mod parse;
mod process;
mod thread;

pub use listening::{Listening, listeners};
pub use machine::Machine;
pub use process::{Process, Usage, cpu_of_threads};
pub use thread::{cpu_of_thread, own_thread};

use parse::{CpuTimes, pressure_total_us};

/// What others took from us: CPU time that a hypervisor gave away, and time in which
/// something that could run had to wait for a CPU.
///
/// Pressure counts our own threads that wait for each other too, so on a machine whose
/// cores are all busy with the run itself it is not noise: only steal is judged then.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    cpu: Option<CpuTimes>,
    waited_us: Option<u64>,
}

impl Noise {
    /// The counters as they are now.
    pub fn read() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").ok();
        let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok();
        Self {
            cpu: stat.as_deref().and_then(CpuTimes::parse),
            waited_us: pressure.as_deref().and_then(pressure_total_us),
        }
    }

    /// Share of all CPU time since `earlier` that was stolen. in [0, 1]
    pub fn stolen_since(&self, earlier: &Self) -> Option<f64> {
        Some(self.cpu?.stolen_since(earlier.cpu?))
    }

    /// Time since `earlier` in which something waited for a CPU, in microseconds.
    pub fn waited_us_since(&self, earlier: &Self) -> Option<u64> {
        Some(self.waited_us?.saturating_sub(earlier.waited_us?))
    }
}
