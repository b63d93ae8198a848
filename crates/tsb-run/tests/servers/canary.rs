//! A canary in a real server, behind a relay that loses, alters and delays samples.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsb_core::report::canary::{FaultKind, NamedFault};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::StopFlags;
use tsb_run::canary::{Canary, CanaryObserver, CanaryOptions};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::Failed;

/// For how long a line is held back: longer than the delay until samples are visible, and shorter than
/// one may be missing.
const HELD_S: u64 = 19;
/// For how long a sample may be missing.
const LOST_AFTER_S: u64 = 10;
/// How long the test runs where `TSB_TEST_CANARY_SECONDS` does not say so.
const SECONDS: u64 = 16;
/// What a kill may take: the server writes to its files every few seconds, and a canary writes samples
/// up to eight seconds late.
const IN_MEMORY_S: u64 = 12;
const WRITTEN_LATE_S: u64 = 8;

/// Series and time in milliseconds.
type Sample = (u32, i64);

/// What a relay did to samples.
#[derive(Debug, Default)]
struct RelayedFaults {
    lost: BTreeSet<Sample>,
    altered: BTreeSet<Sample>,
    late: BTreeSet<Sample>,
}

/// A relay of HTTP requests, which does not pass on each line of the text format as it is.
pub(crate) struct ImportRelay {
    port: u16,
    inner: Arc<RelayState>,
}

struct RelayState {
    server: u16,
    is_faulty: AtomicBool,
    lines: AtomicU64,
    faults: Mutex<RelayedFaults>,
}

impl ImportRelay {
    /// To a server at this port.
    pub(crate) fn to(server: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let inner = Arc::new(RelayState {
            server,
            is_faulty: AtomicBool::new(false),
            lines: AtomicU64::new(0),
            faults: Mutex::default(),
        });
        let state = Arc::clone(&inner);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || state.carry(&client));
            }
        });
        Ok(Self { port, inner })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl RelayState {
    fn faults(&self) -> MutexGuard<'_, RelayedFaults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request, and its answer; the connection ends with it.
    fn carry(self: &Arc<Self>, mut client: &TcpStream) -> Option<()> {
        let (head, body) = request(client)?;
        let is_import = head.starts_with("POST /api/v1/import/prometheus");
        let body = if is_import { self.changed(&body) } else { body };
        let answer = post(self.server, &head, &body)?;
        client.write_all(&answer).ok()
    }

    /// The lines of a body, without those that are lost or held back, and some with other values.
    fn changed(self: &Arc<Self>, body: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(body);
        let (mut out, mut held) = (String::new(), String::new());
        for line in text.lines() {
            let number = self.lines.fetch_add(1, Ordering::Relaxed);
            let sample = sample(line).filter(|_| self.is_faulty.load(Ordering::Relaxed));
            let Some(sample) = sample else {
                push(&mut out, line);
                continue;
            };
            // No two of them meet.
            match number % 60 {
                7 => drop(self.faults().lost.insert(sample)),
                27 => {
                    self.faults().altered.insert(sample);
                    push(&mut out, &altered(line));
                }
                47 => {
                    self.faults().late.insert(sample);
                    push(&mut held, line);
                }
                _ => push(&mut out, line),
            }
        }
        if !held.is_empty() {
            let state = Arc::clone(self);
            std::thread::spawn(move || {
                MonotonicClock::new().wait_until(HELD_S * SECOND_NS);
                let head = "POST /api/v1/import/prometheus HTTP/1.1\r\nHost: relay\r\n";
                post(state.server, head, held.as_bytes())
            });
        }
        out.into_bytes()
    }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// The head of a request without its length, and its body.
fn request(client: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut lines = BufReader::new(client);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        match lower.split_once(':') {
            Some(("content-length", bytes)) => length = bytes.trim().parse().ok()?,
            Some(("connection", _)) => {}
            _ if line == "\r\n" => break,
            _ => head += &line,
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The answer of a server at this port, whole.
fn post(server: u16, head: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).ok()?;
    let length = body.len();
    let head = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    server.write_all(&[head.as_bytes(), body].concat()).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// Which sample of a canary a line holds.
fn sample(line: &str) -> Option<Sample> {
    let (_, rest) = line.split_once("series=\"")?;
    let (series, rest) = rest.split_once('"')?;
    let at = rest.rsplit_once(' ')?.1.trim();
    Some((series.parse().ok()?, at.parse().ok()?))
}

/// The line with a value that is larger by one.
fn altered(line: &str) -> String {
    let mut words = line.rsplitn(3, ' ');
    let [at, value, name] = [(); 3].map(|()| words.next().unwrap_or_default());
    format!("{name} {} {at}", value.parse::<f64>().unwrap_or_default() + 1.0)
}

#[derive(Default)]
struct FaultList {
    faults: Mutex<Vec<NamedFault>>,
}

impl FaultList {
    fn of(&self, kind: FaultKind, interval_ns: i64) -> BTreeSet<Sample> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = faults.iter().filter(|fault| fault.kind == kind);
        let samples = of_kind.flat_map(|fault| {
            let number = |text: &str| text.trim_end_matches(['}', '"']).trim_start_matches('"').parse().ok();
            let series = fault.series.rsplit_once("series=").and_then(|(_, text)| number(text));
            (0..fault.samples as i64)
                .filter_map(move |n| Some((series?, (fault.first.0 + n * interval_ns) / 1_000_000)))
        });
        samples.collect()
    }
}

impl CanaryObserver for FaultList {
    fn fault(&self, fault: &NamedFault) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.push(fault.clone());
    }

    fn failed(&self, _: &'static str, _: &tsb_stores::Error) {}

    fn stepped(&self, _: &Canary) {}
}

/// Runs a canary through a relay that misbehaves, and a server that is killed: what it names is what
/// the relay did, and of what was written shortly before the kill any part may be lost, too.
pub(crate) fn finds_each_fault(
    spec: &str,
    relay: &ImportRelay,
    mut kill: impl FnMut() -> Result<(), Failed>,
) -> Result<(), Failed> {
    let store: Arc<dyn tsb_stores::Store> = open(spec)?.into();
    let delay_s = store.capabilities().visibility_delay_ms.div_ceil(1_000);
    if !(delay_s + 2..delay_s + LOST_AFTER_S).contains(&HELD_S) {
        return Err(format!("a delay of {delay_s} s: what is held back is not late, or lost").into());
    }
    let clock = Arc::new(MonotonicClock::new());
    let mut options = CanaryOptions::default();
    (options.series, options.interval_ns) = (20, SECOND_NS);
    (options.keeps_ns, options.lost_after_ns) = (7_200 * SECOND_NS, LOST_AFTER_S * SECOND_NS);
    let interval_ns = options.interval_ns as i64;
    let heard = FaultList::default();
    let mut canary = Canary::start(store, Arc::clone(&clock) as Arc<dyn Clock>, options, &heard)?;
    let asked = std::env::var("TSB_TEST_CANARY_SECONDS").ok();
    let half_ns = asked.and_then(|text| text.parse().ok()).unwrap_or(SECONDS) * SECOND_NS / 2;
    let stops = StopFlags::default();
    let until = |ns: u64, canary: &mut Canary| canary.run(&stops, Some(ns), &heard);
    relay.inner.is_faulty.store(true, Ordering::Relaxed);
    until(half_ns, &mut canary)?;
    // All that it changed is in the server's files before the kill.
    relay.inner.is_faulty.store(false, Ordering::Relaxed);
    let killed_ns = half_ns + (HELD_S + IN_MEMORY_S) * SECOND_NS;
    until(killed_ns, &mut canary)?;
    let killed_ms = clock.wall().0 / 1_000_000;
    kill()?;
    until(killed_ns + 5 * SECOND_NS, &mut canary)?;
    relay.inner.is_faulty.store(true, Ordering::Relaxed);
    let last_ns = killed_ns + 5 * SECOND_NS + half_ns;
    until(last_ns, &mut canary)?;
    relay.inner.is_faulty.store(false, Ordering::Relaxed);
    until(last_ns + (4 + LOST_AFTER_S + HELD_S + delay_s) * SECOND_NS, &mut canary)?;
    let report = canary.report();
    let done = relay.inner.faults();
    let in_memory_ms = (IN_MEMORY_S + WRITTEN_LATE_S) as i64 * 1_000;
    let near_kill = |sample: &Sample| (killed_ms - in_memory_ms..=killed_ms + 1_000).contains(&sample.1);
    let named = [FaultKind::Lost, FaultKind::Altered, FaultKind::Late].map(|kind| heard.of(kind, interval_ns));
    let (mut wrong, mut counts) = (Vec::new(), Vec::new());
    for (what, named, done) in [
        ("lost", &named[0], &done.lost),
        ("altered", &named[1], &done.altered),
        ("late", &named[2], &done.late),
    ] {
        // A kill loses, and does nothing else.
        let is_of_kill = |sample: &&Sample| what == "lost" && near_kill(sample);
        let more: Vec<_> = named.difference(done).filter(|sample| !is_of_kill(sample)).collect();
        let less: Vec<_> = done.difference(named).collect();
        if !more.is_empty() || !less.is_empty() || done.is_empty() {
            wrong.push(format!(
                "{what}: {more:?} were named, {less:?} were not, of {}",
                done.len()
            ));
        }
        counts.push(format!("{what} {}, by the relay {}", named.len(), done.len()));
    }
    let others = [FaultKind::Invented, FaultKind::Duplicated].map(|kind| report.count(kind));
    if !report.is_balanced() || others != [0, 0] || report.samples.let_go_unseen > 0 {
        wrong.push(format!("{:?}, {others:?}", report.samples));
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; ").into());
    }
    println!(
        "a canary: {}, {} acknowledged",
        counts.join(", "),
        report.samples.acknowledged
    );
    Ok(())
}
