//! Queries a day of 5,400 series, warm and cold.
//!
//! Before a cold query the store is reopened, so that SQLite's page cache is empty, and the
//! kernel is told to drop the file from its cache (`posix_fadvise`). The remaining resident
//! pages (`fincore`, that is mincore(2)) and the bytes then read from the device show whether it
//! did.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use tsb_bench::store_driver::{BASE, CpuClock, StoreDriver, TickOrder};
use tsb_core::proc::Io;
use tsb_core::time::{Clock, MonotonicClock, thread_cpu_ns};
use tsb_core::workload::{BatchMode, FleetSpec};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::sqlite::{Commit, TickStore};
use tsb_stores::{Consolidation, Query, Resample, Store, TimeRange};

use crate::{SECOND, every, fresh, workload};

const SERIES: usize = 5_400;
const HOUR: i64 = 3600 * SECOND;
/// Queries of each kind, warm and cold.
const WARM: u64 = 400;
const COLD: u64 = 16;

/// One kind of query over a file of one day.
struct QueryCase {
    name: &'static str,
    series: u64,
    /// Seconds after the first sample.
    start: i64,
    hours: i64,
    step: i64,
    kind: Consolidation,
}

const QUESTIONS: [QueryCase; 4] = [
    question(
        "Q1 max a minute, an hour of the day",
        1,
        (17_200, 1),
        60,
        Consolidation::Max,
    ),
    question(
        "Q1 max a minute, the newest hour",
        1,
        (82_800, 1),
        60,
        Consolidation::Max,
    ),
    question(
        "Q2 max an hour, 7 series, the day",
        7,
        (-800, 24),
        3600,
        Consolidation::Max,
    ),
    question(
        "Q2 min an hour, 7 series, the day",
        7,
        (-800, 24),
        3600,
        Consolidation::Min,
    ),
];

const fn question(
    name: &'static str,
    series: u64,
    (start, hours): (i64, i64),
    step: i64,
    kind: Consolidation,
) -> QueryCase {
    QueryCase {
        name,
        series,
        start,
        hours,
        step,
        kind,
    }
}

/// The results of the queries of one kind.
#[derive(Debug, Default)]
struct QueryRun {
    walls: Vec<u64>,
    cpu_ns: u64,
    /// Bytes of the file in memory before a query, and read from the device for it.
    resident_bytes: u64,
    device_bytes: u64,
    rows: usize,
}

pub(crate) fn table(folder: &Path) {
    let work = workload(FleetSpec::Mix, SERIES, BatchMode::Tick);
    let path = fresh(folder, "day.db");
    let options = every(Commit::Every(60 * SECOND));
    let store = TickStore::open(&path, options.clone()).expect("a new file");
    store.define(&work.catalog().definitions()).expect("fresh series");
    StoreDriver::new(&work, TickOrder::AsSent, CpuClock::Process).run(&store, 86_400);
    println!(
        "{:<44}{:>12}{:>12}{:>12}{:>14}{:>14}",
        "a day of 5,400 series", "CPU us", "wall p50", "wall p99", "resident KiB", "device KiB"
    );
    for question in &QUESTIONS {
        let mut course = QueryRun::default();
        (0..WARM).for_each(|round| course.ask(&store, question, round));
        course.print(&format!("{}, warm", question.name));
    }
    store.close().expect("a sound file");
    for question in &QUESTIONS {
        let mut course = QueryRun::default();
        for round in 0..COLD {
            let store = TickStore::open(&path, options.clone()).expect("the same file");
            store.define(&work.catalog().definitions()).expect("the same series");
            course.resident_bytes += forgotten(&path);
            course.ask(&store, question, round);
            store.close().expect("a sound file");
        }
        course.print(&format!("{}, cold", question.name));
    }
}

/// Drops a file from the kernel's cache. Returns the bytes that are still resident.
fn forgotten(path: &Path) -> u64 {
    let file = File::open(path).expect("the file");
    file.sync_all().expect("a sync");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    let mut fincore = Command::new("fincore");
    let output = fincore.args(["-b", "-n", "-o", "RES"]).arg(path).output();
    let text = String::from_utf8(output.expect("fincore, of util-linux").stdout).expect("a number");
    text.trim().parse().expect("a number")
}

/// Bytes read from devices for this process.
fn device_bytes() -> u64 {
    let io = Io::of(std::process::id());
    io.and_then(|io| io.read_bytes).unwrap_or(0)
}

impl QueryRun {
    fn ask(&mut self, store: &TickStore, question: &QueryCase, round: u64) {
        let series: Vec<SeriesId> = (0..question.series)
            .map(|place| SeriesId(((round * 7 + place + 1) * 2_654_435_761 % SERIES as u64) as u32))
            .collect();
        let start = BASE.0 + question.start * SECOND;
        let query = Query {
            series: &series,
            range: TimeRange {
                start: Timestamp(start),
                end: Timestamp(start + question.hours * HOUR),
            },
            resample: Some(Resample {
                step_ns: question.step * SECOND,
                consolidation: question.kind,
            }),
        };
        let clock = MonotonicClock::new();
        let (wall, thread, device) = (clock.now(), thread_cpu_ns(), device_bytes());
        let answered = store.query(&query, &mut |_, times, _| {
            self.rows += times.len();
            ControlFlow::Continue(())
        });
        answered.expect("an answer");
        self.cpu_ns += thread_cpu_ns() - thread;
        self.walls.push(clock.now() - wall);
        self.device_bytes += device_bytes() - device;
    }

    fn print(&mut self, name: &str) {
        assert!(self.rows > 0, "an answer has rows");
        self.walls.sort_unstable();
        let rounds = self.walls.len() as f64;
        let at = |share: f64| self.walls[(share * (rounds - 1.0)) as usize] as f64 / 1e3;
        println!(
            "{name:<44}{:>12.1}{:>12.1}{:>12.1}{:>14.1}{:>14.1}",
            self.cpu_ns as f64 / rounds / 1e3,
            at(0.5),
            at(0.99),
            self.resident_bytes as f64 / rounds / 1024.0,
            self.device_bytes as f64 / rounds / 1024.0
        );
    }
}
