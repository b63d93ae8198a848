//! The machine of a run, with the properties that affect its figures.

use serde::{Deserialize, Serialize};

use super::cgroup::limits;
use crate::proc::{Memory, cpu_model, kernel_release, own_groups};

/// Properties of the machine; absent where they could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// The processor's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Number of CPUs that this process may use.
    pub cores: usize,
    /// CPUs that the control group allows, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_cores: Option<f64>,
    /// Memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Memory that the control group allows, in bytes, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_memory_bytes: Option<u64>,
    /// The kernel's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The CPU frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The kernel's clock source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Whether the build is unoptimized; figures of such a build are meaningless.
    pub debug_build: bool,
}

impl Machine {
    /// Examines this machine.
    pub fn examine() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let limits = limits(&own_groups(), |path| text(path));
        Self {
            cpu: cpu_model(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cgroup_cores: limits.cores,
            memory_bytes: Memory::read().and_then(|memory| memory.total),
            cgroup_memory_bytes: limits.memory_bytes,
            kernel: kernel_release(),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            debug_build: cfg!(debug_assertions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_and_survives_the_report() {
        let machine = Machine::examine();
        assert!(machine.cores >= 1);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }
}
