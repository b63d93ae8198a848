//! Examines processors, competing load, and memory.

use tsb_core::proc::{self, Memory};
use tsb_core::resource::{Machine, Steal};
use tsb_core::verdict::NOISE_SHARE_MAX;

use super::{Level, MachineFinding, bytes, read};

pub(super) fn examine(machine: &Machine) -> Vec<MachineFinding> {
    let model = machine.cpu.as_deref().unwrap_or(std::env::consts::ARCH);
    let mut findings = vec![
        judge_cores(machine.cores, model),
        judge_governor(machine.governor.as_deref()),
        judge_load(proc::load(), machine.cores),
    ];
    for kind in ["cpu", "memory", "io"] {
        findings.push(judge_pressure(kind, proc::some_pressure(kind)));
    }
    findings.push(judge_memory(Memory::read().unwrap_or_default()));
    findings.push(judge_huge_pages(
        read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref(),
    ));
    findings
}

fn judge_cores(cores: usize, model: &str) -> MachineFinding {
    let meaning = "emitter, listener and store each want a core of their own";
    MachineFinding::ok("cores", format!("{cores} of {model}"), meaning).advise_if(
        cores < 2,
        Level::Warn,
        "with one core the generator takes time from the store: give it two, or read CPU-seconds and not rates",
    )
}

fn judge_governor(name: Option<&str>) -> MachineFinding {
    let Some(name) = name else {
        let meaning = "clock frequency is not controlled from here, as in most virtual machines";
        return MachineFinding::ok("governor", "none visible", meaning);
    };
    let meaning = "a governor that saves energy changes the clock frequency while a run measures";
    MachineFinding::ok("governor", name, meaning).advise_if(
        name != "performance",
        Level::Warn,
        "cpupower frequency-set --governor performance, for as long as you measure",
    )
}

fn judge_load(load: Option<f64>, cores: usize) -> MachineFinding {
    let Some(load) = load else {
        return MachineFinding::unknown("load", "/proc/loadavg");
    };
    let meaning = "how many threads wanted a core in the last minute, this program's own among them";
    MachineFinding::ok("load", format!("{load:.2} on {cores} cores"), meaning).advise_if(
        load > cores as f64 / 2.0,
        Level::Warn,
        "wait until other work has ended: it will show as lag and as response time",
    )
}

fn judge_pressure(kind: &str, share: Option<f64>) -> MachineFinding {
    let name = match kind {
        "cpu" => "cpu pressure",
        "memory" => "memory pressure",
        _ => "disk pressure",
    };
    let Some(share) = share else {
        return MachineFinding::unknown(name, "the kernel keeps no pressure figures");
    };
    let meaning = "the share of the last ten seconds in which some task had to wait for it";
    MachineFinding::ok(name, percent(share), meaning).advise_if(
        share > NOISE_SHARE_MAX,
        Level::Warn,
        "something else uses it: a run that has to wait for it is late, and where that is for a CPU its verdict is NOISY",
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Judges the CPU time that the hypervisor took since `before`, the beginning of the
/// examination.
pub(super) fn steal(before: &Steal) -> MachineFinding {
    judge_steal(Steal::read().share_since(before))
}

fn judge_steal(share: Option<f64>) -> MachineFinding {
    let Some(share) = share else {
        return MachineFinding::unknown("steal", "/proc/stat");
    };
    let meaning = "the share of processor time that the hypervisor gave to other machines while this was examined";
    MachineFinding::ok("steal", percent(share), meaning).advise_if(
        share > NOISE_SHARE_MAX,
        Level::Warn,
        "measure on a machine with cores of its own, or compare only within interleaved runs",
    )
}

fn judge_memory(memory: Memory) -> MachineFinding {
    let (Some(total), Some(free)) = (memory.total, memory.available) else {
        return MachineFinding::unknown("memory", "/proc/meminfo");
    };
    let swapped = memory
        .swap_total
        .unwrap_or(0)
        .saturating_sub(memory.swap_free.unwrap_or(0));
    let value = format!(
        "{} of {} available, {} swapped out",
        bytes(free),
        bytes(total),
        bytes(swapped)
    );
    let meaning = "a store that is swapped out measures the disk";
    let finding = MachineFinding::ok("memory", value, meaning);
    if free < 1 << 30 {
        return finding.advise(
            Level::Warn,
            "give a memory store a bound (memory:?max_bytes=...), and stop other programs",
        );
    }
    finding.advise_if(
        swapped > 1 << 30,
        Level::Warn,
        "find out what is swapped out, and turn swap off while you measure",
    )
}

fn judge_huge_pages(enabled: Option<&str>) -> MachineFinding {
    let Some(line) = enabled else {
        return MachineFinding::unknown("huge pages", "no transparent_hugepage");
    };
    let chosen = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let meaning =
        "huge pages make large stores faster and their resident size coarser; say which when comparing machines";
    MachineFinding::ok("huge pages", chosen.unwrap_or(line), meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_governors_are_judged() {
        assert_eq!(judge_cores(1, "x").level, Level::Warn);
        assert_eq!(judge_cores(2, "x").value, "2 of x");
        assert_eq!(judge_governor(None).level, Level::Ok);
        assert_eq!(judge_governor(Some("performance")).level, Level::Ok);
        assert_eq!(judge_governor(Some("powersave")).level, Level::Warn);
    }

    #[test]
    fn load_and_pressure_are_judged() {
        assert_eq!(judge_load(Some(0.3), 2).level, Level::Ok);
        assert_eq!(judge_load(Some(1.5), 2).level, Level::Warn);
        assert_eq!(judge_load(None, 2).level, Level::Ok);
        assert_eq!(judge_pressure("cpu", Some(0.035)).level, Level::Warn);
        assert_eq!(judge_pressure("io", Some(0.02)).level, Level::Ok);
    }

    #[test]
    fn steal_is_judged_by_the_threshold_of_the_verdict() {
        assert_eq!(judge_steal(Some(0.1)).value, "10.0 %");
        assert_eq!(judge_steal(Some(0.1)).level, Level::Warn);
        assert_eq!(judge_steal(Some(NOISE_SHARE_MAX)).level, Level::Ok);
        assert_eq!(judge_steal(None).level, Level::Ok);
    }

    #[test]
    fn memory_is_judged_by_what_is_available_and_swapped() {
        let memory = |free_kib: u64, swapped_kib: u64| Memory {
            total: Some(8 << 30),
            available: Some(free_kib << 10),
            swap_total: Some(4 << 30),
            swap_free: Some((4_194_304 - swapped_kib) << 10),
        };
        assert_eq!(
            judge_memory(memory(4_194_304, 0)).value,
            "4.00 GiB of 8.00 GiB available, 0 B swapped out"
        );
        assert_eq!(judge_memory(memory(4_194_304, 0)).level, Level::Ok);
        assert_eq!(judge_memory(memory(1_000, 0)).level, Level::Warn);
        assert_eq!(judge_memory(memory(4_194_304, 2_097_152)).level, Level::Warn);
        assert_eq!(judge_memory(Memory::default()).level, Level::Ok);
    }

    #[test]
    fn the_chosen_huge_page_mode_is_named() {
        assert_eq!(judge_huge_pages(Some("always [madvise] never")).value, "madvise");
    }
}
