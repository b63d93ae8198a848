//! The machine that a run ran on, as far as it bears on its figures.

use serde::{Deserialize, Serialize};

use super::cgroup::limits;
use super::parse::{described, named};

/// Facts about the machine; what could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// CPUs that this process may run on.
    pub cores: usize,
    /// CPUs that its control group may use, where that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_cores: Option<f64>,
    /// Memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Memory that its control group may use, where that is limited, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_memory_bytes: Option<u64>,
    /// The kernel's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// How the processor's frequency is governed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Where the kernel takes its time from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Built without optimisation: no figure of such a build means anything.
    pub debug_build: bool,
}

impl Machine {
    /// This machine.
    pub fn examine() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        let meminfo = text("/proc/meminfo").unwrap_or_default();
        let own_groups = text("/proc/self/cgroup").unwrap_or_default();
        let limits = limits(&own_groups, |path| text(path));
        Self {
            cpu: described(&cpuinfo, "model name").map(str::to_owned),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cgroup_cores: limits.cores,
            memory_bytes: named(&meminfo, "MemTotal").map(|kib| kib * 1024),
            cgroup_memory_bytes: limits.memory_bytes,
            kernel: text("/proc/sys/kernel/osrelease"),
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
