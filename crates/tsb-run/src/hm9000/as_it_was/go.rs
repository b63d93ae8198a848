//! Durations as Go prints them.

use tsb_core::time::SECOND_NS;

/// A duration: `250ns`, `3.89321ms`, `30.179737838s`, `1m36.589709933s`, `1h0m2s`.
pub(super) fn duration(ns: u64) -> String {
    let (unit_ns, unit) = match ns {
        0 => return "0".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "\u{b5}s"),
        1_000_000..SECOND_NS => (1_000_000, "ms"),
        _ => (SECOND_NS, "s"),
    };
    let (hours, minutes) = (ns / SECOND_NS / 3600, ns / SECOND_NS / 60 % 60);
    let whole = if unit == "s" { ns / SECOND_NS % 60 } else { ns / unit_ns };
    let digits = unit_ns.ilog10() as usize;
    let fraction = format!("{:0digits$}", ns % unit_ns);
    let fraction = fraction.trim_end_matches('0');
    let before = match (hours, minutes) {
        (0, 0) => String::new(),
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{before}{whole}{point}{fraction}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of the document, and the edges.
    #[test]
    fn durations_are_printed_as_the_document_has_them() {
        for (ns, text) in [
            (3_893_210, "3.89321ms"),
            (1_005_864_507, "1.005864507s"),
            (30_179_737_838, "30.179737838s"),
            (96_589_709_933, "1m36.589709933s"),
            (0, "0"),
            (250, "250ns"),
            (1_500, "1.5\u{b5}s"),
            (60 * SECOND_NS, "1m0s"),
            (3_602 * SECOND_NS, "1h0m2s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
