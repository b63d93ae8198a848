//! docs/results/servers.md, as the rows say it: groups of one durability, each with its tables, and below
//! each table why a cell has no figure.

use serde_json::Value;

use super::cells::{self, Cell};
use super::defeats;
use super::plan::{Lengths, PROTOCOL, QUERIES, SIZES, SLO_STALENESS_MS};
use super::row::LEVELS;
use super::targets::TARGETS;
use crate::table::Table;

/// A heading of a table, and what makes its cell.
type Column = (&'static str, fn(&Value) -> Cell);

/// What stands above the tables.
const READING: &str = include_str!("reading.md");
/// What stands below them.
const ABSENT: &str = include_str!("absent.md");

/// The capacity, and what a kill took.
const LIMITS: &[Column] = &[
    ("version", cells::version),
    (">capacity, series at 1/s", cells::capacity),
    (">95 % interval", cells::interval),
    ("limited by", cells::limited_by),
    (">acknowledged before and after SIGKILL", cells::acknowledged),
    (">lost of these", cells::lost),
    ("measured", cells::measured),
];
/// A run at a fixed rate. The cells are given the step.
const FIXED: &[Column] = &[
    ("verdict", cells::verdict),
    (">held/s", cells::held),
    (">response p50 ms", |step| cells::milliseconds(step, "response_p50_ns")),
    (">p99 ms", |step| cells::milliseconds(step, "response_p99_ns")),
    (">p99.9 ms", |step| cells::milliseconds(step, "response_p999_ns")),
    (">stale p99 s", cells::staleness),
    (">CPU s/million", cells::cpu),
    (">RSS MiB", |step| cells::mebibytes(step, "rss_bytes")),
    (">page cache MiB", |step| cells::mebibytes(step, "page_cache_bytes")),
    (">B/sample", cells::bytes),
];
/// The times of queries beside the writes. The cells are given the step.
const QUERIED: &[Column] = &[
    (">writes held/s", cells::held),
    (">q1 p50 / p90 ms", |step| cells::query(step, "q1")),
    (">q2 p50 / p90 ms", |step| cells::query(step, "q2")),
    (">last p50 / p90 ms", |step| cells::query(step, "last")),
];

/// The page.
pub(super) fn page(rows: &[Value]) -> String {
    let mut parts = vec![format!(
        "# Servers and our stores under one stream\n\n{}\n{}\n",
        made(rows),
        reading()
    )];
    let groups = groups(rows);
    parts.extend(
        groups
            .iter()
            .map(|(heading, rows)| format!("## {heading}\n\n{}", group(rows))),
    );
    if groups.is_empty() {
        parts.push("Nothing has been measured yet.\n\n".to_owned());
    }
    parts.push(ABSENT.to_owned());
    parts.concat()
}

/// How, when and where.
fn made(rows: &[Value]) -> String {
    let command = "Made by `cargo xtask measure servers`; each target is a file in the folder `servers` beside this page, \
                   and is measured anew by `--only NAME`.\n";
    if rows.is_empty() {
        return command.to_owned();
    }
    let distinct = |of: &dyn Fn(&Value) -> String| {
        let mut words: Vec<String> = rows.iter().map(of).collect();
        words.sort();
        words.dedup();
        words.join("; ")
    };
    let machine = distinct(&|row| {
        let machine = &row["machine"];
        let word = |name: &str| machine[name].as_str().unwrap_or("?").to_owned();
        format!(
            "{}, {} GiB, Linux {}",
            word("processor"),
            machine["memory_gib"],
            word("kernel")
        )
    });
    let dates = distinct(&|row| row["date"].as_str().unwrap_or("?").to_owned());
    format!(
        "{command}Machine: {machine}.\nDates: {dates}.\nCommits: {}.\n{}",
        distinct(&cells::commit),
        unmeasured(rows)
    )
}

/// The targets without a row, which a reader would miss.
fn unmeasured(rows: &[Value]) -> String {
    let is_measured = |name: &str| rows.iter().any(|row| row["name"] == name);
    let names: Vec<&str> = TARGETS
        .iter()
        .map(|target| target.name)
        .filter(|name| !is_measured(name))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("Not measured yet: {}.\n", names.join(", "))
}

/// How to read the tables, with the figures of the plan in it.
fn reading() -> String {
    let lengths = Lengths::FULL;
    let [small, large] = lengths.fixed_s;
    [
        ("SLO_S", (SLO_STALENESS_MS / 1_000).to_string()),
        ("PROTOCOL", PROTOCOL.to_owned()),
        ("QUERIES", QUERIES.to_owned()),
        ("SMALL_S", small.to_string()),
        ("LARGE_S", large.to_string()),
        ("QUERIED_S", lengths.queries_s.to_string()),
        ("PROBE_S", lengths.probe_s.to_string()),
        ("CAPACITY_S", lengths.capacity_s.to_string()),
        ("TOLERANCE", lengths.tolerance_percent.to_string()),
        ("KILL_S", lengths.kill_after_s.to_string()),
    ]
    .iter()
    .fold(READING.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// The rows by durability, from the most to the least, each with its heading; those whose durability is not
/// known come last.
fn groups(rows: &[Value]) -> Vec<(String, Vec<&Value>)> {
    let mut groups = Vec::new();
    for level in LEVELS.iter().rev() {
        let mut copies: Vec<u64> = rows
            .iter()
            .filter(|row| cells::level(row) == *level)
            .map(cells::copies)
            .collect();
        copies.sort_unstable();
        copies.dedup();
        for copies in copies.into_iter().rev() {
            let is_of = |row: &&Value| cells::level(row) == *level && cells::copies(row) == copies;
            groups.push((heading(level, copies), rows.iter().filter(is_of).collect()));
        }
    }
    let unknown: Vec<&Value> = rows.iter().filter(|row| !LEVELS.contains(&cells::level(row))).collect();
    if !unknown.is_empty() {
        groups.push(("Durability not known".to_owned(), unknown));
    }
    groups
}

fn heading(level: &str, copies: u64) -> String {
    let what = match level {
        "synced" => "Synced: an acknowledged sample is on the medium",
        "buffered" => "Buffered: an acknowledged sample is with the operating system, and outlives the process",
        "volatile" => "Volatile: an acknowledged sample is in the memory of the process",
        _ => "Unconfirmed: nothing is acknowledged",
    };
    if copies > 1 {
        format!("{what}, on {copies} members")
    } else {
        what.to_owned()
    }
}

/// The tables of a group.
fn group(rows: &[&Value]) -> String {
    let level = rows.first().map_or("not known", |row| cells::level(row));
    let mut parts = vec![format!("### Capacity, and what a SIGKILL took ({level})\n\n")];
    parts.push(table(rows, LIMITS, |row| row));
    for (place, size) in SIZES.into_iter().enumerate() {
        let series = rows
            .first()
            .map_or(0.0, |row| row["fleets"][place].as_f64().unwrap_or_default());
        parts.push(format!("### {} series ({level})\n\n", cells::thousands(series)));
        let (fixed, queries) = (format!("fixed-{size}"), format!("queries-{size}"));
        parts.push(table(rows, FIXED, |row| &row["steps"][&fixed]));
        let is_asked = |row: &&&Value| row["steps"][&queries].is_object();
        let asked: Vec<&Value> = rows.iter().filter(is_asked).copied().collect();
        parts.push(table(&asked, QUERIED, |row| &row["steps"][&queries]));
        parts.push(unasked(rows, &asked));
    }
    parts.push(defeats::sentences(rows));
    parts.push(errors(rows));
    parts.concat()
}

/// Why the others are not asked.
fn unasked(rows: &[&Value], asked: &[&Value]) -> String {
    let mut notes = Notes::default();
    let is_asked = |row: &&&Value| asked.iter().any(|other| other["name"] == row["name"]);
    for row in rows.iter().filter(|row| !is_asked(row)) {
        let why = row["no_queries"].as_str().filter(|why| !why.is_empty());
        notes.add(
            "no queries",
            why.unwrap_or("the step failed"),
            row["name"].as_str().unwrap_or("?"),
        );
    }
    notes.render()
}

/// A table with its notes; nothing without rows.
fn table(rows: &[&Value], columns: &[Column], of: impl Fn(&Value) -> &Value) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let headings: Vec<&str> = std::iter::once("target")
        .chain(columns.iter().map(|(heading, _)| *heading))
        .collect();
    let mut table = Table::new(&headings);
    let mut notes = Notes::default();
    for row in rows {
        let name = row["name"].as_str().unwrap_or("?");
        let mut words = vec![name.to_owned()];
        for (heading, make) in columns {
            let cell = make(of(row));
            if let Some(why) = cell.why {
                notes.add(heading.trim_start_matches('>'), &sentence(&why), name);
            }
            words.push(cell.text);
        }
        table.row(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    format!("{}\n{}", table.markdown(), notes.render())
}

/// Why cells have no figure, or what has to be known of it; equal ones together.
#[derive(Debug, Default)]
struct Notes(Vec<(String, String, Vec<String>)>);

impl Notes {
    fn add(&mut self, column: &str, why: &str, name: &str) {
        match self
            .0
            .iter_mut()
            .find(|(_, known, names)| known == why && names.iter().any(|known| known == name))
        {
            Some((columns, ..)) => {
                columns.push_str(", ");
                columns.push_str(column);
            }
            None => match self
                .0
                .iter_mut()
                .find(|(columns, known, _)| columns == column && known == why)
            {
                Some((.., names)) => names.push(name.to_owned()),
                None => self.0.push((column.to_owned(), why.to_owned(), vec![name.to_owned()])),
            },
        }
    }

    fn render(&self) -> String {
        let lines = self
            .0
            .iter()
            .map(|(columns, why, names)| format!("- {} ({columns}): {why}.\n", names.join(", ")));
        let lines: String = lines.collect();
        if lines.is_empty() { lines } else { lines + "\n" }
    }
}

/// Characters of a reason that are shown.
const REASON_LENGTH: usize = 240;

/// A reason as one sentence of bounded length, as documents have it.
fn sentence(why: &str) -> String {
    let why = why.trim_end_matches('.').replace(". ", "; ");
    match why.char_indices().nth(REASON_LENGTH) {
        // The whole reason is in the file of the target.
        Some((end, _)) => why[..end]
            .rsplit_once("; ")
            .map_or(&why[..end], |(whole, _)| whole)
            .to_owned(),
        None => why,
    }
}

/// Steps that failed.
fn errors(rows: &[&Value]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        let name = row["name"].as_str().unwrap_or("?");
        for error in row["errors"].as_array().into_iter().flatten() {
            let error = sentence(error.as_str().unwrap_or("?")).replace('`', "'");
            lines.push(format!("- {name} could not be measured in one step: `{error}`.\n"));
        }
    }
    if lines.is_empty() {
        String::new()
    } else {
        lines.concat() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(name: &str, level: &str, copies: u64) -> Value {
        json!({
            "name": name, "date": "2026-01-02", "commit": "abcdef0123456789", "is_server": true,
            "machine": { "processor": "2 of X", "kernel": "6", "memory_gib": 4 },
            "fleets": [1000, 54000], "steps": { "fixed-small": { "acknowledged": level, "copies": copies, "verdict": "VALID", "held_per_second": 1000.0 } },
            "errors": ["kill: it `broke`"],
        })
    }

    #[test]
    fn rows_are_grouped_by_durability_and_the_most_is_first() {
        let rows = [
            row("a", "volatile", 1),
            row("b", "synced", 1),
            row("c", "synced", 2),
            row("d", "odd", 1),
        ];
        let groups = groups(&rows);
        let names: Vec<Vec<&str>> = groups
            .iter()
            .map(|(_, rows)| rows.iter().map(|row| row["name"].as_str().expect("a name")).collect())
            .collect();
        assert_eq!(names, [vec!["c"], vec!["b"], vec!["a"], vec!["d"]]);
        assert!(groups[0].0.ends_with("on 2 members"), "{}", groups[0].0);
    }

    #[test]
    fn the_page_names_machine_dates_and_what_failed() {
        let text = page(&[row("a", "volatile", 1)]);
        for words in [
            "2 of X, 4 GiB, Linux 6",
            "2026-01-02",
            "abcdef012345",
            "`kill: it 'broke'`",
            "| a | VALID | 1,000 |",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(!text.contains('{'), "a figure of the plan is not filled in: {text}");
        assert!(page(&[]).contains("Nothing has been measured yet"));
    }

    #[test]
    fn one_reason_is_said_once() {
        let mut notes = Notes::default();
        notes.add("q1", "it cannot", "a");
        notes.add("q2", "it cannot", "a");
        notes.add("p99", "too few", "a");
        notes.add("p99", "too few", "b");
        assert_eq!(notes.render(), "- a (q1, q2): it cannot.\n- a, b (p99): too few.\n\n");
    }
}
