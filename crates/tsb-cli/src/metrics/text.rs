//! Families of metrics as OpenMetrics text.
//!
//! Format: OpenMetrics 1.0.0 (IANA `application/openmetrics-text`): families with type, unit and
//! help, counters ending in `_total`, `# EOF` at the end.

use std::fmt::Write;

/// The content type of the response.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Begins a family: its name, its type, its unit or nothing, and its help.
pub fn family(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

/// The longest upper end of a bucket of times, as a power of two in nanoseconds: 69 s.
const LONGEST: u32 = 36;

/// The samples of a histogram of times: its buckets from 2^`shortest` nanoseconds on, its sum and its
/// count. `labels` are those of each sample, without braces; `within` says how many times were no
/// longer than a number of nanoseconds.
pub fn buckets(
    out: &mut String,
    name: &str,
    labels: &str,
    shortest: u32,
    within: impl Fn(u64) -> u64,
    (count, sum_ns): (u64, u128),
) {
    let comma = if labels.is_empty() { "" } else { "," };
    for power in shortest..=LONGEST {
        let edge_ns = 1_u64 << power;
        let (edge, within) = (edge_ns as f64 / 1e9, within(edge_ns));
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{edge}\"}} {within}");
    }
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
    let braced = match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    };
    let _ = writeln!(out, "{name}_sum{braced} {}", sum_ns as f64 / 1e9);
    let _ = writeln!(out, "{name}_count{braced} {count}");
}

/// A label value, escaped as the format requires.
pub fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_a_unit_only_where_there_is_one() {
        let mut out = String::new();
        family(&mut out, "tsb_a", "gauge", "", "An a.");
        family(&mut out, "tsb_b_seconds", "gauge", "seconds", "A b.");
        assert_eq!(
            out,
            "# TYPE tsb_a gauge\n# HELP tsb_a An a.\n\
             # TYPE tsb_b_seconds gauge\n# UNIT tsb_b_seconds seconds\n# HELP tsb_b_seconds A b.\n"
        );
        assert_eq!(quoted("a \"b\"\n\\"), "a \\\"b\\\"\\n\\\\");
    }
}
