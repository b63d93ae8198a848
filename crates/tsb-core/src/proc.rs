//! What is read from `/proc`: the only module that knows its paths and the forms of its files.
//!
//! Each file becomes a typed value. What cannot be read, or does not have the form that `proc(5)`
//! states, is absent, and never 0. What the numbers mean for a run is for `resource` to say.

mod machine;
mod net;
mod process;
pub(crate) mod recorded;

pub use machine::{
    CpuTimes, Memory, boot, boot_id, cpu_model, file_system, kernel_release, load, network_setting, some_pressure,
    stalled_ns, tick_ns,
};
pub use net::{Listening, listening_sockets, udp_drops};
pub use process::{
    ControlGroup, Io, ProcessStatus, Schedstat, Stat, Switches, own_groups, processes, schedstats_of, sockets_of,
    switches_of,
};

/// The text of a file, without blanks at its end.
fn read(path: &str) -> Option<String> {
    let mut text = std::fs::read_to_string(path).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

/// The text after `name` and a colon, which stand at the beginning of a line.
fn described<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .find(|line| line.split(':').next().is_some_and(|left| left.trim() == name))?;
    Some(line.split_once(':')?.1.trim())
}

/// The number after `name` and a colon; a unit may follow.
fn named(text: &str, name: &str) -> Option<u64> {
    described(text, name)?.split_whitespace().next()?.parse().ok()
}

/// The name of a process or thread in its `stat`, and the fields behind it: the first is field 3
/// of `proc_pid_stat(5)`. The name stands in parentheses and may contain any character.
fn stat_fields(text: &[u8]) -> Option<(&[u8], impl Iterator<Item = &[u8]>)> {
    let open = memchr::memchr(b'(', text)?;
    let close = memchr::memrchr(b')', text).filter(|&close| close > open)?;
    Some((&text[open + 1..close], words(&text[close + 1..])))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_name() {
        let status = "VmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\nvoluntary_ctxt_switches:\t5\n";
        assert_eq!(named(status, "VmRSS"), Some(1024));
        assert_eq!(named(status, "ctxt_switches"), None);
        assert_eq!(
            described("model name\t: Some CPU @ 3: x\n", "model name"),
            Some("Some CPU @ 3: x")
        );
    }
}
