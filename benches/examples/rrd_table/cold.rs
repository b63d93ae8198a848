//! Times updates of files of which nothing is in the page cache.
//!
//! All engines share one set of files and have the same work in each turn. First the files are
//! brought to the end of six steps (not timed), synced, and dropped from the page cache; the
//! remaining residency according to mincore is printed. The timed update ends a step and a row
//! of two archives: the only pages that a file needs are two pages of rows and the header.

use std::path::Path;

use tsb_bench::page_cache::{DiskUse, evict, resident};
use tsb_bench::rrd::{self, Files, STEP_S, UpdateMethod};
use tsb_bench::rrdcached_server::{RunningServer, ServerConfig, batches, has_daemon};
use tsb_core::time::{Clock, MonotonicClock, process_cpu_ns};
use tsb_rrd::{InfoValue, RrdFile, Session};

/// Turns per engine, all cold.
const ROUNDS: usize = 4;
/// After this many steps, more archives than the two finest get a row.
const STEPS: i64 = 6;
/// Write threads of the daemon and of ours: the default of both.
const THREADS: usize = 4;

enum ColdMethod {
    Native(UpdateMethod),
    /// rrdcached, started for each turn: it receives a client's updates, and everything is
    /// written.
    Daemon,
    /// Ours, started for each turn with a checkpoint of the previous process's state.
    Cache,
}

#[derive(Default)]
struct ColdTurn {
    wall_ns: u64,
    sync_ns: u64,
    cpu_ns: u64,
    accept_ns: u64,
    start_ns: u64,
    disk: DiskUse,
    resident: u64,
}

/// Runs the engines with these names, or all of them.
pub(crate) fn run(folder: &Path, count: usize, names: &[&str]) {
    let set = folder.join("cold");
    if !set.join("1.rrd").exists() {
        rrd::create(&set, count);
    }
    let mut ways: Vec<(ColdMethod, Vec<ColdTurn>)> =
        [UpdateMethod::Stateless, UpdateMethod::Ahead, UpdateMethod::Librrd]
            .into_iter()
            .filter(|way| UpdateMethod::ALL.contains(way))
            .map(|way| (ColdMethod::Native(way), Vec::new()))
            .collect();
    if has_daemon() {
        ways.push((ColdMethod::Daemon, Vec::new()));
    }
    ways.push((ColdMethod::Cache, Vec::new()));
    ways.retain(|(way, _)| names.is_empty() || names.contains(&way.name()));
    for round in 0..ROUNDS {
        for turn in 0..ways.len() {
            let index = if round % 2 == 0 { turn } else { ways.len() - 1 - turn };
            let (way, turns) = &mut ways[index];
            turns.push(one(way, &set, count));
        }
    }
    let bytes = rrd::original_layout().file_len();
    println!(
        "an update changes {} pages of {count} files: reads that cannot be avoided where nothing is known",
        pages(&set, count)
    );
    println!(
        "{count} files of {bytes} bytes, cold, one reading each; us of an update, best of {ROUNDS} (lowest..highest)"
    );
    println!(
        "way               wall            with sync  accept   start     CPU  disk: reads  writes      KB  resident before"
    );
    for (way, turns) in &ways {
        row(way, turns, count);
    }
}

impl ColdMethod {
    const fn name(&self) -> &'static str {
        match self {
            Self::Native(way) => way.name(),
            Self::Daemon => "rrdcached",
            Self::Cache => "checkpoint",
        }
    }
}

/// Brings all files to the end of six steps, drops them from the page cache, and times the next
/// update.
fn one(way: &ColdMethod, set: &Path, count: usize) -> ColdTurn {
    let from_s = super::newest_s(set);
    let to_s = (from_s.div_euclid(STEPS * STEP_S) + 1) * STEPS * STEP_S;
    let steps = (to_s - from_s) / STEP_S;
    let clock = MonotonicClock::new();
    let server = match way {
        ColdMethod::Native(_) => None,
        ColdMethod::Daemon | ColdMethod::Cache => Some(server(way, set)),
    };
    if let (ColdMethod::Cache, Some(server)) = (way, &server) {
        // Its checkpoint contains only what it has written itself.
        let mut served = server.start();
        served.batches(&batches(count, from_s, steps, STEP_S));
        served.drain(&clock, count as u64 * steps as u64);
        served.stop();
    } else {
        let mut texts = Vec::new();
        rrd::readings(to_s, steps, STEP_S, &mut texts);
        Files::open(set, count, UpdateMethod::Ahead).update_all(&texts);
    }
    evict(set, count);
    if let Some(server) = &server {
        forget_pages(&server.checkpoint());
    }
    let resident = resident(set, count).map_or(u64::MAX, |resident| resident.bytes);
    let root = std::fs::File::open(set).expect("the folder");
    let disk = DiskUse::of(set);
    let started = clock.now();
    let served = server.as_ref().map(ServerConfig::start);
    let start_ns = clock.now() - started;
    let (mut turn, begun) = match (way, served) {
        (ColdMethod::Native(way), _) => native(*way, &clock, (set, count), to_s),
        (_, Some(served)) => cached(served, &clock, count, to_s),
        (_, None) => unreachable!("it was started"),
    };
    rustix::fs::syncfs(&root).expect("a sync");
    turn.disk = DiskUse::of(set).since(disk);
    turn.sync_ns = clock.now() - begun;
    (turn.start_ns, turn.resident) = (start_ns, resident);
    turn
}

/// One update per file by this process. Returns also when it began.
fn native(way: UpdateMethod, clock: &MonotonicClock, (set, count): (&Path, usize), to_s: i64) -> (ColdTurn, u64) {
    // Each update opens the file; names and inodes are cached for all engines.
    let mut files = Files::open(set, count, way);
    let mut texts = Vec::new();
    rrd::readings(to_s + STEP_S, 1, STEP_S, &mut texts);
    let (begun, cpu) = (clock.now(), process_cpu_ns());
    files.update_all(&texts);
    let turn = ColdTurn {
        wall_ns: clock.now() - begun,
        cpu_ns: process_cpu_ns() - cpu,
        ..ColdTurn::default()
    };
    (turn, begun)
}

/// The same through a server: a client's batches, then everything is written.
fn cached(mut served: RunningServer, clock: &MonotonicClock, count: usize, to_s: i64) -> (ColdTurn, u64) {
    let texts = batches(count, to_s, 1, STEP_S);
    let (begun, cpu) = (clock.now(), served.cpu_ns());
    served.batches(&texts);
    let accept_ns = clock.now() - begun;
    served.drain(clock, count as u64);
    let turn = ColdTurn {
        wall_ns: clock.now() - begun,
        accept_ns,
        cpu_ns: served.cpu_ns() - cpu,
        ..ColdTurn::default()
    };
    (turn, begun)
}

/// Drops a file from the page cache, if it exists.
fn forget_pages(path: &Path) {
    if let Ok(file) = std::fs::File::open(path) {
        file.sync_all().expect("a sync");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    }
}

fn server(way: &ColdMethod, set: &Path) -> ServerConfig {
    let is_daemon = matches!(way, ColdMethod::Daemon);
    ServerConfig {
        name: way.name().to_owned(),
        is_daemon,
        threads: THREADS,
        policy: "no journal".to_owned(),
        has_checkpoint: !is_daemon,
        place: set.with_extension(way.name()),
        set: set.to_owned(),
    }
}

/// Pages that the next update changes in all files together: reads that cannot be avoided
/// without knowing their contents.
fn pages(set: &Path, count: usize) -> usize {
    const PAGE: u64 = 4_096;
    let session = &mut Session::default();
    let of_file = |index: usize| {
        let file = RrdFile::open(&rrd::path_of(set, index)).expect("a file");
        let facts = tsb_rrd::info(&file, session).expect("its header");
        let layout = file.layout();
        let row_len = 8 * layout.sources().len() as u64;
        let mut start = layout.header_len() as u64;
        let mut pages: Vec<u64> = (0..start.div_ceil(PAGE)).collect();
        for (index, archive) in layout.archives().iter().enumerate() {
            let name = format!("rra[{index}].cur_row");
            let row = facts.iter().find_map(|(key, fact)| match fact {
                InfoValue::Count(row) if *key == name => Some(*row),
                _ => None,
            });
            let row = (row.expect("a row") + 1) % archive.rows;
            if archive.steps == 1 {
                pages.push((start + row * row_len) / PAGE);
            }
            start += archive.rows * row_len;
        }
        pages.sort_unstable();
        pages.dedup();
        pages.len()
    };
    (0..count).map(of_file).sum()
}

fn row(way: &ColdMethod, turns: &[ColdTurn], count: usize) {
    let us = |ns: u64| ns as f64 / 1e3 / count as f64;
    let of = |field: fn(&ColdTurn) -> u64| {
        let all = || turns.iter().map(field);
        (all().min().unwrap_or_default(), all().max().unwrap_or_default())
    };
    let (best, worst) = of(|turn| turn.wall_ns);
    println!(
        "{:10}  {:8.2} ({:7.2}..{:7.2})  {:9.2}  {:6.2}  {:6.2}  {:6.2}  {:11.2}  {:6.2}  {:6.2}  {:15}",
        way.name(),
        us(best),
        us(best),
        us(worst),
        us(of(|turn| turn.sync_ns).0),
        us(of(|turn| turn.accept_ns).0),
        us(of(|turn| turn.start_ns).0),
        us(of(|turn| turn.cpu_ns).0),
        of(|turn| turn.disk.reads).1 as f64 / count as f64,
        of(|turn| turn.disk.writes).1 as f64 / count as f64,
        of(|turn| turn.disk.written_bytes).1 as f64 / 1e3 / count as f64,
        of(|turn| turn.resident).1,
    );
}
