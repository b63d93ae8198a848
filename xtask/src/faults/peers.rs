//! Hostile peers: each listener receives garbage, broken and incomplete messages, floods of
//! names and of connections, and must keep serving, end in order, account for what it accepted,
//! and stay below a memory limit.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::Value;

use super::judge::Outcome;
use super::rng::Rng;
use super::service::{ProcessHandle, Service, StartingProcess, micros};
use super::trial::{Trial, TrialFolder};
use crate::proc_files::kib;

/// The most memory that a listener here may take: its store has 32 MiB, 2,000 names and 64
/// connections, each with its buffers.
const PEAK_MAX_KIB: u64 = 256 * 1024;
/// Peers of one round.
const PEERS: u64 = 12;
/// Idle connections that a flood opens: more than the listener takes.
const FLOOD: usize = 80;
/// Names that a flood sends: more than the listener takes.
const NAMES: u64 = 3_000;
/// A peer does not wait longer than this for room to send.
const PATIENCE: Duration = Duration::from_millis(200);

/// Every listener, by its protocol and transport.
pub(super) const LISTENERS: &[&str] = &[
    "tsb+tcp",
    "tsb+udp",
    "graphite+tcp",
    "graphite+udp",
    "influx+tcp",
    "influx+udp",
    "influx+http",
    "kairosdb+tcp",
    "kairosdb-json+http",
    "hawkular+http",
    "opentsdb+tcp",
    "otlp+http",
    "remote-write+http",
    "pickle+tcp",
    "statsd+tcp",
    "statsd+udp",
    "dalmatiner-stream+tcp",
    "dalmatiner-batch+tcp",
    "dalmatiner-july+udp",
    "dalmatiner-august+udp",
    "rrdcached+tcp",
];

/// What a peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    Garbage,
    Half,
    Mutated,
    Names,
    Connections,
    Sound,
}

/// A listener, and bytes that a sound client sends it.
#[derive(Debug)]
pub(super) struct TargetListener {
    listener: &'static str,
    sound: Vec<u8>,
}

impl TargetListener {
    /// The bytes come from `tsb emit`, or are written here where it needs answers.
    pub(super) fn new(trial: &Trial<'_>, listener: &'static str) -> Result<Self> {
        let sound = match listener {
            "influx+http" => post("/write?db=d", "a,host=h v=1 1700000000000000000\nb v=2i\n"),
            "kairosdb-json+http" => post(
                "/api/v1/datapoints",
                "[{\"name\":\"a\",\"timestamp\":1700000000000,\"value\":1.5,\"tags\":{\"host\":\"h\"}}]",
            ),
            "hawkular+http" => hawkular("[{\"id\":\"a\",\"data\":[{\"timestamp\":1700000000000,\"value\":1.5}]}]"),
            "rrdcached+tcp" => {
                "CREATE a.rrd -s 1 DS:v:GAUGE:9:U:U RRA:AVERAGE:0.5:1:9\nUPDATE a.rrd 1900000000:1\nBATCH\n\
                                UPDATE a.rrd 1900000001:2\n.\nPENDING a.rrd\nFLUSH a.rrd\nSTATS\nLIST /\nQUIT\n"
                    .into()
            }
            "statsd+tcp" | "statsd+udp" => "a.b:1|c\nc:2.5|g\nd:3|ms|@0.1\n".into(),
            _ => capture(trial.program, listener)?,
        };
        Ok(Self { listener, sound })
    }

    /// A round of peers, each of a kind that the seed draws.
    pub(super) fn attacked(&self, trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String)> {
        let mut rng = Rng::new(seed);
        let place = TrialFolder::new(trial, &format!("peers-{}", self.listener), seed)?;
        let report = place.root.join("report.json");
        let service = match self.start(trial, &place, &report)?.listening()? {
            Ok(service) => service,
            Err(ended) => {
                return Ok((
                    Outcome::Panicked(format!("does not listen: {}", ended.complaint())),
                    String::new(),
                ));
            }
        };
        let mut attacks = Vec::new();
        let mut open = Vec::new();
        for _ in 0..PEERS {
            let attack = rng.pick(&[
                Attack::Garbage,
                Attack::Half,
                Attack::Mutated,
                Attack::Mutated,
                Attack::Names,
                Attack::Connections,
                Attack::Sound,
            ]);
            attacks.push(attack);
            self.attack(attack, &service, &mut rng, &mut open);
        }
        let peak_kib = peak_kib(&service);
        let is_alive = !service.handle.wait(micros(0));
        let ended = service.stop(Signal::TERM);
        let how = format!("{} seed {seed}, {attacks:?}", self.listener);
        let outcome = if ended.status.is_none() {
            Outcome::Hung(ended.complaint())
        } else if !is_alive || ended.has_panicked() || !ended.is_success() {
            Outcome::Panicked(format!("ended with {:?}: {}", ended.status, ended.complaint()))
        } else if peak_kib > PEAK_MAX_KIB {
            Outcome::Silent(format!("took {} MiB of memory", peak_kib / 1024))
        } else {
            balance(&report)
        };
        place.keep_if_wrong(&outcome);
        Ok((outcome, how))
    }

    fn start(&self, trial: &Trial<'_>, place: &TrialFolder, report: &Path) -> Result<StartingProcess> {
        let mut command = Command::new(trial.program);
        command.args([
            "ingest",
            "--quiet",
            "--listen",
            &format!("{}://127.0.0.1:0", self.listener),
            "--store",
        ]);
        if self.listener.starts_with("rrdcached") {
            command.arg(format!(
                "write-cache+rrd:{}/r?max_series=100&max_file_bytes=1MiB",
                place.root.display()
            ));
        } else {
            command.args(["memory:?max_bytes=32MiB", "--max-series", "2000"]);
        }
        command.args(["--max-connections", "64", "--out"]).arg(report);
        StartingProcess::command(command, None)
    }

    fn attack(&self, attack: Attack, service: &Service, rng: &mut Rng, open: &mut Vec<TcpStream>) {
        let mut sound = self.sound.clone();
        let bytes = match attack {
            Attack::Garbage => (0..rng.below(60_000)).map(|_| rng.next() as u8).collect(),
            Attack::Half => {
                sound.truncate(rng.below(sound.len() as u64) as usize);
                sound
            }
            Attack::Mutated => {
                mutate(&mut sound, rng);
                sound
            }
            Attack::Names => self.names(rng),
            Attack::Connections => Vec::new(),
            Attack::Sound => sound,
        };
        if self.listener.ends_with("udp") {
            datagrams(&service.address, &bytes, rng);
            return;
        }
        let count = if attack == Attack::Connections { FLOOD } else { 1 };
        for _ in 0..count {
            let Some(mut stream) = connect(&service.address) else {
                continue;
            };
            let _ = stream.write_all(&bytes);
            // Some stay, with what they have said by then.
            if rng.one_in(2) {
                open.push(stream);
            } else {
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read(&mut [0; 4096]);
            }
        }
    }

    /// Names that nobody else has, as far as the protocol is text.
    fn names(&self, rng: &mut Rng) -> Vec<u8> {
        let mut text = String::new();
        for _ in 0..NAMES {
            let (name, long) = (rng.next(), "x".repeat(rng.below(200) as usize));
            let _ = match self.listener.split('+').next().unwrap_or_default() {
                "influx" => writeln!(text, "n{name}{long} v=1 1700000000000000000"),
                "opentsdb" => writeln!(text, "put n{name}{long} 1700000000 1 a=b"),
                "hawkular" => writeln!(
                    text,
                    "{}{{\"id\":\"n{name}{long}\",\"data\":[{{\"timestamp\":1700000000000,\"value\":1}}]}}",
                    if text.is_empty() { "" } else { "," }
                ),
                "kairosdb" => writeln!(text, "putm n{name}{long} 1700000000000 1 a=b"),
                "statsd" => writeln!(text, "n{name}{long}:1|g"),
                "rrdcached" => writeln!(text, "UPDATE n{name}{long}.rrd 1900000000:1"),
                _ => writeln!(text, "n{name}{long} 1 1700000000"),
            };
        }
        if self.listener == "influx+http" {
            return post("/write?db=d", &text);
        }
        if self.listener == "hawkular+http" {
            return hawkular(&format!("[{text}]"));
        }
        text.into_bytes()
    }
}

fn post(target: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    format!("POST /query?q=CREATE+DATABASE+d HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n{head}{body}").into_bytes()
}

/// A write to a Hawkular, and a read of what it may have written.
fn hawkular(body: &str) -> Vec<u8> {
    let (path, length) = ("/hawkular/metrics/gauges", body.len());
    let write = format!("POST {path}/raw HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}");
    let read = format!(
        "GET {path}/a/raw?start=1600000000000&end=1800000000000 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nnull"
    );
    format!("{write}{read}GET /hawkular/metrics/metrics HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes()
}

/// Changes some bytes, repeats some and leaves some out.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.below(20) {
        let at = rng.below(bytes.len().max(1) as u64) as usize;
        let end = (at + rng.below(40) as usize).min(bytes.len());
        match rng.below(4) {
            0 if at < bytes.len() => bytes[at] = rng.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 => {
                let repeated = bytes[at.min(end)..end].to_vec();
                bytes.splice(end..end, repeated);
            }
            _ => drop(bytes.drain(at.min(end)..end)),
        }
    }
}

/// In pieces of any length, from sockets of their own.
fn datagrams(address: &str, bytes: &[u8], rng: &mut Rng) {
    let Some(place) = place_of(address) else { return };
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else {
            return;
        };
        for _ in 0..4 {
            let (piece, after) = rest.split_at((1 + rng.below(1400) as usize).min(rest.len()));
            let _ = socket.send_to(piece, &place);
            rest = after;
        }
    }
}

/// `HOST:PORT` of a listener's address.
fn place_of(address: &str) -> Option<String> {
    let place = address.split("://").nth(1)?;
    Some(place.split(['?', '/']).next()?.to_owned())
}

fn connect(address: &str) -> Option<TcpStream> {
    let stream = TcpStream::connect(place_of(address)?).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

/// What `tsb emit` sends in a short while.
fn capture(program: &Path, listener: &str) -> Result<Vec<u8>> {
    let is_datagrams = listener.ends_with("udp");
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    let port = if is_datagrams {
        udp.local_addr()?.port()
    } else {
        tcp.local_addr()?.port()
    };
    let to = format!("{listener}://127.0.0.1:{port}");
    let workload = if listener.starts_with("dalmatiner-") {
        "counters"
    } else {
        "kstat"
    };
    let mut command = Command::new(program);
    command.args(["emit", "--quiet", "--to", &to, "--workload", workload, "--series", "54"]);
    // A second of the fleet in a tenth of one: no protocol's resolution is finer than that.
    command.args(["--interval", "1s", "--rate", "540", "--duration", "300ms"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start tsb emit")?;
    let handle = ProcessHandle::of(child.id())?;
    let mut bytes = Vec::new();
    if is_datagrams {
        udp.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut datagram = vec![0; 1 << 16];
        while let Ok(len) = udp.recv(&mut datagram) {
            bytes.extend_from_slice(&datagram[..len]);
        }
    } else if let Some(mut stream) = accepted(&tcp, &handle)? {
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let _ = stream.read_to_end(&mut bytes);
    }
    let _ = child.kill();
    child.wait()?;
    anyhow::ensure!(!bytes.is_empty(), "tsb emit --to {to} sent nothing");
    bytes.truncate(1 << 16);
    Ok(bytes)
}

/// The first connection; `None` where the process that should connect ends before.
fn accepted(listener: &TcpListener, from: &ProcessHandle) -> Result<Option<TcpStream>> {
    listener.set_nonblocking(true)?;
    for _ in 0..10_000 {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false)?;
            return Ok(Some(stream));
        }
        if from.wait(micros(1000)) {
            break;
        }
    }
    Ok(None)
}

/// The most memory that it had at once.
fn peak_kib(service: &Service) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid)).unwrap_or_default();
    kib(&status, "VmHWM:").unwrap_or(0)
}

/// Whether the report accounts for all that came.
fn balance(report: &Path) -> Outcome {
    let text = fs::read_to_string(report).unwrap_or_default();
    let Ok(report) = serde_json::from_str::<Value>(&text) else {
        return Outcome::Silent("there is no report".to_owned());
    };
    let run = report["runs"].get(0).unwrap_or(&report);
    match &run["ledger"]["balanced"] {
        Value::Bool(false) => Outcome::Silent(format!("the ledger does not balance: {}", run["ledger"])),
        _ => Outcome::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_change_bytes_and_never_panic() {
        let sound = post("/write?db=d", "a v=1\n");
        let mutated = |seed| {
            let mut bytes = sound.clone();
            mutate(&mut bytes, &mut Rng::new(seed));
            bytes
        };
        assert!((0..200).filter(|&seed| mutated(seed) != sound).count() > 180);
        let mut empty = Vec::new();
        mutate(&mut empty, &mut Rng::new(1));
        assert!(empty.is_empty());
    }
}
