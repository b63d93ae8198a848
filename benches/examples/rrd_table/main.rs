//! Prints what an update of an RRD file costs with each method, next to librrd.
//!
//! `rrd_table prepare FOLDER N [WAY ...]` creates a set of N files in the published layout for
//! each method. `rrd_table run FOLDER N K [WAY ...]` gives each file K updates per pass, warm,
//! methods in turn (A B C D D C B A ...), every update across a step and the same for all: first
//! with the file system synced after each pass, which is timed separately and leaves every page
//! clean, then without, over dirty pages. `rrd_table cold FOLDER N [WAY ...]` updates the same N
//! files, created if missing, with each method in turn when nothing of them is in the page
//! cache; `rrdcached` (if installed) and our `checkpoint` are among the methods. Without
//! arguments: 200 files in a temporary folder. Built with `--features librrd` it includes
//! librrd.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "an example prints its result")]

mod cold;

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tsb_bench::page_cache::DiskUse;
use tsb_bench::rrd::{self, Files, STEP_S, UpdateMethod};
use tsb_core::time::{Clock, MonotonicClock, thread_cpu_ns};

/// Rounds per method. The first is a warm-up; the others end at least six steps, because every
/// sixth step writes two more rows.
const ROUNDS: i64 = 7;

#[derive(Clone, Copy, Default)]
struct Cost {
    cpu_ns: u64,
    wall_ns: u64,
    sync_ns: u64,
    disk: DiskUse,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let count = |word: &str| word.parse::<usize>().expect("a number of files");
    match words[..] {
        ["prepare", folder, number, ref names @ ..] => prepare(Path::new(folder), count(number), &ways_of(names)),
        ["run", folder, number, readings, ref names @ ..] => {
            run(
                Path::new(folder),
                count(number),
                count(readings) as i64,
                &ways_of(names),
            );
        }
        ["serve", ref words @ ..] => tsb_bench::rrdcached_server::serve(words),
        ["cold", folder, number, ref names @ ..] => cold::run(Path::new(folder), count(number), names),
        [] => {
            let folder = std::env::temp_dir().join(format!("tsb-rrd-table-{}", std::process::id()));
            prepare(&folder, 200, UpdateMethod::ALL);
            for readings in [1, 10, 60] {
                run(&folder, 200, readings, UpdateMethod::ALL);
            }
            cold::run(&folder, 200, &[]);
            std::fs::remove_dir_all(&folder).expect("the folder can be removed");
        }
        _ => println!("rrd_table [prepare FOLDER N [WAY ...] | run FOLDER N K [WAY ...] | cold FOLDER N [WAY ...]]"),
    }
}

/// The methods with these names; all of them if there is none.
fn ways_of(names: &[&str]) -> Vec<UpdateMethod> {
    if names.is_empty() {
        return UpdateMethod::ALL.to_vec();
    }
    names
        .iter()
        .map(|name| UpdateMethod::from_name(name).expect("the name of a way"))
        .collect()
}

fn folder_of(folder: &Path, way: UpdateMethod) -> PathBuf {
    folder.join(way.name())
}

fn prepare(folder: &Path, count: usize, ways: &[UpdateMethod]) {
    for &way in ways {
        rrd::create(&folder_of(folder, way), count);
    }
}

fn run(folder: &Path, count: usize, readings: i64, ways: &[UpdateMethod]) {
    raise_open_files(count as u64 + 100);
    let mut now_s = newest_s(&folder_of(folder, ways[0]));
    let mut ways: Vec<(UpdateMethod, Files)> = ways
        .iter()
        .map(|&way| (way, Files::open(&folder_of(folder, way), count, way)))
        .collect();
    let clock = MonotonicClock::new();
    let bytes = rrd::original_layout().file_len();
    println!("{count} files of {bytes} bytes, {readings} readings a pass; us of an update");
    println!("            synced after each pass: every page is clean before one        not synced");
    println!("way         CPU best  CPU mean  wall best  with sync  writes     KB  CPU best  CPU mean");
    let mut rounds = |ways: &mut [(UpdateMethod, Files)], is_synced: bool| {
        let mut costs = vec![Vec::new(); ways.len()];
        for round in 0..ROUNDS {
            now_s += readings * STEP_S;
            for turn in 0..ways.len() {
                let index = if round % 2 == 0 { turn } else { ways.len() - 1 - turn };
                let synced = is_synced.then_some(folder);
                let cost = pass(&mut ways[index].1, synced, &clock, now_s, readings);
                if round > 0 {
                    costs[index].push(cost);
                }
            }
        }
        costs
    };
    let clean = rounds(&mut ways, true);
    let dirty = rounds(&mut ways, false);
    for (((way, _), clean), dirty) in ways.iter().zip(&clean).zip(&dirty) {
        row(*way, readings, count, clean, dirty);
    }
}

/// The time at which the previous run ended.
fn newest_s(set: &Path) -> i64 {
    let file = tsb_rrd::RrdFile::open(&set.join("1.rrd")).expect("the first file");
    let newest = file.newest(&mut tsb_rrd::Session::default()).expect("its header");
    newest.seconds
}

/// Updates each file, then syncs the file system of `synced` if given.
fn pass(files: &mut Files, synced: Option<&Path>, clock: &MonotonicClock, now_s: i64, readings: i64) -> Cost {
    let mut texts = Vec::new();
    rrd::readings(now_s, readings, STEP_S, &mut texts);
    let synced = synced.map(|folder| (DiskUse::of(folder), folder, File::open(folder).expect("the folder")));
    let (cpu, wall) = (thread_cpu_ns(), clock.now());
    files.update_all(&texts);
    let mut cost = Cost {
        cpu_ns: thread_cpu_ns() - cpu,
        wall_ns: clock.now() - wall,
        ..Cost::default()
    };
    if let Some((before, folder, root)) = synced {
        rustix::fs::syncfs(&root).expect("a sync");
        cost.sync_ns = clock.now() - wall;
        cost.disk = DiskUse::of(folder).since(before);
    }
    cost
}

fn row(way: UpdateMethod, readings: i64, count: usize, clean: &[Cost], dirty: &[Cost]) {
    let updates = count as f64 * readings as f64 * 1e3;
    let best = |costs: &[Cost], cost: fn(&Cost) -> u64| costs.iter().map(cost).min().unwrap_or(0) as f64 / updates;
    let mean =
        |costs: &[Cost]| costs.iter().map(|cost| cost.cpu_ns).sum::<u64>() as f64 / costs.len().max(1) as f64 / updates;
    let most = |cost: fn(&Cost) -> u64| clean.iter().map(cost).max().unwrap_or(0) as f64 / updates * 1e3;
    println!(
        "{:10}  {:8.2}  {:8.2}  {:9.2}  {:9.2}  {:6.2}  {:5.2}  {:8.2}  {:8.2}",
        way.name(),
        best(clean, |cost| cost.cpu_ns),
        mean(clean),
        best(clean, |cost| cost.wall_ns),
        best(clean, |cost| cost.sync_ns),
        most(|cost| cost.disk.writes),
        most(|cost| cost.disk.written_bytes) / 1e3,
        best(dirty, |cost| cost.cpu_ns),
        mean(dirty),
    );
}

/// Raises the limit of open files to `wanted`, or as far as the system allows.
fn raise_open_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted))),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).expect("more open files");
    }
}
