//! Compares what rrdcached's protocol costs our server and the real daemon, with one client.
//!
//! `rrdcached_table prepare FOLDER N` creates a set of N files in the published layout for each
//! server. `rrdcached_table drain FOLDER N K` gives each file K updates, tick by tick in batches
//! of 1,000 commands, flushes them and syncs the file system, servers in turn (A B C D D C B A
//! ...); `rrdcached_table cold FOLDER N K` does the same with nothing of the files in the page
//! cache. `rrdcached_table acks FOLDER N` times single updates with a round trip each, and
//! batches, by sync policy of the journal. `rrdcached_table kills FOLDER N` kills each server N
//! times and counts acknowledged updates that are lost. Each server is a process of its own
//! behind a Unix socket, and its CPU time is the system's figure for that process. Without
//! arguments: 300 files in a temporary folder. If rrdcached is not installed, only ours is
//! measured.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "an example prints its result")]

use std::path::{Path, PathBuf};

use tsb_bench::page_cache::{self, DiskUse, Resident};
use tsb_bench::rrd::{self, STEP_S};
use tsb_bench::rrdcached_server::{self, BATCH, RunningServer, ServerConfig, has_daemon};
use tsb_core::latency::Histogram;
use tsb_core::time::{Clock, MonotonicClock};

/// Rounds per server; the first is a warm-up.
const ROUNDS: usize = 4;
/// Number of timed single updates, and the time limit if each waits for a disk: without
/// arguments, and with them.
const SINGLES: usize = 10_000;
const QUICK_NS: u64 = 1_500_000_000;
const PATIENT_NS: u64 = 60_000_000_000;
/// Rounds per server and sync policy.
const ACK_ROUNDS: usize = 2;

/// The servers: name, whether it is the real daemon, write threads.
const WAYS: [(&str, bool, usize); 4] = [
    ("ours 1", false, 1),
    ("ours 2", false, 2),
    ("rrdcached 1", true, 1),
    ("rrdcached 2", true, 2),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let count = |word: &str| word.parse::<usize>().expect("a number");
    match words[..] {
        ["serve", ref words @ ..] => rrdcached_server::serve(words),
        ["prepare", folder, number] => prepare(Path::new(folder), count(number)),
        ["drain", folder, number, readings] => drain(Path::new(folder), count(number), count(readings) as i64, false),
        ["cold", folder, number, readings] => drain(Path::new(folder), count(number), count(readings) as i64, true),
        ["kills", folder, number] => kills(Path::new(folder), count(number)),
        ["acks", folder, number] => acks(Path::new(folder), count(number), PATIENT_NS),
        [] => {
            let folder = std::env::temp_dir().join(format!("tsb-rrdcached-table-{}", std::process::id()));
            prepare(&folder, 300);
            acks(&folder, 300, QUICK_NS);
            kills(&folder, 3);
            for readings in [1, 10, 60] {
                drain(&folder, 300, readings, false);
                drain(&folder, 300, readings, true);
            }
            std::fs::remove_dir_all(&folder).expect("the folder can be removed");
        }
        _ => println!(
            "rrdcached_table [prepare FOLDER N | drain FOLDER N K | cold FOLDER N K | acks FOLDER N | kills FOLDER N]"
        ),
    }
}

fn set_of(folder: &Path, way: &str) -> PathBuf {
    folder.join(way.replace(' ', "-"))
}

fn prepare(folder: &Path, count: usize) {
    for (name, ..) in WAYS {
        rrd::create(&set_of(folder, name), count);
    }
}

/// A server with a client.
struct MeasuredServer {
    served: RunningServer,
    costs: Vec<Cost>,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    accept_ns: u64,
    accept_cpu_ns: u64,
    drain_ns: u64,
    sync_ns: u64,
    all_ns: u64,
    cpu_ns: u64,
    disk: DiskUse,
}

fn server(folder: &Path, (name, is_daemon, threads): (&str, bool, usize), policy: &str) -> ServerConfig {
    let set = set_of(folder, name);
    ServerConfig {
        name: name.to_owned(),
        is_daemon,
        threads,
        policy: policy.to_owned(),
        has_checkpoint: false,
        place: set.clone(),
        set,
    }
}

impl MeasuredServer {
    /// Starts it after removing the journal of an earlier process.
    fn anew(folder: &Path, way: (&str, bool, usize), policy: &str) -> Self {
        server(folder, way, policy).forget();
        Self::start(folder, way, policy)
    }

    fn start(folder: &Path, way: (&str, bool, usize), policy: &str) -> Self {
        Self {
            served: server(folder, way, policy).start(),
            costs: Vec::new(),
        }
    }
}

/// The time of the newest update in any set of files.
fn newest_s(folder: &Path) -> i64 {
    let session = &mut tsb_rrd::Session::default();
    let newest = WAYS.iter().map(|(name, ..)| {
        let file = tsb_rrd::RrdFile::open(&set_of(folder, name).join("1.rrd")).expect("the first file");
        file.newest(session).expect("its header").seconds
    });
    newest.max().unwrap_or_default()
}

/// Ticks of all files, in batches.
fn texts(count: usize, from_s: i64, readings: i64) -> Vec<String> {
    rrdcached_server::batches(count, from_s, readings, STEP_S)
}

fn drain(folder: &Path, count: usize, readings: i64, is_cold: bool) {
    let root = std::fs::File::open(folder).expect("the folder");
    let clock = MonotonicClock::new();
    let known = WAYS.into_iter().filter(|&(_, is_daemon, _)| !is_daemon || has_daemon());
    let mut ways: Vec<MeasuredServer> = known
        .map(|way| MeasuredServer::anew(folder, way, "no journal"))
        .collect();
    let mut now_s = newest_s(folder);
    let mut residents = Vec::new();
    if !is_cold {
        // Later rounds touch other pages, so all must be cached.
        for way in &ways {
            page_cache::load(&set_of(folder, &way.served.name), count);
        }
    }
    for round in 0..ROUNDS {
        let texts = texts(count, now_s, readings);
        now_s += readings * STEP_S;
        for turn in 0..ways.len() {
            let index = if round % 2 == 0 { turn } else { ways.len() - 1 - turn };
            let MeasuredServer { served: way, costs } = &mut ways[index];
            if is_cold {
                let set = set_of(folder, &way.name);
                page_cache::evict(&set, count);
                residents.extend(page_cache::resident(&set, count));
            }
            let disk = DiskUse::of(folder);
            let (begun, cpu) = (clock.now(), way.cpu_ns());
            way.batches(&texts);
            let (accepted, accept_cpu) = (clock.now(), way.cpu_ns());
            way.drain(&clock, count as u64 * readings as u64);
            let (drained, all_cpu) = (clock.now(), way.cpu_ns());
            rustix::fs::syncfs(&root).expect("a sync");
            let synced = clock.now();
            if round > 0 {
                costs.push(Cost {
                    accept_ns: accepted - begun,
                    accept_cpu_ns: accept_cpu - cpu,
                    drain_ns: drained - accepted,
                    sync_ns: synced - drained,
                    all_ns: synced - begun,
                    cpu_ns: all_cpu - cpu,
                    disk: DiskUse::of(folder).since(disk),
                });
            }
        }
    }
    println!(
        "{count} files, {readings} readings a file; us of an update, best of {}:",
        ROUNDS - 1
    );
    if is_cold {
        let most = residents
            .iter()
            .map(|resident: &Resident| resident.bytes)
            .max()
            .unwrap_or_default();
        match residents.first() {
            Some(Resident { of_bytes, .. }) => {
                println!("before each turn at most {most} of {of_bytes} bytes were in memory (mincore)");
            }
            None => println!("how much was in memory before a turn is not known: fincore is not installed"),
        }
    }
    rows(&ways, count * readings as usize);
}

/// Prints the cost per update of each server.
fn rows(ways: &[MeasuredServer], updates: usize) {
    println!("way          accept  its CPU   drain    sync     all  all CPU  disk: reads  writes      KB");
    for way in ways {
        let costs = || way.costs.iter();
        let best = |cost: fn(&Cost) -> u64| costs().map(cost).min().unwrap_or_default() as f64 / 1e3 / updates as f64;
        let most = |cost: fn(&Cost) -> u64| costs().map(cost).max().unwrap_or_default() as f64 / updates as f64;
        println!(
            "{:11}  {:6.3}   {:6.3}  {:6.3}  {:6.3}  {:6.3}   {:6.3}       {:6.3}  {:6.3}  {:6.3}",
            way.served.name,
            best(|cost| cost.accept_ns),
            best(|cost| cost.accept_cpu_ns),
            best(|cost| cost.drain_ns),
            best(|cost| cost.sync_ns),
            best(|cost| cost.all_ns),
            best(|cost| cost.cpu_ns),
            most(|cost| cost.disk.reads),
            most(|cost| cost.disk.writes),
            most(|cost| cost.disk.written_bytes) / 1e3,
        );
    }
}

/// Each server with each sync policy.
fn journaled() -> Vec<((&'static str, bool, usize), &'static str)> {
    let ours = ["no journal", "none", "1s", "group", "each"].map(|policy| (WAYS[0], policy));
    let theirs = ["no journal", "journal"].map(|policy| (WAYS[2], policy));
    let theirs = theirs.into_iter().filter(|_| has_daemon());
    ours.into_iter().chain(theirs).collect()
}

/// Kills each server `count` times after some acknowledged updates, and counts the updates that
/// are missing after a restart.
fn kills(folder: &Path, count: usize) {
    println!("{count} kills after 1 to 1000 acknowledged updates: acknowledged, lost, widest loss");
    for (way, policy) in journaled() {
        let (mut acked, mut lost, mut widest) = (0, 0, 0);
        for round in 0..count {
            let begun_s = newest_s(folder) + STEP_S;
            let updates = (round as i64 * 389) % 1_000 + 1;
            let mut server = MeasuredServer::anew(folder, way, policy).served;
            for second in 0..updates {
                server.send(&format!("UPDATE 1.rrd {}:1:1\n", begun_s + second));
                server.receive();
            }
            drop(server);
            let mut server = MeasuredServer::start(folder, way, policy).served;
            server.send("FLUSH 1.rrd\n");
            server.receive();
            let file = tsb_rrd::RrdFile::open(&set_of(folder, way.0).join("1.rrd")).expect("the first file");
            let newest = file.newest(&mut tsb_rrd::Session::default()).expect("its header");
            let kept = (newest.seconds - begun_s + 1).max(0);
            // After a restart, only values from the journal are written; rrdcached updates its
            // counter a little after it has reported the write.
            let clock = MonotonicClock::new();
            while server.written() != kept as u64 {
                assert!(
                    clock.now() < 2_000_000_000,
                    "{}: some of {kept} are missing in between",
                    way.0
                );
            }
            drop(server);
            acked += updates;
            lost += updates - kept;
            widest = widest.max(updates - kept);
        }
        println!("{:11}  {policy:10}  {acked:7}  {lost:7}  {widest:5}", way.0);
    }
}

fn acks(folder: &Path, count: usize, most_ns: u64) {
    println!(
        "{count} files, what a server is asked; single updates in us: CPU, p50, p99, p99.9; batches of {BATCH} in ns: CPU, wall"
    );
    let all = journaled();
    let mut table = vec![[f64::NAN; 6]; all.len()];
    for round in 0..ACK_ROUNDS {
        for turn in 0..all.len() {
            let index = if round % 2 == 0 { turn } else { all.len() - 1 - turn };
            let (way, policy) = all[index];
            let row = ack(
                folder,
                count,
                most_ns,
                &mut MeasuredServer::anew(folder, way, policy).served,
            );
            for (best, value) in table[index].iter_mut().zip(row) {
                *best = best.min(value);
            }
        }
    }
    for ((way, policy), row) in all.iter().zip(&table) {
        let name = way.0.trim_end_matches([' ', '1']);
        let [cpu, p50, p99, p999, batch_cpu, batch] = row;
        println!("{name:9}  {policy:10}  {cpu:6.1} {p50:6.1} {p99:6.1} {p999:6.1}  {batch_cpu:7.0} {batch:7.0}");
    }
}

/// One server's row.
fn ack(folder: &Path, count: usize, most_ns: u64, way: &mut RunningServer) -> [f64; 6] {
    /// Ticks in batches.
    const TICKS: i64 = 10;
    let clock = MonotonicClock::new();
    let mut now_s = newest_s(folder);
    // The first update of a file opens it.
    way.batches(&texts(count, now_s, 1));
    now_s += STEP_S;
    let mut times = Histogram::new();
    let (start, cpu) = (clock.now(), way.cpu_ns());
    for index in 0..SINGLES {
        if clock.now() - start > most_ns {
            break;
        }
        let at = now_s + 1 + (index / count) as i64;
        let text = format!("UPDATE {}.rrd {at}:{}.25:1\n", index % count + 1, index % 997);
        let begun = clock.now();
        way.send(&text);
        way.receive();
        times.record(clock.now() - begun);
    }
    let single_cpu = (way.cpu_ns() - cpu) as f64 / 1e3 / times.count() as f64;
    let texts = texts(count, now_s + STEP_S, TICKS);
    let (begun, cpu) = (clock.now(), way.cpu_ns());
    way.batches(&texts);
    let updates = count as f64 * TICKS as f64;
    let (wall, cpu) = (
        (clock.now() - begun) as f64 / updates,
        (way.cpu_ns() - cpu) as f64 / updates,
    );
    // NaN if too few updates were timed for this quantile.
    let us = |quantile: f64| {
        times
            .supported_quantile(quantile)
            .map_or(f64::NAN, |ns| ns as f64 / 1e3)
    };
    [single_cpu, us(0.5), us(0.99), us(0.999), cpu, wall]
}
