//! The machine that a run ran on, as far as it bears on its figures.

use serde::{Deserialize, Serialize};

use super::parse::{cpu_max, described, named};

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
        let groups = group_folders(&text("/proc/self/cgroup").unwrap_or_default());
        let limits = |file: &str| -> Vec<String> {
            let read = groups.iter().filter_map(|folder| text(&format!("{folder}/{file}")));
            read.collect()
        };
        let (cpu_limits, memory_limits) = (limits("cpu.max"), limits("memory.max"));
        Self {
            cpu: described(&cpuinfo, "model name").map(str::to_owned),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cgroup_cores: cpu_limits
                .iter()
                .filter_map(|text| cpu_max(text))
                .min_by(f64::total_cmp),
            memory_bytes: named(&meminfo, "MemTotal").map(|kib| kib * 1024),
            cgroup_memory_bytes: memory_limits.iter().filter_map(|text| text.parse().ok()).min(),
            kernel: text("/proc/sys/kernel/osrelease"),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            debug_build: cfg!(debug_assertions),
        }
    }
}

/// The folders of our control group (version 2, whose line has number 0) and of the
/// groups above it, each of which may set a limit.
fn group_folders(text: &str) -> Vec<String> {
    let Some(path) = text.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Vec::new();
    };
    let path = path.trim_end_matches('/');
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let mut folders: Vec<String> = ends.map(|end| format!("/sys/fs/cgroup{}", &path[..end])).collect();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_are_followed_from_the_root() {
        let folders = group_folders("0::/a/b\n");
        assert_eq!(folders, ["/sys/fs/cgroup", "/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b"]);
        assert_eq!(group_folders("0::/\n"), ["/sys/fs/cgroup"]);
        assert!(group_folders("4:memory:/x\n").is_empty());
    }

    #[test]
    fn this_machine_has_cores_and_survives_the_report() {
        let machine = Machine::examine();
        assert!(machine.cores >= 1);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }
}
