//! Prints what a sample costs on its way through a write cache, next to librrd.
//!
//! `cache_table FOLDER N [SOCKET PID]`: first accepting in process, without a journal and with
//! each sync policy, in CPU and wall time of the writing thread; then drains into N files of the
//! published layout with one data source and K values per file, warm, with one and with two
//! threads, engines in turn; the wall time includes the sync of the file system. Built with
//! `--features librrd` it also runs librrd's engine behind the same cache; with a socket it also
//! sends batches of 1,000 to a real rrdcached, whose CPU time is found by its process id.
//! Without arguments: 300 files in a temporary folder.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "an example prints its result")]

use std::path::Path;

use tsb_bench::write_cache::{cache, define, files, tick, values};
use tsb_core::resource::Process;
use tsb_core::time::{Clock, MonotonicClock, process_cpu_ns, thread_cpu_ns};
use tsb_core::{Durability, SeriesId};
use tsb_rrdcached::RrdcachedStore;
use tsb_stores::null::NullStore;
use tsb_stores::rrd::{EngineKind, RrdOptions, RrdStore};
use tsb_stores::write_cache::SyncPolicy;
use tsb_stores::{Scope, Store};

/// Rounds per engine; the first is a warm-up.
const ROUNDS: usize = 4;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [] => {
            let folder = std::env::temp_dir().join(format!("tsb-cache-table-{}", std::process::id()));
            accept();
            journal(&folder);
            drains(&folder, 300, None);
            std::fs::remove_dir_all(&folder).expect("the folder can be removed");
        }
        [folder, number, daemon @ ..] => {
            accept();
            journal(Path::new(folder));
            let daemon = match daemon {
                [socket, pid] => Some((Path::new(socket), pid.parse().expect("the id of a process"))),
                _ => None,
            };
            drains(Path::new(folder), number.parse().expect("a number of files"), daemon);
        }
        [_] => println!("cache_table [FOLDER N [SOCKET PID]]"),
    }
}

fn accept() {
    println!("accept without a journal, 60 ticks; ns of an update, best of {ROUNDS}: CPU, wall");
    for series in [1_000, 10_000, 60_000] {
        for batch in [1, 54, 1_000] {
            let values = values(series);
            let mut best = (u64::MAX, u64::MAX);
            for _ in 0..ROUNDS {
                let cache = cache(NullStore::new(), series, 1, None);
                let clock = MonotonicClock::new();
                let cpu = thread_cpu_ns();
                (0..60).for_each(|at| tick(&cache, at, &values, batch));
                best = (best.0.min(thread_cpu_ns() - cpu), best.1.min(clock.now()));
                assert_eq!(cache.account().pending, u64::from(series) * 60);
            }
            let updates = f64::from(series) * 60.0;
            let (cpu, wall) = (best.0 as f64 / updates, best.1 as f64 / updates);
            println!("{series:6} series, batches of {batch:5}  {cpu:7.1}  {wall:7.1}");
        }
    }
}

fn journal(folder: &Path) {
    println!("accept with a journal, one writer; M updates/s of wall time, ns of CPU, us of an ack: p50, p99.9");
    let policies = [
        ("none", SyncPolicy::None),
        ("interval 1s", SyncPolicy::Interval(1_000_000_000)),
        ("group", SyncPolicy::Group),
        ("each", SyncPolicy::Each),
    ];
    for (name, sync) in policies {
        for series in [1_u32, 100, 1_000, 10_000] {
            let place = folder.join("journal-table");
            let journal = place.join("journal");
            let cache = cache(files(&place.join("files")), series, 1, Some((&journal, sync)));
            let values = values(series);
            let clock = MonotonicClock::new();
            let mut waits = Vec::new();
            let (start, cpu) = (clock.now(), thread_cpu_ns());
            while waits.len() < 2_000 && clock.now() - start < 800_000_000 {
                let begun = clock.now();
                tick(&cache, waits.len() as i64, &values, series as usize);
                waits.push(clock.now() - begun);
            }
            let (wall, cpu) = (clock.now() - start, thread_cpu_ns() - cpu);
            let updates = waits.len() as f64 * f64::from(series);
            waits.sort_unstable();
            let quantile = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize] as f64 / 1e3;
            println!(
                "{name:12} {series:6} of an ack  {:8.3}  {:8.1}  {:8.1}  {:8.1}",
                updates / wall as f64 * 1e3,
                cpu as f64 / updates,
                quantile(0.5),
                quantile(0.999)
            );
            for id in 0..series {
                cache.forget(SeriesId(id)).expect("a defined series");
            }
            cache.close().expect("a close");
            std::fs::remove_dir_all(&place).expect("its folder");
        }
    }
}

struct CacheCase {
    name: String,
    store: Box<dyn Store>,
    /// Another process that works for it.
    other: Option<Process>,
    costs: Vec<Cost>,
}

#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "units come last in a name")]
struct Cost {
    accept_ns: u64,
    cpu_ns: u64,
    drain_ns: u64,
    sync_ns: u64,
}

impl CacheCase {
    fn new(name: impl Into<String>, store: impl Store) -> Self {
        Self {
            name: name.into(),
            store: Box::new(store),
            other: None,
            costs: Vec::new(),
        }
    }

    /// CPU time of this process and the other one.
    fn cpu_ns(&self) -> u64 {
        let other = self.other.as_ref().and_then(Process::usage);
        process_cpu_ns() + other.map_or(0, |usage| usage.user_cpu_ns + usage.system_cpu_ns)
    }
}

fn ways(folder: &Path, number: u32, daemon: Option<(&Path, u32)>) -> Vec<CacheCase> {
    let mut engines = vec![("native", EngineKind::Native)];
    if cfg!(feature = "librrd") {
        engines.push(("librrd", EngineKind::Librrd));
    }
    let mut ways = Vec::new();
    for (name, engine) in engines {
        for threads in [1, 2] {
            let options = RrdOptions {
                engine,
                ..RrdOptions::default()
            };
            let name = format!("{name} {threads}");
            let store = RrdStore::open(&folder.join(name.replace(' ', "-")), options).expect("files");
            // The flushing thread counts as one; the others are the cache's own.
            ways.push(CacheCase::new(name, cache(store, number, threads, None)));
        }
    }
    if let Some((socket, pid)) = daemon {
        let store = RrdcachedStore::open(socket, "table-", RrdOptions::default()).expect("the daemon");
        define(&store, number);
        ways.push(CacheCase {
            other: Process::watch(pid),
            ..CacheCase::new("rrdcached", store)
        });
    }
    ways
}

fn drains(folder: &Path, number: u32, daemon: Option<(&Path, u32)>) {
    let values = values(number);
    let mut ways = ways(folder, number, daemon);
    let root = std::fs::File::open(folder).expect("the folder");
    let clock = MonotonicClock::new();
    let mut now = 0;
    for readings in [1, 10, 60] {
        for round in 0..ROUNDS {
            let count = ways.len();
            for turn in 0..count {
                let way = &mut ways[if round % 2 == 0 { turn } else { count - 1 - turn }];
                let cost = drain(way, &root, &clock, &values, now..now + readings);
                if round > 0 {
                    way.costs.push(cost);
                }
            }
            now += readings;
        }
        println!(
            "{number} files, {readings} readings a file; us of an update, best of {}:",
            ROUNDS - 1
        );
        println!("way           accept  all CPU   drain  with sync");
        for way in &mut ways {
            row(way, f64::from(number) * readings as f64 * 1e3);
        }
    }
    for way in ways {
        way.store.close().expect("a close");
    }
}

fn drain(
    way: &CacheCase,
    root: &std::fs::File,
    clock: &MonotonicClock,
    values: &[f64],
    ticks: std::ops::Range<i64>,
) -> Cost {
    let (cpu, begun) = (way.cpu_ns(), clock.now());
    ticks.for_each(|at| tick(&*way.store, at, values, 1_000));
    let accepted = clock.now();
    way.store.flush(Scope::All, Durability::Buffered).expect("a flush");
    let (drained, cpu_ns) = (clock.now(), way.cpu_ns() - cpu);
    rustix::fs::syncfs(root).expect("a sync");
    Cost {
        accept_ns: accepted - begun,
        cpu_ns,
        drain_ns: drained - accepted,
        sync_ns: clock.now() - accepted,
    }
}

fn row(way: &mut CacheCase, updates: f64) {
    let best = |cost: fn(&Cost) -> u64| way.costs.iter().map(cost).min().unwrap_or(0) as f64 / updates;
    println!(
        "{:10}  {:8.3}  {:8.3}  {:8.3}  {:8.3}",
        way.name,
        best(|cost| cost.accept_ns),
        best(|cost| cost.cpu_ns),
        best(|cost| cost.drain_ns),
        best(|cost| cost.sync_ns)
    );
    way.costs.clear();
}
