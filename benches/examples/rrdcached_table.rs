//! What rrdcached's protocol costs a server: ours beside the real daemon, with one client.
//!
//! `rrdcached_table prepare FOLDER N` creates a set of N files in the published layout for
//! each way. `rrdcached_table drain FOLDER N K` gives each file K readings, one tick after
//! the other in batches of 1000 commands, has them written and syncs the file system, the
//! ways in turn (A B C D D C B A ...). `rrdcached_table acks FOLDER N` times single updates,
//! a round trip each, and batches, by policy of the journal. `rrdcached_table kills FOLDER N`
//! kills each server N times and counts what was acknowledged and is lost. Each server is a process of its
//! own behind a Unix socket, and its CPU time is what the system counts for it. Without
//! arguments: 300 files in a temporary folder. Where no rrdcached is installed, there is
//! nothing beside ours.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "an example prints its result")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tsb_bench::rrd::{self, STEP_S};
use tsb_core::latency::Histogram;
use tsb_core::net::{Address, Intake, ListenOptions, Listener, Runtime};
use tsb_core::resource::Process;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::wire::rrdcached::NoSeries;
use tsb_stores::write_cache::files::{Conversation, FileCache};
use tsb_stores::write_cache::{JournalOptions, Sync, WriteCacheOptions};

/// Rounds of each way; the first only warms up.
const ROUNDS: usize = 4;
/// Commands of a batch.
const BATCH: usize = 1_000;
/// Single updates that are timed, and how long they may take where each waits for a disk:
/// without arguments, and with them.
const SINGLES: usize = 10_000;
const QUICK_NS: u64 = 1_500_000_000;
const PATIENT_NS: u64 = 60_000_000_000;
/// Rounds of each server and policy of a journal.
const ACK_ROUNDS: usize = 2;
/// Threads of our server that do what clients ask, as in `tsb ingest`.
const INGEST_THREADS: usize = 4;

/// Who serves, and with how many threads that write.
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
        ["serve", folder, socket, threads, policy] => serve(folder, socket, count(threads), policy),
        ["prepare", folder, number] => prepare(Path::new(folder), count(number)),
        ["drain", folder, number, readings] => drain(Path::new(folder), count(number), count(readings) as i64),
        ["kills", folder, number] => kills(Path::new(folder), count(number)),
        ["acks", folder, number] => acks(Path::new(folder), count(number), PATIENT_NS),
        [] => {
            let folder = std::env::temp_dir().join(format!("tsb-rrdcached-table-{}", std::process::id()));
            prepare(&folder, 300);
            acks(&folder, 300, QUICK_NS);
            kills(&folder, 3);
            for readings in [1, 10, 60] {
                drain(&folder, 300, readings);
            }
            std::fs::remove_dir_all(&folder).expect("the folder can be removed");
        }
        _ => println!("rrdcached_table [prepare FOLDER N | drain FOLDER N K | acks FOLDER N | kills FOLDER N]"),
    }
}

fn has_daemon() -> bool {
    let mut probe = Command::new("rrdcached");
    let silent = probe.arg("-h").stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok()
}

fn set_of(folder: &Path, way: &str) -> PathBuf {
    folder.join(way.replace(' ', "-"))
}

fn prepare(folder: &Path, count: usize) {
    for (name, ..) in WAYS {
        rrd::create(&set_of(folder, name), count);
    }
}

/// Our server, until its input ends.
fn serve(folder: &str, socket: &str, threads: usize, policy: &str) {
    let journal = Path::new(socket).with_extension("journal");
    let options = WriteCacheOptions {
        timeout_ns: 3_600_000_000_000,
        threads,
        journal: sync_of(policy).map(|sync| JournalOptions::new(journal, sync)),
        ..WriteCacheOptions::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let cache = FileCache::open(Path::new(folder), usize::MAX, &options, Arc::clone(&clock)).expect("a cache");
    let served = Arc::new(cache);
    let intake = move |_: &Address| Intake {
        decoder: Box::new(Conversation::new(Arc::clone(&served))),
        sink: Box::new(NoSeries),
    };
    let options = ListenOptions {
        ingest_threads: INGEST_THREADS,
        ..ListenOptions::default()
    };
    let runtime = Runtime::start().expect("a runtime");
    let address = Address::Unix(socket.into());
    let listener = Listener::bind(runtime.handle(), &address, options, intake, clock, None).expect("a listener");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
    drop(listener);
}

fn sync_of(policy: &str) -> Option<Sync> {
    match policy {
        "none" => Some(Sync::None),
        "1s" => Some(Sync::Interval(1_000_000_000)),
        "group" => Some(Sync::Group),
        "each" => Some(Sync::Each),
        _ => None,
    }
}

/// A server with a client.
struct Way {
    name: String,
    child: Child,
    process: Process,
    client: BufReader<UnixStream>,
    costs: Vec<Cost>,
}

#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "units come last in a name")]
struct Cost {
    accept_ns: u64,
    accept_cpu_ns: u64,
    drain_ns: u64,
    sync_ns: u64,
    cpu_ns: u64,
}

impl Way {
    /// The same without what a journal holds of an earlier one.
    fn anew(folder: &Path, way: (&str, bool, usize), policy: &str) -> Self {
        // There may be none.
        let _ = std::fs::remove_dir_all(set_of(folder, way.0).with_extension("journal"));
        Self::start(folder, way, policy)
    }

    fn start(folder: &Path, (name, is_daemon, threads): (&str, bool, usize), policy: &str) -> Self {
        let set = set_of(folder, name);
        let [socket, journal, pid] = ["socket", "journal", "pid"].map(|what| set.with_extension(what));
        // What an earlier one left, if one did.
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_file(&pid);
        let threads = threads.to_string();
        let mut command = if is_daemon {
            let mut command = Command::new("rrdcached");
            command.args(["-g", "-w", "3600", "-f", "7200", "-t", &threads, "-B", "-b"]);
            command.arg(&set).arg("-p").arg(&pid);
            command.arg("-l").arg(format!("unix:{}", socket.display()));
            if policy != "no journal" {
                std::fs::create_dir_all(&journal).expect("a folder");
                command.arg("-j").arg(&journal);
            }
            command
        } else {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.arg("serve").arg(&set).arg(&socket).args([&threads, policy]);
            command
        };
        let child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let clock = MonotonicClock::new();
        let client = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(clock.now() < 10_000_000_000, "{name} does not answer: {error}"),
            }
            clock.wait_until(clock.now() + 5_000_000);
        };
        Self {
            name: name.to_owned(),
            process: Process::watch(child.id()).expect("a process"),
            child,
            client: BufReader::new(client),
            costs: Vec::new(),
        }
    }

    fn cpu_ns(&self) -> u64 {
        let usage = self.process.usage().expect("its usage");
        usage.user_cpu_ns + usage.system_cpu_ns
    }

    fn say(&mut self, text: &str) {
        self.client.get_mut().write_all(text.as_bytes()).expect("a listener");
    }

    /// The lines of one reply.
    fn hear(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.client.read_line(&mut line).expect("a reply");
        let (count, _) = line.split_once(' ').expect("a number");
        let count: i64 = count.parse().expect("a number");
        assert!(count >= 0, "{}: {line}", self.name);
        let lines = (0..count).map(|_| {
            let mut line = String::new();
            self.client.read_line(&mut line).expect("a line");
            line
        });
        lines.collect()
    }

    /// Updates as batches, all of which must succeed.
    fn batches(&mut self, texts: &[String]) {
        for text in texts {
            self.say(text);
            self.hear();
            let errors = self.hear();
            assert!(errors.is_empty(), "{}: {}", self.name, errors[0]);
        }
    }

    fn written(&mut self) -> u64 {
        self.say("STATS\n");
        let lines = self.hear();
        let written = lines.iter().find_map(|line| line.strip_prefix("DataSetsWritten: "));
        written.and_then(|count| count.trim().parse().ok()).expect("a counter")
    }

    /// Has everything written, until the counters say that so many more values are.
    fn drain(&mut self, clock: &MonotonicClock, values: u64) {
        let before = self.written();
        self.say("FLUSHALL\n");
        self.hear();
        while self.written() < before + values {
            clock.wait_until(clock.now() + 1_000_000);
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When the files of a set were updated last.
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
    let files: Vec<usize> = (1..=count).collect();
    let ticks = (1..=readings).map(|tick| from_s + tick * STEP_S);
    let texts = ticks.flat_map(|at| {
        files.chunks(BATCH).map(move |files| {
            let mut text = "BATCH\n".to_owned();
            for file in files {
                let _ = writeln!(text, "UPDATE {file}.rrd {at}:{}.25:{}", file % 9_973, at % 7_919);
            }
            text.push_str(".\n");
            text
        })
    });
    texts.collect()
}

fn drain(folder: &Path, count: usize, readings: i64) {
    let root = std::fs::File::open(folder).expect("the folder");
    let clock = MonotonicClock::new();
    let known = WAYS.into_iter().filter(|&(_, is_daemon, _)| !is_daemon || has_daemon());
    let mut ways: Vec<Way> = known.map(|way| Way::anew(folder, way, "no journal")).collect();
    let mut now_s = newest_s(folder);
    for round in 0..ROUNDS {
        let texts = texts(count, now_s, readings);
        now_s += readings * STEP_S;
        for turn in 0..ways.len() {
            let index = if round % 2 == 0 { turn } else { ways.len() - 1 - turn };
            let way = &mut ways[index];
            let (begun, cpu) = (clock.now(), way.cpu_ns());
            way.batches(&texts);
            let (accepted, accept_cpu) = (clock.now(), way.cpu_ns());
            way.drain(&clock, count as u64 * readings as u64);
            let (drained, all_cpu) = (clock.now(), way.cpu_ns());
            rustix::fs::syncfs(&root).expect("a sync");
            if round > 0 {
                way.costs.push(Cost {
                    accept_ns: accepted - begun,
                    accept_cpu_ns: accept_cpu - cpu,
                    drain_ns: drained - accepted,
                    sync_ns: clock.now() - begun,
                    cpu_ns: all_cpu - cpu,
                });
            }
        }
    }
    println!(
        "{count} files, {readings} readings a file; us of an update, best of {}:",
        ROUNDS - 1
    );
    println!("way          accept  its CPU    drain  with sync  all CPU");
    for way in &ways {
        let best = |cost: fn(&Cost) -> u64| {
            let best = way.costs.iter().map(cost).min().unwrap_or_default();
            best as f64 / 1e3 / count as f64 / readings as f64
        };
        println!(
            "{:11}  {:6.3}   {:6.3}   {:6.3}     {:6.3}   {:6.3}",
            way.name,
            best(|cost| cost.accept_ns),
            best(|cost| cost.accept_cpu_ns),
            best(|cost| cost.drain_ns),
            best(|cost| cost.sync_ns),
            best(|cost| cost.cpu_ns),
        );
    }
}

/// Each server with each policy of its journal.
fn journaled() -> Vec<((&'static str, bool, usize), &'static str)> {
    let ours = ["no journal", "none", "1s", "group", "each"].map(|policy| (WAYS[0], policy));
    let theirs = ["no journal", "journal"].map(|policy| (WAYS[2], policy));
    let theirs = theirs.into_iter().filter(|_| has_daemon());
    ours.into_iter().chain(theirs).collect()
}

/// Kills each server so many times after some acknowledged updates: how many are not in the
/// file after its next life.
fn kills(folder: &Path, count: usize) {
    println!("{count} kills after 1 to 1000 acknowledged updates: acknowledged, lost, widest loss");
    for (way, policy) in journaled() {
        let (mut acked, mut lost, mut widest) = (0, 0, 0);
        for round in 0..count {
            let begun_s = newest_s(folder) + STEP_S;
            let updates = (round as i64 * 389) % 1_000 + 1;
            let mut server = Way::anew(folder, way, policy);
            for second in 0..updates {
                server.say(&format!("UPDATE 1.rrd {}:1:1\n", begun_s + second));
                server.hear();
            }
            drop(server);
            let mut server = Way::start(folder, way, policy);
            server.say("FLUSH 1.rrd\n");
            server.hear();
            let file = tsb_rrd::RrdFile::open(&set_of(folder, way.0).join("1.rrd")).expect("the first file");
            let newest = file.newest(&mut tsb_rrd::Session::default()).expect("its header");
            let kept = (newest.seconds - begun_s + 1).max(0);
            // All that this life writes comes from the journal; rrdcached counts it a little
            // after it has said that it is written.
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
            let row = ack(folder, count, most_ns, &mut Way::anew(folder, way, policy));
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
fn ack(folder: &Path, count: usize, most_ns: u64, way: &mut Way) -> [f64; 6] {
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
        way.say(&text);
        way.hear();
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
    // NaN where so few were timed that there is no such quantile.
    let us = |quantile: f64| {
        times
            .supported_quantile(quantile)
            .map_or(f64::NAN, |ns| ns as f64 / 1e3)
    };
    [single_cpu, us(0.5), us(0.99), us(0.999), cpu, wall]
}
