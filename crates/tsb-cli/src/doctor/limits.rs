//! Examines the limits of this process: control groups, socket buffers, open files.

use rustix::process::{Resource, getrlimit};
use tsb_core::proc::network_setting;
use tsb_core::resource::Machine;

use super::{Level, MachineFinding, bytes};

/// A smaller receive buffer loses datagrams of a burst.
const SOCKET_BYTES_MIN: u64 = 4 << 20;

/// Enough for connections, files and a few more.
const FILES_MIN: u64 = 4_096;

pub(super) fn examine(machine: &Machine) -> Vec<MachineFinding> {
    vec![
        judge_cpu_quota(machine.cgroup_cores),
        judge_memory_limit(machine.cgroup_memory_bytes),
        judge_sockets("receive buffer", network_setting("rmem_max"), "net.core.rmem_max"),
        judge_sockets("send buffer", network_setting("wmem_max"), "net.core.wmem_max"),
        judge_files(getrlimit(Resource::Nofile).current),
    ]
}

fn judge_cpu_quota(cores: Option<f64>) -> MachineFinding {
    let meaning = "a control group with a quota stops its threads until the next period begins, which looks like a stall of the store";
    let value = cores.map_or_else(|| "none".to_owned(), |cores| format!("{cores:.2} cores"));
    MachineFinding::ok("cpu quota", value, meaning).advise_if(
        cores.is_some(),
        Level::Warn,
        "run without a CPU quota, or pin the group to whole cores instead",
    )
}

fn judge_memory_limit(limit: Option<u64>) -> MachineFinding {
    let meaning = "a program that exceeds the limit of its control group is killed, without a report";
    let Some(limit) = limit else {
        return MachineFinding::ok("memory limit", "none", meaning);
    };
    let advice = format!("give a memory store a bound below it: memory:?max_bytes={}", limit / 2);
    MachineFinding::ok("memory limit", bytes(limit), meaning).advise(Level::Warn, advice)
}

fn judge_sockets(name: &'static str, limit: Option<u64>, setting: &str) -> MachineFinding {
    let Some(limit) = limit else {
        return MachineFinding::unknown(name, setting);
    };
    let meaning =
        "the largest buffer that a socket may ask for; a burst that does not fit waits (TCP) or is lost (UDP)";
    let finding = MachineFinding::ok(name, format!("at most {}", bytes(limit)), meaning);
    if limit >= SOCKET_BYTES_MIN {
        return finding;
    }
    finding.advise(
        Level::Warn,
        format!("sysctl -w {setting}={SOCKET_BYTES_MIN}, before runs over UDP"),
    )
}

/// `None` is no limit.
fn judge_files(limit: Option<u64>) -> MachineFinding {
    let meaning = "each connection and each open file of a store takes one";
    let Some(limit) = limit else {
        return MachineFinding::ok("open files", "no limit", meaning);
    };
    MachineFinding::ok("open files", format!("at most {limit}"), meaning).advise_if(
        limit < FILES_MIN,
        Level::Warn,
        "ulimit -n 65536, before runs with many connections or with one file per series",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_warned_about() {
        let finding = judge_cpu_quota(Some(1.5));
        assert_eq!((finding.value.as_str(), finding.level), ("1.50 cores", Level::Warn));
        assert_eq!(judge_cpu_quota(None).level, Level::Ok);
    }

    #[test]
    fn memory_sockets_and_files_are_judged() {
        assert_eq!(judge_memory_limit(None).level, Level::Ok);
        let limited = judge_memory_limit(Some(1 << 30));
        assert_eq!((limited.value.as_str(), limited.level), ("1.00 GiB", Level::Warn));
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
