//! Servers of rrdcached's protocol, each a process behind a Unix socket, and one client.
//!
//! The real daemon is one, and ours is this very program: an example that is called with
//! `serve` and what `ServerConfig::words` says runs [`serve`].

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tsb_core::net::{Address, ListenOptions, Runtime};
use tsb_core::resource::Process;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_rrdcached::{Connection, FileBounds, FileCache};
use tsb_stores::write_cache::{CheckpointOptions, JournalOptions, SyncPolicy, WriteCacheOptions};

/// Threads of our server that do what clients ask, as in `tsb ingest`.
const INGEST_THREADS: usize = 4;
/// Commands of a batch.
pub const BATCH: usize = 1_000;

/// Which server, and how it is started.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// For tables.
    pub name: String,
    /// The real daemon, or ours.
    pub is_daemon: bool,
    /// Threads that write.
    pub threads: usize,
    /// Of ours: when it syncs its journal (`none`, `1s`, `group`, `each`); any other text is no journal. Of the
    /// daemon: `no journal`, or any other text for one.
    pub policy: String,
    /// Whether ours keeps what it knows of the files, in a checkpoint.
    pub has_checkpoint: bool,
    /// Where its socket, its journal and its checkpoint are: names are made by endings.
    pub place: PathBuf,
    /// The files.
    pub set: PathBuf,
}

/// A server that runs, and a client that is connected to it.
#[derive(Debug)]
pub struct RunningServer {
    /// As [`ServerConfig::name`].
    pub name: String,
    is_daemon: bool,
    child: Child,
    process: Process,
    client: Connection,
}

/// Whether the real daemon is installed.
pub fn has_daemon() -> bool {
    let mut probe = Command::new("rrdcached");
    let silent = probe.arg("-h").stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok()
}

/// Ours, until its input ends: the folder, the socket, threads that write, the policy, and
/// whether there is a checkpoint.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn serve(words: &[&str]) {
    let &[folder, socket, threads, policy, checkpoint] = words else {
        panic!("serve FOLDER SOCKET THREADS POLICY CHECKPOINT");
    };
    let [journal, known] = ["journal", "checkpoint"].map(|what| Path::new(socket).with_extension(what));
    let known = CheckpointOptions {
        max_bytes: 8 << 30,
        ..CheckpointOptions::new(known)
    };
    let options = WriteCacheOptions {
        timeout_ns: 3_600_000_000_000,
        threads: threads.parse().expect("a number of threads"),
        checkpoint: (checkpoint == "checkpoint").then_some(known),
        journal: sync_of(policy).map(|sync| JournalOptions::new(journal, sync)),
        ..WriteCacheOptions::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let cache = FileCache::open(
        Path::new(folder),
        FileBounds::of_files(usize::MAX),
        &options,
        Arc::clone(&clock),
    )
    .expect("a cache");
    let cache = Arc::new(cache);
    let options = ListenOptions {
        ingest_threads: INGEST_THREADS,
        ..ListenOptions::default()
    };
    let runtime = Runtime::start().expect("a runtime");
    let address = Address::Unix(socket.into());
    let listener = tsb_rrdcached::listen(&runtime, &address, options, &cache, clock).expect("a listener");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
    drop(listener);
    cache.close().expect("a checkpoint");
}

fn sync_of(policy: &str) -> Option<SyncPolicy> {
    match policy {
        "none" => Some(SyncPolicy::None),
        "1s" => Some(SyncPolicy::Interval(1_000_000_000)),
        "group" => Some(SyncPolicy::Group),
        "each" => Some(SyncPolicy::Each),
        _ => None,
    }
}

impl ServerConfig {
    /// What our own program is called with.
    fn words(&self, socket: &Path) -> [PathBuf; 6] {
        let threads = self.threads.to_string();
        let checkpoint = if self.has_checkpoint { "checkpoint" } else { "none" };
        let set = self.set.clone();
        [
            "serve".into(),
            set,
            socket.to_owned(),
            threads.into(),
            self.policy.clone().into(),
            checkpoint.into(),
        ]
    }

    /// Removes what a journal or a checkpoint holds of an earlier life.
    pub fn forget(&self) {
        let _ = std::fs::remove_file(self.checkpoint());
        // There may be none.
        let _ = std::fs::remove_dir_all(self.place.with_extension("journal"));
    }

    /// Where its checkpoint is, if it keeps one.
    pub fn checkpoint(&self) -> PathBuf {
        self.place.with_extension("checkpoint")
    }

    /// Starts it, and returns when it answers.
    #[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
    pub fn start(&self) -> RunningServer {
        let [socket, journal, pid] = ["socket", "journal", "pid"].map(|what| self.place.with_extension(what));
        // What an earlier one left, if one did.
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_file(&pid);
        let mut command = if self.is_daemon {
            let mut command = Command::new("rrdcached");
            command.args([
                "-g",
                "-w",
                "3600",
                "-f",
                "7200",
                "-B",
                "-t",
                &self.threads.to_string(),
                "-b",
            ]);
            command.arg(&self.set).arg("-p").arg(&pid);
            command.arg("-l").arg(format!("unix:{}", socket.display()));
            if self.policy != "no journal" {
                std::fs::create_dir_all(&journal).expect("a folder");
                command.arg("-j").arg(&journal);
            }
            command
        } else {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(self.words(&socket));
            command
        };
        let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let child = child.expect("a server");
        let clock = MonotonicClock::new();
        let client = loop {
            match Connection::open(&socket) {
                Ok(client) => break client,
                Err(error) => assert!(clock.now() < 60_000_000_000, "{} does not answer: {error}", self.name),
            }
            clock.wait_until(clock.now() + 5_000_000);
        };
        RunningServer {
            name: self.name.clone(),
            is_daemon: self.is_daemon,
            process: Process::watch(child.id()).expect("a process"),
            child,
            client,
        }
    }
}

#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
impl RunningServer {
    /// CPU time that it has used so far, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        let usage = self.process.usage().expect("its usage");
        usage.user_cpu_ns + usage.system_cpu_ns
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command.
    pub fn send(&mut self, text: &str) {
        self.client.send(text).expect("a listener");
    }

    /// The lines of one reply.
    pub fn receive(&mut self) -> Vec<String> {
        let reply = self.client.reply().expect("a reply");
        assert!(reply.is_ok, "{}: {}", self.name, reply.text);
        reply.lines
    }

    /// Updates as batches, all of which must succeed.
    pub fn batches(&mut self, texts: &[String]) {
        for text in texts {
            self.send(text);
            self.receive();
            let errors = self.receive();
            assert!(errors.is_empty(), "{}: {}", self.name, errors[0]);
        }
    }

    /// Values that it says are written.
    pub fn written(&mut self) -> u64 {
        self.client.counters().expect("counters").values
    }

    /// Has everything written, and returns when the counters say that `values` more values are.
    pub fn drain(&mut self, clock: &MonotonicClock, values: u64) {
        let before = self.written();
        self.send("FLUSHALL\n");
        self.receive();
        while self.written() < before + values {
            clock.wait_until(clock.now() + 1_000_000);
        }
    }

    /// Ends it as it wants to be ended, and waits for that.
    pub fn stop(mut self) {
        if self.is_daemon {
            let process = rustix::process::Pid::from_child(&self.child);
            rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a signal");
        }
        drop(self.child.stdin.take());
        self.child.wait().expect("its end");
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ticks of all files, in batches: `readings` of each, `seconds` apart, after `from_s`.
pub fn batches(count: usize, from_s: i64, readings: i64, seconds: i64) -> Vec<String> {
    let files: Vec<usize> = (1..=count).collect();
    let ticks = (1..=readings).map(|tick| from_s + tick * seconds);
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
