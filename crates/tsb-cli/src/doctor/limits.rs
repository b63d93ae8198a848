//! What this process is not allowed to use: control groups, sockets, files.

use rustix::process::{Resource, getrlimit};

use super::{Finding, Level, bytes, read};

/// A receive buffer that holds less than this loses datagrams of a burst.
const SOCKET_BYTES_MIN: u64 = 4 << 20;

/// Connections, files and a few more.
const FILES_MIN: u64 = 4_096;

pub(super) fn examine() -> Vec<Finding> {
    let groups = group_folders(&read("/proc/self/cgroup").unwrap_or_default());
    let values = |file: &str| -> Vec<String> {
        groups
            .iter()
            .filter_map(|folder| read(&format!("{folder}/{file}")))
            .collect()
    };
    let number = |path: &str| read(path).and_then(|text| text.parse().ok());
    vec![
        judge_cpu_quota(&values("cpu.max"), throttled(&values("cpu.stat"))),
        judge_memory_limit(&values("memory.max")),
        judge_sockets(
            "receive buffer",
            number("/proc/sys/net/core/rmem_max"),
            "net.core.rmem_max",
        ),
        judge_sockets(
            "send buffer",
            number("/proc/sys/net/core/wmem_max"),
            "net.core.wmem_max",
        ),
        judge_files(getrlimit(Resource::Nofile).current),
    ]
}

/// The folders of our control group (version 2) and of the groups above it.
fn group_folders(text: &str) -> Vec<String> {
    let Some(path) = text.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Vec::new();
    };
    let mut folder = format!("/sys/fs/cgroup{}", path.trim_end_matches('/'));
    let mut folders = Vec::new();
    while folder.len() >= "/sys/fs/cgroup".len() {
        folders.push(folder.clone());
        let Some(parent) = folder.rfind('/') else { break };
        folder.truncate(parent);
    }
    folders
}

/// How often any of the groups was stopped because its quota was used up.
fn throttled(stats: &[String]) -> u64 {
    let lines = stats.iter().flat_map(|stat| stat.lines());
    let counts = lines.filter_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
    counts.max().unwrap_or(0)
}

/// Cores that a `cpu.max` line allows; `None` is no limit.
fn quota_cores(line: &str) -> Option<f64> {
    let (quota, period) = line.split_once(' ')?;
    let quota: f64 = quota.parse().ok()?;
    let period: f64 = period.parse().ok()?;
    (period > 0.0).then_some(quota / period)
}

fn judge_cpu_quota(lines: &[String], throttled: u64) -> Finding {
    let meaning = "a control group with a quota stops its threads until the next period begins, which looks like a stall of the store";
    let smallest = lines.iter().filter_map(|line| quota_cores(line)).min_by(f64::total_cmp);
    let Some(cores) = smallest else {
        return Finding::ok("cpu quota", "none", meaning);
    };
    let value = format!("{cores:.2} cores, stopped {throttled} times so far");
    Finding::ok("cpu quota", value, meaning).advise(
        Level::Warn,
        "run without a CPU quota, or pin the group to whole cores instead",
    )
}

fn judge_memory_limit(lines: &[String]) -> Finding {
    let meaning = "a program that exceeds the limit of its control group is killed, without a report";
    match lines.iter().filter_map(|line| line.parse::<u64>().ok()).min() {
        None => Finding::ok("memory limit", "none", meaning),
        Some(limit) => Finding::ok("memory limit", bytes(limit), meaning).advise(
            Level::Warn,
            format!("give a memory store a bound below it: memory:?max_bytes={}", limit / 2),
        ),
    }
}

fn judge_sockets(name: &'static str, limit: Option<u64>, setting: &str) -> Finding {
    let Some(limit) = limit else {
        return Finding::unknown(name, setting);
    };
    let meaning =
        "the largest buffer that a socket may ask for; a burst that does not fit waits (TCP) or is lost (UDP)";
    let finding = Finding::ok(name, format!("at most {}", bytes(limit)), meaning);
    if limit >= SOCKET_BYTES_MIN {
        return finding;
    }
    finding.advise(
        Level::Warn,
        format!("sysctl -w {setting}={SOCKET_BYTES_MIN}, before runs over UDP"),
    )
}

/// `None` is no limit.
fn judge_files(limit: Option<u64>) -> Finding {
    let meaning = "each connection and each open file of a store takes one";
    let Some(limit) = limit else {
        return Finding::ok("open files", "no limit", meaning);
    };
    Finding::ok("open files", format!("at most {limit}"), meaning).advise_if(
        limit < FILES_MIN,
        Level::Warn,
        "ulimit -n 65536, before runs with many connections or a file for each series",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_followed_to_the_root() {
        let folders = group_folders("0::/a/b\n");
        assert_eq!(folders, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(group_folders("0::/\n"), ["/sys/fs/cgroup"]);
        assert!(group_folders("4:memory:/x\n").is_empty());
    }

    #[test]
    fn the_tightest_quota_counts() {
        let lines = [
            "max 100000".to_owned(),
            "150000 100000".to_owned(),
            "400000 100000".to_owned(),
        ];
        let finding = judge_cpu_quota(&lines, 7);
        assert_eq!(finding.value, "1.50 cores, stopped 7 times so far");
        assert_eq!(finding.level, Level::Warn);
        assert_eq!(judge_cpu_quota(&lines[..1], 0).value, "none");
        assert_eq!(throttled(&["nr_periods 9\nnr_throttled 3\n".to_owned()]), 3);
    }

    #[test]
    fn memory_sockets_and_files_are_judged() {
        assert_eq!(judge_memory_limit(&["max".to_owned()]).level, Level::Ok);
        let limited = judge_memory_limit(&["max".to_owned(), "1073741824".to_owned()]);
        assert_eq!((limited.value.as_str(), limited.level), ("1.0 GiB", Level::Warn));
        assert_eq!(judge_sockets("receive buffer", Some(212_992), "s").level, Level::Warn);
        assert_eq!(
            judge_sockets("receive buffer", Some(SOCKET_BYTES_MIN), "s").level,
            Level::Ok
        );
        assert_eq!(judge_files(Some(1_024)).level, Level::Warn);
        assert_eq!(judge_files(Some(1_048_576)).level, Level::Ok);
        assert_eq!(judge_files(None).level, Level::Ok);
    }
}
