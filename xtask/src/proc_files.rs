//! Reads the figures in the text files that Linux keeps under `/proc`.

/// A field of `/proc/PID/stat`, by its number in proc_pid_stat(5): 3, the state, or a later one.
pub(crate) fn stat_field(stat: &str, number: usize) -> Option<&str> {
    // Field 2, the name of the program, may hold spaces and parentheses; the last one closes it.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_whitespace().nth(number.checked_sub(3)?)
}

/// The same of a field that is a number.
pub(crate) fn stat_number(stat: &str, number: usize) -> Option<u64> {
    stat_field(stat, number)?.parse().ok()
}

/// The figure of the line that begins with `name`, as in `VmRSS:   1234 kB`; in KiB.
pub(crate) fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_as_in_the_manual() {
        let stat = "42 (a) b) S 7 42";
        assert_eq!(stat_field(stat, 3), Some("S"));
        assert_eq!((stat_number(stat, 4), stat_number(stat, 5)), (Some(7), Some(42)));
        assert_eq!((stat_field(stat, 2), stat_field(stat, 6)), (None, None));
        assert_eq!((stat_number(stat, 3), stat_field("42 (a", 3)), (None, None));
    }

    #[test]
    fn a_figure_of_memory_has_its_unit() {
        let text = "Name: x\nVmRSS:\t    1234 kB\n";
        assert_eq!(kib(text, "VmRSS:"), Some(1_234));
        assert_eq!((kib(text, "VmHWM:"), kib(text, "Name:")), (None, None));
    }
}
