//! Published figures of tools that no registry carries or that do other work; nothing is
//! measured here.

use crate::table::Table;

/// Name, work, figure per CPU-second.
const FIGURES: &[[&str; 3]] = &[
    [
        "haggar",
        "Graphite lines to a TCP sink that discards; one system call a line",
        "0.62..0.64 M values",
    ],
    ["inch -dry", "Influx lines, 1 field", "1.05..1.18 M values"],
    [
        "inch -dry",
        "Influx lines, 10 fields; the text of the fields is constant and made beforehand",
        "11..14 M values",
    ],
    [
        "lading",
        "DogStatsD lines of 62 bytes, built before the run; sending copies them",
        "2.1 M values, 127 MiB",
    ],
    [
        "lading",
        "the same in its default configuration, 1,462 bytes a line",
        "0.27 M lines, 370 MiB",
    ],
];

/// The table, with where its figures are from.
pub(super) fn table() -> String {
    let mut table = Table::new(&["NOT measured in this run", "work", "per CPU-second"]);
    for row in FIGURES {
        table.row(row);
    }
    format!(
        "{}\n\
         These were taken before this project began, 2 to 3 runs each, on a shared virtual machine with two Xeon cores\n\
         (Go 1.26, rustc 1.95), as CPU-seconds with output to a loopback discard: another machine, so no ratio is given.\n",
        table.render()
    )
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn the_figures_are_marked_as_not_measured() {
        let text = table();
        assert!(text.starts_with("NOT measured in this run"), "{text}");
        assert!(text.contains("no ratio is given"), "{text}");
    }
}
