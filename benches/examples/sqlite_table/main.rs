//! Prints what the SQLite store costs: rates at each durability level, size on disk, the worst
//! commit, queries warm and cold, and reopening. Each argument selects a table; without
//! arguments a short one is printed.
//!
//! `cargo run --release -p tsb-bench --example sqlite_table -- write hour FOLDER`
//!
//! | word | table |
//! | --- | --- |
//! | `write` | what a sample costs, over one whole generation, every way of writing in turn |
//! | `shapes` | the same for samples that are shuffled, late, written twice, or irregular |
//! | `hour` | three hours in parts of ten minutes: worst commit, file, an hour of tail reopened |
//! | `size` | sealed bytes of fleets and of the recorded trace beside the memory store's |
//! | `query` | a day of 5,400 series, warm and cold |
//!
//! Figures are CPU time of the process with all its threads, or wall time where stated. A part
//! of every file is read back; the bench `store_query` checks that queries are answered
//! correctly.

#![expect(clippy::expect_used, reason = "a table that cannot be made has nothing to say")]
#![expect(clippy::print_stdout, reason = "the tables are this program's result")]

mod hour;
mod query;
mod size;
mod write;

use std::path::{Path, PathBuf};

use tsb_core::workload::{BatchMode, FleetSpec, Workload, WorkloadSpec};
use tsb_stores::sqlite::{Commit, SqliteOptions};

const SECOND: i64 = 1_000_000_000;

/// The argument that selects a table, and the function that prints it.
type Table = (&'static str, fn(&Path));

fn workload(fleet: FleetSpec, series: usize, batch: BatchMode) -> Workload {
    let spec = WorkloadSpec {
        series: Some(series),
        batch,
        ..WorkloadSpec::new(fleet, 1)
    };
    Workload::new(&spec).expect("a fleet of the list")
}

fn every(commit: Commit) -> SqliteOptions {
    SqliteOptions {
        commit,
        ..SqliteOptions::default()
    }
}

/// The path of a file, after removing any file of that name.
fn fresh(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    path
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = words.iter().find(|word| Path::new(word).is_dir());
    let folder = folder.map_or(scratch.path(), |folder| Path::new(folder.as_str()));
    let tables: [Table; 5] = [
        ("write", write::table),
        ("shapes", write::shapes),
        ("hour", hour::table),
        ("size", size::table),
        ("query", query::table),
    ];
    let chosen: Vec<_> = tables
        .into_iter()
        .filter(|(name, _)| words.iter().any(|word| word == name))
        .collect();
    if chosen.is_empty() {
        hour::hours(folder, &FleetSpec::Mix, 60);
    }
    for (_, table) in chosen {
        table(folder);
    }
}
