//! The limits of the control groups that this process runs in, of either version.
//!
//! A group is bound by its own limit and those of all its ancestors, so the smallest limit
//! applies. Inside a container the group's path may not exist under the mount; then the mount's
//! root is used.

use crate::proc::ControlGroup;

/// What the control groups allow; `None`: no limit, or none that could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limits {
    pub(super) cores: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
}

/// Version 1 expresses "no limit" as a number larger than this.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The limits of some groups. `file` returns the text of a file, if it exists.
pub(super) fn limits(own_groups: &[ControlGroup], file: impl Fn(&str) -> Option<String>) -> Limits {
    let mut limits = Limits::default();
    for group in own_groups {
        let controllers = group.controllers.as_str();
        let has = |name: &str| controllers.split(',').any(|controller| controller == name);
        let is_unified = group.number == "0" && controllers.is_empty();
        for above in ancestors(&group.path) {
            if is_unified {
                // In a mixed setup, version 2 is mounted one level below version 1.
                let mounts = ["", "/unified"].into_iter();
                let text = |name: &str| {
                    let mut mounts = mounts.clone();
                    mounts.find_map(|mount| file(&format!("/sys/fs/cgroup{mount}{above}/{name}")))
                };
                limits.bound_cores(text("cpu.max").as_deref().and_then(cpu_max));
                limits.bound_memory(text("memory.max").as_deref().and_then(bytes));
            }
            if has("cpu") {
                let number = |name: &str| {
                    let mounts = [controllers, "cpu"].into_iter();
                    let mut texts = mounts.filter_map(|mount| file(&format!("/sys/fs/cgroup/{mount}{above}/{name}")));
                    texts.next()?.trim().parse::<f64>().ok()
                };
                let (quota, period) = (number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"));
                limits.bound_cores(quota.zip(period).and_then(|(quota, period)| share(quota, period)));
            }
            if has("memory") {
                let text = file(&format!("/sys/fs/cgroup/memory{above}/memory.limit_in_bytes"));
                limits.bound_memory(text.as_deref().and_then(bytes));
            }
        }
    }
    limits
}

impl Limits {
    fn bound_cores(&mut self, cores: Option<f64>) {
        self.cores = [self.cores, cores].into_iter().flatten().reduce(f64::min);
    }

    fn bound_memory(&mut self, bytes: Option<u64>) {
        self.memory_bytes = [self.memory_bytes, bytes].into_iter().flatten().min();
    }
}

/// `/a/b`, `/a` and the root, as suffixes of a mount point.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let path = path.trim_end_matches('/');
    std::iter::successors(Some(path), |path| path.rfind('/').map(|slash| &path[..slash]))
}

/// `cpu.max` of version 2: quota and period, or `max`.
fn cpu_max(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let quota = fields.next()?.parse().ok()?;
    share(quota, fields.next()?.parse().ok()?)
}

fn share(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn bytes(text: &str) -> Option<u64> {
    let bytes = text.trim().parse().ok()?;
    (bytes < UNLIMITED_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own_groups: &str, files: &[(&str, &str)], cores: Option<f64>, memory_bytes: Option<u64>) {
        let file = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        let own_groups: Vec<ControlGroup> = own_groups.lines().filter_map(ControlGroup::parse).collect();
        assert_eq!(limits(&own_groups, file), Limits { cores, memory_bytes });
    }

    #[test]
    fn the_smallest_limit_of_all_groups_above_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "2048\n"),
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
            ("/sys/fs/cgroup/memory.max", "4096\n"),
        ];
        check("0::/a/b\n", &files, Some(1.5), Some(2048));
        check("0::/\n", &files, None, Some(4096));
        check("", &files, None, None);
        check("nonsense\n1:x\n", &files, None, None);
    }

    #[test]
    fn version_one_is_read_where_it_is_mounted() {
        let files = [
            ("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "200000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            (
                "/sys/fs/cgroup/memory/box/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1024\n"),
        ];
        check("4:memory:/box\n3:cpu,cpuacct:/box\n", &files, Some(2.0), Some(1024));
    }
}
