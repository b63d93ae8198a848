//! The engines under test: who writes an update to its file.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tsb_core::net::{Address, ListenOptions, Listener, Runtime};
use tsb_core::resource::Process;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS, process_cpu_ns, thread_cpu_ns};
use tsb_rrdcached::{FileBounds, FileCache};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCacheOptions};

use super::client::Client;
use super::testbed::Testbed;
use super::{Result, failed};
use crate::exit::Exit;
use crate::failure::Failure;

/// The options of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Write threads.
    pub(super) threads: usize,
    /// Seconds after which a file with pending values is written.
    pub(super) timeout_s: u64,
    /// Random extra delay, at most this many seconds.
    pub(super) jitter_s: u64,
    /// The sync policy of our journal; for the daemon, only whether it has one.
    pub(super) journal: Option<SyncPolicy>,
}

impl Default for Tuning {
    /// rrdcached's default number of threads, and a timeout that no measurement reaches.
    fn default() -> Self {
        Self {
            threads: 4,
            timeout_s: 3_600,
            jitter_s: 0,
            journal: None,
        }
    }
}

/// The kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EngineKind {
    Direct,
    #[cfg(feature = "librrd")]
    Librrd,
    Ours,
    Daemon,
}

impl EngineKind {
    /// Whether it is a server, to which a client sends updates.
    pub(super) const fn is_server(self) -> bool {
        matches!(self, Self::Ours | Self::Daemon)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            #[cfg(feature = "librrd")]
            Self::Librrd => "librrd",
            Self::Ours => "write-cache+rrd",
            Self::Daemon => "rrdcached",
        }
    }
}

/// A running engine.
pub(super) struct Engine {
    pub(super) kind: EngineKind,
    pub(super) socket: PathBuf,
    server: Server,
    /// The process that writes the files.
    process: Option<Process>,
}

enum Server {
    None,
    Ours(Arc<FileCache>, Option<Listener>, Runtime),
    Daemon(Child),
}

/// Whether the real daemon is installed.
pub(super) fn has_daemon() -> bool {
    let mut probe = Command::new("rrdcached");
    let silent = probe.arg("-h").stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok()
}

impl Engine {
    pub(super) fn start(kind: EngineKind, testbed: &Testbed, folder: &Path, tuning: Tuning) -> Result<Self> {
        let socket = folder.join("socket");
        let _ = std::fs::remove_file(&socket);
        let journals = folder.join("journal");
        let _ = std::fs::remove_dir_all(&journals);
        let server = match kind {
            EngineKind::Direct => Server::None,
            #[cfg(feature = "librrd")]
            EngineKind::Librrd => Server::None,
            EngineKind::Ours => ours(testbed, &socket, tuning, journals)?,
            EngineKind::Daemon => daemon(testbed, folder, &socket, tuning, journals)?,
        };
        let process = match &server {
            Server::Daemon(child) => Process::watch(child.id()),
            _ => Process::own(),
        };
        Ok(Self {
            kind,
            socket,
            server,
            process,
        })
    }

    pub(super) fn connect(&self) -> Result<Client> {
        Client::connect(&self.socket).map_err(|error| failed("connect to", &self.socket, &error))
    }

    /// CPU time of the writing process or thread, in nanoseconds, without the client's.
    pub(super) fn cpu_ns(&self) -> u64 {
        match &self.server {
            Server::None => thread_cpu_ns(),
            Server::Ours(..) => process_cpu_ns().saturating_sub(thread_cpu_ns()),
            // The system counts it in ticks, of 10 ms mostly.
            Server::Daemon(_) => {
                let usage = self.process.as_ref().and_then(Process::usage);
                usage.map_or(0, |usage| usage.cpu_ns())
            }
        }
    }

    /// Bytes read from the disk and bytes dirtied by the process since it was started.
    pub(super) fn disk_bytes(&self) -> Option<(u64, u64)> {
        let usage = self.process.as_ref()?.usage()?;
        Some((usage.read_bytes?, usage.written_bytes?))
    }

    pub(super) fn stop(self) -> Result<()> {
        match self.server {
            Server::None => Ok(()),
            Server::Ours(cache, listener, runtime) => {
                drop(listener);
                drop(runtime);
                let closed = cache.close();
                closed.map_err(|error| failed("close the cache of", cache.folder(), &error))
            }
            Server::Daemon(mut child) => {
                // Everything is written by now: it has nothing left to do.
                let _ = child.kill();
                let ended = child.wait();
                ended
                    .map(drop)
                    .map_err(|error| failed("end", Path::new("rrdcached"), &error))
            }
        }
    }
}

fn ours(testbed: &Testbed, socket: &Path, tuning: Tuning, journals: PathBuf) -> Result<Server> {
    let options = WriteCacheOptions {
        timeout_ns: tuning.timeout_s * SECOND_NS,
        jitter_ns: tuning.jitter_s * SECOND_NS,
        threads: tuning.threads,
        journal: tuning.journal.map(|sync| JournalOptions::new(journals, sync)),
        ..WriteCacheOptions::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let cache = FileCache::open(
        testbed.folder(),
        FileBounds::of_files(usize::MAX),
        &options,
        Arc::clone(&clock),
    );
    let cache = Arc::new(cache.map_err(|error| failed("open a cache of", testbed.folder(), &error))?);
    let runtime =
        Runtime::start().map_err(|error| Failure::new(Exit::Bug, "cannot start the runtime").because(&error))?;
    let options = ListenOptions {
        ingest_threads: 2,
        ..ListenOptions::default()
    };
    let address = Address::Unix(socket.to_owned());
    let listener = tsb_rrdcached::listen(&runtime, &address, options, &cache, clock);
    let listener = listener.map_err(|error| failed("listen on", socket, &error))?;
    Ok(Server::Ours(cache, Some(listener), runtime))
}

fn daemon(testbed: &Testbed, folder: &Path, socket: &Path, tuning: Tuning, journals: PathBuf) -> Result<Server> {
    let mut command = Command::new("rrdcached");
    let [threads, timeout, jitter] = [tuning.threads as u64, tuning.timeout_s, tuning.jitter_s].map(|n| n.to_string());
    command.args(["-g", "-w", &timeout, "-f", "7200", "-t", &threads, "-B"]);
    if tuning.jitter_s > 0 {
        command.args(["-z", &jitter]);
    }
    command
        .arg("-b")
        .arg(testbed.folder())
        .arg("-p")
        .arg(folder.join("pid"));
    command.arg("-l").arg(format!("unix:{}", socket.display()));
    if tuning.journal.is_some() {
        std::fs::create_dir_all(&journals).map_err(|error| failed("make", &journals, &error))?;
        command.arg("-j").arg(journals);
    }
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.map_err(|error| failed("start", Path::new("rrdcached"), &error))?;
    Ok(Server::Daemon(child))
}
