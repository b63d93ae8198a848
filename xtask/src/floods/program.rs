//! Runs the real program under a flood and measures its peak memory.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Row;
use super::payload::{SHORT_NAME, Wire};
use crate::proc_files::kib;

/// How long a peer waits for room to send, or for the other side to close.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the listeners are started with, in bytes where it is not a count.
#[derive(Debug)]
pub(super) struct Limits {
    series: u64,
    names: u64,
    store: u64,
    connections: u64,
    receive_buffer: u64,
}

/// The program itself, its threads and its tables.
const PROGRAM: u64 = 40 << 20;

/// What is held for all peers of a listener: samples without an announcement, and bodies.
const HELD: u64 = 256 << 20;

/// Of a connection: its own read buffer, and twice the longest record.
const CONNECTION: u64 = (256 << 10) + (128 << 10);

impl Limits {
    pub(super) fn usual() -> Self {
        Self {
            series: 100_000,
            names: 32 << 20,
            store: 128 << 20,
            connections: 256,
            receive_buffer: 8 << 20,
        }
    }

    /// What the process may take, in MiB: the admitted names, what decoders remember of them, the
    /// store, connections, and what is held.
    pub(super) fn bound(&self, scheme: &str) -> u64 {
        let held = match scheme {
            "tsb+udp" | "kairosdb-json+http" | "hawkular+http" | "influx+http" | "remote-write+http" | "otlp+http" => {
                HELD
            }
            // A decoder keeps the frame that has begun.
            "pickle+tcp" => self.connections << 20,
            _ => 0,
        };
        (PROGRAM + 2 * self.names + self.store + self.connections * CONNECTION + held) >> 20
    }

    fn arguments(&self, scheme: &str, folder: &Path) -> Vec<String> {
        let connections = ["--max-connections".to_owned(), self.connections.to_string()];
        let mut arguments: Vec<String> = ["ingest", "--quiet", "--format", "json", "--duration", "10m"]
            .map(str::to_owned)
            .to_vec();
        arguments.extend(connections);
        if scheme.starts_with("rrdcached") {
            let store = format!("write-cache+rrd:{}?max_series={}", folder.display(), self.series);
            arguments.extend(["--store".to_owned(), store, "--listen".to_owned()]);
            arguments.push(format!("{scheme}://127.0.0.1:0"));
            return arguments;
        }
        let udp = if scheme.ends_with("udp") {
            format!("?receive-buffer={}", self.receive_buffer)
        } else {
            String::new()
        };
        let pairs = [
            ("--max-series", self.series.to_string()),
            ("--max-name-bytes", self.names.to_string()),
            ("--store", format!("memory:?max_bytes={}", self.store)),
            ("--listen", format!("{scheme}://127.0.0.1:0{udp}")),
        ];
        arguments.extend(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        arguments
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Limits: {} series, {} of names and as much again in decoders, {} of memory store, {} connections or senders.\n\
             The bound adds {} for the program, {} KiB for each connection, 1 MiB of a frame for each of pickle, and {} of \
             held samples or bodies where a protocol holds any.",
            self.series,
            mib(self.names),
            mib(self.store),
            self.connections,
            mib(PROGRAM),
            CONNECTION >> 10,
            mib(HELD),
        )
    }
}

/// Formats a number of bytes.
pub(super) fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// `tsb ingest` in a process of its own.
#[derive(Debug)]
pub(super) struct Listener {
    child: Child,
    address: String,
    is_datagrams: bool,
    folder: PathBuf,
}

impl Listener {
    pub(super) fn start(program: &Path, limits: &Limits, scheme: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("tsb-floods-{}", std::process::id()));
        let mut command = Command::new(program);
        command.args(limits.arguments(scheme, &folder)).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", program.display()))?;
        let mut lines = BufReader::new(child.stderr.take().context("the child has no stderr")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let address = line.split("://").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address
            .with_context(|| format!("{scheme} does not listen: {line}"))?
            .to_owned();
        std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        Ok(Self {
            child,
            address,
            is_datagrams: scheme.ends_with("udp"),
            folder,
        })
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Samples of ever new names, and then waits until they are taken.
    pub(super) fn names(&self, wire: Wire, names: u64, bytes: usize) -> Result<()> {
        let together = Wire::together(bytes, self.is_datagrams) as u64;
        let parts = (0..names).step_by(together as usize);
        let parts = parts.map(|first| wire.samples(first..names.min(first + together), bytes));
        if self.is_datagrams {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            for part in parts {
                socket.send_to(&part, &self.address)?;
                // Slower than the listener, so that the kernel drops little.
                std::thread::park_timeout(Duration::from_micros(300));
            }
            return Ok(());
        }
        let mut stream = self.connect()?;
        // What is answered has to be read, else nothing more is taken.
        let mut answers = stream.try_clone()?;
        let reader = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()));
        stream.write_all(&wire.prelude())?;
        for part in parts {
            stream.write_all(&part)?;
        }
        stream.shutdown(Shutdown::Write)?;
        let read = reader.join().ok().context("the reader of answers panicked")?;
        read.map(drop).context("the listener did not take everything in time")
    }

    /// The names of a fleet, by our own emitter: for the protocol that nobody else speaks.
    pub(super) fn emit(&self, scheme: &str, names: u64) -> Result<()> {
        let program = fs::read_link(format!("/proc/{}/exe", self.child.id()))?;
        let mut command = Command::new(program);
        command.args(["emit", "--quiet", "--to", &format!("{scheme}://{}", self.address)]);
        command.args(["--series", &names.to_string(), "--rate", "200k", "--duration", "3s"]);
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("tsb emit failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Bytes without the end of a record, until the listener closes.
    pub(super) fn endless(&self, wire: Wire, bytes: u64) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(&wire.half())?;
        let piece = vec![b'x'; 64 << 10];
        for _ in 0..bytes / piece.len() as u64 {
            match stream.write_all(&piece) {
                Ok(()) => {}
                // It is meant to close, or to stop reading.
                Err(error) if error.kind() == ErrorKind::WouldBlock => bail!("the listener stopped reading"),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// A datagram from each of many senders.
    pub(super) fn peers(&self, wire: Wire, peers: u64) -> Result<()> {
        for peer in 0..peers {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(&wire.samples(peer % 100..peer % 100 + 1, SHORT_NAME), &self.address)?;
            if peer.is_multiple_of(64) {
                std::thread::park_timeout(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Connections that stay open, each with half a record of 48 KiB.
    pub(super) fn connections(&self, wire: Wire, connections: usize) -> Result<()> {
        let mut open = Vec::new();
        let half = [wire.half(), vec![b'x'; 48 << 10]].concat();
        for _ in 0..connections {
            let mut stream = self.connect()?;
            // One that is refused breaks.
            let _ = stream.write_all(&half);
            open.push(stream);
        }
        // What the kernel has is read.
        std::thread::park_timeout(Duration::from_millis(500));
        Ok(())
    }

    /// Ends it in order: its peak in MiB, and its result.
    pub(super) fn stop(mut self) -> Result<(u64, Value)> {
        // What datagrams the kernel still has is taken.
        std::thread::park_timeout(Duration::from_millis(300));
        let peak = peak_mib(self.child.id())?;
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
        let mut text = String::new();
        let out = self.child.stdout.as_mut().context("the child has no stdout")?;
        out.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        let _ = fs::remove_dir_all(&self.folder);
        if !status.success() {
            bail!("the listener ended with {status}");
        }
        Ok((
            peak,
            serde_json::from_str(&text).context("the listener's result is no JSON")?,
        ))
    }
}

/// The most memory that a process has taken so far.
fn peak_mib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = kib(&status, "VmHWM:").context("the kernel tells no peak")?;
    Ok(peak.div_ceil(1024))
}

/// A run with this number of report intervals; its own report states the peak of memory.
pub(super) fn intervals(program: &Path, intervals: u64) -> Result<Row> {
    let mut command = Command::new(program);
    command.args([
        "run",
        "--quiet",
        "--no-calibrate",
        "--format",
        "json",
        "--series",
        "100",
        "--transport",
        "inproc",
    ]);
    let interval = format!("{}us", 4_000_000 / intervals);
    command.args(["--duration", "4s", "--report-interval", &interval]);
    let output = command.stdin(Stdio::null()).output()?;
    let report: Value = serde_json::from_slice(&output.stdout).context("the run wrote no report")?;
    let intervals = report["intervals"].as_array().context("the report has no intervals")?;
    let peak = intervals
        .iter()
        .filter_map(|interval| interval["rss_bytes"].as_u64())
        .max();
    Ok(Row {
        bound: u64::MAX,
        peak: peak.unwrap_or_default().div_ceil(1 << 20),
        accepted: report["ledger"]["accepted"].as_u64().unwrap_or_default(),
        turned_away: 0,
        not_kept: 0,
        balanced: report["ledger"]["balanced"] == Value::Bool(true),
    })
}
