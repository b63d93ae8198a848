//! Parses the `/proc` files that a recording samples. Pure: text in, fields out.
//!
//! A field is a name, labels and digits as in the file; the recorder converts digits to a value,
//! or refuses them. Unknown lines and columns of newer kernels are ignored; missing ones are
//! absent. The files are described in `man 5 proc` and in the kernel's
//! `Documentation/filesystems/proc.rst`.

use super::{stat_fields, words};

/// Receives one field: series name, labels, digits.
pub(crate) type FieldVisitor<'a> = dyn FnMut(&str, &[(&str, &str)], &[u8]) + 'a;

/// The root of the kernel's files.
pub(crate) const ROOT: &str = "/proc";

type Parse = fn(&[u8], &mut FieldVisitor<'_>);

/// The files of the machine, below the root.
pub(crate) const FILES: [(&str, Parse); 9] = [
    ("stat", stat),
    ("loadavg", loadavg),
    ("meminfo", meminfo),
    ("vmstat", vmstat),
    ("diskstats", diskstats),
    ("net/dev", net_dev),
    ("pressure/cpu", |text, visit| pressure("cpu", text, visit)),
    ("pressure/io", |text, visit| pressure("io", text, visit)),
    ("pressure/memory", |text, visit| pressure("memory", text, visit)),
];

/// The file that [`pid_stat`] parses, in the folder of a process.
pub(crate) const PID_STAT: &str = "stat";

type ParsePid = fn(&[u8], &mut dyn FnMut(&str, &[u8]));

/// The other files of a process, in its folder.
pub(crate) const PID_FILES: [(&str, ParsePid); 2] = [("io", pid_io), ("status", pid_status)];

const CPU_MODES: [&str; 10] = [
    "cpu_user_ticks",
    "cpu_nice_ticks",
    "cpu_system_ticks",
    "cpu_idle_ticks",
    "cpu_iowait_ticks",
    "cpu_irq_ticks",
    "cpu_softirq_ticks",
    "cpu_steal_ticks",
    "cpu_guest_ticks",
    "cpu_guest_nice_ticks",
];

const SOFTIRQS: [&str; 11] = [
    "all", "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu",
];

const DISK_FIELDS: [&str; 17] = [
    "disk_reads",
    "disk_reads_merged",
    "disk_read_sectors",
    "disk_read_ms",
    "disk_writes",
    "disk_writes_merged",
    "disk_written_sectors",
    "disk_write_ms",
    "disk_in_flight",
    "disk_io_ms",
    "disk_io_weighted_ms",
    "disk_discards",
    "disk_discards_merged",
    "disk_discarded_sectors",
    "disk_discard_ms",
    "disk_flushes",
    "disk_flush_ms",
];

const NET_FIELDS: [&str; 16] = [
    "net_receive_bytes",
    "net_receive_packets",
    "net_receive_errors",
    "net_receive_drops",
    "net_receive_fifo_errors",
    "net_receive_frame_errors",
    "net_receive_compressed",
    "net_receive_multicast",
    "net_transmit_bytes",
    "net_transmit_packets",
    "net_transmit_errors",
    "net_transmit_drops",
    "net_transmit_fifo_errors",
    "net_transmit_collisions",
    "net_transmit_carrier_errors",
    "net_transmit_compressed",
];

/// `/proc/stat`: CPU time by mode, interrupts, context switches, processes.
fn stat(text: &[u8], visit: &mut FieldVisitor<'_>) {
    for line in lines(text) {
        let mut words = words(line);
        match words.next() {
            Some(b"ctxt") => first_word(words, "context_switches", visit),
            Some(b"processes") => first_word(words, "forks", visit),
            Some(b"procs_running") => first_word(words, "procs_running", visit),
            Some(b"procs_blocked") => first_word(words, "procs_blocked", visit),
            // Only the sum: the columns after it are one per interrupt line.
            Some(b"intr") => first_word(words, "interrupts", visit),
            Some(b"softirq") => {
                for (kind, digits) in SOFTIRQS.iter().zip(words) {
                    visit("softirqs", &[("kind", kind)], digits);
                }
            }
            Some([b'c', b'p', b'u', number @ ..]) => {
                let number = if number.is_empty() { b"all" } else { number };
                let cpu = clean(number);
                for (mode, digits) in CPU_MODES.iter().zip(words) {
                    visit(mode, &[("cpu", &cpu)], digits);
                }
            }
            _ => {}
        }
    }
}

/// `/proc/meminfo`: sizes in KiB, and a few counts of pages.
fn meminfo(text: &[u8], visit: &mut FieldVisitor<'_>) {
    for line in lines(text) {
        let mut words = words(line);
        let (Some(name), Some(digits)) = (words.next(), words.next()) else {
            continue;
        };
        let unit = if words.next() == Some(b"kB") { "_kib" } else { "" };
        visit(&format!("meminfo_{}{unit}", clean_name(name)), &[], digits);
    }
}

/// `/proc/vmstat`: one name and number per line.
fn vmstat(text: &[u8], visit: &mut FieldVisitor<'_>) {
    for line in lines(text) {
        let mut words = words(line);
        if let (Some(name), Some(digits)) = (words.next(), words.next()) {
            visit(&format!("vmstat_{}", clean_name(name)), &[], digits);
        }
    }
}

/// `/proc/diskstats`. A device whose fields are all 0 was never used, and is left out.
fn diskstats(text: &[u8], visit: &mut FieldVisitor<'_>) {
    for line in lines(text) {
        let mut words = words(line).skip(2);
        let Some(device) = words.next().map(clean) else {
            continue;
        };
        if words.clone().all(|digits| digits == b"0") {
            continue;
        }
        for (field, digits) in DISK_FIELDS.iter().zip(words) {
            visit(field, &[("device", &device)], digits);
        }
    }
}

/// `/proc/net/dev`: two header lines, then one line per interface.
fn net_dev(text: &[u8], visit: &mut FieldVisitor<'_>) {
    for line in lines(text) {
        let Some(colon) = memchr::memrchr(b':', line) else {
            continue;
        };
        let interface = clean(line[..colon].trim_ascii());
        for (field, digits) in NET_FIELDS.iter().zip(words(&line[colon + 1..])) {
            visit(field, &[("interface", &interface)], digits);
        }
    }
}

/// `/proc/loadavg`: three decimals.
fn loadavg(text: &[u8], visit: &mut FieldVisitor<'_>) {
    for (name, digits) in ["load1", "load5", "load15"].iter().zip(words(text)) {
        visit(name, &[], digits);
    }
}

/// `/proc/pressure/<resource>`: lines `some avg10=0.00 ... total=0`.
fn pressure(resource: &str, text: &[u8], visit: &mut FieldVisitor<'_>) {
    for line in lines(text) {
        let mut words = words(line);
        let Some(share) = words.next().map(clean) else {
            continue;
        };
        for word in words {
            let Some(equals) = memchr::memchr(b'=', word) else {
                continue;
            };
            let name = match &word[..equals] {
                b"avg10" => "pressure_avg10_percent",
                b"avg60" => "pressure_avg60_percent",
                b"avg300" => "pressure_avg300_percent",
                b"total" => "pressure_total_us",
                _ => continue,
            };
            visit(name, &[("resource", resource), ("share", &share)], &word[equals + 1..]);
        }
    }
}

/// The parts of `/proc/PID/stat` that a recording uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PidStat {
    /// The command's short name, with unsupported characters replaced.
    pub(crate) comm: String,
    /// Start time of the process, in ticks since boot; with the pid it identifies the process.
    pub(crate) started_ticks: u64,
    /// CPU time so far, user and system.
    pub(crate) cpu_ticks: u64,
    /// The digits of [`PID_STAT_FIELDS`], in that order.
    pub(crate) digits: Vec<Box<[u8]>>,
}

/// Series of `/proc/PID/stat`, and their positions after the command's name (0: its state).
pub(crate) const PID_STAT_FIELDS: [(&str, usize); 7] = [
    ("process_minor_faults", 7),
    ("process_major_faults", 9),
    ("process_user_ticks", 11),
    ("process_system_ticks", 12),
    ("process_threads", 17),
    ("process_virtual_bytes", 20),
    ("process_resident_pages", 21),
];

/// Parses `/proc/PID/stat`. The name in it may contain any character, including blanks and
/// parentheses.
pub(crate) fn pid_stat(text: &[u8]) -> Option<PidStat> {
    let (name, rest) = stat_fields(text)?;
    let rest: Vec<&[u8]> = rest.collect();
    let number = |place: usize| rest.get(place).and_then(|digits| integer(digits));
    let digits = PID_STAT_FIELDS
        .iter()
        .map(|&(_, place)| rest.get(place).map(|&digits| digits.into()));
    Some(PidStat {
        comm: clean(without_work(name)),
        started_ticks: number(19)?,
        cpu_ticks: number(11)?.saturating_add(number(12)?),
        digits: digits.collect::<Option<_>>()?,
    })
}

/// Removes the suffix of a kernel worker's name that describes its current work:
/// `kworker/0:1-events`, `kworker/u8:2+flush`.
fn without_work(comm: &[u8]) -> &[u8] {
    match memchr::memchr2(b'-', b'+', comm) {
        Some(end) if comm.starts_with(b"kworker/") => &comm[..end],
        _ => comm,
    }
}

/// `/proc/PID/io`: `name: number` lines.
fn pid_io(text: &[u8], visit: &mut dyn FnMut(&str, &[u8])) {
    for line in lines(text) {
        let mut words = words(line);
        let name = match words.next() {
            Some(b"rchar:") => "process_read_chars",
            Some(b"wchar:") => "process_write_chars",
            Some(b"syscr:") => "process_read_calls",
            Some(b"syscw:") => "process_write_calls",
            Some(b"read_bytes:") => "process_read_bytes",
            Some(b"write_bytes:") => "process_write_bytes",
            _ => continue,
        };
        if let Some(digits) = words.next() {
            visit(name, digits);
        }
    }
}

/// `/proc/PID/status`: memory and context switches only. It also contains users and names, which
/// must not be recorded.
fn pid_status(text: &[u8], visit: &mut dyn FnMut(&str, &[u8])) {
    for line in lines(text) {
        let mut words = words(line);
        let name = match words.next() {
            Some(b"RssAnon:") => "process_anonymous_kib",
            Some(b"VmSwap:") => "process_swap_kib",
            Some(b"voluntary_ctxt_switches:") => "process_voluntary_switches",
            Some(b"nonvoluntary_ctxt_switches:") => "process_involuntary_switches",
            _ => continue,
        };
        if let Some(digits) = words.next() {
            visit(name, digits);
        }
    }
}

/// Digits as an integer; `None` for anything else, and beyond 64 bits.
pub(crate) fn integer(digits: &[u8]) -> Option<u64> {
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn first_word<'a>(mut words: impl Iterator<Item = &'a [u8]>, name: &str, visit: &mut FieldVisitor<'_>) {
    if let Some(digits) = words.next() {
        visit(name, &[], digits);
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// A label value that every protocol can carry: letters, digits, `_`, `-`, `.`; other characters
/// become `_`.
fn clean(bytes: &[u8]) -> String {
    let kept = bytes.iter().map(|&byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => char::from(byte),
        _ => '_',
    });
    kept.collect()
}

/// A piece of a series name: as [`clean`], without `:` and brackets at the end.
fn clean_name(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b":").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b")").unwrap_or(bytes);
    clean(bytes).replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests;
